"""`run_hook`: one hook on one event, in a test."""

from pathlib import Path
from typing import Any

import pytest

from wave_agent.errors import SettingsError
from wave_agent.hooks import HookCall, allow, ask, context, deny, hook, replace_output, rewrite, stop, tell
from wave_agent.testing import run_hook

GUARD = """\
from wave_agent.hooks import deny, hook


@hook
def guard(call):
    if "rm" in call.input["command"]:
        return deny("no rm")


if __name__ == "__main__":
    guard.main()
"""


def answering(answer: Any) -> Any:
    @hook
    def one(_: HookCall) -> Any:
        return answer

    return one


@pytest.mark.parametrize(
    ("answer", "decision", "reason"),
    [
        (deny("no"), "block", "no"),
        (ask("sure?"), "ask", "sure?"),
        (allow("fine"), "allow", "fine"),
        (stop("enough"), "stop", "enough"),
        (None, "none", ""),
        (context("by the way"), "none", ""),
    ],
)
def test_each_answer_is_told_by_its_decision_and_reason(answer: Any, decision: str, reason: str) -> None:
    result = run_hook(answering(answer), tool="Bash", input={"command": "ls"})
    assert (result.decision, result.reason, result.exit_code) == (decision, reason, 0)


def test_what_else_an_answer_holds_is_told_too() -> None:
    answer = rewrite(command="ls -l") | context("tidied") | tell("changed it")
    result = run_hook(answering(answer), tool="Bash", input={"command": "ls"})
    assert (result.input, result.context, result.told) == ({"command": "ls -l"}, "tidied", ("changed it",))
    replaced = run_hook(answering(replace_output("[redacted]")), tool="Bash", response={"content": "secret"})
    assert replaced.output == "[redacted]"


def test_a_function_that_raises_is_a_failure_and_no_decision() -> None:
    def broken(call: HookCall) -> Any:
        return deny(call.input["absent"])

    result = run_hook(broken, tool="Bash", input={"command": "ls"})
    assert (result.decision, result.reason, result.exit_code) == ("failure", "KeyError: 'absent'", 1)


def test_the_event_is_as_the_agent_builds_it(tmp_path: Path) -> None:
    seen: list[HookCall] = []
    run_hook(seen.append, tool="Read", input={"file_path": "a.txt"}, cwd=tmp_path)
    run_hook(seen.append, prompt="hello")
    run_hook(seen.append, event="Stop", payload={"stop_hook_active": True})
    read, prompt, ended = seen
    assert read.input == {"file_path": str(tmp_path / "a.txt")}
    assert (prompt.event, prompt.prompt, prompt["user_prompt"]) == ("UserPromptSubmit", "hello", "hello")
    assert (ended.event, ended.stop_hook_active, ended.permission_mode) == ("Stop", True, "default")
    assert read.session != prompt.session


def test_a_hook_finds_a_transcript_while_it_runs() -> None:
    found: list[str] = []

    def look(call: HookCall) -> None:
        found.append(Path(call.transcript_path).read_text())

    run_hook(look, prompt="hello")
    assert '"type":"session"' in found[0]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_python_script_is_run_as_a_process(tmp_path: Path, as_text: bool) -> None:
    script = tmp_path / "guard.py"
    script.write_text(GUARD)
    denied = run_hook(str(script) if as_text else script, tool="Bash", input={"command": "rm x"})
    assert (denied.decision, denied.reason, denied.stdout) == (
        *("block", "no rm", '{"decision": "block", "reason": "no rm"}'),
    )
    assert run_hook(script, tool="Bash", input={"command": "ls"}).decision == "none"
    broken = run_hook(script, tool="Bash")
    assert (broken.decision, "KeyError: 'command'" in broken.stderr) == ("failure", True)


def test_another_script_gets_its_arguments_and_a_command_is_a_command(tmp_path: Path) -> None:
    script = tmp_path / "guard.sh"
    script.write_text('#!/bin/sh\necho "not $1" >&2\nexit 2\n')
    script.chmod(0o755)
    assert run_hook(script, tool="Bash").reason == "not Bash"
    assert run_hook("echo no >&2; exit 2", tool="Bash").reason == "no"


def test_a_hook_that_hangs_is_ended() -> None:
    assert run_hook("exec sleep 600", tool="Bash", timeout=0.2).decision == "failure"


async def test_it_works_in_a_test_that_is_asynchronous() -> None:
    assert run_hook(answering(deny("no")), tool="Bash").decision == "block"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"event": "PreToolUs", "tool": "Bash"}, 'did you mean "PreToolUse"'),
        ({"event": "Stop", "tool": "Bash"}, "Stop has no tool"),
    ],
)
def test_what_is_no_event_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        run_hook(answering(None), **given)


def test_a_script_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Script .*none\.py does not exist"):
        run_hook(tmp_path / "none.py", tool="Bash")
    with pytest.raises(SettingsError, match="must be more than 0 seconds"):
        run_hook(answering(None), tool="Bash", timeout=0)
