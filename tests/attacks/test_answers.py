"""A hostile model server: answers that never end, grow without bound, or point elsewhere.

Each test runs the real `wave -p`. What must not happen: its memory grows with what the server sends, it waits for ever,
its key goes to another server, or it ends without saying why.
"""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply, call


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


MEMORY = 250 << 20
"""Bytes of memory that a run may take at its peak."""
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


def event(**delta: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def endless(head: bytes, *parts: bytes) -> Iterator[bytes]:
    """The head and the parts, then the last part again and again."""
    yield head
    yield from parts
    block = parts[-1] * max(1, (1 << 16) // len(parts[-1]))
    while True:
        yield block


class HostileServer:
    """Answers every request with the bytes that its script makes, as fast as they are taken."""

    def __init__(self, script: Callable[[], Iterator[bytes]]) -> None:
        self._script = script
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self.heads: list[bytes] = []
        self.sent = 0
        self.hung_up = threading.Event()
        self.asked = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(1 << 16)
                if not part:
                    return
                request += part
            if not request.startswith(b"POST /v1/chat/completions"):
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            self.heads.append(request.partition(b"\r\n\r\n")[0])
            self.asked.set()
            try:
                for part in self._script():
                    connection.sendall(part)
                    self.sent += len(part)
            except OSError:
                self.hung_up.set()
                raise

    def close(self) -> None:
        self._listening.close()


@contextmanager
def hostile(script: Callable[[], Iterator[bytes]]) -> Iterator[HostileServer]:
    server = HostileServer(script)
    try:
        yield server
    finally:
        server.close()


class Ran:
    def __init__(self, directory: Path) -> None:
        self.status, self.memory = map(int, (directory / "figures").read_text().split())
        self.result: dict[str, Any] = json.loads((directory / "out").read_text())


MEASURED = """
import resource, subprocess, sys
directory, *command = sys.argv[1:]
with open(f"{directory}/out", "wb") as out, open(f"{directory}/figures", "w") as figures:
    done = subprocess.run(command, stdout=out, timeout=60)
    print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, file=figures)
"""
"""Runs a command from a small process: the figure of a child begins with the memory of whoever has started it."""


def run(project: Project, server: HostileServer, *more: str, **settings: Any) -> Ran:
    """`wave -p`, with the most memory that it has taken."""
    directory = project.directory.parent
    (directory / "s.json").write_text(json.dumps(settings))
    command = (WAVE, "-p", "go", "--output-format", "json", "--settings", str(directory / "s.json"), *more)
    subprocess.run(
        [sys.executable, "-c", MEASURED, str(directory), *command],
        cwd=project.directory,
        env=project.environment(None, WAVE_BASE_URL=server.base_url, WAVE_MODEL="m", WAVE_API_KEY="sk-canary"),
        stdin=subprocess.DEVNULL,
        timeout=70,
        check=True,
    )
    return Ran(directory)


CALL = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "Bash", "arguments": "x" * 1000}}]}


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (lambda: endless(STREAM, event(content="x" * 4000)), "more than 16 MB of text"),
        (lambda: endless(STREAM, event(content="x")), "more than 2 MB of text"),
        (lambda: endless(STREAM, event(reasoning="x")), "more than 2 MB of text"),
        (lambda: endless(STREAM, event(**CALL)), "more than 8 MB of arguments"),
        (lambda: endless(STREAM, b"data: x"), "an event of more than 16 MB"),
        (lambda: endless(STREAM, b"data:\n"), "an event of more than 16 MB"),
        (lambda: endless(STREAM, b"x" * 1000), "an event of more than 16 MB"),
        (lambda: endless(JSON, b'{"choices": [', b" " * 1000), "in one piece"),
    ],
    ids=["text", "tiny-pieces", "tiny-thoughts", "arguments", "line", "empty-data", "no-event", "whole-body"],
)
def test_an_answer_that_never_ends_is_ended(project: Project, script: Callable[[], Iterator[bytes]], says: str) -> None:
    models = {"m": {"maxTextBytes": 2 << 20}} if "2 MB" in says else {}
    with hostile(script) as server:
        ran = run(project, server, models=models)
        assert server.hung_up.wait(10)
    assert (ran.status, ran.result["status"]) == (1, "error")
    assert says in ran.result["error"]
    assert len(server.heads) == 1
    assert ran.memory < MEMORY, f"{ran.memory >> 20} MB"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (lambda: endless(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 1000), "its response headers are too large"),
        (lambda: endless(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"), "its response headers are too large"),
        (lambda: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "interim responses"),
        (
            lambda: endless(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n1;",
                b"x" * 1000,
            ),
            "the size line of a chunk is too long",
        ),
    ],
    ids=["header", "headers", "interim", "chunk-extension"],
)
def test_a_head_that_never_ends_is_no_answer(
    project: Project, script: Callable[[], Iterator[bytes]], says: str
) -> None:
    """These may be passing troubles, so they are tried again: the notices say why, and that comes first."""
    with hostile(script) as server:
        process = project.command("-p", "go", server=None, env={"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m"})
        assert process.stderr is not None
        told = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert says in told
    assert "trying again" in told
    assert process.returncode == 130


