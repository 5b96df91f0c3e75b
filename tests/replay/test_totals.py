"""The totals of a replay, and percentiles that need little memory."""

import random
from typing import Any

from tests.rows import rows
from wave_agent.replay.comparison import BLOCKED, UNCHANGED
from wave_agent.replay.durations import bucket_of, percentile_of
from wave_agent.replay.figures import percentile
from wave_agent.replay.report import LISTED, UnitTotals, report_of, sum_of
from wave_agent.replay.units import RecordedSession, SessionPart, Unit, units_of


def totals(**fields: Any) -> UnitTotals:
    found = UnitTotals(**fields)
    found.durations = {bucket_of(3.0): 2}
    found.count(BLOCKED)
    return found


def test_totals_add_up_in_any_order() -> None:
    several = [totals(sessions=1, judged=2), totals(skipped=3), totals(erased=1, replaced=1, grown=1)]
    several[2].leave_out("a", "it was deleted")
    several[0].leave_out("b", "it was deleted")
    one = report_of(sum_of(several), project="/p", pending=0, interrupted=False, notes=["x"])
    other = report_of(sum_of(several[::-1]), project="/p", pending=0, interrupted=False, notes=["x"])
    assert one == other
    assert (one.sessions, one.events, one.judged, one.totals[BLOCKED], one.totals[UNCHANGED]) == (1, 3, 2, 3, 0)
    assert (one.differs, one.complete, one.missing) == (True, False, 2)
    assert [note.split(" ")[0] for note in one.notes] == ["x", "1", "1", "3", "1"]
    assert one.to_dict()["left_out"] == [{"session": name, "why": "it was deleted"} for name in "ab"]


def test_a_report_without_findings_is_complete_unless_sessions_are_pending() -> None:
    found = report_of(UnitTotals(), project="/p", pending=1, interrupted=True, notes=[])
    assert (found.differs, found.complete, found.p95_ms) == (False, False, 0.0)
    assert report_of(UnitTotals(), project="/p", pending=0, interrupted=False, notes=[]).complete


def test_only_some_sessions_are_listed_and_the_others_are_counted() -> None:
    found = UnitTotals()
    for number in range(LISTED + 5):
        found.leave_out(str(number), "it was deleted")
    found.leave_out("part", "it was deleted", first=False)
    both = sum_of([found, found])
    assert (both.missing, len(both.left_out)) == (2 * LISTED + 10, LISTED)


def test_a_percentile_from_buckets_is_at_most_one_percent_too_high() -> None:
    chance = random.Random(7)
    values = [chance.lognormvariate(1, 2) for _ in range(5000)]
    buckets: dict[int, int] = {}
    for value in values:
        buckets[bucket_of(value)] = buckets.get(bucket_of(value), 0) + 1
    for part in (0.0, 0.5, 0.95, 1.0):
        exact = percentile(values, part)
        assert exact - 0.001 <= percentile_of(buckets, part) <= exact * 1.0101 + 0.001
    assert percentile_of({bucket_of(0.0): 1}, 0.5) == 0.001
    assert percentile_of({}, 0.5) == 0.0


# ---------------------------------------------------------------------------------------------------------------- units


def sessions(*sizes: int) -> list[RecordedSession]:
    return [RecordedSession(f"/s/{number:03}.jsonl", size) for number, size in enumerate(sizes)]


@rows(
    ("sizes", "workers", "units", "parts"),
    [
        ((1000,) * 40, 1, 8, 1),
        ((1 << 20,), 4, 8, 8),
        ((1 << 20,), 1, 1, 1),
        ((8 << 20, *(100_000,) * 10), 4, 13, 8),
        ((20_000,), 8, 1, 1),
        ((), 4, 0, 0),
    ],
    ids=["small ones together", "one divided", "one worker", "a large one among many", "a short one", "none"],
)
def test_sessions_are_divided_into_units(sizes: tuple[int, ...], workers: int, units: int, parts: int) -> None:
    found = list(units_of(sessions(*sizes), workers))
    assert (len(found), max((part.parts for unit in found for part in unit.parts), default=0)) == (units, parts)
    assert [unit.number for unit in found] == list(range(len(found)))
    assert sum(unit.sessions for unit in found) == len(sizes)
    assert [part.session for unit in found for part in unit.parts if part.part == 0] == sessions(*sizes)


def test_units_are_larger_if_each_one_is_sent_to_another_machine() -> None:
    asked = sessions(*(200_000,) * 40)
    assert [len(list(units_of(asked, 1, sent=sent))) for sent in (False, True)] == [40, 8]


def test_the_parts_of_a_session_have_each_event_once() -> None:
    session = RecordedSession("/a/b.jsonl", 90)
    shares = [SessionPart(session, part, 7).share(23) for part in range(7)]
    assert [number for first, end in shares for number in range(first, end)] == list(range(23))
    assert session.name == "b"
    assert Unit(0, (SessionPart(session, 1, 3),)).size == 30


def test_a_session_with_hooks_that_run_once_is_never_divided() -> None:
    assert [len(unit.parts) for unit in units_of(sessions(4 << 20), 8, whole=True)] == [1]
