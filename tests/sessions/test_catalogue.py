"""The catalogue of sessions: how each begins, from the index or from its transcript."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from wave_agent.sessions.catalogue import SessionHead, SessionTotals, catalogue, latest, matching, read, totals
from wave_agent.sessions.index import delete_session
from wave_agent.sessions.index_file import IndexedSession, IndexFile, Stamp

PROJECT = "-project"
HEAD = {"type": "session", "version": 1}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = tmp_path / "projects" / PROJECT
    found.mkdir(parents=True)
    return found


def user(text: str, **more: object) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, "source": "user", **more}


def opening(line: str) -> dict[str, object]:
    return {"type": "system", "subtype": "opening", "system": f"You are Wave.\n{line}\nDate: today", "tools": []}


def make(directory: Path, name: str, *records: object, used: int = 1_763_000_000) -> Path:
    path = directory / f"{name}.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in (HEAD, *records)]
    path.write_text("\n".join([*lines, ""]))
    os.utime(path, (used, used))
    return path


def index_of(directory: Path) -> Path:
    return next((directory.parents[1] / "index").glob("*.sqlite3"))


def test_what_is_read_once_is_known_afterwards(directory: Path) -> None:
    make(directory, "old", user("Fix the login."), opening("Git branch: feature/login, no changes"), used=1)
    make(directory, "new", {"type": "system", "subtype": "hook_run"}, user("Grüße an alle"), used=2)
    make(directory, "empty", used=3)
    first = catalogue(directory)
    assert (first.known, [name for _, name in first.unread]) == ([], ["empty", "new", "old"])
    found = {one.session_id: one.head for one in read(directory, first.unread)}
    assert found == {
        "old": SessionHead("Fix the login.", "feature/login"),
        "new": SessionHead("Grüße an alle"),
        "empty": SessionHead(),
    }
    again = catalogue(directory)
    assert [one.session_id for one in again.known] == ["new", "old"]
    assert [name for _, name in again.unread] == ["empty"]  # it may still get a prompt
    assert [one.session_id for one in latest(directory, 2)] == ["empty", "new"]


def test_the_branch_is_found_whatever_follows_it(directory: Path) -> None:
    for name, line in (("a", "Git branch: main"), ("b", "Git branch: main, 3 changed files"), ("c", "System: Linux")):
        make(directory, name, user("x"), opening(line))
    found = {one.session_id: one.head.branch for one in read(directory, catalogue(directory).unread)}
    assert found == {"a": "main", "b": "main", "c": ""}


def test_what_is_torn_foreign_or_gone_hides_nothing_else(directory: Path) -> None:
    make(directory, "torn", '{"type":"user","mess', user("hello"))
    make(directory, "other", {"type": "assistant"}, user("from elsewhere \ud800"))
    make(directory, "guarded", user("hi")).write_text('{"type":"session","host":"claude"}\n')
    gone = (1, "gone")
    found = {one.session_id: one.head for one in read(directory, [*catalogue(directory).unread, gone])}
    assert found["torn"].prompt == "hello"
    assert found["other"].prompt == "from elsewhere ?"
    assert found["guarded"] == SessionHead(host="claude")
    assert "gone" not in found
    index_of(directory).write_bytes(b"damaged")
    assert len(catalogue(directory).unread) == 3


def test_secrets_in_prompts_do_not_reach_the_index(directory: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    make(directory, "one", user(f"My token is {secret}, remember it."))
    (found,) = read(directory, catalogue(directory).unread)
    assert "remember it" in found.head.prompt
    assert secret not in found.head.prompt
    assert secret.encode() not in index_of(directory).read_bytes()


def test_a_deleted_session_leaves_nothing_in_the_index_even_if_an_older_version_deletes_it(directory: Path) -> None:
    paths = [make(directory, name, user(f"peculiar-{name}")) for name in ("first", "second")]
    read(directory, catalogue(directory).unread)
    delete_session(paths[0])
    with sqlite3.connect(index_of(directory)) as older:  # it does not know the table of beginnings
        older.execute("PRAGMA secure_delete = ON")
        older.execute("DELETE FROM sessions WHERE id = 'second'")
    older.close()
    assert b"peculiar" not in index_of(directory).read_bytes()


def test_what_else_the_index_knows_of_a_session_stays(directory: Path) -> None:
    make(directory, "one", user("hello"))
    with IndexFile(directory.parents[1]) as index:
        index.put(PROJECT, [IndexedSession("one", Stamp(5, 7), b"tally")])
    read(directory, catalogue(directory).unread)
    with IndexFile(directory.parents[1]) as index:
        assert list(index.tallies(PROJECT)) == [IndexedSession("one", Stamp(5, 7), b"tally")]


def test_every_word_has_to_be_somewhere(directory: Path) -> None:
    make(directory, "a1", user("Fix the Login"), opening("Git branch: feature/auth, no changes"))
    make(directory, "b2", user("Fix the parser"), used=1_700_000_000)
    found = sorted(read(directory, catalogue(directory).unread))
    for words, names in {
        "": {"a1", "b2"},
        "fix": {"a1", "b2"},
        "LOGIN fix": {"a1"},
        "feature/": {"a1"},
        "2023-11": {"b2"},
        "b2": {"b2"},
        "login parser": set(),
    }.items():
        assert {one.session_id for one in matching(found, words)} == names, words


def test_turns_and_cost_are_those_of_the_transcript(directory: Path) -> None:
    result = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}]}}
    told = {"type": "user", "message": {"role": "user", "content": '"source":"user"'}, "source": "model"}
    usage = {"type": "system", "subtype": "usage"}
    for name, records, wanted in (
        ("a", [user("x"), result, told, {**usage, "cost_usd": 0.5}, user("y"), {**usage, "cost_usd": 1}], (2, 1.5)),
        ("b", [user("x"), {**usage, "cost_usd": 0.5}, {**usage, "cost_usd": None}], (1, None)),
        ("c", [user("x"), '{"type":"system","subtype":"usage", torn'], (1, None)),
    ):
        assert totals(make(directory, name, *records)) == SessionTotals(*wanted)
    assert totals(directory / "missing.jsonl") is None
