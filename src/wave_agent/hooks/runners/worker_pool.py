"""Python functions in files as hooks: called in a process that stays, one for each file.

Starting an interpreter costs more than most hooks do. A worker is started when its file is first needed and replaced
when the file, or a module that it loaded from the project, has changed. It is isolated from the agent like any other
hook: a session of its own, the hook's environment, and an end for its whole group when a call takes too long.
"""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from typing import IO, Any, cast

from msgspec import Struct

from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.hooks.named_files import target_file
from wave_agent.hooks.runners.worker_program import FAILED, pack
from wave_agent.system.processes import Ledger, ProcessGroup, explain, no_ledger, spawn

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker_program.py")
_PACKAGE = os.path.abspath(os.path.join(_PROGRAM, *[os.pardir] * 4))
_CAP = 64 << 20
"""Bytes that an answer may have: as a function of the SDK may say what it likes, nothing of it is cut off."""
_NOISE = 1 << 20
"""Bytes kept of what a function prints."""
_CHUNK = 1 << 16
_GLANCES, _GLANCE = 100, 0.002
"""How often, and with how many seconds between, a process is looked at that is about to end."""
_TRIES = 3
"""A file that changes whenever it is looked at has to come to rest at some time."""


class Limits(Struct, frozen=True, kw_only=True):
    """When a worker is replaced by a fresh one."""

    calls: int = 1000
    memory: int = 256 << 20
    """Bytes that it occupies after a call."""


class WorkerPool:
    """Runs hooks of the kind `python`. The calls of one file take turns, those that nobody waits for among themselves:
    a guard does not wait for a report."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        ledger: Ledger = no_ledger,
        python: str = sys.executable,
        cap: int = _CAP,
    ) -> None:
        self._limits = limits or Limits()
        self._ledger = ledger
        self._python = python
        self._cap = cap
        self._seats: dict[tuple[str, bool], _Seat] = {}
        self._process = os.getpid()
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Raises nothing but `CancelledError`, and that only when the worker's whole group is dead."""
        self._leave_to_parent()
        seat = self._seats.setdefault((target_file(job.command, job.cwd), job.is_waited_for), _Seat())
        started = time.monotonic()
        had_to_wait = seat.lock.locked()
        try:
            async with asyncio.timeout(job.timeout):
                await seat.lock.acquire()
        except TimeoutError:
            said = "it waited for its turn: another hook of its file was running"
            return HookExecutionResult(timed_out=True, stderr=said, duration=_milliseconds_since(started))
        try:
            refused = job.look_again() if had_to_wait and job.look_again else None
            if refused is not None:
                return HookExecutionResult(error=refused, is_refused=True)
            return await self._take_turn(seat, job, started)
        finally:
            seat.lock.release()

    async def close(self) -> None:
        """Ends all workers. The pool can be used again."""
        self._leave_to_parent()
        for seat in self._seats.values():
            self._retire(seat)
        if self._ending:
            await asyncio.wait(self._ending)

    def _leave_to_parent(self) -> None:
        """A fork has this object, but the workers are not its own."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._seats.clear()
            self._ending.clear()

    async def _take_turn(self, seat: "_Seat", job: HookJob, started: float) -> HookExecutionResult:
        try:
            async with asyncio.timeout(job.timeout - (time.monotonic() - started)):
                answer = await self._answer(seat, job)
        except TimeoutError:
            noise = await self._end(seat)
            return HookExecutionResult(timed_out=True, stderr=noise, duration=_milliseconds_since(started))
        except asyncio.CancelledError:
            await self._end(seat)
            raise
        except _LostError:
            return await self._crash(seat, started)
        except _WrongAnswerError as error:
            noise = await self._end(seat)
            return HookExecutionResult(error=str(error), stderr=noise, duration=_milliseconds_since(started))
        except Exception as error:  # the worker could not be started
            await self._end(seat)
            return HookExecutionResult(
                error=explain(error, self._python, job.cwd), duration=_milliseconds_since(started)
            )
        return self._result(seat, answer, started)

    async def _answer(self, seat: "_Seat", job: HookJob) -> "_WorkerReply":
        for _ in range(_TRIES):
            worker = seat.worker
            if worker is None or worker.group.reap():
                self._retire(seat)
                file = target_file(job.command, job.cwd)
                worker = seat.worker = _Worker(file, job, python=self._python, ledger=self._ledger, cap=self._cap)
            answer = await worker.ask(job)
            if not answer.head.get("stale"):
                return answer
            self._retire(seat)
        return _WorkerReply({"failed": "its file, or a module of it, changes all the time"}, "")

    def _result(self, seat: "_Seat", answer: "_WorkerReply", started: float) -> HookExecutionResult:
        worker = seat.worker
        noise = "" if worker is None else worker.noise.text()
        spent = worker is not None and worker.calls >= self._limits.calls
        duration = _milliseconds_since(started)
        failed = answer.head.get("failed")
        if failed is not None or spent or answer.head.get("memory", 0) > self._limits.memory:
            self._retire(seat)
        if failed is not None:
            return HookExecutionResult(error=str(failed), stderr=noise, duration=duration)
        if answer.head.get("exit") != 0:
            said = "\n".join(filter(None, (answer.text, noise)))
            return HookExecutionResult(exit_code=FAILED, stderr=said, duration=duration)
        return HookExecutionResult(exit_code=0, stdout=answer.text, stderr=noise, duration=duration)

    async def _crash(self, seat: "_Seat", started: float) -> HookExecutionResult:
        worker = seat.worker
        try:
            by_itself = worker is not None and await worker.ends()
        finally:  # also if the wait for that is cancelled
            noise = await self._end(seat)
        status = worker.group.status if worker is not None and by_itself else None
        duration = _milliseconds_since(started)
        if status is not None and status < 0:
            return HookExecutionResult(signal=-status, stderr=noise, duration=duration)
        said = f"its worker ended with exit code {status} before it answered"
        if not by_itself:
            said = "its worker closed the line on which it answers"
        return HookExecutionResult(exit_code=FAILED, stderr="\n".join(filter(None, (said, noise))), duration=duration)

    async def _end(self, seat: "_Seat") -> str:
        """Ends the worker that has this seat, whole group, however often the task is cancelled; what it has printed."""
        worker, seat.worker = seat.worker, None
        if worker is None:
            return ""
        worker.listen_once()
        await _to_the_end(worker.end())
        return worker.noise.text()

    def _retire(self, seat: "_Seat") -> None:
        """Lets a worker go that has nothing to do any more, beside whatever comes next."""
        worker, seat.worker = seat.worker, None
        if worker is not None:
            task = asyncio.ensure_future(worker.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


class _Seat:
    """The place of one file's worker."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.worker: _Worker | None = None


