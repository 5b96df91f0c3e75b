"""What a Dask worker does: it keeps a station for each run, and replays the units that the scheduler gives it."""

import asyncio
import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

import msgspec
from distributed import WorkerPlugin, get_worker
from msgspec import Struct
from msgspec.structs import replace

from wave_agent import __version__
from wave_agent.replay.errors import ReplayError
from wave_agent.replay.packed import PackedProject
from wave_agent.replay.scratch import RunDirectory
from wave_agent.replay.snapshot import SessionContent
from wave_agent.replay.station import Station, place_of_copy
from wave_agent.replay.units import Unit
from wave_agent.replay.worker import ReplayPlan, relocated

Contents = dict[str, SessionContent]


class Order(Struct, frozen=True):
    """A unit, and the sessions in it that the worker cannot read itself, by place."""

    unit: Unit
    contents: Contents


class ReplayPlugin(WorkerPlugin):
    """Brings a run's project to every worker, also to those that join later. It is unpacked when the first unit comes,
    and removed with the run."""

    def __init__(self, plan: bytes, packed: PackedProject) -> None:
        self._version = __version__
        self._plan = plan
        self._packed = packed

    def setup(self, worker: Any) -> None:
        self._address = worker.address
        self._lock = Lock()
        self._station: Station | None = None
        self._ended = False

    async def teardown(self, worker: Any) -> None:
        await asyncio.to_thread(self._close)

    def replay(self, order: bytes, shared: Sequence[bytes]) -> bytes:
        found = msgspec.msgpack.decode(order, type=Order)
        contents = dict(found.contents)
        for one in shared:
            contents |= msgspec.msgpack.decode(one, type=Contents)
        return self._ready().replay(found.unit, contents=contents)

    def _ready(self) -> Station:
        with self._lock:
            if self._ended:
                raise ReplayError("The replay was ended.")
            if self._station is None:
                self._station = self._open()
            return self._station

    def _open(self) -> Station:
        if self._version != __version__:
            raise ReplayError(
                f"The worker {self._address} has wave-agent {__version__}, but {self._version} is needed: install the "
                "same version everywhere."
            )
        run = RunDirectory()
        try:
            project, home = self._packed.unpack(run.path)
            home = home or os.path.expanduser("~")
            environment = {**os.environ, "HOME": home}
            place = place_of_copy(project, home, run.path, environment)
            return Station(
                _moved(msgspec.json.decode(self._plan, type=ReplayPlan), project, home), place, run, environment
            )
        except BaseException:
            run.close()
            raise

    def _close(self) -> None:
        with self._lock:
            self._ended = True
            station, self._station = self._station, None
        if station is not None:
            station.close()


def content_on_worker(content: bytes) -> bytes:
    """The task of a session that is replayed in parts: their workers get it from here."""
    return content


def replay_on_worker(plugin: str, order: bytes, *shared: bytes) -> bytes:
    """The task of a unit. `shared` are the contents of divided sessions."""
    found: Any = get_worker().plugins.get(plugin)
    if found is None:
        raise ReplayError("The replay was ended.")
    return found.replay(order, shared)


def _moved(plan: ReplayPlan, project: str, home: str) -> ReplayPlan:
    """The plan with the settings naming the directories of this worker."""

    def here(value: Any) -> Any:
        return relocated(relocated(value, plan.real_project, project), plan.real_home, home)

    sources = tuple(replace(source, value=here(source.value)) for source in plan.sources)
    return replace(plan, sources=sources, hook=here(plan.hook))
