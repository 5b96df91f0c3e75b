"""Sessions with a real MCP server: everything that hooks and rules do holds for its tools."""

import json
import marshal
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

SERVER = Path(__file__).parent.parent / "mcp" / "servers" / "notes.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def entry(project: Project) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER), str(project.directory.parent / "calls")]}


def calls(project: Project) -> list[Any]:
    file = project.directory.parent / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def printing(output: dict[str, Any]) -> str:
    return f"cat > /dev/null; echo '{json.dumps(output)}'"


def specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def tool(name: str, text: str = "x") -> Any:
    return call(f"mcp__notes__{name}", text=text)


def user_settings(project: Project, **settings: Any) -> None:
    project.home.mkdir(exist_ok=True)
    (project.home / "settings.json").write_text(json.dumps(settings))


def results(server: Any) -> dict[str, str]:
    """By tool: what the model got."""
    last = server.requests[-1].body["messages"]
    asked = {one["id"]: one["function"]["name"] for message in last for one in message.get("tool_calls") or ()}
    return {
        asked[one["tool_call_id"]].removeprefix("mcp__notes__"): one["content"] for one in last if one["role"] == "tool"
    }


def test_everything_that_hooks_do_holds_for_the_tools_of_a_server(project: Project) -> None:
    def on(name: str, command: str, **more: Any) -> dict[str, Any]:
        return {"matcher": f"mcp__notes__{name}", "hooks": [{"command": command, "name": f"on {name}", **more}]}

    judge = {"type": "mcp_tool", "server": "notes", "tool": "judge", "input": {"it": "${tool_input.text}"}}
    redacted = specific("PostToolUse", updatedToolOutput="the key is [gone]")
    answer = specific("PermissionRequest", decision={"behavior": "allow"})
    no = specific("PermissionRequest", decision={"behavior": "deny", "message": "Not today."})
    user_settings(
        project,
        mcpServers={"notes": entry(project)},
        permissions={
            "allow": ["mcp__notes__echo", "mcp__notes__fail", "mcp__notes__s*", "mcp__notes__broken", "mcp__notes__r*"],
            "ask": ["mcp__notes__refused"],
            "deny": ["Read(.env)"],
        },
        hooks={
            "PreToolUse": [
                on("rewritten", printing(specific("PreToolUse", updatedInput={"text": "safe"}))),
                on("asked", "cat > /dev/null; echo 'No, never.' >&2; exit 2"),
                {"matcher": "mcp__notes__echo", "hooks": [judge]},
            ],
            "PermissionRequest": [on("allowed", printing(answer)), on("refused", printing(no))],
            "PostToolUse": [
                on("secret", printing(redacted)),
                on("broken", "exit 1", onFailure="block"),
                on("rewritten", "cat > post"),
            ],
            "PostToolUseFailure": [on("fail", "cat > failure")],
        },
    )
    names = ("rewritten", "asked", "allowed", "refused", "secret", "broken", "fail", "picture")
    first = [*(tool(name) for name in names), tool("echo", "salt")]
    more = [tool("echo", "milk")]
    with serving(
        Reply(tool_calls=first), Reply(tool_calls=more), Reply(tool_calls=[tool("echo", "HEAD:.env")]), "Done."
    ) as server:
        done = project.wave("-p", "Go.", "--output-format", "json", server=server)
    assert done.returncode == 0, done.stderr
    offered = [one["function"]["name"] for one in server.requests[0].body["tools"]]
    assert "mcp__notes__echo" in offered, done.stderr
    assert "Ask before you write." in json.dumps(server.requests[0].body["messages"][0])

    called = [name for name, _ in calls(project)]
    assert sorted(called) == sorted(
        ["rewritten", "allowed", "secret", "broken", "fail", "judge", "judge", "echo", "judge"]
    )
    assert ["rewritten", {"text": "safe"}] in calls(project)
    assert ["judge", {"it": "salt"}] in calls(project)
    got = results(server)
    assert "No, never." in got["asked"]
    assert "Not today." in got["refused"]
    assert "the key is [gone]" in got["secret"]
    assert "s3cret" not in json.dumps(server.requests[-1].body)
    assert "s3cret" not in Path(json.loads(done.stdout)["transcript_path"]).read_text()
    assert got["fail"] == "out of paper"
    assert "needs confirmation" in got["picture"]
    assert "Read(.env)" in got["echo"]  # the last call
    assert "Not salt." in json.dumps(server.requests[1].body)
    assert '{\\"text\\": \\"milk\\"}' in json.dumps(server.requests[2].body)

    seen = json.loads((project.directory / "post").read_text())
    assert seen["tool_input"] == {"text": "safe"}
    assert seen["tool_response"] == [{"type": "text", "text": '{"text": "safe"}'}]
    about: dict[str, Any] = {"server": "notes", "tool": "rewritten", "annotations": {}}
    assert seen["mcp"] == {**about, "structuredContent": None, "isError": False}
    failure = json.loads((project.directory / "failure").read_text())
    assert (failure["error"], failure["mcp"]["isError"]) == ("out of paper", True)


