"""Pages, notebooks and several edits: whole sessions, in which guards and rules hold as for any other tool."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import RecordingModelServer, Reply, call

NOTEBOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "code", "execution_count": 1, "id": "a1", "metadata": {}, "outputs": [], "source": ["x = 1"]}
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
NO_PAGES = """\
#!/bin/bash
event=$(cat)
echo "$event" >> seen.jsonl
[[ $event == *secret-page* ]] || exit 0
echo "Not that page." >&2
exit 2
"""


class Web:
    def __init__(self) -> None:
        self.paths: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.paths.append(self.path)
                moved = self.path == "/moved"
                self.send_response(302 if moved else 200)
                if moved:
                    self.send_header("Location", "http://169.254.169.254/latest/meta-data")
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<h1>Hello</h1><p>from <a href=/b>there</a>")

            def log_message(self, format: str, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def web() -> Iterator[Web]:
    found = Web()
    threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True).start()
    yield found
    found.server.shutdown()
    found.server.server_close()


def results(server: RecordingModelServer) -> list[str]:
    return [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "tool"]


def hook(project: Project, matcher: str) -> None:
    script = project.directory / "guard.sh"
    script.write_text(NO_PAGES)
    script.chmod(0o755)
    project.settings({"hooks": {"PreToolUse": [{"matcher": matcher, "command": "./guard.sh"}]}})


def test_a_page_is_fetched_where_a_rule_allows_its_host_and_hooks_judge_every_call(project: Project, web: Web):
    hook(project, "WebFetch")
    pages = [f"{web.base}/a", f"{web.base}/secret-page", f"{web.base}/moved", "http://169.254.169.254/latest/meta-data"]
    replies = [Reply(tool_calls=[call("WebFetch", url=url, prompt="a greeting")]) for url in pages]
    with serving(*replies, "Done.") as server:
        ran = project.wave("-p", "go", "--trust", "--allowed-tools", "Net(127.0.0.1),WebFetch", server=server)
    assert ran.returncode == 0, ran.stderr
    fetched, denied, moved, refused = results(server)
    assert fetched.splitlines()[1:] == ["[Looked for: a greeting]", "# Hello", "", f"from [there]({web.base}/b)"]
    assert "Not that page." in denied
    assert "redirects to http://169.254.169.254/latest/meta-data (status 302), which is another place." in moved
    assert "it leads to the private address 169.254.169.254" in refused
    assert web.paths == ["/a", "/moved"]
    seen = [json.loads(line) for line in (project.directory / "seen.jsonl").read_text().splitlines()]
    assert [one["tool_input"]["url"] for one in seen] == pages
    assert [one["effects"]["hosts"] for one in seen] == [["127.0.0.1"]] * 3 + [["169.254.169.254"]]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((), "WebFetch needs confirmation in the permission mode default"),
        (("--permission-mode", "plan"), "WebFetch needs confirmation in the permission mode plan"),
        (("--permission-mode", "bypassPermissions", "--disallowed-tools", "Net(localhost)"), "rule Net(localhost)"),
        (("--permission-mode", "bypassPermissions"), "it leads to the private address 127.0.0.1"),
    ],
)
def test_a_page_is_not_fetched_unasked(project: Project, web: Web, flags: tuple[str, ...], why: str):
    with serving(Reply(tool_calls=[call("WebFetch", url=f"{web.base}/a")]), "Done.") as server:
        project.wave("-p", "go", *flags, server=server)
    assert why in results(server)[0]
    assert web.paths == []


def test_a_notebook_and_a_file_are_edited_by_tools_that_rules_about_edits_cover(project: Project):
    (project.directory / "n.ipynb").write_text(json.dumps(NOTEBOOK, indent=1))
    (project.directory / "a.txt").write_text("one two\n")
    (project.directory / "kept.ipynb").write_text(json.dumps(NOTEBOOK, indent=1))
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]
    calls = [
        *(call("Read", file_path=name) for name in ("n.ipynb", "a.txt", "kept.ipynb")),
        call("NotebookEdit", notebook_path="n.ipynb", cell_id="a1", new_source="x = 2"),
        call("MultiEdit", file_path="a.txt", edits=edits),
        call("NotebookEdit", notebook_path="kept.ipynb", cell_id="a1", new_source="x = 2"),
    ]
    rules = ("--permission-mode", "acceptEdits", "--disallowed-tools", "Edit(kept.ipynb)")
    with serving(*(Reply(tool_calls=[one]) for one in calls), "Done.") as server:
        ran = project.wave("-p", "go", "--output-format", "json", *rules, server=server)
    offered = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert {"WebFetch", "NotebookEdit"} <= set(offered)
    assert "MultiEdit" not in offered
    shown = results(server)
    assert "[Cell 1: code, id a1]" in shown[0]
    assert shown[3].startswith("Replaced cell a1 of ")
    assert shown[4].startswith("Made 2 edits in ")
    assert "denied by the permission rule Edit(kept.ipynb)" in shown[5]
    assert json.loads((project.directory / "n.ipynb").read_text())["cells"][0]["source"] == ["x = 2"]
    assert (project.directory / "a.txt").read_text() == "1 2\n"
    assert json.loads((project.directory / "kept.ipynb").read_text()) == NOTEBOOK
    assert json.loads(ran.stdout)["status"] == "completed"


def test_a_guard_of_edit_alone_is_not_dodged_by_a_tool_that_was_not_offered(project: Project):
    hook(project, "Write|Edit")
    (project.directory / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    (project.directory / "a.txt").write_text("one\n")
    calls = [
        call("MultiEdit", file_path="a.txt", edits=[{"old_string": "one", "new_string": "secret-page"}]),
        call("NotebookEdit", notebook_path="n.ipynb", cell_id="a1", new_source="secret-page"),
    ]
    reads = [call("Read", file_path="a.txt"), call("Read", file_path="n.ipynb")]
    with serving(*(Reply(tool_calls=[one]) for one in (*reads, *calls)), "Done.") as server:
        project.wave("-p", "go", "--trust", "--permission-mode", "bypassPermissions", server=server)
    assert "NotebookEdit" not in [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    for name, result in zip(("MultiEdit", "NotebookEdit"), results(server)[2:], strict=True):
        assert result.startswith(f'There is no tool "{name}".')
        assert "The likeliest is Edit" in result
    assert (project.directory / "a.txt").read_text() == "one\n"
