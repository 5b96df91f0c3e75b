"""Notes on sessions that were opened and closed: none is lost, and taking one never waits."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from wave_agent.sessions.touched import Touched, note_closed, note_opened, taken, touched


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def transcript(home: Path, name: str) -> Path:
    return home / "projects" / "-app" / f"{name}.jsonl"


def of(*names: str) -> frozenset[tuple[str, str]]:
    return frozenset(("-app", name) for name in names)


def test_notes_are_crossed_out_except_for_sessions_that_are_open(home: Path) -> None:
    for name in ("one", "two"):
        note_opened(transcript(home, name))
    note_closed(transcript(home, "one"))
    assert touched(home) == Touched(of("two"), of("one"))
    for left in (Touched(of("two")), Touched(of("two"))):
        with taken(home) as notes:
            assert notes is not None
            assert notes.open == of("two")
        assert touched(home) == left
    note_closed(transcript(home, "two"))
    assert touched(home) == Touched(closed=of("two"))


def test_without_notes_there_are_none(home: Path) -> None:
    with taken(home) as notes:
        assert notes == Touched()
    assert not home.exists()


def test_notes_can_be_made_while_others_are_taken_and_nobody_waits(home: Path) -> None:
    note_opened(transcript(home, "open"))
    note_closed(transcript(home, "one"))
    with taken(home) as notes:
        assert notes == Touched(of("open"), of("one"))
        thread = Thread(target=lambda: [note_closed(transcript(home, name)) for name in ("open", "two")], daemon=True)
        thread.start()
        thread.join(timeout=30)
        assert not thread.is_alive()
        assert touched(home) == Touched(closed=of("one", "two", "open"))  # what is being read still counts
        with taken(home) as others:
            assert others is None
    assert touched(home) == Touched(closed=of("two", "open"))


def test_notes_that_a_killed_process_took_are_not_lost(home: Path) -> None:
    note_closed(transcript(home, "one"))
    with pytest.raises(InterruptedError), taken(home):
        raise InterruptedError
    note_closed(transcript(home, "two"))
    assert touched(home) == Touched(closed=of("one", "two"))
    for expected in ("one", "two"):
        with taken(home) as notes:
            assert notes == Touched(closed=of(expected))
    assert touched(home) == Touched()


def test_of_many_notes_at_once_none_is_lost(home: Path) -> None:
    found: set[str] = set()
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(note_closed, transcript(home, f"s{number}")) for number in range(400)]
        while not all(one.done() for one in made) or touched(home).closed:
            with taken(home) as notes:
                assert notes is not None
                found |= {name for _, name in notes.closed}
    assert found == {f"s{number}" for number in range(400)}
