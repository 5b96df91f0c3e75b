"""Whatever is done to a tree, the watch reports the difference of two full snapshots, and undo takes it back."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.tools.changes.snapshots import difference, overflow, reported, snapshot
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.changes.watcher import ProjectWatcher

NAMES = st.sampled_from(["a", "b", "c", "ä b"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"one", b"two", b"three" * 1000])


class Changing(RuleBasedStateMachine):
    """Operations fail where the tree does not allow them: that is fine, as for any command."""

    watch = True

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp()).resolve()
        self.root = self.top / "project"
        self.root.mkdir()

    @initialize(files=st.dictionaries(PATHS, CONTENTS, max_size=6))
    def begin(self, files: dict[str, bytes]) -> None:
        for path, content in files.items():
            self.attempt(self._create, path, content)
        self.watcher = ProjectWatcher(str(self.root), self.top / "private", watch=self.watch)
        self.watcher.arm()
        self.changes = FileChanges()
        self.before = self.at_start = snapshot(self.root)
        self.overflows = 0

    def _create(self, path: str, content: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def attempt(self, work: Any, *given: Any) -> None:
        with suppress(OSError):
            work(*given)

    @rule(path=PATHS, content=CONTENTS)
    def write_with_new_directories(self, path: str, content: bytes) -> None:
        self.attempt(self._create, path, content)

    @rule(path=PATHS, content=CONTENTS)
    def append(self, path: str, content: bytes) -> None:
        def add() -> None:
            with (self.root / path).open("ab") as file:
                file.write(content)

        self.attempt(add)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.attempt(os.unlink, self.root / path)

    @rule(path=PATHS)
    def delete_tree(self, path: str) -> None:
        self.attempt(shutil.rmtree, self.root / path)

    @rule(path=PATHS)
    def make_directory(self, path: str) -> None:
        self.attempt(os.makedirs, self.root / path)

    @rule(old=PATHS, new=PATHS)
    def rename(self, old: str, new: str) -> None:
        self.attempt(os.rename, self.root / old, self.root / new)

    @rule(path=PATHS)
    def move_out(self, path: str) -> None:
        self.attempt(os.rename, self.root / path, self.top / f"out-{os.urandom(4).hex()}")

    @rule(path=PATHS, content=CONTENTS)
    def move_in(self, path: str, content: bytes) -> None:
        def move() -> None:
            made = self.top / f"in-{os.urandom(4).hex()}"
            (made / "a" / "b").mkdir(parents=True)
            (made / "a" / "b" / "c").write_bytes(content)
            os.rename(made, self.root / path)

        self.attempt(move)

    @rule(path=PATHS, to=PATHS)
    def link(self, path: str, to: str) -> None:
        self.attempt(os.symlink, to, self.root / path)

    @rule(path=PATHS, other=PATHS)
    def hard_link(self, path: str, other: str) -> None:
        self.attempt(os.link, self.root / path, self.root / other)

    @rule(path=PATHS, mode=st.sampled_from([0o600, 0o644, 0o755]))
    def chmod(self, path: str, mode: int) -> None:
        if (self.root / path).is_file():
            self.attempt(os.chmod, self.root / path, mode)

    @rule(path=PATHS)
    def touch(self, path: str) -> None:
        self.attempt(os.utime, self.root / path)

    @rule()
    def look(self) -> None:
        found = self.watcher.settle()
        now = snapshot(self.root)
        assert reported(found) == difference(self.before, now)
        for change in found.changes:
            for version, seen in ((change.before, self.before), (change.after, now)):
                assert (version is None) == (change.path not in seen)
                if version is not None:
                    assert (version.mode, version.content.read()) == seen[change.path]
        self.before = now
        self.changes.note_command(found)

    @rule()
    def undo(self) -> None:
        self.look()
        kinds = difference(self.at_start, self.before)
        assert list(self.changes.changed()) == sorted(kinds)
        taken = self.changes.take_back()
        assert taken.refused == {}
        assert sorted(taken.removed) == [path for path, kind in kinds.items() if kind == "created"]
        assert sorted(taken.restored) == [path for path, kind in kinds.items() if kind != "created"]
        assert snapshot(self.root) == self.at_start
        self.watcher.settle()
        self.before = self.at_start

    @precondition(lambda self: self.overflows < 1)
    @rule()
    def overflow_the_queue(self) -> None:
        self.overflows += 1
        overflow(self.root)

    def teardown(self) -> None:
        try:
            if hasattr(self, "watcher"):
                self.look()
                self.watcher.close()
        finally:
            shutil.rmtree(self.top)


class ChangingUnwatched(Changing):
    watch = False


EXAMPLES = [5, pytest.param(300, marks=[pytest.mark.thorough, pytest.mark.timeout(900)])]


def run(machine: type[Changing], examples: int) -> None:
    steps = settings(max_examples=examples, stateful_step_count=30)
    run_state_machine_as_test(machine, settings=steps)


@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_watch_reports_exactly_what_is_different(examples: int) -> None:
    run(Changing, examples)


@pytest.mark.parametrize("examples", EXAMPLES)
def test_comparing_all_files_reports_exactly_what_is_different(examples: int) -> None:
    run(ChangingUnwatched, examples)
