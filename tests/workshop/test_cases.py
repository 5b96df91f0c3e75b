"""Files of cases: reading, and holding what came against what was expected."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from wave_agent.formats.yaml_json import YAMLProblemError, parse_yaml
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.rules.rule import Places
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.testing import FakeHookRunner
from wave_agent.tools.registry import builtin_tools
from wave_agent.workshop.cases import CHECKS, Case, CaseFileError, differences, read_cases, run_case
from wave_agent.workshop.trial import Bench, ProjectJudge

HOOKS = load_hooks([hooks_in_code({"PreToolUse": ["./guard"], "UserPromptSubmit": ["./context"]})]).hooks
TOOLS = ["Bash", "Read"]


def write(tmp_path: Path, text: str, name: str = "cases.yaml") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def bench(**runs: HookExecutionResult) -> Bench:
    return Bench(
        hooks=HOOKS,
        environment={},
        judge=ProjectJudge(places=Places("/srv/project", "/home/ada")),
        tools={tool.name: tool for tool in builtin_tools()},
        runner=FakeHookRunner({f"./{name}": result for name, result in runs.items()}),
    )


GOOD = """\
cases:
  - name: denied
    event: PreToolUse
    tool: Bash
    input: {command: rm}
    expect: block
  - event: UserPromptSubmit
    prompt: 2024-01-02
    expect:
      context: weather
      exit_code: 0
