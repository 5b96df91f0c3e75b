"""Replays units in several processes of this machine."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Protocol

from wave_agent.replay.station import Listener, Station
from wave_agent.replay.units import Unit
from wave_agent.replay.worker import Tick

LOCAL = "local"
"""The address of a cluster that is started on this machine for one run."""


class ReplayListener(Protocol):
    """Follows a run. Called from any thread."""

    def say(self, text: str) -> object:
        """What is happening now."""
        ...

    def begin(self, size: int, finished: int) -> object:
        """The sessions have this size in bytes, of which so much was finished in an earlier run."""
        ...

    def tick(self, unit: int, events: int, size: int) -> object:
        """A unit that is not finished has come so far."""
        ...

    def finish(self, unit: int, events: int, size: int) -> object:
        """A unit is finished: it had so many events and bytes."""
        ...


class Crew(Protocol):
    """Whoever replays units."""

    def replay(self, units: Iterable[Unit], listener: ReplayListener) -> Iterator[tuple[Unit, bytes]]:
        """Each unit with its answers, in any order."""
        ...

    def close(self) -> None:
        """End what is running."""
        ...


class LocalCrew:
    """Processes of this machine."""

    def __init__(self, station: Station, jobs: int) -> None:
        self._station = station
        self._jobs = jobs
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="replay")

    def replay(self, units: Iterable[Unit], listener: ReplayListener) -> Iterator[tuple[Unit, bytes]]:
        def start(unit: Unit) -> None:
            running[self._pool.submit(self._station.replay, unit, _heard(unit, listener))] = unit

        running: dict[Future[bytes], Unit] = {}
        left = iter(units)
        for unit in islice(left, 2 * self._jobs):
            start(unit)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                unit = running.pop(future)
                yield unit, future.result()
                for following in islice(left, 1):
                    start(following)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._station.close()
        self._pool.shutdown()


def _heard(unit: Unit, listener: ReplayListener) -> Listener:
    def listen(tick: Tick) -> None:
        listener.tick(unit.number, tick.events, tick.size)

    return listen