def test_an_error_that_never_ends_is_cut(project: Project) -> None:
    with hostile(lambda: endless(b"HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\n\r\n", b"no " * 1000)) as server:
        ran = run(project, server)
    assert "answered 400: no no" in ran.result["error"]
    assert len(ran.result["error"]) < 1000
    assert ran.memory < MEMORY


def test_a_compressed_bomb_is_not_unpacked(project: Project) -> None:
    packed = zlib.compress(event(content="x" * 1000) * 200_000)

    def script() -> Iterator[bytes]:
        yield STREAM.replace(b"Connection", b"Content-Encoding: gzip\r\nConnection")
        yield packed

    with hostile(script) as server:
        ran = run(project, server)
    assert b"accept-encoding: identity" in server.heads[0].lower()
    assert "compressed its response (gzip), unasked" in ran.result["error"]
    assert ran.memory < MEMORY


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_does_not_take_the_key_elsewhere(project: Project, status: int) -> None:
    """Neither that of the model, nor what a hook sends to its service."""
    with serving("fine") as elsewhere:
        location = f"Location: {elsewhere.base_url}/chat/completions"
        away = f"HTTP/1.1 {status} Away\r\n{location}\r\nContent-Length: 0\r\n\r\n"
        with hostile(lambda: iter([away.encode()])) as server:
            url = f"{server.base_url}/chat/completions"
            hook = {"type": "http", "url": url, "headers": {"X-Key": "$SECRET"}, "onFailure": "block"}
            settings = {
                "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
                "httpHooks": {"hosts": [url.split("/")[2]], "env": ["SECRET"]},
            }
            file = project.directory / "s.json"
            file.write_text(json.dumps(settings))
            place = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m"}
            env: dict[str, Any] = {**place, "WAVE_API_KEY": "sk-canary", "SECRET": "canary"}
            model = project.wave("-p", "go", "--output-format", "json", **env)
            hooked = project.wave("-p", "go", "--output-format", "json", "--settings", str(file), **env)
        assert [b"sk-canary" in head for head in server.heads] == [True, False]
        assert b"X-Key: canary" in server.heads[1]
    assert elsewhere.requests == []
    assert f"answered {status}" in json.loads(model.stdout)["error"]
    assert json.loads(hooked.stdout)["status"] == "blocked"


def test_a_server_cannot_make_the_agent_wait_for_years(project: Project) -> None:
    busy = b"HTTP/1.1 429 Busy\r\nRetry-After: 1e9\r\nContent-Length: 0\r\n\r\n"
    with hostile(lambda: iter([busy])) as server:
        process = project.command("-p", "go", server=None, env={"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m"})
        assert process.stderr is not None
        told = process.stderr.readline()
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert "trying again in 60.0 s" in told
    assert "the server asked for 1,000,000,000 s" in told
    assert process.returncode == 130
    assert time.monotonic() - started < 10


def test_too_many_calls_are_an_error_and_none_of_them_runs(project: Project) -> None:
    touch = {"name": "Bash", "arguments": '{"command": "touch ran"}'}

    def script() -> Iterator[bytes]:
        yield STREAM + event(content="I begin.")
        for at in range(600):
            yield event(tool_calls=[{"index": at, "id": f"c{at}", "function": touch}])
        yield b"data: [DONE]\n\n"

    with hostile(script) as server:
        ran = run(project, server, "--permission-mode", "bypassPermissions")
    assert "more than 256 tool calls, and none was run" in ran.result["error"]
    assert "models.NAME.maxCalls" in ran.result["error"]
    assert not (project.directory / "ran").exists()
    assert ran.result["result"] == "I begin."


def test_what_a_model_needs_more_of_the_settings_allow(project: Project) -> None:
    many = Reply(tool_calls=[call("Nothing", number=at) for at in range(260)])
    file = project.directory / "s.json"
    file.write_text(json.dumps({"models": {"test": {"maxCalls": 260}}}))
    with serving(many, "Done.", many) as server:
        allowed = project.wave("-p", "go", "--output-format", "json", "--settings", str(file), server=server)
        refused = project.wave("-p", "go", "--output-format", "json", server=server)
    assert json.loads(allowed.stdout)["status"] == "completed"
    assert len([one for one in server.requests[1].body["messages"] if one["role"] == "tool"]) == 260
    assert "more than 256 tool calls" in json.loads(refused.stdout)["error"]


def test_an_id_of_any_length_is_no_trouble(project: Project) -> None:
    long = ToolCall("c" * 40_000, "Glob", '{"pattern": "*"}')
    with serving(Reply(tool_calls=[long]), "Done.") as server:
        done = project.wave("-p", "go", "--output-format", "json", server=server)
    assert json.loads(done.stdout)["status"] == "completed"
    answer, result = server.requests[1].body["messages"][-2:]
    assert answer["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) < 50