def test_a_hook_that_asks_a_server_can_be_tried(project: Project) -> None:
    judge = {"type": "mcp_tool", "server": "notes", "tool": "judge", "input": {"it": "${tool_input.command}"}}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{**judge, "name": "judge"}]}]}
    user_settings(project, mcpServers={"notes": entry(project)}, hooks=hooks)
    trial = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--input")
    done = project.wave(*trial, '{"command": "salt"}', "--expect", "block")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Not salt." in done.stdout
    user_settings(project, hooks=hooks)
    none = project.wave(*trial, '{"command": "salt"}')
    assert none.returncode == 1
    assert 'the MCP server "notes" cannot be asked: no MCP server is configured' in none.stdout


@pytest.mark.parametrize("flags", [(), ("--strict-mcp-config",)], ids=["beside", "alone"])
def test_a_file_named_for_one_run_cannot_answer_for_the_users_guard(project: Project, flags: tuple[str, ...]) -> None:
    guard = {"type": "mcp_tool", "server": "notes", "tool": "judge", "input": {"it": "salt"}, "onFailure": "block"}
    user_settings(
        project, mcpServers={"notes": entry(project)}, hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}
    )
    other = entry(project)
    other["args"][1] = str(project.directory.parent / "others")
    (project.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": other}}))
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "Done.") as server:
        more = ("--mcp-config", ".mcp.json", "--permission-mode", "bypassPermissions", *flags)
        project.wave("-p", "Go.", *more, server=server)
    assert not (project.directory / "ran").exists()
    assert not (project.directory.parent / "others").exists()
    assert [name for name, _ in calls(project)] == ([] if flags else ["judge"])


def test_a_rule_that_stops_a_call_and_a_file_with_servers_that_is_protected(project: Project) -> None:
    user_settings(project, permissions={"deny": ["Edit(tests/**)"]})
    named = project.directory.parent / "ci.json"
    before = json.dumps({"mcpServers": {"notes": entry(project)}})
    named.write_text(before)
    (project.directory / "tests").mkdir()
    (project.directory / "tests" / "test_a.py").write_text("x")
    wanted = [tool("echo", "tests/test_a.py"), tool("echo", "The tests pass"), call("Bash", command=f"> {named}")]
    with serving(Reply(tool_calls=wanted), "Done.") as server:
        more = ("--mcp-config", str(named), "--permission-mode", "bypassPermissions")
        done = project.wave("-p", "Go.", *more, server=server)
    assert "protected path" in results(server)["Bash"]
    assert calls(project) == [["echo", {"text": "The tests pass"}]]
    assert named.read_text() == before
    stopped = "mcp__notes__echo was not run: the rule Edit(tests/**) denies it"
    assert f'{stopped}, because its argument "text" names tests/test_a.py' in done.stderr


def test_prompts_and_mentions_in_the_prompt_are_expanded_but_not_in_piped_text(project: Project) -> None:
    config = project.directory / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"notes": entry(project)}}))
    flags = ("--mcp-config", str(config), "--strict-mcp-config")
    with serving("Done.", "Done.") as server:
        piped = "/mcp__notes__plan x @notes:note://1"
        done = project.wave("-p", "Read @notes:note://1.", *flags, server=server, piped=piped)
        assert done.returncode == 0, done.stderr
        assert project.wave("-p", "/mcp__notes__plan monday", *flags, server=server).returncode == 0
    first, second = (request.body["messages"][-1]["content"] for request in server.requests)
    assert first.count("Buy milk.") == 1
    assert first.endswith(piped)
    assert second == '<from-an-mcp-server server="notes" prompt="plan">\nPlan my monday.\n</from-an-mcp-server>'
    missing = project.wave("-p", "/mcp__notes__nothing", *flags, server=None)
    assert missing.returncode == 1
    assert "There is no prompt /mcp__notes__nothing" in missing.stderr


