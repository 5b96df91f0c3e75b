"""`wave acp` and clients that misbehave, die, or are none."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from tests.acp.editor import started, turning_away, when_offered
from tests.cli.project import WAVE, Project
from tests.waiting import number_in, until
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Hang


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def serving(*replies: Any) -> Any:
    return RecordingModelServer.in_thread(list(replies))


class Client:
    """Lines in, lines out."""

    def __init__(self, project: Project, server: RecordingModelServer | None, *arguments: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [WAVE, "acp", *arguments],
            cwd=project.directory,
            env=project.environment(server, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._project = project

    def send(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        return json.loads(line)

    def answer(self, number: int) -> dict[str, Any]:
        while (found := self.receive()).get("id") != number or "method" in found:
            pass
        return found

    def ask(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.answer(number)

    def new(self) -> str:
        return self.ask(900, "session/new", cwd=str(self._project.directory), mcpServers=[])["result"]["sessionId"]

    def prompt(self, session: str, text: str) -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self.send({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params})

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.decode(), err.decode()


def test_what_is_no_valid_message_gets_an_error_and_ends_nothing(project: Project) -> None:
    client = Client(project, None)
    wrong: list[tuple[Any, int, str]] = [
        (b"not json", -32700, "Parse error"),
        (b"[" * 100_000, -32700, "Parse error"),
        (b'\xff\xfe"', -32700, "Parse error"),
        (b"[1, 2]", -32600, "a message is a JSON object"),
        (b"17", -32600, "a message is a JSON object"),
        ({"id": 1, "method": 5}, -32600, "method is a string"),
        ({"id": [1], "method": "initialize"}, -32600, "id a string or number"),
        ({"jsonrpc": "2.0"}, -32600, "neither a request nor an answer"),
        ({"id": [5], "result": {}}, -32600, "neither a request nor an answer"),
        ({"id": 1, "method": "session/teleport", "params": {}}, -32601, "Method not found"),
        ({"id": 1, "method": "initialize"}, -32602, "Invalid params"),
        ({"id": 1, "method": "initialize", "params": [1]}, -32602, "Invalid params"),
        ({"id": 1, "method": "session/new", "params": {"cwd": "/"}}, -32602, "mcpServers"),
        (
            {"id": 1, "method": "session/new", "params": {"cwd": "src", "mcpServers": []}},
            -32602,
            "not an absolute path",
        ),
        ({"id": 1, "method": "session/new", "params": {"cwd": "/no/such", "mcpServers": []}}, -32602, "no directory"),
        ({"id": 1, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}, -32602, "no open session"),
        ({"id": 1, "method": "session/list", "params": {"cursor": "-1"}}, -32602, "not a cursor"),
        (
            {"id": 1, "method": "session/load", "params": {"cwd": "/", "sessionId": "../../etc", "mcpServers": []}},
            -32602,
            "not the id of a session",
        ),
    ]
    for message, code, words in wrong:
        client.send(message)
        error = client.receive()["error"]
        assert (error["code"], words in error["message"]) == (code, True), (message, error)
    session = client.new()
    for blocks, words in (
        ([], "empty"),
        ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], "Audio"),
        ([{"type": "image", "data": "%", "mimeType": "image/png"}], "Base64"),
        ([{"type": "image", "data": "", "mimeType": "image/svg+xml"}], "type of image"),
        ([{"type": "resource", "resource": {"uri": "file:///x.bin", "blob": "AA=="}}], "neither text nor an image"),
        ([{"type": "hologram"}], "Invalid params"),
    ):
        error = client.ask(2, "session/prompt", sessionId=session, prompt=blocks)["error"]
        assert (error["code"], words in error["message"]) == (-32602, True), error
    for answer in ({"id": 99, "result": {}}, {"id": 0, "error": "text"}, {"id": 5, "error": {"code": "x"}}):
        client.send(answer)
    for notification in ("session/cancel", "session/teleport", "$/progress"):
        client.send({"method": notification, "params": {"sessionId": "unknown"}})
    assert client.ask(3, "initialize", protocolVersion=1)["result"]["protocolVersion"] == 1
    client.send({"id": 4, "method": "session/list", "params": {}})  # right before the end, and answered all the same
    status, out, err = client.end()
    assert (status, json.loads(out)["id"], "Traceback" in err) == (0, 4, False), err
    assert 'session/cancel: There is no open session "unknown"' in err


def test_nothing_but_messages_reaches_stdout(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"name": "loud", "command": "echo from-a-hook"}]}})
    with serving(Reply(tool_calls=[call("Bash", command="echo from-a-tool > /dev/stderr")]), "Done.") as server:
        client = Client(project, server, "--trust", "--permission-mode", "bypassPermissions", PYTHONVERBOSE="")
        session = client.new()
        client.prompt(session, "Go")
        lines = []
        while (line := client.receive()).get("id") != 7:
            lines.append(line)
        status, out, _ = client.end()
    assert (status, out) == (0, "")
    assert all(line["jsonrpc"] == "2.0" and line["method"] == "session/update" for line in lines)


def test_a_prompt_of_ten_megabytes_arrives_whole(project: Project) -> None:
    text = "lorem ipsum " * 850_000
    with serving("Long.") as server:
        client = Client(project, server)
        client.prompt(client.new(), text)
        answer = client.answer(7)
        status, _, err = client.end()
    assert server.requests[0].body["messages"][-1]["content"] == text.strip()
    assert (answer["result"]["stopReason"], status, err) == ("end_turn", 0, "")


def test_a_cancel_right_behind_its_prompt_is_not_lost(project: Project) -> None:
    with serving(*[Hang()] * 8, "Later.") as server:
        client = Client(project, server)
        session = client.new()
        for number, delay in enumerate([0, 0, 0.001, 0.003, 0.01, 0.03, 0.1], 10):
            prompt = [{"type": "text", "text": f"Go {number}"}, {"type": "image", "mimeType": "image/png", "data": ""}]
            client.send({"id": number, "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}})
            time.sleep(delay)  # not to wait for something: at each of these moments it has come to another place
            client.send({"method": "session/cancel", "params": {"sessionId": session}})
            assert client.answer(number)["result"]["stopReason"] == "cancelled"
        assert client.end() == (0, "", "")


@pytest.mark.parametrize("path", ["", "project"])
def test_a_directory_that_is_not_named_by_its_whole_path_is_refused(project: Project, path: str) -> None:
    client = Client(project, None)
    error = client.ask(1, "session/new", cwd=path, mcpServers=[])["error"]
    assert (error["code"], error["message"]) == (-32602, f'"{path}" is not an absolute path.')
    assert client.end()[0] == 0


def test_a_line_that_is_too_long_is_refused_and_skipped(project: Project) -> None:
    client = Client(project, None)
    assert client.process.stdin is not None
    for _ in range(66):
        client.process.stdin.write(b"x" * (1 << 20))
    client.send(b"")
    error = client.receive()["error"]
    assert (error["code"], "longer than 67,108,864 bytes" in error["message"]) == (-32600, True)
    assert "result" in client.ask(1, "initialize", protocolVersion=1)
    assert client.end()[0] == 0


async def test_a_client_that_dies_takes_tools_and_hooks_with_it(project: Project) -> None:
    hook = "echo $$ > hook; exec sleep 600"
    project.settings({"hooks": {"PostToolUse": [{"matcher": "Bash", "command": hook}]}})
    calls = [call("Bash", command="echo $$ > first"), call("Bash", command="echo $$ > tool; exec sleep 600")]
    for made in (calls[:1], calls[1:]):
        with serving(Reply(tool_calls=made)) as server:
            client = Client(project, server, "--trust", "--permission-mode", "bypassPermissions")
            client.prompt(client.new(), "Go")
            pid = await number_in(project.directory / ("hook" if made == calls[:1] else "tool"))
            assert client.process.stdin is not None
            assert client.process.stdout is not None
            assert client.process.stderr is not None
            for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
                stream.close()
            assert client.process.wait(30) == 0
            await until(lambda pid=pid: not Path(f"/proc/{pid}").exists())


ALLOW = '{"outcome": {"outcome": "selected", "optionId": "allow"}}'
REJECT = ALLOW.replace('"allow"', '"reject"')
UNSOUND = {
    "a result and an error": f'{{"id": ID, "result": {ALLOW}, "error": {{"code": -32603, "message": "no"}}}}',
    "an error and a result": f'{{"id": ID, "error": {{"code": -32603, "message": "no"}}, "result": {ALLOW}}}',
    "an error that is a text": f'{{"id": ID, "result": {ALLOW}, "error": "no"}}',
    "an empty error": f'{{"id": ID, "result": {ALLOW}, "error": {{}}}}',
    "an error that is false": f'{{"id": ID, "result": {ALLOW}, "error": false}}',
    "an error, then none": f'{{"id": ID, "result": {ALLOW}, "error": {{"code": 1}}, "error": null}}',
    "two results": f'{{"id": ID, "result": {REJECT}, "result": {ALLOW}}}',
    "two outcomes": '{"id": ID, "result": {"outcome": {"outcome": "cancelled"}, "outcome": '
    '{"outcome": "selected", "optionId": "allow"}}}',
    "two options": '{"id": ID, "result": {"outcome": {"outcome": "selected", "optionId": "reject", '
    '"optionId": "allow"}}}',
    "two ids": f'{{"id": 77, "id": ID, "result": {ALLOW}}}',
    "neither": '{"id": ID}',
    "neither, with a version": '{"jsonrpc": "2.0", "id": ID, "data": 1}',
    "no result": '{"id": ID, "result": null}',
    "an empty result": '{"id": ID, "result": {}}',
    "a list": '{"id": ID, "result": []}',
    "a method": f'{{"id": ID, "method": "session/cancel", "result": {ALLOW}}}',
    "a method that is null": f'{{"id": ID, "method": null, "result": {ALLOW}}}',
    "an id that is a text": f'{{"id": "ID", "result": {ALLOW}}}',
    "an id with a fraction": f'{{"id": ID.0, "result": {ALLOW}}}',
    "an option that is true": '{"id": ID, "result": {"outcome": {"outcome": "selected", "optionId": true}}}',
}


def test_an_answer_that_is_not_sound_denies_and_leaves_no_question_open(project: Project) -> None:
    calls = [Reply(tool_calls=[call("Bash", command=f"touch ran # {number}")]) for number in range(len(UNSOUND))]
    with serving(*calls, "Done.") as server:
        client = Client(project, server)
        client.prompt(client.new(), "Go")
        for name, answer in UNSOUND.items():
            while (message := client.receive()).get("method") != "session/request_permission":
                assert message.get("id") != 7, (name, message)
            client.send(answer.replace("ID", str(message["id"])).encode())
        ended = client.answer(7)
        client.end()
        said = [request.body["messages"][-1]["content"] for request in server.requests[1:]]
    assert (ended["result"]["stopReason"], (project.directory / "ran").exists()) == ("end_turn", False)
    assert len(said) == len(UNSOUND)
    for name, text in zip(UNSOUND, said, strict=True):
        assert "could not" in text, (name, text)


@pytest.mark.parametrize("error", ["", ', "error": null'])
def test_an_answer_that_has_no_error_is_taken(project: Project, error: str) -> None:
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "Done.") as server:
        client = Client(project, server)
        client.prompt(client.new(), "Go")
        while (message := client.receive()).get("method") != "session/request_permission":
            pass
        client.send(f'{{"id": {message["id"]}, "result": {ALLOW}{error}}}'.encode())
        client.answer(7)
        client.end()
    assert (project.directory / "ran").exists()


async def test_a_client_that_dies_during_a_question_denies_nothing(project: Project) -> None:
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")])) as server:
        client = Client(project, server)
        client.prompt(client.new(), "Go")
        while client.receive().get("method") != "session/request_permission":
            pass
        status, _, err = client.end()
    assert (status, err, (project.directory / "ran").exists()) == (0, "", False)
    [transcript] = project.home.glob("projects/*/*.jsonl")
    assert "said no" not in transcript.read_text()
    assert "interrupted" in transcript.read_text()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
async def test_a_signal_ends_it_and_what_it_runs(project: Project, number: int, status: int) -> None:
    with serving(Reply(tool_calls=[call("Bash", command="echo $$ > tool; exec sleep 600")])) as server:
        client = Client(project, server, "--permission-mode", "bypassPermissions")
        client.prompt(client.new(), "Go")
        pid = await number_in(project.directory / "tool")
        client.process.send_signal(number)
        ended, _, err = client.end()
        await until(lambda: not Path(f"/proc/{pid}").exists())
    assert (ended, err) == (status, "")


async def test_sessionend_hooks_run_when_the_client_closes_stdin(project: Project) -> None:
    project.settings({"hooks": {"SessionEnd": [{"command": "cat > ended.json"}]}})
    with serving("Hello.") as server:
        async with started(project, server, "--trust") as editor:
            await editor.prompt(await editor.new(project), "Hi")
            assert await editor.closed() == (0, "")
    assert json.loads((project.directory / "ended.json").read_text())["reason"] == "prompt_input_exit"


async def test_servers_of_the_editor_pass_the_managed_lists(project: Project) -> None:
    from acp.schema import McpServerStdio

    managed = project.directory.parent / "managed.json"
    managed.write_text(json.dumps({"deniedMcpServers": [{"serverName": "evil"}]}))
    marker = project.directory / "started"
    server_ = McpServerStdio(name="evil", command="/bin/sh", args=["-c", f"touch {marker}"], env=[])
    with serving("Hello.") as server:
        async with started(project, server, env={"WAVE_MANAGED_SETTINGS": str(managed)}) as editor:
            opened = await editor.agent.new_session(cwd=str(project.directory), mcp_servers=[server_])
            await editor.prompt(opened.session_id, "Hi")
    assert (marker.exists(), editor.said.endswith("Hello.")) == (False, True)


async def test_a_tool_of_a_server_of_the_editor_can_be_called(project: Project) -> None:
    from acp.schema import McpServerStdio

    time_server = McpServerStdio(
        name="clock", command=sys.executable, args=["-m", "mcp_server_time", "--local-timezone", "UTC"], env=[]
    )
    made = call("mcp__clock__get_current_time", timezone="UTC")
    with RecordingModelServer.in_thread(repeat(when_offered(made))) as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            opened = await editor.agent.new_session(cwd=str(project.directory), mcp_servers=[time_server])
            await editor.prompt_until_called(opened.session_id)
    seen = editor.call("mcp__clock")
    assert (seen["status"], seen["kind"]) == ("completed", "other")
    assert "datetime" in json.dumps(seen["content"])


async def test_another_agent_cannot_answer_its_own_questions(project: Project) -> None:
    command = f"{shlex.quote(WAVE)} acp < /dev/null"
    with serving(Reply(tool_calls=[call("Bash", command=command)]), "Done.") as server:
        async with started(project, server, "--permission-mode", "bypassPermissions", answer=turning_away) as editor:
            await editor.prompt(await editor.new(project), "Go")
    assert "needs an editor with a person" in server.requests[-1].body["messages"][-1]["content"]


def test_without_input_it_ends_at_once(project: Project) -> None:
    done = project.wave("acp")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_has_no_options_for_a_terminal(project: Project) -> None:
    done = project.wave("acp", "--plain")
    assert (done.returncode, "No such option" in done.stderr) == (2, True)


@pytest.mark.parametrize(("redirection", "status"), [("<&-", 1), (">&-", 1), ("2>&-", 0), ("<&- >&- 2>&-", 1)])
def test_closed_streams_are_no_trap(project: Project, redirection: str, status: int) -> None:
    ask = json.dumps({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
    line = f"{shlex.quote(WAVE)} acp {redirection}"
    environment = project.environment(None)
    done = subprocess.run(["sh", "-c", line], input=ask, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, '"protocolVersion":1' in done.stdout) == (status, status == 0)
    assert done.stderr in ("", "wave: wave acp speaks to an editor on stdin and stdout, and one of them is closed.\n")


def test_without_the_extra_it_says_how_to_install_it(project: Project, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'acp': raise ModuleNotFoundError(\"No module named 'acp'\", name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
    )
    done = project.wave("acp", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "wave: Editors need the extra: pip install 'wave-agent[acp]'\n"


async def test_a_session_of_another_project_is_not_found(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving("Hello.") as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            await editor.prompt(session, "Hi")
            await editor.agent.close_session(session_id=session)
            with pytest.raises(RequestError):
                await editor.agent.load_session(cwd=str(elsewhere), session_id=session, mcp_servers=[])
            assert (await editor.agent.list_sessions(cwd=str(elsewhere))).sessions == []
    assert os.listdir(elsewhere) == []
