"""A place on this machine where sessions are replayed: the project as hooks see it, and the processes that run them."""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.replay.errors import ReplayError
from wave_agent.replay.isolation import Isolation, isolate_copy, overlay_works
from wave_agent.replay.namespace import Overlay
from wave_agent.replay.report import UnitTotals, sum_of
from wave_agent.replay.repository import repository_outside
from wave_agent.replay.scratch import WORKER, RunDirectory, choose_files, copy_files, end_hooks_of, needed_files
from wave_agent.replay.snapshot import SessionContent, content_of, is_url
from wave_agent.replay.units import RecordedSession, SessionPart, Unit
from wave_agent.replay.worker import Answer, ReplayPlan, Tick, UnitDone, WorkerReady

_START = "from wave_agent.replay.worker import main; main()"
_FOUND = b'{"type":"found"'
_PATIENCE = 10
"""Seconds a process gets to end its hooks when asked to."""
Listener = Callable[[Tick], object]


class _LostProcessError(Exception):
    """A process ended in the middle of a unit."""


class ReplayPlace(Struct, frozen=True):
    """Where hooks run, and what they see."""

    isolation: Isolation
    directories: tuple[str, ...] = ()
    """Those whose changes are discarded; without any, hooks run in a copy."""
    above: str = ""
    """Files that replace those of the project: as they were when trust was checked."""
    home: str = ""
    notes: tuple[str, ...] = ()


def place_here(
    root: Path, project: str, needed: Sequence[str], environment: Mapping[str, str], *, network: bool, home: str
) -> ReplayPlace:
    """The project itself under an overlay if the system can do that, otherwise a copy of it. `needed` are the files
    that hooks name; `root` is a private directory."""
    above, outside = root / "needed", repository_outside(project)
    lost = list(copy_files(Path(project), above, needed_files(Path(project), needed)))
    directories = (project, *([] if outside is None else [outside]))
    if overlay_works(_overlays(directories, str(above), root / "attempt"), environment):
        return ReplayPlace(
            Isolation((), project, cut=not network), directories, str(above), home, notes=missing_files(lost)
        )
    chosen = choose_files(Path(project), needed)
    lost = [*chosen.left_out, *copy_files(Path(project), root / "project", chosen.names)]
    isolation = isolate_copy(project, str(root / "project"), environment, network=network)
    return ReplayPlace(isolation, home=home, notes=missing_files(lost))


def place_of_copy(copy: str, home: str, root: Path, environment: Mapping[str, str]) -> ReplayPlace:
    """A project that exists only as a copy, on another machine than its own."""
    if overlay_works(_overlays([copy], "", root / "attempt"), environment):
        return ReplayPlace(Isolation((), copy, cut=True), (copy,), home=home)
    return ReplayPlace(isolate_copy(copy, copy, environment), home=home)


def missing_files(names: Sequence[str]) -> tuple[str, ...]:
    """A note about them, if there are any."""
    return (f"Missing from the project copy that hooks ran in: {', '.join(names)}.",) if names else ()


def _overlays(directories: Sequence[str], above: str, changes: Path) -> tuple[Overlay, ...]:
    """`above` is laid over the first of the directories, `changes` is a new directory for what is changed in them."""
    found: list[Overlay] = []
    for number, directory in enumerate(directories):
        own = changes / str(number)
        own.mkdir(parents=True)
        found.append(Overlay(directory, str(own), "" if number else above))
    return tuple(found)


