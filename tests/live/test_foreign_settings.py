"""Settings that were written for another agent, read where they stand."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

GUARD = """#!/bin/sh
printf '%s\\n' "$@" >> "$CLAUDE_PROJECT_DIR/log"
echo "Guarded." >&2
exit 2
"""


def settings(project: Project, hooks: dict[str, Any]) -> None:
    (project.directory / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


def before_bash(**hook: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}


@contextmanager
def service(*answers: tuple[int, str]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """The URL of a policy service that gives these answers, and the headers and bodies that it got."""
    left, asked = list(answers), list[tuple[Any, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append((self.headers, json.loads(body)))
            status, text = left.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/check", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def script(directory: Path, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "guard.sh").write_text(text)
    (directory / "guard.sh").chmod(0o755)
    return directory / "guard.sh"


def run(project: Project, *flags: str, **env: str) -> tuple[list[Any], str]:
    """The request after a call of Bash, as messages, and stderr."""
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "done") as server:
        mode = ("--trust", "--permission-mode", "bypassPermissions")
        done = project.wave("-p", "go", *mode, *flags, server=server, **env)
    return server.requests[1].body["messages"] if len(server.requests) > 1 else [], done.stderr


def test_a_guard_that_names_the_project_in_its_args_is_not_found(theirs: Project) -> None:
    script(theirs.directory / ".claude" / "hooks", GUARD)
    hook = {"command": "${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.sh", "args": ["${WAVE_PROJECT_DIR}/a b", "$HOME"]}
    settings(theirs, before_bash(**hook))
    messages, stderr = run(theirs)
    assert "Guarded." in messages[-1]["content"]
    assert (theirs.directory / "log").read_text() == f"{theirs.directory}/a b\n$HOME\n"
    assert not (theirs.directory / "ran").exists()
    assert stderr == 'wave: Hook "guard.sh" denied Bash (touch ran): Guarded.\n'


def test_a_plugin_has_nowhere_to_keep_what_it_remembers(theirs: Project, tmp_path: Path) -> None:
    plugin = tmp_path / "my plugin"
    script(plugin, '#!/bin/sh\nprintf "$CLAUDE_PLUGIN_DATA\\n$1\\n" >> "$CLAUDE_PLUGIN_DATA/runs"')
    hook = {"command": "${CLAUDE_PLUGIN_ROOT}/guard.sh", "args": ["${CLAUDE_PLUGIN_DATA}/runs"]}
    (plugin / "hooks").mkdir()
    (plugin / "hooks" / "hooks.json").write_text(json.dumps(before_bash(**hook)))
    settings(theirs, before_bash(command='echo "${CLAUDE_PLUGIN_DATA-none}" >> log'))
    for _ in range(2):
        _, stderr = run(theirs, "--plugin-dir", str(plugin))
        assert stderr == ""
    (data,) = (theirs.home / "plugins" / "data").iterdir()
    assert data.name.startswith("my-plugin-")
    assert (data / "runs").read_text() == f"{data}\n{data}/runs\n" * 2
    assert data.stat().st_mode & 0o777 == 0o700
    assert (theirs.directory / "log").read_text() == "none\n" * 2


def test_a_hook_for_another_shell_runs_in_bash(theirs: Project) -> None:
    settings(theirs, before_bash(command="if ($env:X) { exit 2 }", shell="powershell"))
    messages, stderr = run(theirs)
    assert "shell: 'powershell' is not available: commands run in Bash" in stderr
    assert messages[-1]["content"] == "(no output)"
    assert (theirs.directory / "ran").exists()


def test_a_hook_that_asks_a_service_needs_settings_that_its_agent_does_not_have(theirs: Project) -> None:
    denied = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "Says the service."}}
    with service((200, json.dumps(denied)), (200, ""), (500, "broken")) as (url, asked):
        headers = {"Authorization": "Bearer $TOKEN", "X-Other": "[$SECRET]"}
        hook = {"type": "http", "url": url, "headers": headers, "allowedEnvVars": ["TOKEN"]}
        settings(theirs, before_bash(**hook))
        messages, stderr = run(theirs, TOKEN="t0k3n", SECRET="hidden")
        assert "Says the service." in messages[-1]["content"]
        assert stderr == 'wave: Hook "check" denied Bash (touch ran): Says the service.\n'
        assert not (theirs.directory / "ran").exists()
        sent, event = asked[0]
        assert (sent["authorization"], sent["x-other"]) == ("Bearer t0k3n", "[]")
        assert event["tool_input"] == {"command": "touch ran"}
        _, stderr = run(theirs)
        assert stderr == ""  # nothing in the answer is no objection
        assert (theirs.directory / "ran").exists()
        _, stderr = run(theirs)
        assert "the service answered 500" in stderr


def test_inline_commands_are_called_by_what_stands_behind_their_last_slash(theirs: Project) -> None:
    line = """bash -c 'INPUT=$(cat); grep -q "/etc/" <<< "$INPUT" && exit 2; echo "kept /etc/"'"""
    settings(theirs, before_bash(command=line))
    _, stderr = run(theirs, "--debug", "hooks")
    assert 'wave: hook PreToolUse grep -q "/etc/" <<< "$INPUT" && exit…: none' in stderr


def test_the_transcript_is_not_where_the_hook_was_told(theirs: Project) -> None:
    looked = 'jq -r .transcript_path | tee -a log | xargs grep -c \'"role":"assistant"\' >> log'
    settings(theirs, {"Stop": [{"hooks": [{"command": looked}]}]})
    _, stderr = run(theirs)
    assert stderr == ""
    path, count = (theirs.directory / "log").read_text().split()
    encoded = str(theirs.directory).replace("/", "-").replace("_", "-")
    assert Path(path).parent == theirs.home / "projects" / encoded
    assert count == "2"