"""


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    from_yaml = read_cases(write(tmp_path, GOOD), HOOKS, TOOLS)
    as_json = json.dumps(parse_yaml(GOOD).value)
    from_json = read_cases(write(tmp_path, as_json, "cases.json"), HOOKS, TOOLS)
    assert [(case.name, case.subject, case.expect) for case in from_yaml] == [
        (case.name, case.subject, case.expect) for case in from_json
    ]
    first, second = from_yaml
    assert (first.name, first.expect, first.subject.facts["tool_input"]) == (
        *("denied", {"outcome": "block"}, {"command": "rm"}),
    )
    assert first.place.endswith("cases.yaml:2")
    assert second.subject.facts["prompt"] == "2024-01-02"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ":1: the top level: must be a list of cases"),
        ("case: []", ':1: case: unknown key "case" (did you mean "cases"?)'),
        ("- 1", ":1: [0]: a case must be an object, not a number"),
        ("- event: PreToolUse\n  tol: Bash", ':2: [0].tol: unknown key "tol" (did you mean "tool"?)'),
        ("- tool: Bash\n  expect: none", ':1: [0]: needs an "event"'),
        ("- event: PreToolUs\n  expect: none", '(did you mean "PreToolUse"?)'),
        ("- event: PreToolUse\n  tool: Bsh\n  expect: none", '(did you mean "Bash"?)'),
        ("- event: PreToolUse\n  tool: Bash\n  hook: gard\n  expect: none", '(did you mean "guard"?)'),
        ("- event: PreToolUse\n  tool: Bash", ":1: [0].expect: a case must expect something"),
        ("- event: Stop\n  expect: {}", ":2: [0].expect: a case must expect something"),
        ("- event: Stop\n  expect: 1", ":2: [0].expect: must be a word or an object, not a number"),
        ("- event: Stop\n  expect: blok", '"blok" is not an outcome (did you mean "block"?)'),
        ("- event: Stop\n  expect:\n    exit_code: 'x'", ":3: [0].expect.exit_code: must be a number, not a string"),
        ("- event: Stop\n  expect:\n    failures: yes", ":3: [0].expect.failures: must be a number, not true or false"),
        ("- event: Stop\n  expect:\n    raeson: x", ':3: [0].expect.raeson: unknown key "raeson"'),
        ("- event: PreToolUse\n  tool: Bash\n  input: ls\n  expect: none", "tool_input must be an object"),
        ("- event: Stop\n  name: 1\n  expect: none", ":2: [0].name: must be a string, not a number"),
        ("- a: b\n  a: c", ':2:3: not valid YAML: duplicate key "a"'),
        ("- [", "not valid YAML: "),
        ("- !!python/object:os.system {}", "not valid YAML: "),
        ("- !!set {a}", "not valid YAML: "),
        ("- {1: {? [a] : b}}", "keys must be plain text"),
        ("a: &a [*a]", "nested deeper than"),
        ("- " + "[" * 5_000, ":1:1: not valid YAML: nested deeper than"),
        ("{a: " * 5_000, ":1:1: not valid YAML: nested deeper than"),
        ("\x01", "not valid YAML: "),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CaseFileError, match=re.escape(problem)) as caught:
        read_cases(write(tmp_path, text), HOOKS, TOOLS)
    assert str(caught.value).startswith(str(tmp_path / "cases.yaml:"))


def test_wrong_json_has_its_place_too(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match=r"cases\.json:2:1: not valid JSON"):
        read_cases(write(tmp_path, "[\n", "cases.json"), HOOKS, TOOLS)


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="cannot be read: No such file"):
        read_cases(str(tmp_path / "none.yaml"), HOOKS, TOOLS)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(CaseFileError, match="is not UTF-8"):
        read_cases(str(tmp_path / "bytes.yaml"), HOOKS, TOOLS)


def test_aliases_cannot_grow_without_limit() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(YAMLProblemError, match="more than 100,000 values"):
        parse_yaml("\n".join(lines))


@given(st.text(alphabet="-:{}[]&*!|>'\"#%@, \n\tab01", max_size=40))
def test_any_text_is_a_document_or_a_problem_that_is_told(text: str) -> None:
    with suppress(YAMLProblemError):
        parse_yaml(text)


# ------------------------------------------------------------------------------------------------------------ expecting


def case(tmp_path: Path, expect: str, **more: str) -> Case:
    body = "".join(f"  {key}: {value}\n" for key, value in more.items())
    (found,) = read_cases(
        write(tmp_path, f"- event: PreToolUse\n  tool: Bash\n{body}  expect: {expect}\n"), HOOKS, TOOLS
    )
    return found


async def differs(found: Case, result: HookExecutionResult) -> dict[str, Any]:
    return {one.what: one.actual for one in differences(found.expect, await run_case(found, bench(guard=result)))}


BLOCK = HookExecutionResult(exit_code=2, stderr="rm is not allowed")
REWRITE = HookExecutionResult(
    exit_code=0, stdout='{"hookSpecificOutput": {"updatedInput": {"command": "ls"}, "additionalContext": "tidied"}}'
)


@pytest.mark.parametrize(
    ("expect", "result"),
    [
        ("block", BLOCK),
        ("{outcome: block, reason: not allowed, exit_code: 2, model: not allowed, hooks: [guard]}", BLOCK),
        ("{outcome: context, context: tidied, input: {command: ls}, permission: ask, user: consent}", REWRITE),
        ("{outcome: failure, failures: 1}", HookExecutionResult(exit_code=1)),
        ("failure", HookExecutionResult(exit_code=1)),
    ],
)
async def test_what_comes_as_expected_does_not_differ(tmp_path: Path, expect: str, result: HookExecutionResult) -> None:
    assert await differs(case(tmp_path, expect, input="{command: rm x}"), result) == {}


@pytest.mark.parametrize(
    ("expect", "result", "actual"),
    [
        ("none", BLOCK, {"outcome": "block"}),
        ("{reason: other, exit_code: 0}", BLOCK, {"reason": "rm is not allowed", "exit_code": 2}),
        ("{input: {command: la}}", REWRITE, {"input": {"command": "ls"}}),
        ("{input: {command: ls, timeout: 1}}", REWRITE, {"input": {"command": "ls"}}),
        ("{output: x, permission: deny}", REWRITE, {"output": "", "permission": "ask"}),
        ("{hooks: []}", BLOCK, {"hooks": ["guard"]}),
    ],
)
async def test_what_differs_is_told_with_what_came(
    tmp_path: Path, expect: str, result: HookExecutionResult, actual: dict[str, Any]
) -> None:
    assert await differs(case(tmp_path, expect, input="{command: rm x}"), result) == actual


@pytest.mark.parametrize("expect", ["none", "block"])
async def test_a_hook_that_fails_and_is_let_through_meets_no_expectation(tmp_path: Path, expect: str) -> None:
    assert "failures" in await differs(case(tmp_path, expect), HookExecutionResult(exit_code=1, stderr="broken"))


def test_every_check_says_what_it_is() -> None:
    assert all(check.meaning for check in CHECKS.values())


async def test_a_case_can_have_its_hooks_read_as_those_of_another_agent(tmp_path: Path) -> None:
    text = "[{event: PreToolUse, tool: Bash, expect: block, dialect: claude}]"
    (asked,) = read_cases(write(tmp_path, text), HOOKS, TOOLS)
    allowed = '{"hookSpecificOutput": {"permissionDecision": "allow"}}'
    tried = bench(guard=HookExecutionResult(exit_code=2, stdout=allowed, stderr="No."))
    assert differences(asked.expect, await run_case(asked, tried)) == ()
    assert differences(asked.expect, await run_case(replace(asked, dialect=None), tried)) != ()
    with pytest.raises(
        CaseFileError, match=r"\[0\]\.dialect: \"cloude\" is not a dialect \(did you mean \"claude\"\?\)"
    ):
        read_cases(write(tmp_path, text.replace("claude", "cloude")), HOOKS, TOOLS)
