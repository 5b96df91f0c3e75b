"""Finished sessions are sent to one place, in the background, until they are stored."""

import asyncio
import base64
import gzip
import hashlib
import io
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from tests.guard.judging import Arena
from tests.waiting import until
from wave_agent.errors import WaveError
from wave_agent.sessions.outbox import is_waiting, queue, waiting
from wave_agent.sessions.uploads import UploadError, destination, send_all

SECRET = "AKIA" + "ABCDEFGHIJKLMNOP"


class Collector(ThreadingHTTPServer):
    """Stores what is put, and never the same thing twice."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stored: dict[str, bytes] = {}
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        """The answers before it works as it should."""
        self.collections: set[str] | None = None
        """Those of a WebDAV server, which takes files only where a collection is."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/transcripts"

    def lines(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in gzip.decompress(self.stored[key]).splitlines()]


class _Handler(BaseHTTPRequestHandler):
    server: Collector  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers.append(dict(self.headers))
        status = (
            self.server.statuses.pop(0) if self.server.statuses else 412 if self.path in self.server.stored else 201
        )
        if not self._has_parent():
            status = 409
        if status == 201:
            self.server.stored[self.path] = body
        self._answer(status)

    def do_MKCOL(self) -> None:
        made = self.server.collections is not None and self._has_parent()
        if made and self.server.collections is not None:
            self.server.collections.add(self.path.rstrip("/"))
        self._answer(201 if made else 409)

    def _has_parent(self) -> bool:
        known = self.server.collections
        return known is None or self.path.rstrip("/").rpartition("/")[0] in known

    def _answer(self, status: int) -> None:
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collecting(server: Collector) -> Iterator[Collector]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting(Collector()) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def record(home: Path, name: str = "s1", text: str = f"key {SECRET}", *, end: str = "\n") -> Path:
    file = home / "projects" / "-srv-app" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"type": "session", "version": 1}) + "\n" + json.dumps({"text": text}) + end)
    return file


def sent(home: Path, url: str, **more: Any) -> dict[str, str]:
    return {one.session_id: one.error for one in send_all(home, url, pauses=(), **more)}


# ------------------------------------------------------------------------------------------------------- what is sent


def test_a_transcript_is_sent_masked_compressed_and_under_the_digest_of_its_content(home: Path, collector: Collector):
    queue(home, record(home))
    assert sent(home, collector.url, token="t0ken") == {"s1": ""}
    ((key, body),) = collector.stored.items()
    assert key == f"/transcripts/s1/{hashlib.sha256(gzip.decompress(body)).hexdigest()}.jsonl.gz"
    assert collector.lines(key)[1] == {"text": "key [masked: an AWS key]"}
    assert SECRET.encode() not in gzip.decompress(body)
    assert collector.headers[0]["Authorization"] == "Bearer t0ken"
    assert not is_waiting(home)


def test_sending_twice_changes_nothing_and_a_resumed_session_is_stored_beside_itself(home: Path, collector: Collector):
    for text in ("one", "one", "two"):
        queue(home, record(home, text=text))
        assert sent(home, collector.url) == {"s1": ""}
    assert sorted(collector.lines(key)[1]["text"] for key in collector.stored) == ["one", "two"]


def test_transcripts_of_subagents_come_along_and_half_a_line_does_not(home: Path, collector: Collector):
    transcript = record(home, end="")
    child = transcript.with_suffix("") / "subagents" / "a7.jsonl"
    child.parent.mkdir(parents=True)
    child.write_bytes(b'{"type":"user"}\nnot json\n{"type":"\xef"}\n')
    queue(home, transcript)
    assert sent(home, collector.url) == {"s1": ""}
    keys = {key.rpartition("/")[0]: [line["type"] for line in collector.lines(key)] for key in collector.stored}
    assert keys == {"/transcripts/s1": ["session"], "/transcripts/s1/subagents/a7": ["user"]}


def test_a_directory_can_be_the_place(home: Path, tmp_path: Path):
    for name in ("plain", "as url"):
        (tmp_path / name).mkdir()
    for place in (str(tmp_path / "plain"), (tmp_path / "as url").as_uri()):
        queue(home, record(home))
        assert sent(home, place) == {"s1": ""}
    assert [file.name for file in (tmp_path / "plain").rglob("*.gz")] == [
        file.name for file in (tmp_path / "as url").rglob("*.gz")
    ]
    assert not [file for file in tmp_path.rglob(".*") if file.is_file() and "plain" in file.parts]


