"""What the model reads of a call that did not run, or not as it asked."""

import json
from pathlib import Path
from typing import Any

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

NOBODY = "and nobody can confirm it in this run. Do without it, or tell the user."


def results(server: RecordingModelServer) -> list[str]:
    """The results that the model got with its last request."""
    return [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "tool"]


def says(project: Project, name: str, **specific: Any) -> dict[str, str]:
    """A hook that prints this, and keeps a log of what it was given."""
    printed = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **specific}})
    script = project.directory / name
    script.write_text(f"#!/bin/sh\ncat >> {name}.log; echo >> {name}.log\ncat <<'JSON'\n{printed}\nJSON\n")
    script.chmod(0o755)
    return {"command": f"./{name}", "name": name}


def test_a_model_that_is_refused_without_a_reason_tries_the_same_again(project: Project, tmp_path: Path) -> None:
    asks = says(project, "guard", permissionDecision="ask", permissionDecisionReason="Only in June.")
    project.settings({
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{**asks, "if": "Bash(make:*)"}]}]},
        "permissions": {"deny": ["Bash(rm:*)"], "ask": ["Bash(git push:*)"]},
    })  # fmt: skip
    outside = tmp_path / "elsewhere.txt"
    outside.write_text("not for you")
    settings = project.directory / ".wave" / "settings.json"
    calls = [
        call("Bash", command="touch made.txt"),
        call("Read", file_path=str(outside)),
        call("Write", file_path=".wave/settings.json", content="{}"),
        call("Bash", command="git push origin"),
        call("Bash", command="rm -rf src"),
        call("Bash", command="make deploy"),
        call("Glob", pattern="*.py"),
    ]
    with serving(Reply(tool_calls=calls), "I could not.") as server:
        done = project.wave("-p", "go", "--trust", "--output-format", "json", server=server)

    mode, path, protected, rule, denied, hook, looked = results(server)
    assert mode == f"Not run: Bash needs confirmation in the permission mode default, {NOBODY}"
    assert path == f"Not run: {outside} is outside the project, so Read needs confirmation, {NOBODY}"
    because = "Not run: this call needs confirmation because of"
    assert protected == f"{because} the protected path {settings}, {NOBODY}"
    assert rule == f"{because} the permission rule Bash(git push:*), {NOBODY}"
    assert denied == "Not run: denied by the permission rule Bash(rm:*). Do without it, or tell the user."
    assert hook == f"{because} hook guard, {NOBODY}"
    assert not looked.startswith("Not run")
    assert "Only in June." not in json.dumps(server.requests[-1].body)
    assert len((project.directory / "guard.log").read_text().strip().splitlines()) == 1
    assert not (project.directory / "made.txt").exists()
    assert json.loads(settings.read_text())["hooks"]
    assert "Only in June." in done.stderr
    blocks = [block for message in json.loads(done.stdout)["messages"] for block in message["blocks"]]
    refused = [block["error"] for block in blocks if block["type"] == "tool" and block["error"]]
    assert refused == ["Permission denied"] * 6


def test_plan_mode_and_dont_ask_are_named_and_a_shell_of_the_session_can_be_ended_in_both(project: Project) -> None:
    start = Reply(tool_calls=[call("Bash", command="sleep 600", run_in_background=True)])
    end = Reply(tool_calls=[call("KillShell", shell_id="bash_1"), call("BashOutput", bash_id="bash_1"),
                            call("Write", file_path="a.txt", content="a")])  # fmt: skip
    with serving(start, end, "Over.") as server:
        project.wave("-p", "go", "--permission-mode", "dontAsk", "--allowed-tools", "Bash(sleep:*)", server=server)
    _, killed, output, written = results(server)
    assert killed.startswith("bash_1 and everything it started were ended.")
    assert "[bash_1: " in output
    nobody = NOBODY.replace("run.", "run (permission mode dontAsk).")
    assert written == f"Not run: no permission rule allows Write here, {nobody}"
    with serving(end, "Planned.") as server:
        project.wave("-p", "go", "--permission-mode", "plan", server=server)
    killed, output, written = results(server)
    assert "Not run" not in killed + output  # an error about a shell that there is not
    assert "bash_1" in killed
    assert written == "Not run: plan mode only lets you read, and Write does more. Put it into the plan."
    with serving(end, "Denied.") as server:
        project.wave("-p", "go", "--disallowed-tools", "KillShell", server=server)
    assert results(server)[0] == ("Not run: denied by the permission rule KillShell. Do without it, or tell the user.")


def test_an_input_that_a_hook_has_rewritten_puzzles_the_model_that_never_wrote_it(project: Project) -> None:
    rewrites = says(project, "keys", updatedInput={"command": "TOKEN=hunter2 sh -c 'echo $0' done", "timeout": 5000})
    same = says(project, "same", updatedInput={"command": "echo hello"})
    hooks = [{**rewrites, "if": "Bash(deploy)"}, {**same, "if": "Bash(echo hello)"}]
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": hooks}]}})
    asked = Reply(tool_calls=[call("Bash", command="deploy"), call("Bash", command="echo hello")])
    with serving(asked, "Done.") as server:
        project.wave("-p", "go", "--trust", "--allowed-tools", "Bash", server=server)
    changed, unchanged = results(server)
    assert changed == "done\n\nHook keys changed the input of this call: command, timeout."
    assert unchanged == "hello"
    assert "hunter2" not in json.dumps(server.requests[-1].body)


def test_calls_behind_one_that_ended_the_turn_are_told_as_not_run(project: Project) -> None:
    stop = project.directory / "stop"
    stop.write_text('#!/bin/sh\necho \'{"continue": false, "stopReason": "enough"}\'\n')
    stop.chmod(0o755)
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "./stop"}]}]}})
    asked = Reply(tool_calls=[call("Bash", command="touch made"), call("Write", file_path="b.txt", content="b")])
    with serving(asked, "Going on.") as server:
        done = project.wave("-p", "go", "--trust", "--permission-mode", "acceptEdits", server=server)
        project.wave("-p", "more", "-c", "--trust", server=server)
    assert done.returncode == 3
    assert results(server) == ["Not run: a hook ended the turn."] * 2
    assert sorted(path.name for path in project.directory.iterdir()) == [".wave", "stop"]