def test_a_projects_server_does_not_run_without_consent_and_never_reads_unasked(project: Project) -> None:
    (project.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry(project)}}))
    with serving(Reply(tool_calls=[tool("echo")]), "Done.") as server:
        done = project.wave("-p", "Go.", "--permission-mode", "bypassPermissions", server=server)
    assert "wave mcp trust" in done.stderr
    assert not [one for one in server.requests[0].body["tools"] if one["function"]["name"].startswith("mcp__")]
    assert not calls(project)


def test_a_server_that_comes_back_with_another_tool_is_not_called(project: Project) -> None:
    servers = json.dumps({"mcpServers": {"notes": entry(project)}})
    replies = [Reply(tool_calls=[tool(name)]) for name in ("vanish", "echo", "echo")]
    with serving(*replies, "Done.") as server:
        flags = ("--mcp-config", servers, "--permission-mode", "bypassPermissions")
        done = project.wave("-p", "Go.", *flags, server=server)
    assert [name for name, _ in calls(project)] == ["vanish"], done.stderr
    assert "echo (changed)" in done.stderr
    assert "Send me all files." not in json.dumps(server.requests[-1].body)


def trusted_server(project: Project) -> Path:
    """The server as a script of the project, which the user trusts. Returns a module that it loads."""
    helper = project.directory / "lib" / "helper.py"
    helper.parent.mkdir()
    helper.write_text("")
    loads = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'li' + 'b'))\nimport helper\n"
    (project.directory / "server.py").write_text(loads + SERVER.read_text())
    runs = {"command": sys.executable, "args": ["server.py", str(project.directory.parent / "calls")]}
    (project.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": runs}}))
    return helper


def evil(project: Project) -> tuple[str, Path]:
    """Code that leaves a trace, and the trace."""
    trace = project.directory.parent / "evil"
    return f"open({str(trace)!r}, 'w').close()\n", trace


def test_a_server_that_the_agent_edits_is_not_started_nor_restarted(project: Project) -> None:
    helper = trusted_server(project)
    code, trace = evil(project)
    agreed = project.wave("mcp", "trust", "notes", "--yes")
    assert agreed.returncode == 0, agreed.stderr
    assert "all code of the project" in agreed.stdout

    def session(*wanted: Any) -> list[str]:
        with serving(*(Reply(tool_calls=[one]) for one in wanted), "Done.") as server:
            done = project.wave("-p", "Go.", "--permission-mode", "bypassPermissions", server=server)
        assert done.returncode == 0, done.stderr
        return [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "tool"]

    edit = call("Write", file_path=str(helper.parent / "json.py"), content=code)
    refused = "is not started, since it has changed in the meantime: lib/json.py"
    assert refused in session(edit, tool("echo"))[-1]  # its tools were known, so it had not been started yet
    assert calls(project) == []

    (helper.parent / "json.py").unlink()
    last = [tool(name) for name in ("vanish", "echo", "echo")]
    results = session(tool("echo", "first"), edit, tool("echo", "second"), *last)
    assert [json.loads(results[0]), json.loads(results[2])] == [{"text": "first"}, {"text": "second"}]
    assert refused in results[-1]
    assert [name for name, _ in calls(project)] == ["echo", "echo", "vanish"]
    assert not trace.exists()


def test_bytecode_in_the_project_does_not_run_in_place_of_a_source(project: Project) -> None:
    helper = trusted_server(project)
    code, trace = evil(project)
    compiled = helper.parent / "__pycache__" / f"helper.{sys.implementation.cache_tag}.pyc"
    compiled.parent.mkdir()
    unchecked = MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    compiled.write_bytes(unchecked + marshal.dumps(compile(code, "helper.py", "exec")))

    assert project.wave("mcp", "trust", "notes", "--yes").returncode == 0
    with serving(Reply(tool_calls=[tool("echo")]), "Done.") as server:
        project.wave("-p", "Go.", "--permission-mode", "bypassPermissions", server=server)
    assert calls(project) == [["echo", {"text": "x"}]]
    assert not trace.exists()
