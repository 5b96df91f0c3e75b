"""Replays units on the workers of a Dask cluster: an existing one, or one of this machine."""

import hashlib
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from itertools import islice
from queue import Empty, Queue
from time import monotonic
from typing import Any

import msgspec

from wave_agent import __version__
from wave_agent.replay.crew import LOCAL, ReplayListener
from wave_agent.replay.errors import ReplayError
from wave_agent.replay.packed import PackedProject
from wave_agent.replay.report import UnitTotals
from wave_agent.replay.snapshot import content_of, is_url
from wave_agent.replay.units import RecordedSession, Unit
from wave_agent.replay.worker import ReplayPlan, UnitDone
from wave_agent.system.extras import install_extra

_CONNECT_SECONDS = 20
_LOOK_SECONDS = 1.0
"""How often to look for new workers."""
_AHEAD = 2
"""Units given to the scheduler for each thread of a worker: one runs, the next is there."""
_RETRIES = 2


class DaskCrew:
    """The workers of a cluster. Lost ones are replaced by others: the scheduler sees to that."""

    def __init__(self, address: str, jobs: int, plan: ReplayPlan, packed: PackedProject) -> None:
        """Raises `ReplayError` if there is no cluster at this address, or its workers lack this package."""
        self._distributed = _distributed()
        self._stack = ExitStack()
        self._running: dict[Any, Unit] = {}
        self._finished: Queue[Any] = Queue()
        self._divided: tuple[RecordedSession, Any] | None = None
        """The latest session that is replayed in parts, and its content on the cluster."""
        try:
            self._client = self._stack.enter_context(self._connect(address, jobs))
            self._name = f"wave-backtest-{self._client.id}-{packed.digest[:12]}"
            self._forget_the_dead()
            self._equip(plan, packed)
        except BaseException:
            self._stack.close()
            raise

    def replay(self, units: Iterable[Unit], listener: ReplayListener) -> Iterator[tuple[Unit, bytes]]:
        left, threads, looked = iter(units), 0, -_LOOK_SECONDS
        while True:
            if monotonic() - looked >= _LOOK_SECONDS:
                threads, looked = self._threads(), monotonic()
                listener.say(f"Replaying on {threads} worker threads" if threads else "Waiting for workers")
            for unit in islice(left, max(0, max(1, _AHEAD * threads) - len(self._running))):
                self._start(unit)
            if not self._running:
                return
            with suppress(Empty):
                future = self._finished.get(timeout=_LOOK_SECONDS)
                unit = self._running.pop(future)
                yield unit, self._answers(unit, future)

    def close(self) -> None:
        """Ends what is running: workers remove the project, which ends their processes."""
        with suppress(Exception):  # a cluster that is gone has nothing left to end
            self._client.cancel([*self._running], force=True)
            self._client.unregister_worker_plugin(self._name)
        with suppress(Exception):
            self._stack.close()

    def _connect(self, address: str, jobs: int) -> Any:
        if address == LOCAL:
            # Work is done in processes of our own: Dask's memory limits are about its workers alone.
            options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
            address = self._stack.enter_context(
                self._distributed.LocalCluster(
                    n_workers=jobs, host="127.0.0.1", silence_logs=logging.CRITICAL, **options
                )
            )
        try:
            return self._distributed.Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ReplayError(f"There is no Dask scheduler at {address}: {error}") from None

    def _forget_the_dead(self) -> None:
        """Remove what runs left on the cluster whose client was killed."""

        def left_behind(dask_scheduler: Any) -> list[str]:  # sent as it is: the scheduler need not have this package
            prefix = "wave-backtest-"
            return [
                name
                for name in dask_scheduler.worker_plugins
                if name.startswith(prefix) and not any(client in name for client in dask_scheduler.clients)
            ]

        with suppress(Exception):  # it costs only memory
            for name in self._client.run_on_scheduler(left_behind):
                self._client.unregister_worker_plugin(name)

    def _equip(self, plan: ReplayPlan, packed: PackedProject) -> None:
        plugin = import_module("wave_agent.replay.fleet_worker").ReplayPlugin(msgspec.json.encode(plan), packed)
        try:
            self._client.register_plugin(plugin, name=self._name)
        except Exception as error:
            raise ReplayError(
                f"The cluster's workers cannot replay sessions: {error}. Each needs: pip install "
                f"'wave-agent[fleet]=={__version__}'"
            ) from None

    def _threads(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except Exception as error:  # of the connection
            raise self._lost(error) from error

    def _start(self, unit: Unit) -> None:
        worker = import_module("wave_agent.replay.fleet_worker")
        parts = [part for part in unit.parts if not is_url(part.session.place)]
        contents = {part.session.place: content_of(part.session) for part in parts if part.parts == 1}
        order = msgspec.msgpack.encode(worker.Order(unit, contents))
        shared = [self._shared(worker, part.session) for part in parts if part.parts > 1]
        key = f"{self._name}-{unit.number}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a large session is large
            future = self._client.submit(worker.replay_on_worker, self._name, order, *shared, key=key, retries=_RETRIES)
        self._running[future] = unit
        future.add_done_callback(self._finished.put)

    def _shared(self, worker: Any, session: RecordedSession) -> Any:
        """The content of a divided session, sent once. It is the result of a task, so a lost copy is made again.

        Its parts follow each other, so the last session is enough: the scheduler keeps what a unit still needs."""
        if self._divided is None or self._divided[0] != session:
            content = msgspec.msgpack.encode({session.place: content_of(session)})
            place = hashlib.sha256(session.place.encode()).hexdigest()[:16]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a large session is large
                key = f"{self._name}-content-{place}"
                self._divided = session, self._client.submit(worker.content_on_worker, content, key=key)
        return self._divided[1]

    def _answers(self, unit: Unit, future: Any) -> bytes:
        try:
            return future.result()
        except ReplayError:
            raise
        except self._distributed.KilledWorker as error:
            totals, why = UnitTotals(), f"its workers were lost again and again: {error}"
            for part in unit.parts:
                totals.leave_out(part.session.place, why, first=part.part == 0)
            return msgspec.json.encode(UnitDone(unit.number, totals)) + b"\n"
        except Exception as error:
            raise self._lost(error) from error
        finally:
            future.release()

    def _lost(self, error: Exception) -> ReplayError:
        return ReplayError(f"The Dask cluster failed: {type(error).__name__}: {error}")


def _distributed() -> Any:
    try:
        found = import_module("distributed")
    except ImportError:
        raise ReplayError(f"A Dask cluster needs the extra: {install_extra('fleet')}") from None
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by us
    return found
