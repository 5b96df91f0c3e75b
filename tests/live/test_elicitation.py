"""A real MCP server asks the user in the middle of a call: hooks answer, also where nobody can be asked."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

SERVER = Path(__file__).parent.parent / "mcp" / "servers" / "hostile.py"


def answer(event: str, **fields: Any) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': event, **fields}})}'"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_hooks_answer_what_a_server_asks_in_an_unattended_run(tmp_path: Path, era: str) -> None:
    accept = answer("Elicitation", action="accept", content={"name": "Ada"})
    change = answer("ElicitationResult", action="accept", content={"name": "A."})
    in_turn = f"cat > asked; if mkdir one 2>&-; then {accept}; elif mkdir two 2>&-; then echo Never. >&2; exit 2; fi"
    after = f'input=$(cat); echo "$input" >> answers; case "$input" in *Ada*) {change};; esac'
    project = Project(tmp_path)
    project.home.mkdir()
    hooks = {
        "Elicitation": [
            {"matcher": "forms", "hooks": [{"command": in_turn}]},
            {"matcher": "other", "hooks": ["exit 2"]},
        ],
        "ElicitationResult": [{"hooks": [{"command": after}]}],
    }
    (project.home / "settings.json").write_text(json.dumps({"hooks": hooks}))
    servers = {"mcpServers": {"forms": {"command": sys.executable, "args": [str(SERVER), era]}}}
    asking = Reply(tool_calls=[call("mcp__forms__elicit")])
    with serving(asking, asking, asking, "Done.") as server:
        flags = ("--mcp-config", json.dumps(servers), "--permission-mode", "bypassPermissions")
        done = project.wave("-p", "Go.", *flags, server=server)
    assert done.returncode == 0, done.stderr

    got = [json.loads(one["content"]) for one in server.requests[-1].body["messages"] if one["role"] == "tool"]
    assert got == [{"action": "accept", "content": {"name": "A."}}, {"action": "decline"}, {"action": "decline"}]
    asked = json.loads((project.directory / "asked").read_text())
    assert (asked["hook_event_name"], asked["mcp_server_name"]) == ("Elicitation", "forms")
    assert (asked["message"], asked["mode"], "url" in asked) == ("Your name?", "form", False)
    assert asked["requested_schema"]["properties"] == {"name": {"type": "string"}}
    answers = [json.loads(line) for line in (project.directory / "answers").read_text().splitlines()]
    assert [(one["action"], one["content"]) for one in answers] == [
        ("accept", {"name": "Ada"}),
        ("decline", {}),
        ("decline", {}),
    ]
    assert "Never." in done.stderr
