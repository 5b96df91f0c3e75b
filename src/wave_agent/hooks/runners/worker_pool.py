"""Python hooks: calls functions in files, in one long-running worker process per file.

Starting an interpreter takes longer than most hooks do. A worker starts when its file is first needed and is replaced
when the file, or a module it loaded from the project, changes. It is isolated from the agent like any other hook: it
has its own process session and the hook's environment, and its whole process group is killed when a call times out.
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
from wave_agent.system.fairness import fairness
from wave_agent.system.processes import Ledger, ProcessGroup, explain, no_ledger, spawn

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker_program.py")
_PACKAGE = os.path.abspath(os.path.join(_PROGRAM, *[os.pardir] * 4))
_CAP = 64 << 20
"""Maximum bytes of an answer. It is never truncated, just as answers of SDK functions are not."""
_NOISE = 1 << 20
"""Maximum bytes stored of what a function prints."""
_CHUNK = 1 << 16
_HEAR_AFTER = 0.01
"""Seconds after which what a function prints is read while it runs. Most answer before."""
_GLANCES, _GLANCE = 100, 0.002
"""How often, and at which interval in seconds, to check whether a process has ended."""
_TRIES = 3
"""How often to reload a file that keeps changing before giving up."""


class Limits(Struct, frozen=True, kw_only=True):
    """When a worker is replaced by a fresh one."""

    calls: int = 1000
    memory: int = 256 << 20
    """Bytes it uses after a call."""


class WorkerPool:
    """Runs hooks of kind `python`. Calls to one file run one at a time. Background calls have their own worker, so a
    guard never waits for a report."""

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
        """Run the job. Raises only `CancelledError`, and only once the worker's whole process group is dead."""
        self._leave_to_parent()
        seat = self._seats.setdefault((target_file(job.command, job.cwd), job.is_waited_for), _Seat())
        started = time.monotonic()
        had_to_wait = seat.is_taken
        try:
            await seat.take(job.timeout)
        except TimeoutError:
            said = "it waited for another hook in the same file to finish"
            return HookExecutionResult(timed_out=True, stderr=said, duration=_milliseconds_since(started))
        try:
            refused = job.look_again() if had_to_wait and job.look_again else None
            if refused is not None:
                return HookExecutionResult(error=refused, is_refused=True)
            return await self._take_turn(seat, job, started)
        finally:
            seat.lock.release()

    async def close(self) -> None:
        """End all workers. The pool can be used again."""
        self._leave_to_parent()
        for seat in self._seats.values():
            self._retire(seat)
        if self._ending:
            await asyncio.wait(self._ending)

    def _leave_to_parent(self) -> None:
        """After a fork, forget the workers: they belong to the parent process."""
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
                await fairness().breathe()
                file = target_file(job.command, job.cwd)
                worker = seat.worker = _Worker(file, job, python=self._python, ledger=self._ledger, cap=self._cap)
            answer = await worker.ask(job)
            if not answer.head.get("stale"):
                return answer
            self._retire(seat)
        return _WorkerReply({"failed": "its file, or a module it imports, keeps changing"}, "")

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
        finally:  # also if the wait is cancelled
            noise = await self._end(seat)
        status = worker.group.status if worker is not None and by_itself else None
        duration = _milliseconds_since(started)
        if status is not None and status < 0:
            return HookExecutionResult(signal=-status, stderr=noise, duration=duration)
        said = f"its worker ended with exit code {status} before it answered"
        if not by_itself:
            said = "its worker closed its connection to the agent"
        return HookExecutionResult(exit_code=FAILED, stderr="\n".join(filter(None, (said, noise))), duration=duration)

    async def _end(self, seat: "_Seat") -> str:
        """End the worker's whole process group, even if the task is cancelled again. Returns what it printed."""
        worker, seat.worker = seat.worker, None
        if worker is None:
            return ""
        worker.listen_once()
        await _to_the_end(worker.end())
        return worker.noise.text()

    def _retire(self, seat: "_Seat") -> None:
        """End an idle worker in the background."""
        worker, seat.worker = seat.worker, None
        if worker is not None:
            task = asyncio.ensure_future(worker.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


class _Seat:
    """Holds the worker of one file."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.worker: _Worker | None = None
        self._waiting = 0

    @property
    def is_taken(self) -> bool:
        """Whether `take` has to wait. Between two owners, the lock is free, but promised to one that waits."""
        return self.lock.locked() or self._waiting > 0

    async def take(self, seconds: float) -> None:
        """Raises `TimeoutError`."""
        if not self.is_taken:
            await self.lock.acquire()  # at once
            return
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self.lock.acquire()
        finally:
            self._waiting -= 1


class _WorkerReply(Struct, frozen=True):
    head: dict[str, Any]
    text: str


class _LostError(Exception):
    """The worker has ended."""


class _WrongAnswerError(Exception):
    """The worker sent something other than the answer to this call."""


class _Noise:
    """The start of what a function prints during one call; not part of its answer."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def clear(self) -> None:
        self._kept.clear()

    def take(self, stream: IO[bytes]) -> bool:
        """Read what the pipe holds. False if it is empty or closed."""
        try:
            data = os.read(stream.fileno(), _CHUNK)
        except (BlockingIOError, ValueError):
            return False
        self._kept += data[: _NOISE - len(self._kept)]
        return bool(data)

    def text(self) -> str:
        return self._kept.decode(errors="replace").strip()


class _Worker:
    """One worker process, and our end of its socket."""

    def __init__(self, file: str, job: HookJob, *, python: str, ledger: Ledger, cap: int) -> None:
        """Raises the exceptions that `processes.explain` describes."""
        self.calls = 0
        self._received = bytearray()
        self._cap = cap
        self.noise = _Noise()
        self._listens = False
        self._environment = job.env
        with ExitStack() as opened:
            note = opened.enter_context(ledger())
            ours, theirs = socket.socketpair()
            opened.callback(ours.close)
            with theirs:
                descriptor = theirs.fileno()
                # -B: bytecode is checked by seconds and size, so an edit right after another one would be missed.
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
        """Make one call. Raises `_LostError` if the worker ends before it answers."""
        loop = asyncio.get_running_loop()
        self.calls += 1
        self.listen_once()
        self.noise.clear()  # output since the last call belongs to no call
        listening = loop.call_later(_HEAR_AFTER, self._listen, loop)
        try:
            await loop.sock_sendall(self._socket, pack(self._head(job), job.stdin))
            head_length, body_length = await self._lengths(loop)
            if max(head_length, body_length) > self._cap:
                raise _WrongAnswerError(f"its answer is longer than {self._cap >> 20} MiB")
            head = cast(dict[str, Any], json.loads(await self._exactly(loop, head_length)))
            body = await self._exactly(loop, body_length)
            if head.get("call") != self.calls:
                raise _WrongAnswerError("its worker answered a different call")
        except ValueError:
            raise _WrongAnswerError("its worker sent an invalid answer") from None
        except OSError as error:
            raise _LostError from error
        finally:
            listening.cancel()
            for stream in self._streams if self._listens else ():
                loop.remove_reader(stream)
            self._listens = False
        self.listen_once()
        return _WorkerReply(head, body.decode(errors="replace"))

    def listen_once(self) -> None:
        for stream in self._streams:
            while self.noise.take(stream):
                pass

    async def ends(self) -> bool:
        """Whether it ends by itself now that its socket is closed: the socket closes just before the process ends."""
        for _ in range(_GLANCES):
            if self.group.reap():
                return True
            await asyncio.sleep(_GLANCE)
        return False

    async def end(self) -> None:
        """End its whole process group: at once if it obeys, else after a grace period."""
        await asyncio.to_thread(self.group.end, _sleep_until)
        self._opened.close()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        self._listens = True
        for stream in self._streams:
            loop.add_reader(stream, self._hear, loop, stream)

    def _hear(self, loop: asyncio.AbstractEventLoop, stream: IO[bytes]) -> None:
        if not self.noise.take(stream):
            loop.remove_reader(stream)

    def _head(self, job: HookJob) -> dict[str, Any]:
        before, self._environment = self._environment, job.env
        changed = {} if before == job.env else dict(job.env.items() - before.items())
        return {
            "call": self.calls,
            "function": job.command.rpartition(":")[2],
            "environment": changed,
            "removed": [] if before.keys() == job.env.keys() else list(before.keys() - job.env.keys()),
        }

    async def _lengths(self, loop: asyncio.AbstractEventLoop) -> tuple[int, int]:
        both = await self._exactly(loop, 8)
        return int.from_bytes(both[:4], "big"), int.from_bytes(both[4:], "big")

    async def _exactly(self, loop: asyncio.AbstractEventLoop, length: int) -> bytes:
        while len(self._received) < length:  # usually, the whole answer is there at once
            part = await loop.sock_recv(self._socket, _CHUNK)
            if not part:
                raise _LostError
            self._received += part
        found = bytes(self._received[:length])
        del self._received[:length]
        return found


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait until this work is done, even if the task is cancelled meanwhile. It will not take long."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})


def _milliseconds_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
