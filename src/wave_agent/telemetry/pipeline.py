"""From a session to the receiver: a bounded queue, and a thread that empties it. All sessions of a process that send to
the same place share one."""

import os
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from wave_agent.telemetry.propagation import NOWHERE, Position
from wave_agent.telemetry.spans import Measurement, TraceSpan
from wave_agent.telemetry.target import TelemetryTarget
from wave_agent.telemetry.vocabulary import DROPPED

BATCH = 512
"""Spans in one request."""


class Sender(Protocol):
    """What knows how to send; `sdk` has the real one. Used by one thread only, except `close`."""

    def send(self, spans: Sequence[TraceSpan]) -> str:
        """Why they were not sent; empty if they were."""
        ...

    def measure(self, measurement: Measurement) -> None: ...

    def send_metrics(self) -> str:
        """The same for all measurements so far."""
        ...

    @property
    def trouble(self) -> str:
        """Why the last request failed; empty if it did not, or has not ended."""
        ...

    def close(self) -> None:
        """Gives up what is still being tried. From any thread."""
        ...


class Pipeline:
    """Implements `Sink`. Whatever goes wrong here is a problem to report once, never an exception for a session."""

    def __init__(self, target: TelemetryTarget, load: Callable[[TelemetryTarget], Sender]) -> None:
        """`load` is called in the thread: it may take long, and may raise anything."""
        self.target = target
        self._load = load
        self._queue: deque[TraceSpan | Measurement] = deque()
        self._lost: Counter[tuple[str, str]] = Counter()
        """Signal and reason of what was dropped and has not been reported as a metric yet."""
        self._lock = threading.Lock()
        """Guards the queue's length and `_lost`, for the time of a few instructions."""
        self._wake, self._done = threading.Event(), threading.Event()
        self._has_begun = self._is_closing = self._is_dead = False
        self._sender: Sender | None = None
        self._problem, self._has_problem = "", False
        self._random = random.SystemRandom()

    # ------------------------------------------------------------------------------------------------- for the sessions

    def open(self, span: TraceSpan) -> Position:
        above = span.parent
        if self.target.traces is None:
            return NOWHERE
        span_id = self._random.getrandbits(64) or 1
        if above is None:
            return Position(self._random.getrandbits(128) or 1, span_id)
        sampled = above.sampled or self.target.is_managed
        return Position(above.trace_id, span_id, sampled, above.state, above.is_joined)

    def close(self, span: TraceSpan) -> None:
        if self.target.traces is not None:
            self._add(span, "traces")

    def measure(self, measurement: Measurement) -> None:
        if self.target.metrics is not None:
            self._add(measurement, "metrics")

    def begin(self) -> None:
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
        try:
            threading.Thread(target=self._work, name="wave-telemetry", daemon=True).start()
        except RuntimeError as error:
            self._give_up(f"no thread can be started: {error}")

    def take_problem(self) -> str:
        problem, self._problem = self._problem, ""
        return problem

    def leave(self, seconds: float) -> None:
        """Waits only for the last session."""
        if _left(self):
            self.finish(seconds)

    def finish(self, seconds: float) -> None:
        """Sends what there is, and ends the thread; gives up when the time is over."""
        self._is_closing = True
        if self._queue or self._has_begun:
            self.begin()
        else:
            return
        self._wake.set()
        if not self._done.wait(seconds):
            sender = self._sender
            known = "" if sender is None else sender.trouble
            self._note(known or f"{self.target.shown} did not answer within {seconds:g} s")
            if sender is not None:
                sender.close()

    def _add(self, item: TraceSpan | Measurement, signal: str) -> None:
        if self._is_dead:
            return
        with self._lock:
            if len(self._queue) >= self.target.queue:
                self._lost[signal, "queue_full"] += 1
                return
            self._queue.append(item)
            is_full = len(self._queue) == min(BATCH, self.target.queue)
        if is_full:
            self._wake.set()

    # ---------------------------------------------------------------------------------------------------- in the thread

    def _work(self) -> None:
        try:
            sender = self._sender = self._load(self.target)
        except Exception as error:  # a broken installation, a variable that the SDK cannot read
            self._give_up(f"the OpenTelemetry SDK cannot be used: {type(error).__name__}: {error}")
            return
        try:
            self._deliver(sender)
        except Exception as error:  # a bug must end telemetry, not the session
            self._give_up(f"{type(error).__name__}: {error}")
        sender.close()
        self._done.set()

    def _deliver(self, sender: Sender) -> None:
        due = monotonic() + self.target.interval
        while True:
            self._wake.wait(0 if self._is_closing else min(self.target.delay, max(0.0, due - monotonic())))
            self._wake.clear()
            is_last = self._is_closing
            self._send_waiting(sender)
            if is_last or monotonic() >= due:
                self._send_metrics(sender)
                due = monotonic() + self.target.interval
            if is_last:
                return

    def _send_waiting(self, sender: Sender) -> None:
        while self._queue:
            batch: list[TraceSpan] = []
            while self._queue and len(batch) < BATCH:
                item = self._queue.popleft()
                if isinstance(item, Measurement):
                    sender.measure(item)
                else:
                    batch.append(item)
            if batch and (problem := sender.send(batch)):
                with self._lock:
                    self._lost["traces", "export_failed"] += len(batch)
                self._note(problem)

    def _send_metrics(self, sender: Sender) -> None:
        if self.target.metrics is None:
            return
        with self._lock:
            lost, self._lost = self._lost, Counter()
        for (signal, reason), count in lost.items():
            about = {"wave.telemetry.signal": signal, "wave.telemetry.reason": reason}
            sender.measure(Measurement(DROPPED, count, about))
        if problem := sender.send_metrics():  # sums are sent again next time: nothing is lost yet
            self._note(problem)

    def _note(self, problem: str) -> None:
        if not self._has_problem:
            self._problem, self._has_problem = f"Telemetry was not sent: {problem}", True

    def _give_up(self, problem: str) -> None:
        self._note(problem)
        self._is_dead = True
        self._queue.clear()
        self._done.set()


class _Shared:
    """The pipelines of this process that are in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, TelemetryTarget], Pipeline] = {}
        self._users: Counter[int] = Counter()

    def enter(self, target: TelemetryTarget, load: Callable[[TelemetryTarget], Sender]) -> Pipeline:
        key = os.getpid(), target  # a fork has the object, but not its thread
        with self._lock:
            found = self._open.get(key)
            if found is None:
                found = self._open[key] = Pipeline(target, load)
            self._users[id(found)] += 1
            return found

    def leave(self, pipeline: Pipeline) -> bool:
        """True: that was the last session."""
        with self._lock:
            self._users[id(pipeline)] -= 1
            if self._users[id(pipeline)] > 0:
                return False
            del self._users[id(pipeline)]
            self._open = {key: one for key, one in self._open.items() if one is not pipeline}
            return True


_SHARED = _Shared()


def shared_pipeline(target: TelemetryTarget, load: Callable[[TelemetryTarget], Sender]) -> Pipeline:
    """The pipeline to this target, for one more session, which has to `leave` it."""
    return _SHARED.enter(target, load)


def _left(pipeline: Pipeline) -> bool:
    return _SHARED.leave(pipeline)