def test_a_webdav_server_gets_the_collections_that_it_lacks(home: Path, collector: Collector):
    collector.collections = {"/transcripts"}
    transcript = record(home)
    child = transcript.with_suffix("") / "subagents" / "a7.jsonl"
    child.parent.mkdir(parents=True)
    child.write_bytes(b'{"type":"user"}\n')
    queue(home, transcript)
    assert sent(home, collector.url) == {"s1": ""}
    assert {key.rpartition("/")[0] for key in collector.stored} == {"/transcripts/s1", "/transcripts/s1/subagents/a7"}


def test_user_and_password_in_the_url_are_sent_as_a_login(home: Path, collector: Collector):
    queue(home, record(home))
    assert sent(home, collector.url.replace("//", "//ada:p%40ss@")) == {"s1": ""}
    login = base64.b64decode(collector.headers[0]["Authorization"].removeprefix("Basic "))
    assert login == b"ada:p@ss"


# --------------------------------------------------------------------------------------------------------- what fails


@pytest.mark.parametrize("status", [500, 403, 302])
def test_what_is_not_stored_waits_and_says_why(home: Path, collector: Collector, status: int):
    collector.statuses = [status]
    queue(home, record(home))
    assert "answered" in sent(home, collector.url)["s1"]
    assert [(one.tries, str(status) in one.error) for one in waiting(home).values()] == [(1, True)]
    assert sent(home, collector.url) == {"s1": ""}
    assert len(collector.stored) == 1


def test_a_missing_collection_is_not_taken_for_a_stored_transcript(home: Path, collector: Collector):
    collector.collections = set()  # not even the one in the settings
    queue(home, record(home))
    assert "409" in sent(home, collector.url)["s1"]
    assert list(waiting(home)) == ["s1"]


def test_a_passing_fault_is_tried_again_in_the_same_run(home: Path, collector: Collector):
    collector.statuses = [503, 503]
    queue(home, record(home))
    assert [one.error for one in send_all(home, collector.url, pauses=(0, 0))] == [""]


def test_one_session_that_fails_does_not_hold_up_the_others(home: Path, collector: Collector):
    collector.statuses = [403]
    for name in ("s1", "s2"):
        queue(home, record(home, name))
    assert [bool(error) for error in sent(home, collector.url).values()] == [True, False]
    assert list(waiting(home)) == ["s1"]


def test_a_session_that_was_deleted_is_forgotten(home: Path, collector: Collector):
    transcript = record(home)
    queue(home, transcript)
    transcript.unlink()
    assert "deleted" in sent(home, collector.url)["s1"]
    assert waiting(home) == {}


def test_without_room_for_temporary_files_the_session_still_waits(home: Path, collector: Collector):
    queue(home, record(home))
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from pathlib import Path; from wave_agent.sessions.uploads import send_all\n"
        "for one in send_all(Path(sys.argv[1]), sys.argv[2], pauses=()): print(one.error)"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(home), collector.url], capture_output=True, text=True, check=False
    )
    assert "temporary directory" in done.stdout, done.stderr
    assert list(waiting(home)) == ["s1"]


def test_a_directory_that_is_not_there_is_not_created(home: Path, tmp_path: Path):
    place = tmp_path / "share" / "transcripts"
    queue(home, record(home))
    with pytest.raises(UploadError, match="is not a directory"):
        sent(home, str(place))
    place.mkdir(parents=True)
    queue(home, record(home, "s2"))
    run = send_all(home, str(place), pauses=())
    next(run)
    (stored,) = place.rglob("*.gz")
    shutil.rmtree(place)  # unmounted meanwhile
    assert [(one.session_id, "is not a directory" in one.error) for one in run] == [("s2", True)]
    assert (stored.parent.name, list(waiting(home)), place.exists()) == ("s1", ["s2"], False)


def test_a_server_that_is_down_ends_the_run_with_the_first_session(home: Path):
    with collecting(Collector()) as server:
        url = server.url
    for name in ("s1", "s2", "s3"):
        queue(home, record(home, name))
    pauses = (3600.0,)  # would take too long if it paused
    assert [one.session_id for one in send_all(home, url, pauses=pauses)] == ["s1"]
    assert [one.session_id for one in send_all(home, url, pauses=pauses)] == ["s2"]  # what was tried least
    assert {name: one.tries for name, one in waiting(home).items()} == {"s1": 1, "s2": 1, "s3": 0}