class _WorkerReply(Struct, frozen=True):
    head: dict[str, Any]
    text: str


class _LostError(Exception):
    """The worker is gone."""


class _WrongAnswerError(Exception):
    """What came is not the answer to what was asked."""


class _Noise:
    """The first of what a function prints in one call; it is no part of its answer."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def clear(self) -> None:
        self._kept.clear()

    def take(self, stream: IO[bytes]) -> bool:
        """Whatever the pipe holds. False when there is nothing now, or never will be."""
        try:
            data = os.read(stream.fileno(), _CHUNK)
        except (BlockingIOError, ValueError):
            return False
        self._kept += data[: _NOISE - len(self._kept)]
        return bool(data)

    def text(self) -> str:
        return self._kept.decode(errors="replace").strip()


class _Worker:
    """One process, and this end of its socket."""

    def __init__(self, file: str, job: HookJob, *, python: str, ledger: Ledger, cap: int) -> None:
        """Raises what `processes.explain` has a sentence for."""
        self.calls = 0
        self._cap = cap
        self.noise = _Noise()
        self._environment = job.env
        with ExitStack() as opened:
            note = opened.enter_context(ledger())
            ours, theirs = socket.socketpair()
            opened.callback(ours.close)
            with theirs:
                descriptor = theirs.fileno()
                # Bytecode is told apart by seconds and sizes: an edit right after another one would not be seen.
                argv = [python, "-P", "-B", _PROGRAM, file, job.cwd, str(descriptor), _PACKAGE]
                popen = spawn(argv, cwd=job.cwd, env=job.env, kept=(descriptor,))
            note(popen.pid)
            self.group = ProcessGroup(popen, use_pidfd=False)
            assert popen.stdout is not None and popen.stderr is not None
            self._streams = (popen.stdout, popen.stderr)
            for stream in self._streams:
                os.set_blocking(stream.fileno(), False)
                opened.callback(stream.close)
            ours.setblocking(False)
            self._socket = ours
            self._opened = opened.pop_all()

    async def ask(self, job: HookJob) -> _WorkerReply:
        """One call. Raises `_LostError` if the worker ends before it answers."""
        loop = asyncio.get_running_loop()
        self.calls += 1
        self.listen_once()
        self.noise.clear()  # what was printed since the last call is nobody's
        for stream in self._streams:
            loop.add_reader(stream, self._hear, loop, stream)
        try:
            await loop.sock_sendall(self._socket, pack(self._head(job), job.stdin))
            head_length, body_length = await self._lengths(loop)
            if max(head_length, body_length) > self._cap:
                raise _WrongAnswerError(f"its answer is longer than {self._cap >> 20} MiB")
            head = cast(dict[str, Any], json.loads(await self._exactly(loop, head_length)))
            body = await self._exactly(loop, body_length)
            if head.get("call") != self.calls:
                raise _WrongAnswerError("its worker answered another call")
        except ValueError:
            raise _WrongAnswerError("its worker answered with something that is no answer") from None
        except OSError as error:
            raise _LostError from error
        finally:
            for stream in self._streams:
                loop.remove_reader(stream)
        self.listen_once()
        return _WorkerReply(head, body.decode(errors="replace"))

    def listen_once(self) -> None:
        for stream in self._streams:
            while self.noise.take(stream):
                pass

    async def ends(self) -> bool:
        """Whether it ends by itself, now that its line is closed: the line goes a moment before the process does."""
        for _ in range(_GLANCES):
            if self.group.reap():
                return True
            await asyncio.sleep(_GLANCE)
        return False

    async def end(self) -> None:
        """The end of its whole group: at once if it obeys, else after a grace."""
        await asyncio.to_thread(self.group.end, _sleep_until)
        self._opened.close()

    def _hear(self, loop: asyncio.AbstractEventLoop, stream: IO[bytes]) -> None:
        if not self.noise.take(stream):
            loop.remove_reader(stream)

    def _head(self, job: HookJob) -> dict[str, Any]:
        before, self._environment = self._environment, job.env
        return {
            "call": self.calls,
            "function": job.command.rpartition(":")[2],
            "environment": {name: value for name, value in job.env.items() if before.get(name) != value},
            "removed": [name for name in before if name not in job.env],
        }

    async def _lengths(self, loop: asyncio.AbstractEventLoop) -> tuple[int, int]:
        both = await self._exactly(loop, 8)
        return int.from_bytes(both[:4], "big"), int.from_bytes(both[4:], "big")

    async def _exactly(self, loop: asyncio.AbstractEventLoop, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = await loop.sock_recv(self._socket, min(length - len(parts), _CHUNK))
            if not part:
                raise _LostError
            parts += part
        return bytes(parts)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits for the end, which is near, however often the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})


def _milliseconds_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
