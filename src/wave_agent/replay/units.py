"""Divides recorded sessions into units of work.

A unit is some small sessions or a part of a large one. Each session is read by one worker, unless it is so large that
the others would wait for it.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

_SMALLEST = 4 << 10
_LARGEST, _LARGEST_SENT = 256 << 10, 1 << 20
"""Bytes of a unit of several sessions: an interrupt loses those that are not finished, but each one that is sent to
another machine costs its scheduler a millisecond."""
_UNITS_A_WORKER = 8
"""With more units than workers, a slow one delays the end less."""
_LEAST_PART = 32 << 10
_MOST_PARTS = 16
"""Each part costs reading the whole session once more."""


class RecordedSession(Struct, frozen=True, array_like=True):
    """A session as it was when the run began."""

    place: str
    """A path or a URL."""
    size: int
    """Bytes; what is appended later is not replayed."""

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2].removesuffix(".jsonl")


class SessionPart(Struct, frozen=True, array_like=True):
    """The events of a session, or a share of them."""

    session: RecordedSession
    part: int = 0
    parts: int = 1

    @property
    def size(self) -> int:
        return self.session.size // self.parts

    def share(self, events: int) -> tuple[int, int]:
        """The first of its events, and the first that is not."""
        return events * self.part // self.parts, events * (self.part + 1) // self.parts


class Unit(Struct, frozen=True, array_like=True):
    """What a worker does in one go."""

    number: int
    parts: tuple[SessionPart, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def sessions(self) -> int:
        """Number of sessions; one that is divided counts with its first part."""
        return sum(part.part == 0 for part in self.parts)


def units_of(
    sessions: Sequence[RecordedSession], workers: int, *, whole: bool = False, sent: bool = False
) -> Iterator[Unit]:
    """`whole`: never divide a session. `sent`: to other machines."""
    share = sum(session.size for session in sessions) // max(1, workers)
    parts = (part for session in sessions for part in _parts(session, share, 1 if whole else workers))
    most = _LARGEST_SENT if sent else _LARGEST
    for number, batch in enumerate(_batches(parts, min(max(share // _UNITS_A_WORKER, _SMALLEST), most))):
        yield Unit(number, batch)


def _parts(session: RecordedSession, share: int, workers: int) -> Iterator[SessionPart]:
    wanted = -(-session.size // max(share // 2, _LEAST_PART))
    count = max(1, min(wanted, 2 * workers, _MOST_PARTS)) if workers > 1 else 1
    for part in range(count):
        yield SessionPart(session, part, count)


def _batches(parts: Iterable[SessionPart], size: int) -> Iterator[tuple[SessionPart, ...]]:
    batch: list[SessionPart] = []
    filled = 0
    for part in parts:
        if batch and filled + part.size > size:
            yield tuple(batch)
            batch, filled = [], 0
        batch.append(part)
        filled += part.size
    if batch:
        yield tuple(batch)
