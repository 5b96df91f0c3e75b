"""A guard that names a file keeps it, whichever tool or command would read it."""

import json

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

SECRET = "canary" + "-7f3a"
GUARD = """\
#!/bin/bash
event=$(cat)
echo "$event" >> seen.jsonl
jq -e 'any(.effects.reads[]; endswith("/.env"))' <<< "$event" > /dev/null || exit 0
echo "Nobody reads .env here." >&2
exit 2
"""
WAYS = (
    call("Bash", command="base64 < .env"),
    call("Bash", command="cat .e*"),
    call("Bash", command="bash show.sh"),
    call("Bash", command="cat notes"),
    call("Read", file_path=".env"),
    call("Grep", pattern="canary", path=".env", output_mode="content"),
)
FINE = call("Bash", command="cat main.py")


@pytest.mark.parametrize("condition", [{}, {"if": "Read(.env)"}], ids=["always", "if"])
def test_a_shell_hook_keeps_a_file_from_every_command_that_reads_it(project: Project, condition: dict[str, str]):
    (project.directory / ".env").write_text(f"KEY={SECRET}\n")
    (project.directory / "main.py").write_text("print('hello')\n")
    (project.directory / "show.sh").write_text("cat .env\n")
    (project.directory / "notes").symlink_to(".env")
    guard = project.directory / "guard.sh"
    guard.write_text(GUARD)
    guard.chmod(0o755)
    project.settings({"hooks": {"PreToolUse": [{"command": "./guard.sh", "onFailure": "block", **condition}]}})
    replies = [*(Reply(tool_calls=[one]) for one in (*WAYS, FINE)), "Done."]
    with serving(*replies) as server:
        ran = project.wave("-p", "go", "--trust", "--permission-mode", "bypassPermissions", server=server)
        assert ran.returncode == 0, ran.stderr
        last = server.requests[-1].body["messages"]
        results = [message["content"] for message in last if message["role"] == "tool"]
        assert SECRET not in json.dumps([request.body for request in server.requests])
    assert ["Nobody reads .env here." in result for result in results] == [True] * len(WAYS) + [False]
    assert results[-1].strip() == "print('hello')"

    seen = [json.loads(line) for line in (project.directory / "seen.jsonl").read_text().splitlines()]
    assert len(seen) == len(WAYS) + (not condition)
    own = str(project.directory)
    assert seen[0]["effects"] == {
        "reads": [f"{own}/.env"],
        "writes": [],
        "deletes": [],
        "runs": [["base64"]],
        "hosts": [],
        "complete": True,
        "truncated": False,
    }
