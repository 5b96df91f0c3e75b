"""Transcripts in an object store, and sessions as they were when a run began."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import GUARD, compared, complaint, report, sessions, settings, wave_hooks
from wave_agent.replay.snapshot import SessionChangedError, StoreError, read_session, sessions_at, snapshot_of
from wave_agent.replay.units import RecordedSession


def test_a_session_is_read_as_it_was_when_the_run_began(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("one\ntwo\nthr")
    (session,) = snapshot_of([tmp_path / "a.jsonl", tmp_path / "gone.jsonl"])
    assert read_session(session) == (b"one\ntwo\nthr", False)
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("ee\nfour\n")
    assert read_session(session) == (b"one\ntwo\n", True)
    os.truncate(tmp_path / "a.jsonl", 3)
    with pytest.raises(SessionChangedError, match="shorter"):
        read_session(session)
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(SessionChangedError, match="deleted"):
        read_session(session)
    with pytest.raises(SessionChangedError, match="cannot be read"):
        read_session(RecordedSession(str(tmp_path), 5))


def test_a_file_url_is_read_like_any_other(tmp_path: Path) -> None:
    old = sessions(tmp_path / "old", 2)
    (old / "deep").mkdir()
    (old / "s000.jsonl").rename(old / "deep" / "s000.jsonl")
    (old / "notes.txt").write_text("x")
    os.utime(old / "s001.jsonl", (1, 1))
    seen: list[int] = []
    found = sessions_at(f"file://{old}", on_found=seen.append)
    assert [session.place for session in found] == [f"file://{old}/deep/s000.jsonl", f"file://{old}/s001.jsonl"]
    assert seen == [1, 2]
    assert read_session(found[1]) == ((old / "s001.jsonl").read_bytes(), False)
    assert len(sessions_at(f"file://{old}", timedelta(days=1))) == 1
    (old / "s001.jsonl").unlink()
    with pytest.raises(SessionChangedError, match="deleted"):
        read_session(found[1])


@pytest.mark.parametrize(
    ("url", "message"),
    [("file:///nowhere/at/all", "does not exist"), ("nonsense://x", "cannot be read: Protocol not known: nonsense"),
     ("adl://x", "adl:// needs another package: ")],
)  # fmt: skip
def test_a_url_that_cannot_be_read_is_told_in_a_sentence(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        sessions_at(url)
    assert message in str(raised.value)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an S3-compatible server on loopback, which the environment names. It has one bucket, `sessions`."""
    import boto3  # slow to import, like the server
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="sessions")
    yield client
    server.stop()


def test_sessions_in_a_bucket_give_what_those_in_a_directory_give(project: Path, tmp_path: Path, storage: Any) -> None:
    old = sessions(tmp_path / "old", 5, calls=5)
    for file in old.iterdir():
        storage.upload_file(str(file), "sessions", f"2026/{'deep/' * (file.stem < 's002')}{file.name}")
    storage.put_object(Bucket="sessions", Key="2026/notes.txt", Body=b"x")
    new = settings(tmp_path / "new.json", PreToolUse=[{"name": "guard", "command": GUARD}])
    given = ("--settings", str(new))
    alone = report(project, "--from", str(old), *given)
    assert alone["totals"]["newly blocked"] == 5
    assert compared(report(project, "--from", "s3://sessions/2026", *given)) == compared(alone)
    local = ("--scheduler", "local", "--jobs", "2")
    assert compared(report(project, "--from", "s3://sessions/2026", *given, *local)) == compared(alone)
    done = wave_hooks(project, "backtest", "--from", "s3://sessions/1999", *given)
    assert complaint(done) == (1, "wave: s3://sessions/1999 does not exist.")


def test_sessions_of_a_bucket_since_a_time(tmp_path: Path, storage: Any) -> None:
    storage.put_object(Bucket="sessions", Key="a/x.jsonl", Body=b"{}\n")
    found = sessions_at("s3://sessions/a", timedelta(hours=1))
    assert found == [RecordedSession("s3://sessions/a/x.jsonl", 3)]
    elapsed = datetime.now(UTC) - storage.head_object(Bucket="sessions", Key="a/x.jsonl")["LastModified"]
    assert elapsed < timedelta(hours=1)
    storage.put_object(Bucket="sessions", Key="a/x.jsonl", Body=b"{}\n{}\n")
    assert read_session(found[0]) == (b"{}\n", True)
    storage.delete_object(Bucket="sessions", Key="a/x.jsonl")
    with pytest.raises(SessionChangedError, match="deleted"):
        read_session(found[0])
