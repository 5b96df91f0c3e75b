"""Draws the timeline of a session for the terminal."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import ceil

from wave_agent.replay.timeline import Span, Timeline, TurnSpan
from wave_agent.text import strip_controls

_BAR = 16
_FULL, _POINT = "█", "·"


def draw(found: Timeline, width: int = 100) -> Iterator[str]:
    """One line per span, grouped by prompt: when, how long, what, how it ended, who read it."""
    start, end = found.start, found.end  # each looks at all spans
    began = datetime.fromtimestamp(start, UTC)
    runs = sum(span.kind == "hook" for span in found.spans)
    prompts = sum(span.kind == "prompt" for span in found.spans)
    facts = (_count(prompts, "prompt"), _count(runs, "hook run"), seconds(end - start))
    yield f"Session {found.session_id}, {began:%Y-%m-%d %H:%M:%S} UTC: {', '.join(facts)}"
    if found.skipped:
        yield f"{_count(found.skipped, 'line')} of the transcript could not be read."
    turns = {turn.number: turn for turn in found.turns}
    beside = beside_others(found.spans)
    current: int | None = None
    for span in found.spans:
        if span.turn != current:
            current = span.turn
            yield ""
        turn = turns.get(span.turn) or TurnSpan(0, span.start, span.end)
        yield _line(span, turn, start, span.run is not None and span.line in beside, width)


def _line(span: Span, turn: TurnSpan, began: float, beside: bool, width: int) -> str:
    took = duration(span) if span.end > span.start else ""
    head = f"{span.start - began:9.3f} s  {took:>8}  {bar(span, turn)}  {span.kind:<6} "
    return (head + _flat(describe(span, beside=beside)))[:width].rstrip()


def describe(span: Span, *, beside: bool = False) -> str:
    """What it was, how it ended and who read it, in one line."""
    whose = f"↳ {span.agent_type or span.agent_id}: " if span.agent_id else ""
    mark = f"{whose}{'∥ ' if beside else ''}"
    readers = f" [{', '.join(span.seen_by)}]" if span.seen_by and span.kind in ("hook", "note") else ""
    text = f": {span.text}" if span.run is not None and span.text else ""
    verdict = f" → {span.verdict}" if span.verdict else ""
    return f"{mark}{span.title}{verdict}{readers}{text}"


def bar(span: Span, turn: TurnSpan, cells: int = _BAR) -> str:
    """A bar that shows where in its turn the span lies."""
    whole = turn.end - turn.start
    if whole <= 0:
        return _POINT.ljust(cells)
    left = min(cells - 1, max(0, int((span.start - turn.start) / whole * cells)))
    right = min(cells, max(left + 1, ceil((span.end - turn.start) / whole * cells)))
    drawn = _FULL * (right - left) if span.end > span.start else _POINT
    return (" " * left + drawn).ljust(cells)


def beside_others(spans: Sequence[Span]) -> set[int]:
    """Line numbers of hooks that ran in parallel with another hook on the same occasion."""
    occasions: dict[int, list[Span]] = {}
    for span in spans:
        if span.run is not None and span.run.occasion:
            occasions.setdefault(span.run.occasion, []).append(span)
    return {
        one.line
        for own in occasions.values()
        for one in own
        if any(one is not other and one.start < other.end and other.start < one.end for other in own)
    }


def duration(span: Span) -> str:
    taken = span.duration_ms
    return f"{'' if span.exact else '~'}{taken:.0f} ms" if taken < 10_000 else seconds(taken / 1000)


def seconds(value: float) -> str:
    return f"{value:.1f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _flat(text: str) -> str:
    return " ".join(strip_controls(text).split())
