"""Calls that a guard cannot read: `cmd=$(jq -r .tool_input.command)` is empty then, and an empty string is harmless.

They are refused with and without a guard, so the other side of each attempt is the guard itself, given such an input.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent import Agent, Allow, PermissionRequest, tool
from wave_agent.hooks.authoring import HookCall
from wave_agent.testing import Reply, ScriptedModel
from wave_agent.testing import call as made
from wave_agent.testing.model_server import Events, delta

GUARD = """#!/bin/sh
cmd=$(jq -r .tool_input.command)
echo "seen: $cmd" >> log
case $cmd in *canary*) echo "not this" >&2; exit 2;; esac
"""
JQ = f"""#!{sys.executable}
import json, sys
def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)
event = json.loads(sys.stdin.buffer.read().decode())
json.dumps(event, ensure_ascii=False).encode()
assert depth(event) < 256
print(event["tool_input"]["command"])
"""
"""As strict as the real one, for machines without it."""
COMMAND = '"command": "touch canary"'
UNREADABLE = {
    "half a pair": f'{{{COMMAND}, "description": "\\ud800"}}',
    "the other half": f'{{"description": "a\\uDC00b", {COMMAND}}}',
    "a pair the wrong way round": f'{{{COMMAND}, "description": "\\udc00\\ud800"}}',
    "in a key": f'{{{COMMAND}, "\\ud800": 1}}',
    "within": f'{{{COMMAND}, "description": [{{"a": ["\\ud800"]}}]}}',
    "NUL in another field": f'{{{COMMAND}, "description": "\\u0000"}}',
    "NUL in a key": f'{{{COMMAND}, "a\\u0000": 1}}',
    "NUL in the command": '{"command": "touch canary\\u0000"}',
    "deeper than jq reads": f'{{{COMMAND}, "description": {"[" * 300}{"]" * 300}}}',
    "deeper than Python reads": f'{{{COMMAND}, "description": {"[" * 100_000}{"]" * 100_000}}}',
    "no number": f'{{{COMMAND}, "timeout": 1e999}}',
    "more digits than Python reads": f'{{{COMMAND}, "timeout": {"9" * 5000}}}',
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {project.directory / "guard.sh": GUARD, programs / "jq": JQ}.items():
        name.write_text(text)
        name.chmod(0o755)
    if real := shutil.which("jq"):
        (programs / "jq").unlink()
        (programs / "jq").symlink_to(real)
    hook = {"command": "./guard.sh", "onFailure": "block"}
    (project.directory / "s.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    return project


def call(arguments: str, *, name: str = "Bash", identity: str = "c") -> Events:
    function = {"name": name, "arguments": arguments}
    return Events([delta(tool_calls=[{"index": 0, "id": identity, "function": function}]), delta("tool_calls")])


def run(project: Project, *calls: Events, guarded: bool = True) -> tuple[dict[str, Any], list[str]]:
    """The result object, and what the model got for each call."""
    arguments = ["--settings", "s.json"] if guarded else []
    path = f"{project.directory.parent / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    with serving(*calls, "Done.") as server:
        done = project.wave(
            "-p", "go", "--output-format", "json", "--permission-mode", "bypassPermissions", *arguments,
            server=server, PATH=path,
        )  # fmt: skip
    told = [request.body["messages"][-1]["content"] for request in server.requests[1:]]
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), told


def test_the_guard_works_and_without_it_the_command_runs(project: Project) -> None:
    plain = call(f"{{{COMMAND}}}")
    _, (told,) = run(project, plain)
    assert told.startswith("Not run: ")
    assert (project.directory / "log").read_text() == "seen: touch canary\n"
    assert not (project.directory / "canary").exists()
    run(project, plain, guarded=False)
    assert (project.directory / "canary").exists()


def test_such_a_call_would_blind_the_guard(project: Project) -> None:
    """What the agent once gave it. Not all of these blind every version of jq, but one is enough."""
    blinded = 0
    for arguments in UNREADABLE.values():
        done = subprocess.run(
            ["./guard.sh"], cwd=project.directory, input=f'{{"tool_input": {arguments}}}', text=True, check=False,
            env={"PATH": f"{project.directory.parent / 'bin'}:/usr/bin:/bin"}, capture_output=True,
        )  # fmt: skip
        blinded += done.returncode == 0
    assert blinded >= 2


def test_what_a_guard_cannot_read_is_refused_before_it_has_to(project: Project) -> None:
    calls = [call(arguments) for arguments in UNREADABLE.values()]
    calls += [call(f"{{{COMMAND}}}", name="Bash\0"), call(f"{{{COMMAND}}}", identity="c\0"), call("{}", name="B" * 129)]
    result, told = run(project, *calls)
    assert len(told) == len(calls)
    for what, text in zip([*UNREADABLE, "name", "id", "long name"], told, strict=True):
        assert text.startswith(("Not run: ", "The arguments of Bash are not valid JSON")), what
    assert '"description" contains half of a surrogate pair (U+D800) at character 1' in told[0]
    assert '"description[0].a[0]" contains half' in told[4]
    assert "a NUL character (U+0000)" in told[5]
    assert not (project.directory / "log").exists()
    assert not (project.directory / "canary").exists()
    assert result["status"] == "completed"
    assert result["hooks"] == []
    transcript = Path(result["transcript_path"]).read_text(encoding="utf-8")
    assert "\\ud800" not in transcript.lower()


def test_output_that_is_no_text_reaches_hooks_and_the_model_as_text(project: Project) -> None:
    """A redactor that cannot read a result would let it through."""
    hook = {"command": "cat >> seen.jsonl; echo >> seen.jsonl"}
    (project.directory / "s.json").write_text(json.dumps({"hooks": {"PostToolUse": [{"hooks": [hook]}]}}))
    (project.directory / "odd.txt").write_bytes(b"a\xffb")
    odd = json.dumps({"command": "printf 'a\\377\\0b'"})
    read = json.dumps({"file_path": "odd.txt"})
    result, _ = run(project, call(odd), call(read, name="Read"))
    assert result["status"] == "completed"
    lines = (project.directory / "seen.jsonl").read_bytes().decode().splitlines()
    for line in lines:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
        assert "\\u0000" not in line
    assert len(lines) == 2


def test_a_prompt_that_is_no_text_is_judged_as_the_model_gets_it(project: Project) -> None:
    hook = {"command": "cat > seen.json"}
    (project.directory / "s.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}))
    with serving("fine") as server:
        done = project.wave("-p", "a\udcffb", "--output-format", "json", "--settings", "s.json", server=server)
    assert json.loads((project.directory / "seen.json").read_text())["prompt"] == "a\ufffdb"
    assert server.requests[0].body["messages"][-1]["content"] == "a\ufffdb"
    assert json.loads(done.stdout)["status"] == "completed"


def test_a_directory_whose_name_is_no_text_is_refused(project: Project) -> None:
    odd = project.directory / "odd\udcff"
    odd.mkdir()
    done = project.wave("-p", "go", "--cwd", str(odd))
    assert done.returncode == 1
    assert "odd\\udcff is not valid UTF-8" in done.stderr
    assert "Traceback" not in done.stderr


async def test_what_a_program_hands_in_is_read_by_hooks_as_the_model_gets_it(tmp_path: Path) -> None:
    """Prompts, results of its own tools, and names: all in Python, where a string can hold anything."""
    seen: list[HookCall] = []

    @tool
    def odd() -> str:
        """Returns what is no text."""
        return "a\ud800\0b"

    model = ScriptedModel([Reply(tool_calls=[made("odd")]), "Half\ud83d", "fine"])
    hooks = {"UserPromptSubmit": [seen.append], "PostToolUse": [seen.append]}
    async with await Agent.create(
        workdir=tmp_path, model_client=model, hooks=hooks, tools=[odd], permission_mode="bypassPermissions"
    ) as agent:
        result = await agent.send_message("go\ud800")
        assert (await agent.send_message("on")).status == "completed"
    assert result.status == "completed"
    prompt, after, _ = seen
    assert prompt["prompt"] == model.requests[0].messages[-1]["content"] == "go\ufffd"
    assert after["tool_response"]["content"] == model.requests[1].messages[-1]["content"] == "a\ufffdb"
    assert result.text == "Half\ufffd"
    assert "\\ud8" not in Path(str(result.transcript_path)).read_text()


@pytest.mark.parametrize("text", ["touch ran\0", "touch ran # \ud800"])
async def test_what_a_hook_or_a_person_puts_into_a_call_must_be_readable_too(tmp_path: Path, text: str) -> None:
    def rewriting(call: HookCall) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": text}}}

    def changing(request: PermissionRequest) -> Allow:
        return Allow({"command": text})

    variants: list[dict[str, Any]] = [{"hooks": {"PreToolUse": [rewriting]}}, {"can_use_tool": changing}]
    for options in variants:
        model = ScriptedModel([Reply(tool_calls=[made("Bash", command="true")]), "fine"])
        async with await Agent.create(workdir=tmp_path, model_client=model, **options) as agent:
            result = await agent.send_message("go")
        assert result.status == "completed"
        assert not (tmp_path / "ran").exists()
