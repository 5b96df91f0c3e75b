"""Remembers what servers said, so that not every session asks them again."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from wave_agent.system.private_files import make_private, write_private

_MOST = 50

Value = TypeVar("Value")


class DatedAnswer(msgspec.Struct, Generic[Value], frozen=True):
    """An answer of a server."""

    asked: float
    """When, in seconds since the epoch."""
    value: Value


class ServerMemory(Generic[Value]):
    """A small file of answers. If it cannot be read or written, servers are asked again."""

    def __init__(
        self,
        file: Path,
        kind: type[dict[str, DatedAnswer[Value]]],
        seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`kind` is the type of the file's content, `seconds` how long an answer is believed."""
        self._file, self._kind, self._seconds, self._now = file, kind, seconds, now

    def recall(self, key: str) -> DatedAnswer[Value] | None:
        return self._read().get(key)

    def keep(self, key: str, value: Value) -> None:
        known = {**self._read(), key: DatedAnswer(self._now(), value)}
        latest = sorted(known.items(), key=lambda item: item[1].asked)[-_MOST:]
        with suppress(OSError):
            make_private(self._file.parent)
            write_private(self._file, msgspec.json.encode(dict(latest)), sync=False)

    def _read(self) -> dict[str, DatedAnswer[Value]]:
        try:
            known = msgspec.json.decode(self._file.read_bytes(), type=self._kind)
        except (OSError, ValueError):
            return {}
        now = self._now()
        return {key: one for key, one in known.items() if 0 <= now - one.asked < self._seconds}
