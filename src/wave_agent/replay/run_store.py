"""What a run has found so far, on disk: it can be resumed after an interrupt, a crash or `kill -9`.

`WAVE_HOME/backtests/<project>-<time>/` has three files: `request.json`, `units.jsonl` with what there is to do, and
`answers.jsonl` with the findings of each finished unit, followed by a line with its totals. The directory is locked
while its run lives, and removed when the run is complete.
"""

import fcntl
import hashlib
import os
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.replay.comparison import ChangedVerdict
from wave_agent.replay.report import UnitTotals, sum_of
from wave_agent.replay.scratch import remove_tree
from wave_agent.replay.units import Unit
from wave_agent.replay.worker import FoundChange, UnitDone
from wave_agent.system.private_files import keep_private, open_private

KEPT_DAYS = 7
"""How long an unfinished run can be resumed."""
_DONE = b'{"type":"done"'
_REQUEST, _UNITS, _ANSWERS, _LOCK = "request.json", "units.jsonl", "answers.jsonl", "lock"


class NothingToResumeError(WaveError):
    """There is no unfinished run."""


class RunRequest(Struct, frozen=True, kw_only=True):
    """What was asked for. A resumed run asks for the same."""

    subject: str
    """Identifies the hooks and their files."""
    settings: tuple[str, ...] = ()
    hook: str | None = None
    ask_models: bool = False
    show_secrets: bool = False
    size: int = 0
    """Bytes of all sessions."""


class RunStore:
    """The files of one run. Opened by `new_run` or `latest_run`."""

    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock = lock
        self.request = msgspec.json.decode((directory / _REQUEST).read_bytes(), type=RunRequest)
        flags = os.O_RDWR | os.O_CREAT
        self._answers = open(open_private(directory / _ANSWERS, flags), "r+b")  # noqa: SIM115
        self._starts = array("q")
        """By unit: where its answers begin; -1 if it is not finished."""
        self._end = 0
        self.finished = 0
        """Bytes of the sessions of finished units."""
        self.totals = UnitTotals()
        self._load()

    def _load(self) -> None:
        """Find the finished units: those whose sessions were all replayed. What follows the last answers was cut off by
        a crash."""
        done: list[UnitTotals] = []
        at = 0
        for line in self._answers:
            at += len(line)
            if line.startswith(_DONE) and line.endswith(b"\n"):
                found = msgspec.json.decode(line, type=UnitDone)
                if not found.totals.left_out:
                    self._note(found.unit, self._end)
                    done.append(found.totals)
                self._end = at
        self.totals = sum_of(done)
        self._answers.truncate(self._end)
        self.finished = sum(unit.size for unit in self._all() if self._is_finished(unit))

    def todo(self) -> Iterator[Unit]:
        """The units that are not finished."""
        return (unit for unit in self._all() if not self._is_finished(unit))

    def add(self, unit: Unit, answers: bytes) -> None:
        """Keep the answers of a unit: its findings, and a line with its totals."""
        self._answers.seek(self._end)
        self._answers.write(answers)
        self._answers.flush()
        self._note(unit.number, self._end)
        self._end += len(answers)
        done = msgspec.json.decode(answers.rstrip(b"\n").rpartition(b"\n")[2], type=UnitDone)
        self.totals = sum_of((self.totals, done.totals))
        self.finished += unit.size

    def findings(self) -> Iterator[ChangedVerdict]:
        """In the order of sessions and events, whoever replayed them when."""
        found = msgspec.json.Decoder(FoundChange)
        for start in self._starts:
            if start >= 0:
                self._answers.seek(start)
                while not (line := self._answers.readline()).startswith(_DONE):
                    yield found.decode(line).finding

    def pending(self) -> int:
        """The number of sessions that are not replayed, or not all of them."""
        places = (part.session.place for unit in self.todo() for part in unit.parts)
        return sum(1 for _ in groupby(places))  # the parts of a session follow each other

    def discard(self) -> None:
        """The run is complete."""
        remove_tree(self._directory)

    def close(self) -> None:
        self._answers.close()
        os.close(self._lock)

    def _all(self) -> Iterator[Unit]:
        units = msgspec.json.Decoder(Unit)
        with (self._directory / _UNITS).open("rb") as file:
            for line in file:
                yield units.decode(line)

    def _note(self, unit: int, start: int) -> None:
        self._starts.extend([-1] * (unit + 1 - len(self._starts)))
        self._starts[unit] = start

    def _is_finished(self, unit: Unit) -> bool:
        return unit.number < len(self._starts) and self._starts[unit.number] >= 0


def new_run(home: Path, project: str, request: RunRequest, units: Iterable[Unit]) -> RunStore:
    keep_private(home / "backtests")
    _forget_old_runs(home)
    name = f"{_key(project)}-{time.time_ns():020}-{os.urandom(3).hex()}"
    directory = home / "backtests" / name
    directory.mkdir(mode=0o700)
    lock = _locked(directory)
    assert lock is not None  # nobody else knows its name
    with open(open_private(directory / _UNITS, os.O_WRONLY | os.O_CREAT), "wb") as file:
        for unit in units:
            file.write(msgspec.json.encode(unit) + b"\n")
    # Last, so that a run with a request is whole.
    with open(open_private(directory / _REQUEST, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.write(msgspec.json.encode(request))
    return RunStore(directory, lock)


def latest_run(home: Path, project: str) -> RunStore:
    """The latest unfinished run of this project that nobody is working on. Raises `NothingToResumeError`."""
    for directory in sorted((home / "backtests").glob(f"{_key(project)}-*/"), reverse=True):
        if (directory / _REQUEST).exists() and (lock := _locked(directory)) is not None:
            return RunStore(directory, lock)
    raise NothingToResumeError("There is no unfinished backtest of this project to resume.")


def _key(project: str) -> str:
    return hashlib.sha256(os.fsencode(project)).hexdigest()[:16]


def _locked(directory: Path) -> int | None:
    descriptor = open_private(directory / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _forget_old_runs(home: Path) -> None:
    for directory in (home / "backtests").glob("*/"):
        with suppress(OSError):
            if (
                directory.stat().st_mtime < time.time() - KEPT_DAYS * 86_400
                and (lock := _locked(directory)) is not None
            ):
                remove_tree(directory)
                os.close(lock)
