"""Calls of one session: the first one, how often each wakes the process, and whether they become slower."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import NamedTuple

from benchmarks.measure import ENVIRONMENT, Claim, spread_of
from wave_agent.models.chat_replies import chunks
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Status

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
EARLY = range(10, 40)
LATE = range(285, 315)
PAIRS = 3
STARTS = 7
THOUGHT = 0.5
"""Seconds until the model answers the first request. Few models are faster."""
MEMORY = Path("/dev/shm")
"""A disk sleeps and wakes as often as it likes."""


class Moment(NamedTuple):
    """What a process had used when a request arrived."""

    cpu: float
    """Milliseconds."""
    wakes: int


class Session:
    """A `wave -p` whose model makes `calls` calls. The first request is answered after a while, and every one when
    `wait` returns, which is called with the number of calls so far."""

    def __init__(self, calls: int, wait: Callable[[int], None] = lambda _: None) -> None:
        self.calls = calls
        self._wait = wait
        self.arrived: list[float] = []
        self.answered: list[float] = []
        self.moments: list[Moment] = []
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        where = MEMORY if MEMORY.is_dir() else None
        with (
            TemporaryDirectory(dir=where) as place,
            RecordingModelServer.in_thread([self._answer] * (self.calls + 1)) as server,
        ):
            more = {"WAVE_HOME": f"{place}/home", "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
            line = [WAVE, "-p", "Go.", "--permission-mode", "bypassPermissions"]
            project = Path(place) / "project"
            project.mkdir()
            self._process = subprocess.Popen(
                line, env={**ENVIRONMENT, **more}, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            assert self._process.wait() == 0

    def _answer(self, _: RecordedRequest) -> Status:
        self.arrived.append(time.perf_counter())
        time.sleep(0.002 if self.moments else THOUGHT)  # it sleeps by then
        assert self._process is not None
        self.moments.append(used(self._process.pid))
        self._wait(len(self.arrived) - 1)
        self.answered.append(time.perf_counter())
        number = len(self.arrived)
        calls = [call("Bash", command=f"true {number}")] if number <= self.calls else []
        return in_one_piece(Reply("" if calls else "Done.", tool_calls=calls))


class Alternation:
    """Two sessions, of which one makes an early call while the other one waits to make a late one, and so on: a busy
    moment of the machine affects both."""

    def __init__(self) -> None:
        self._early, self._late = Semaphore(0), Semaphore(0)

    def wait_early(self, calls: int) -> None:
        if calls in EARLY[1:] or calls == EARLY.stop:
            self._late.release()
        if calls in EARLY:
            assert self._early.acquire(timeout=120)

    def wait_late(self, calls: int) -> None:
        if calls in LATE:
            self._early.release()
            assert self._late.acquire(timeout=120)


def early_and_late() -> tuple[Session, Session]:
    alternation = Alternation()
    early = Session(EARLY.stop, alternation.wait_early)
    late = Session(LATE.stop, alternation.wait_late)
    with ThreadPoolExecutor(1) as other:
        running = other.submit(early.run)
        late.run()
        running.result()
    return early, late


def in_one_piece(reply: Reply) -> Status:
    """The whole stream of events at once. A model's pieces each wake the agent: that is the model's doing."""
    lines = [json.dumps(event) for event in chunks(reply)]
    text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return Status(200, text, {"Content-Type": "text/event-stream"})


def used(pid: int) -> Moment:
    """By all threads of a process."""
    cpu = wakes = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        cpu += int((thread / "schedstat").read_text().split()[0])
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)
        wakes += int(found[1]) if found else 0
    return Moment(cpu / 1e6, wakes)


def claims() -> list[Claim]:
    if sys.platform != "linux":  # the figures are the kernel's
        return []
    firsts, bare = first_calls()
    pairs = [early_and_late() for _ in range(PAIRS)]
    early = [one for session, _ in pairs for one in cpu_of(session, EARLY)]
    late = [one for _, session in pairs for one in cpu_of(session, LATE)]
    moments = pairs[0][1].moments
    wakes = [after.wakes - before.wakes for before, after in pairwise(moments)]
    over = [first - spawned for first, spawned in zip(firsts, bare, strict=True)]
    return [
        Claim(
            name="first command of a session, without bash itself",
            value=median(over),
            unit="ms",
            limit=10,
            floor_name="bash -c true",
            floor=median(bare),
        ),
        Claim(
            name="voluntary context switches of a turn with one command",
            value=median(wakes[3:]),
            unit="x",
            limit=6,
            spread=spread_of(wakes[3:]),
        ),
        Claim(
            name="CPU time of call 300 vs call 20",
            value=median(late),
            unit="ms",
            limit=1.15 * median(early),
            floor_name="call 20",
            floor=median(early),
            factor=1.15,
            spread=spread_of(late),
        ),
    ]


def cpu_of(session: Session, calls: range) -> list[float]:
    """Milliseconds of CPU time of each of these calls."""
    taken = [after.cpu - before.cpu for before, after in pairwise(session.moments)]
    return taken[calls.start : calls.stop]


def first_calls() -> tuple[list[float], list[float]]:
    """Milliseconds from the answer that asks for a command to the request with its result, and of the bare command."""
    firsts: list[float] = []
    bare: list[float] = []
    for _ in range(STARTS):
        session = Session(1)
        session.run()
        firsts.append((session.arrived[1] - session.answered[0]) * 1000)
        started = time.perf_counter()
        subprocess.run(["bash", "-c", "true"], env=dict(os.environ), check=True)
        bare.append((time.perf_counter() - started) * 1000)
    return firsts, bare