def test_a_server_with_a_fault_that_does_not_pass_ends_the_run_too(home: Path, collector: Collector):
    collector.statuses = [503, 503]
    for name in ("s1", "s2"):
        queue(home, record(home, name))
    assert [one.session_id for one in send_all(home, collector.url, pauses=(0.0,))] == ["s1"]
    assert list(sent(home, collector.url)) == ["s2", "s1"]


def test_what_failed_several_times_is_left_for_a_while_except_by_the_command(home: Path, collector: Collector):
    collector.statuses = [403] * 3
    queue(home, record(home))
    assert "403" in sent(home, collector.url, due=True)["s1"]
    assert "403" in sent(home, collector.url, due=True)["s1"]  # the next session tries again at once
    assert sent(home, collector.url, due=True) == {}
    assert "403" in sent(home, collector.url)["s1"]
    waits = [one.not_before - time.time() for one in waiting(home).values()]
    assert [200 < seconds <= 240 for seconds in waits] == [True]
    assert sent(home, collector.url) == {"s1": ""}


def test_whoever_finds_another_process_at_work_has_asked_for_another_look_before(home: Path, collector: Collector):
    queue(home, record(home))
    (home / "outbox" / "lock").mkdir()  # so that the try itself fails
    with pytest.raises(IsADirectoryError):
        sent(home, collector.url)
    assert (home / "outbox" / "again").exists()


@pytest.mark.parametrize("forged", ["../../../etc/s1.jsonl", "/etc/s1.jsonl", "-srv-app/other.jsonl"])
def test_an_entry_can_only_name_its_own_transcript(home: Path, collector: Collector, forged: str):
    queue(home, record(home))
    (home / "outbox" / "s1.json").write_text(json.dumps({"transcript": forged}))
    assert sent(home, collector.url)["s1"]
    assert (collector.stored, waiting(home)) == ({}, {})


def test_only_one_process_sends_and_it_looks_once_more_if_another_one_came(home: Path, collector: Collector):
    queue(home, record(home, "s1"))
    first = send_all(home, collector.url, pauses=())
    assert next(first).session_id == "s1"
    queue(home, record(home, "s2"))
    assert sent(home, collector.url) == {}  # the other one is at it
    assert [one.session_id for one in first] == ["s2"]


@pytest.mark.parametrize("url", ["nonsense", "s3:nowhere", "nosuchscheme://bucket/x", "http://[x", "http://x:y/"])
def test_a_url_that_means_nothing_is_refused(url: str):
    with pytest.raises(UploadError):
        destination(url)
    assert issubclass(UploadError, WaveError)


def test_what_is_missing_for_an_object_store_is_named():
    registry = pytest.importorskip("fsspec.registry")
    registry.register_implementation("tape", "no_such_package.TapeFileSystem", errtxt="Install tapefs for tapes")
    with pytest.raises(UploadError) as refused:
        destination("tape://rack/1")
    assert str(refused.value) == "tape:// needs another package: Install tapefs for tapes"


def test_an_object_store_is_reached_through_fsspec(home: Path):
    fsspec = pytest.importorskip("fsspec")
    queue(home, record(home))
    assert sent(home, "memory://bucket/prefix") == {"s1": ""}
    (stored,) = fsspec.filesystem("memory").glob("/bucket/prefix/s1/*.jsonl.gz")
    assert gzip.decompress(fsspec.filesystem("memory").cat(stored)).startswith(b'{"type":"session"')


def test_what_a_killed_process_had_stored_in_part_is_stored_again(home: Path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    queue(home, record(home, "s7"))
    assert sent(home, "memory://bucket/partly") == {"s7": ""}
    (stored,) = memory.glob("/bucket/partly/s7/*.jsonl.gz")
    whole = memory.cat(stored)
    memory.pipe(stored, whole[:20])
    queue(home, record(home, "s7"))
    assert sent(home, "memory://bucket/partly") == {"s7": ""}
    assert memory.cat(stored) == whole


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n", b"x"])
def test_a_server_that_never_finishes_its_answer_is_given_up(piece: bytes):
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                while not over.wait(0.02):
                    connection.sendall(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        place = destination(f"http://127.0.0.1:{server.getsockname()[1]}", seconds=0.5)
        try:
            with pytest.raises(UploadError, match="it did not finish its answer in time") as failed:
                place.store("s1/d.jsonl.gz", io.BytesIO(b"packed"), 6)
        finally:
            over.set()
            thread.join()
    assert failed.value.unreachable


# -------------------------------------------------------------------------------------------------------- in sessions


def settings_for(project: Project, url: str) -> None:
    file = project.home / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"sessions": {"upload": url}}))


