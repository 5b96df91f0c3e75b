"""Figures of many sessions come from the index, and are always those of the transcripts."""

import os
from pathlib import Path

from tests.replay.recorded import record, wave_hooks
from wave_agent.replay.tallies import Tallies
from wave_agent.replay.upkeep import after_session, update_index
from wave_agent.sessions.index_file import IndexFile
from wave_agent.sessions.touched import touched

STOP = {"Stop": [{"hooks": [{"name": "done", "command": "true"}]}]}


def runs(home: Path, *directories: Path) -> int:
    found = Tallies(lambda _done, _total: None).of_projects(home, directories or [*(home / "projects").iterdir()])
    return sum(hook.runs for one in found for hook in one.hooks)


def test_a_transcript_that_was_changed_added_or_removed_is_read_again(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = record(project, ["Hi."], hooks=STOP)
    assert (runs(home), runs(home)) == (1, 1)
    line = next(line for line in path.read_text().splitlines(keepends=True) if "hook_run" in line)
    with path.open("a") as file:
        file.write(line)
    assert runs(home) == 2
    copied = path.with_name("copied.jsonl")
    copied.write_bytes(path.read_bytes())
    assert runs(home) == 4
    copied.unlink()
    assert runs(home) == 2
    with IndexFile(home) as index:
        assert index.ids(path.parent.name) == {path.stem}


def test_figures_come_from_the_index_while_it_fits(project: Path, tmp_path: Path) -> None:
    """Nothing reads the transcript: its content is replaced by something of the same size and time."""
    home = tmp_path / "home"
    path = record(project, ["Hi."], hooks=STOP)
    assert runs(home) == 1
    facts = path.stat()
    path.write_bytes(b" " * facts.st_size)
    os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    assert runs(home) == 1
    os.utime(path, ns=(facts.st_mtime_ns + 1, facts.st_mtime_ns + 1))
    assert runs(home) == 0


def test_a_tally_that_cannot_be_read_is_counted_again(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = record(project, ["Hi."], hooks=STOP)
    runs(home)
    with IndexFile(home) as index:
        [known] = index.tallies(path.parent.name)
        index.put(path.parent.name, [type(known)(known.session_id, known.stamp, b"[torn")])
    assert runs(home) == 1


def test_sessions_are_added_to_the_index_as_they_end(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = record(project, ["Hi."], hooks=STOP)
    assert touched(home).closed == {(path.parent.name, path.stem)}
    after_session(home, 30)
    assert len(touched(home).closed) == 1  # one is too few to open the index for
    update_index(home)
    with IndexFile(home) as index:
        [known] = index.tallies(path.parent.name)
    assert (known.session_id, known.stamp.size) == (path.stem, path.stat().st_size)
    assert not touched(home).closed


def test_after_too_many_notes_only_times_are_noted(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = record(project, ["Hi."], hooks=STOP)
    (home / "index" / "touched").write_bytes(b"= -other/gone\n" * 80_000)
    after_session(home, 0)
    assert not touched(home).closed
    with IndexFile(home) as index:
        assert index.ids(path.parent.name) == {path.stem}
        assert list(index.tallies(path.parent.name)) == []
    assert runs(home) == 1
    (home / "index" / "touched").write_bytes(b"= -other/gone\n" * 80_000)
    after_session(home, 0)
    with IndexFile(home) as index:
        assert len(list(index.tallies(path.parent.name))) == 1  # it has not changed


def test_what_is_not_a_transcript_is_skipped_with_a_notice(project: Path) -> None:
    path = record(project, ["Hi."], hooks=STOP)
    path.with_name("directory.jsonl").mkdir()
    (path.parents[1] / "project.jsonl").mkdir()
    for scope in ([], ["--all"]):
        done = wave_hooks(project, "stats", *scope)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 hook runs in 1 session")
        assert "directory.jsonl" in done.stderr