class Station:
    """Replays units, each in a process. May be used from several threads at a time."""

    def __init__(self, plan: ReplayPlan, place: ReplayPlace, run: RunDirectory, environment: Mapping[str, str]) -> None:
        self._plan = plan
        self._place = place
        self._run = run
        self._environment = environment
        self._changed = Condition()
        self._started = self._starting = 0
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._closed = False

    def replay(
        self, unit: Unit, listen: Listener = lambda _: None, contents: Mapping[str, SessionContent] | None = None
    ) -> bytes:
        """The answers: a line for each finding, and one with the totals. `contents` are sessions that cannot be read
        from here, by place. Raises `ReplayError` if no process can be started, or the station is closed."""
        contents = contents or {}
        try:
            return self._attempt(unit, listen, contents)
        except _LostProcessError:  # perhaps one session is to blame: it must not take the others with it
            answers, totals = b"", list[UnitTotals]()
            for part in unit.parts:
                found, own = self._alone(part, listen, contents)
                answers += found
                totals.append(own)
            return answers + _line(UnitDone(unit.number, sum_of(totals)))

    def close(self) -> None:
        """End all processes and their hooks, and remove the directory."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._starting == 0)
            processes = [*self._idle, *self._busy]
        for process in processes:
            process.ask_to_end()
        for process in processes:
            process.end()
        self._run.close()

    def _alone(
        self, part: SessionPart, listen: Listener, contents: Mapping[str, SessionContent]
    ) -> tuple[bytes, UnitTotals]:
        try:
            answers, done = _divided(self._attempt(Unit(0, (part,)), listen, contents))
        except _LostProcessError as error:
            totals = UnitTotals()
            totals.leave_out(part.session.place, str(error), first=part.part == 0)
            return b"", totals
        return answers, done.totals

    def _attempt(self, unit: Unit, listen: Listener, contents: Mapping[str, SessionContent]) -> bytes:
        process = self._take()
        try:
            staged = _Staged(unit, contents, process.directory / "staged")
            try:
                answers, done = _divided(process.replay(staged.unit, listen))
            finally:
                staged.remove()
        except BaseException:
            self._drop(process)
            raise
        self._give_back(process)
        staged.totals.uncut = 0 if self._place.isolation.cut else done.totals.sessions
        return answers + _line(replace(done, totals=sum_of([done.totals, staged.totals])))

    def _take(self) -> "_Process":
        with self._changed:
            self._require_open()
            if self._idle:
                process = self._idle.pop()
                self._busy.add(process)
                return process
            self._started += 1
            self._starting += 1
            number = self._started
        started: list[_Process] = []
        try:
            started.append(self._start(number))
        finally:
            with self._changed:
                self._starting -= 1
                self._busy.update(started)
                self._changed.notify_all()
        return started[0]

    def _require_open(self) -> None:
        if self._closed:
            raise ReplayError("The replay was ended.")

    def _start(self, number: int) -> "_Process":
        directory = self._run.path / f"{WORKER}{number}"
        directory.mkdir(mode=0o700)
        overlays = _overlays(self._place.directories, self._place.above, directory / "changes")
        plan = replace(
            self._plan,
            project=self._place.isolation.project,
            home=self._place.home,
            directory=str(directory),
            overlays=overlays,
            network=self._plan.ask_models,
        )
        return _Process(plan, directory, self._place.isolation.prefix, self._environment)

    def _give_back(self, process: "_Process") -> None:
        with self._changed:
            self._busy.discard(process)
            self._idle.append(process)

    def _drop(self, process: "_Process") -> None:
        with self._changed:
            self._busy.discard(process)
        process.end()


class _Staged:
    """A unit whose sessions are files here: the process has no network, and may be far from the sessions."""

    def __init__(self, unit: Unit, contents: Mapping[str, SessionContent], directory: Path) -> None:
        self.totals = UnitTotals()
        self._contents = contents
        self._directory = directory
        self._files: list[Path] = []
        self.unit = Unit(unit.number, tuple(part for one in unit.parts if (part := self._part(one)) is not None))

    def _part(self, part: SessionPart) -> SessionPart | None:
        session = part.session
        found = self._contents.get(session.place)
        if found is None and not is_url(session.place):
            return part
        found = found or content_of(session)
        if found.problem:
            self.totals.leave_out(session.place, found.problem, first=part.part == 0)
            return None
        own = self._directory / hashlib.sha256(session.place.encode()).hexdigest()[:16]
        own.mkdir(parents=True, exist_ok=True)
        file = own / f"{session.name}.jsonl"
        file.write_bytes(found.content)
        self._files.append(file)
        self.totals.grown += found.grown and part.part == 0
        return replace(part, session=RecordedSession(str(file), len(found.content)))

    def remove(self) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)


class _Process:
    """A running `worker`."""

    def __init__(
        self, plan: ReplayPlan, directory: Path, prefix: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.directory = directory
        self._answers = msgspec.json.Decoder(Answer)
        with (directory / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=plan.project,
                env=dict(environment),
                # An interrupt goes to this process, which closes the worker's stdin; the worker ends its hooks first.
                start_new_session=True,
            )
        self._send(msgspec.json.encode(plan))
        line = _pipe(self._process.stdout).readline()
        if not line or not isinstance(self._answers.decode(line), WorkerReady):
            self.end()
            raise ReplayError(f"The replay could not be started. {self._complaint()}")

    def replay(self, unit: Unit, listen: Listener) -> bytes:
        self._send(msgspec.json.encode(unit))
        found: list[bytes] = []
        for line in _pipe(self._process.stdout):
            found.append(line)
            if line.startswith(_FOUND):
                continue
            answer = self._answers.decode(line)
            if isinstance(answer, Tick):
                found.pop()
                listen(answer)
            elif isinstance(answer, UnitDone):
                return b"".join(found)
        self.end()
        raise _LostProcessError(f"the process that replayed it ended twice. {self._complaint()}")

    def ask_to_end(self) -> None:
        """Close its stdin: it ends its hooks, then exits."""
        with suppress(BrokenPipeError, ValueError):
            _pipe(self._process.stdin).close()

    def end(self) -> None:
        self.ask_to_end()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        end_hooks_of(self.directory)
        with suppress(ValueError):
            _pipe(self._process.stdout).close()

    def _send(self, line: bytes) -> None:
        with suppress(BrokenPipeError, ValueError):  # it has already ended; its stderr will say why
            _pipe(self._process.stdin).write(line + b"\n")
            _pipe(self._process.stdin).flush()

    def _complaint(self) -> str:
        text = (self.directory / "stderr").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else f"Exit status {self._process.returncode}."


def _divided(answers: bytes) -> tuple[bytes, UnitDone]:
    """The findings of a unit, and its end."""
    found, _, last = answers.rstrip(b"\n").rpartition(b"\n")
    return (found + b"\n" if found else b""), msgspec.json.decode(last, type=UnitDone)


def _line(done: UnitDone) -> bytes:
    return msgspec.json.encode(done) + b"\n"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # each process was started with both
    return pipe
