"""The index of sessions: always right, because it is compared with the transcripts, and never in the way."""

import os
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wave_agent.sessions.index import delete_session, session_files
from wave_agent.sessions.index_file import IndexedSession, IndexFile, Stamp
from wave_agent.sessions.touched import note_closed, note_opened, taken, touched

PROJECT = "-project"


def make(home: Path, name: str, used: int) -> Path:
    path = home / "projects" / PROJECT / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"type":"session"}\n')
    os.utime(path, (used, used))
    return path


def listed(home: Path) -> list[str]:
    """As in a directory with many sessions."""
    return [path.stem for path in session_files(home / "projects" / PROJECT, few=0)]


def index_of(home: Path) -> Path:
    return next((home / "index").glob("*.sqlite3"))


def test_the_order_is_that_of_the_last_use(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        make(tmp_path, f"s-{number}", number)
    (tmp_path / "projects" / PROJECT / "directory.jsonl").mkdir()
    (tmp_path / "projects" / PROJECT / "no session!.jsonl").touch()
    assert listed(tmp_path) == ["s-3", "s-2", "s-1"]
    assert listed(tmp_path) == ["s-3", "s-2", "s-1"]  # now from the index
    assert stat.S_IMODE(index_of(tmp_path).stat().st_mode) == 0o600


def test_a_session_that_was_added_or_removed_by_hand_is_noticed(tmp_path: Path) -> None:
    first = make(tmp_path, "first", 1)
    make(tmp_path, "second", 2)
    listed(tmp_path)
    first.unlink()
    make(tmp_path, "copied", 3)
    make(tmp_path, "restored", 1)
    assert listed(tmp_path) == ["copied", "second", "restored"]


def test_a_session_that_was_used_since_moves_up_while_it_is_open_and_afterwards(tmp_path: Path) -> None:
    first, _ = make(tmp_path, "first", 1), make(tmp_path, "second", 2)
    listed(tmp_path)
    note_opened(first)
    os.utime(first, (3, 3))
    assert listed(tmp_path) == ["first", "second"]
    note_closed(first)
    os.utime(first, (4, 4))
    assert listed(tmp_path) == ["first", "second"]


def test_after_too_many_notes_every_transcript_is_looked_at(tmp_path: Path) -> None:
    first, _ = make(tmp_path, "first", 1), make(tmp_path, "second", 2)
    listed(tmp_path)
    (tmp_path / "index" / "touched").write_bytes(b"= -other/session\n" * 70_000)
    note_closed(first)
    os.utime(first, (3, 3))
    assert (touched(tmp_path).overflowed, touched(tmp_path).of(PROJECT)) == (True, set())
    assert listed(tmp_path) == ["first", "second"]


def test_notes_on_open_sessions_survive_the_taking(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one", 1), make(tmp_path, "two", 1)
    note_opened(one)
    note_opened(two)
    note_closed(two)
    note_closed(two)  # a guard closes its session after every event
    assert (tmp_path / "index" / "touched").read_text().count("= ") == 1
    with pytest.raises(KeyError), taken(tmp_path):
        raise KeyError
    with taken(tmp_path) as notes:
        assert notes is not None
        assert (notes.open, notes.closed) == ({(PROJECT, "one")}, {(PROJECT, "two")})
    assert (touched(tmp_path).open, touched(tmp_path).closed) == ({(PROJECT, "one")}, frozenset())


def test_without_notes_there_is_nothing_to_take(tmp_path: Path) -> None:
    with taken(tmp_path) as notes:
        assert notes == touched(tmp_path)
    note_closed(tmp_path / "somewhere" / "else" / "subagents" / "agent.jsonl")
    assert not (tmp_path / "index").exists()


def damage(file: Path) -> None:
    file.write_bytes(b"this is not a database" * 1000)


def damage_the_middle(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [damage, damage_the_middle, Path.unlink, lambda file: file.write_bytes(b"")])
def test_an_index_that_is_damaged_or_missing_hides_nothing_and_is_built_again(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    expected = [f"s-{number:03}" for number in reversed(range(300))]
    for number, name in enumerate(reversed(expected)):
        make(tmp_path, name, number)
    assert listed(tmp_path) == expected
    harm(index_of(tmp_path))
    assert sorted(listed(tmp_path)) == sorted(expected)
    assert listed(tmp_path) == expected
    with sqlite3.connect(index_of(tmp_path)) as found:
        assert found.execute("SELECT count(*) FROM sessions").fetchone() == (300,)
    found.close()


def test_an_index_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    make(tmp_path, "only", 1)
    (tmp_path / "index").write_text("a file where the directory should be")
    assert listed(tmp_path) == ["only"]
    note_closed(tmp_path / "projects" / PROJECT / "only.jsonl")


def test_while_another_process_writes_nothing_fails(tmp_path: Path) -> None:
    make(tmp_path, "first", 1)
    listed(tmp_path)
    make(tmp_path, "second", 2)
    with sqlite3.connect(index_of(tmp_path), isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert sorted(listed(tmp_path)) == ["first", "second"]
    other.close()


def test_many_agents_write_at_the_same_time(tmp_path: Path) -> None:
    def put(number: int) -> None:
        with IndexFile(tmp_path) as index:
            index.put(PROJECT, [IndexedSession(f"s-{number}", Stamp(number, 1), b"x")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))
    with IndexFile(tmp_path) as index:
        assert index.ids(PROJECT) == {f"s-{number}" for number in range(40)}


def test_a_deleted_session_is_gone_from_the_index_too(tmp_path: Path) -> None:
    path = make(tmp_path, "secret", 1)
    with IndexFile(tmp_path) as index:
        index.put(PROJECT, [IndexedSession("secret", Stamp(1, 1), b"it said hunter2")])
    assert b"hunter2" in index_of(tmp_path).read_bytes()
    delete_session(path)
    assert b"hunter2" not in index_of(tmp_path).read_bytes()
    with IndexFile(tmp_path) as index:
        assert list(index.tallies(PROJECT)) == []
