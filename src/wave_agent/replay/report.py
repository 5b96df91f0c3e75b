"""The result of a replay: totals of its units, added up in any order."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from wave_agent.replay.comparison import KINDS, UNCHANGED
from wave_agent.replay.durations import percentile_of

LISTED = 100
"""Sessions that a report lists by name if they were left out; the others are counted."""


class LeftOutSession(Struct, frozen=True, order=True):
    """A session that was not replayed."""

    session: str
    why: str


class UnitTotals(Struct, kw_only=True):
    """Counts for some sessions."""

    sessions: int = 0
    events: int = 0
    judged: int = 0
    """Events on which at least one hook ran."""
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    durations: dict[int, int] = field(default_factory=dict[int, int])
    """How long hooks took on an event: see `durations`."""
    erased: int = 0
    """Prompts that hooks blocked: they were not stored."""
    replaced: int = 0
    """Results that hooks replaced: the originals were not stored."""
    skipped: int = 0
    """Unreadable lines."""
    grown: int = 0
    """Sessions that have grown since the run began."""
    uncut: int = 0
    """Sessions whose hooks had a network."""
    missing: int = 0
    """Sessions that were left out."""
    left_out: tuple[LeftOutSession, ...] = ()
    """The first of them, by name."""

    def count(self, kind: str) -> None:
        self.events += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def leave_out(self, session: str, why: str, *, first: bool = True) -> None:
        """`first`: it is the first part of the session, the one that counts."""
        self.missing += first
        self.left_out = _first((*self.left_out, LeftOutSession(session, why)))


def _first(left_out: Iterable[LeftOutSession]) -> tuple[LeftOutSession, ...]:
    return tuple(sorted(left_out)[:LISTED])


def sum_of(totals: Iterable[UnitTotals]) -> UnitTotals:
    """The totals of all units."""
    found = UnitTotals()
    kinds, durations = Counter[str](), Counter[int]()
    left_out: list[LeftOutSession] = []
    for one in totals:
        kinds.update(one.kinds)
        durations.update(one.durations)
        if one.left_out:
            left_out = [*_first((*left_out, *one.left_out))]
        for name in ("sessions", "events", "judged", "erased", "replaced", "skipped", "grown", "uncut", "missing"):
            setattr(found, name, getattr(found, name) + getattr(one, name))
    found.kinds, found.durations, found.left_out = dict(kinds), dict(durations), tuple(left_out)
    return found


class BacktestReport(Struct, frozen=True, kw_only=True):
    """What a replay found. The findings themselves are on disk: there may be millions."""

    project: str = ""
    sessions: int = 0
    events: int = 0
    judged: int = 0
    """Events on which at least one hook ran."""
    totals: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    left_out: tuple[LeftOutSession, ...] = ()
    missing: int = 0
    """Sessions that were left out; the first of them are in `left_out`."""
    pending: int = 0
    """Sessions that the run did not reach."""
    interrupted: bool = False
    error: str = ""
    """Why the run ended early, if it was not interrupted."""
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return any(count for kind, count in self.totals.items() if kind != UNCHANGED)

    @property
    def complete(self) -> bool:
        return not (self.left_out or self.pending)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the findings."""
        left_out = [asdict(one) for one in self.left_out]
        return {"type": "backtest", "complete": self.complete, **asdict(self), "left_out": left_out}


def report_of(
    totals: UnitTotals, *, project: str, pending: int, interrupted: bool, error: str = "", notes: Iterable[str] = ()
) -> BacktestReport:
    """`pending`: how many sessions the run did not reach."""
    lines = (
        (
            totals.erased,
            "prompt blocked by hooks was not stored, so it cannot be replayed",
            "prompts blocked by hooks were not stored, so they cannot be replayed",
        ),
        (
            totals.replaced,
            "result replaced by hooks is replayed as replaced: the original was not stored",
            "results replaced by hooks are replayed as replaced: the originals were not stored",
        ),
        (totals.skipped, "transcript line could not be read", "transcript lines could not be read"),
        (
            totals.grown,
            "session has grown since the run began: what was added is not replayed",
            "sessions have grown since the run began: what was added is not replayed",
        ),
    )
    return BacktestReport(
        project=project,
        sessions=totals.sessions,
        events=totals.events,
        judged=totals.judged,
        totals={kind: totals.kinds.get(kind, 0) for kind in KINDS},
        p50_ms=percentile_of(totals.durations, 0.5),
        p95_ms=percentile_of(totals.durations, 0.95),
        left_out=totals.left_out,
        missing=totals.missing,
        pending=pending,
        interrupted=interrupted,
        error=error,
        notes=(*notes, *(f"{count} {one if count == 1 else more}." for count, one, more in lines if count)),
    )
