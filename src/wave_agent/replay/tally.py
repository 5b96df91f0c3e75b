"""What one session adds to the figures: small enough to keep in the index, for every session of a company."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from wave_agent.messages import BLOCKED, DENIED
from wave_agent.replay.facts import TranscriptFacts
from wave_agent.replay.outcomes import is_blocking, is_failure
from wave_agent.replay.timeline import main_value
from wave_agent.text import clip

ENFORCE, SHADOW = "enforce", "shadow"
_TEXT = 200
"""Characters of a denied call that are kept."""
_MOST_DENIED = 100
"""Different denied calls of one session that are kept."""


class HookTally(Struct, array_like=True, kw_only=True):
    """The runs of one hook on one event on one day, in one mode."""

    day: str
    """`2026-01-31`, in UTC."""
    event: str
    name: str
    layer: str
    mode: str
    """`enforce` or `shadow`: with `rollout`, a hook can have both."""
    sessions: int = 0
    """1 in one tally of each session, so that a session of several days is counted once."""
    blocked_sessions: int = 0
    """The same for sessions in which it blocked or, in shadow mode, would have."""
    runs: int = 0
    blocks: int = 0
    would_block: int = 0
    """Blocks in shadow mode, which had no effect."""
    failures: int = 0
    let_through: int = 0
    """Failures that were let through."""
    tokens: int = 0
    waited_ms: float = 0.0
    """How long the agent waited for it. An async hook holds nothing up."""
    turn_seconds: float = 0.0
    """Of the turns in which it ran."""
    times: list[float]
    """The different durations in ms, to three digits: that is exact enough, and there are few of them."""
    counts: list[int]
    """How many runs took each of these times."""


class DeniedTally(Struct, array_like=True, kw_only=True):
    """A call that did not run."""

    day: str
    tool: str
    text: str
    """The command, or whatever tells most about the call."""
    by: str
    """The hook; empty: a rule, the mode or the user."""
    count: int = 1


class SessionTally(Struct, array_like=True, kw_only=True):
    """Without defaults, so that a part of one is not taken for the whole."""

    started: float
    ended: float
    user: str
    hostname: str
    repository: str
    project: str
    agent: str
    """Another agent, whose session was guarded."""
    prompts: int
    calls: int
    hooks: list[HookTally]
    denied: list[DeniedTally]


_DECODER = msgspec.json.Decoder(SessionTally)


def decode(data: bytes | None) -> SessionTally | None:
    """None if it is missing, or damaged."""
    try:
        return None if data is None else _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def day_of(moment: float) -> str:
    """The day in UTC of a time in seconds since 1970."""
    try:
        return datetime.fromtimestamp(moment, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):  # a transcript can claim any time
        return "1970-01-01"


def three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def tally(facts: TranscriptFacts) -> SessionTally:
    return SessionTally(
        started=facts.started,
        ended=facts.ended,
        user=facts.head.user,
        hostname=facts.head.hostname,
        repository=facts.head.repository,
        project=facts.head.project or facts.head.cwd,
        agent=facts.head.host,
        prompts=len(facts.prompts),
        calls=len(facts.calls),
        hooks=_hooks(facts),
        denied=_denied(facts),
    )


def _hooks(facts: TranscriptFacts) -> list[HookTally]:
    found: dict[tuple[str, str, str, str, str], HookTally] = {}
    times: dict[tuple[str, str, str, str, str], Counter[float]] = {}
    seen: set[tuple[str, str, str, int]] = set()
    ran: set[tuple[str, str, str, str]] = set()
    blocked: set[tuple[str, str, str, str]] = set()
    lengths = {number: end - start for number, (start, end) in facts.turns.items()}
    for run in facts.runs:
        hook = (run.event, run.name, run.layer, SHADOW if run.mode == SHADOW else ENFORCE)
        key = (day_of(run.at), *hook)
        one = found.get(key)
        if one is None:
            day, event, name, layer, mode = key
            one = found[key] = HookTally(day=day, event=event, name=name, layer=layer, mode=mode, times=[], counts=[])
            times[key] = Counter()
        one.runs += 1
        if hook not in ran:
            ran.add(hook)
            one.sessions = 1
        if is_blocking(run):
            one.blocks += one.mode == ENFORCE
            one.would_block += one.mode == SHADOW
            if hook not in blocked:
                blocked.add(hook)
                one.blocked_sessions = 1
        one.failures += is_failure(run)
        one.let_through += run.let_through
        one.tokens += run.tokens
        one.waited_ms += 0 if run.is_async else run.duration_ms
        times[key][three_digits(run.duration_ms)] += 1
        turn = (run.event, run.name, run.layer, run.turn)
        if turn not in seen:
            seen.add(turn)
            one.turn_seconds += lengths.get(run.turn, 0.0)
    for key, one in found.items():
        one.times, one.counts = list(times[key]), list(times[key].values())
    return list(found.values())


def _denied(facts: TranscriptFacts) -> list[DeniedTally]:
    found: dict[tuple[str, str, str, str], DeniedTally] = {}
    for call in facts.calls.values():
        if call.error not in (BLOCKED, DENIED):
            continue
        key = (day_of(call.at), call.tool, shown(call.arguments), call.by)
        if key in found:
            found[key].count += 1
        elif len(found) < _MOST_DENIED:
            day, tool, text, by = key
            found[key] = DeniedTally(day=day, tool=tool, text=text, by=by)
    return list(found.values())


def shown(arguments: Mapping[str, Any]) -> str:
    """What tells most about a call, in a line."""
    return clip(main_value(arguments), _TEXT).encode("utf-8", "replace").decode()