async def test_a_session_is_uploaded_when_it_ends_and_what_waited_when_the_next_one_starts(
    tmp_path: Path, collector: Collector
):
    project = Project(tmp_path)
    settings_for(project, collector.url)
    collector.statuses = [403]
    with serving("Hello.", "Hello again.") as server:
        assert project.wave("-p", "first words", server=server).returncode == 0
        await until(lambda: [one.tries for one in waiting(project.home).values()] == [1])
        assert collector.stored == {}
        assert project.wave("-p", "second words", server=server).returncode == 0
        await until(lambda: len(collector.stored) == 2 and not is_waiting(project.home))
    texts = " ".join(json.dumps(collector.lines(key)) for key in collector.stored)
    assert "first words" in texts
    assert "second words" in texts


async def test_a_project_cannot_say_where_sessions_go(tmp_path: Path, collector: Collector):
    project = Project(tmp_path)
    settings = project.directory / ".wave" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"sessions": {"upload": collector.url}}))
    with serving("Hello.") as server:
        done = project.wave("-p", "words", "--trust", server=server)
    assert "only user settings and managed settings can set this" in done.stderr
    assert not (project.home / "outbox").exists()


async def test_a_url_that_cannot_be_used_is_noted_with_every_session_and_reported_by_wave_doctor(tmp_path: Path):
    project = Project(tmp_path)
    settings_for(project, "nosuchscheme://bucket")
    queue(project.home, record(project.home))
    with serving("Hello.", "ready") as server:
        assert project.wave("-p", "words", server=server).returncode == 0
        await until(lambda: all(one.error for one in waiting(project.home).values()))
        assert len(waiting(project.home)) == 2
        found = project.wave("doctor", server=server)
    assert found.returncode == 1
    (line,) = [line for line in found.stdout.splitlines() if "uploads" in line]
    assert line.startswith("NO  uploads")
    assert "nosuchscheme" in line.partition(": ")[2]


@pytest.mark.parametrize("resident", ["on", "off"])
async def test_a_session_of_another_agent_is_uploaded_when_that_agent_ends_it(
    tmp_path: Path, collector: Collector, resident: str
):
    arena = Arena(tmp_path)
    (arena.home / "settings.json").write_text(json.dumps({"sessions": {"upload": collector.url}}))
    environment = {**arena.environment, "WAVE_GUARD_RESIDENT": resident, "WAVE_UPLOAD_TOKEN": "t0ken"}
    end = {"session_id": "s1", "cwd": str(arena.project), "reason": "exit"}
    try:
        for event, payload in (("PreToolUse", arena.call(f"echo {SECRET}")), ("SessionEnd", end)):
            assert not waiting(arena.home)
            command = [WAVE, "guard", "run", "claude", event]
            done = await asyncio.to_thread(
                subprocess.run, command, input=json.dumps(payload), env=environment, cwd=arena.project,
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert done.stderr == ""
        await until(lambda: len(collector.stored) == 1 and not is_waiting(arena.home))
    finally:
        arena.end_resident()
    (key,) = collector.stored
    assert key.startswith("/transcripts/claude-s1/")
    assert "echo [masked" in str(collector.lines(key))
    assert collector.headers[0]["Authorization"] == "Bearer t0ken"


def test_the_command_shows_what_comes_of_it(tmp_path: Path, collector: Collector):
    project = Project(tmp_path)
    settings_for(project, collector.url)
    queue(project.home, record(project.home))
    collector.statuses = [403]
    first, second = (project.wave("sessions", "upload") for _ in range(2))
    assert (first.returncode, second.returncode) == (1, 0)
    assert "403" in first.stdout
    assert second.stdout == "s1  sent\n"
    settings_for(project, "nonsense")
    assert project.wave("sessions", "upload").returncode == 2
