"""Compares what hooks decided then with what they decide now."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from wave_agent.events import HookRun
from wave_agent.hooks.events import Decision
from wave_agent.hooks.verdicts import Outcome

FAILED = "failed"
UNANSWERED = "no recorded answer"
BLOCKED = "newly blocked"
ALLOWED = "newly allowed"
REWRITTEN = "rewritten differently"
DECIDED = "decided differently"
UNCHANGED = "unchanged"
KINDS = (BLOCKED, ALLOWED, REWRITTEN, DECIDED, UNANSWERED, FAILED, UNCHANGED)

_DECISIONS: Mapping[str, Decision] = {
    "allow": Decision.ALLOW,
    "ask": Decision.ASK,
    "defer": Decision.DEFER,
    "deny": Decision.BLOCK,
    "block": Decision.BLOCK,
    "stop": Decision.STOP,
}
"""The decisions for words in the journal; other words decide nothing."""


class Judgement(Struct, frozen=True, kw_only=True):
    """What the hooks of one event decided together."""

    decision: Decision = Decision.NONE
    reason: str = ""
    hooks: tuple[str, ...] = ()
    """Names of the hooks that ran."""
    failed: tuple[str, ...] = ()
    """Hooks that failed, and how."""
    tool_input: Mapping[str, Any] | None = None
    """The input after rewrites; None if hooks did not change it."""
    result: str | None = None
    """The text that replaces the tool's result, if any."""

    @property
    def blocks(self) -> bool:
        return self.decision >= Decision.BLOCK


def recorded(runs: Sequence[HookRun]) -> Judgement:
    """What hooks decided then, according to the journal."""
    counted = [run for run in runs if run.mode == "enforce" and not run.is_async]
    decision = max((_decision(run) for run in counted), default=Decision.NONE)
    reasons = [run.reason for run in counted if run.reason and _decision(run) is decision]
    return Judgement(
        decision=decision,
        reason="\n".join(reasons) if decision else "",
        hooks=tuple(dict.fromkeys(run.name for run in runs)),
        failed=failures(runs),
    )


def _decision(run: HookRun) -> Decision:
    if run.outcome == "failure":
        return Decision.NONE if run.let_through else Decision.BLOCK
    return _DECISIONS.get(run.outcome, Decision.NONE)


def present(outcome: Outcome, runs: Sequence[HookRun], tool_input: Mapping[str, Any] | None) -> Judgement:
    """What hooks decide now."""
    return Judgement(
        decision=outcome.decision,
        reason=outcome.reason,
        hooks=tuple(dict.fromkeys(run.name for run in runs)),
        failed=failures(runs),
        tool_input=tool_input if outcome.rewritten_by else None,
        result=outcome.replacement,
    )


def failures(runs: Iterable[HookRun]) -> tuple[str, ...]:
    return tuple(f"{run.name}: {run.failure}: {run.reason}" for run in runs if run.failure is not None)


def kind_of(before: Judgement, after: Judgement) -> str:
    """The kind of difference; the most important one wins."""
    if after.failed:
        return FAILED
    if after.blocks != before.blocks:
        return BLOCKED if after.blocks else ALLOWED
    if not after.blocks and not _same(before, after):
        return REWRITTEN
    return UNCHANGED if after.decision is before.decision else DECIDED


def _same(before: Judgement, after: Judgement) -> bool:
    unchanged = before.tool_input is None and after.tool_input is None
    return (unchanged or _plain(before.tool_input) == _plain(after.tool_input)) and before.result == after.result


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class ChangedVerdict(Struct, frozen=True, kw_only=True):
    """One event on which hooks now decide differently."""

    number: int
    """Its number among the events of its session."""
    kind: str
    session_id: str
    line: int
    """The transcript line that records the event."""
    agent_id: str = ""
    """The subagent in which it happened, whose own transcript has the line."""
    event: str
    tool: str
    call: str
    """The recorded call, prompt or answer, in one line."""
    tool_input: Mapping[str, Any] | None
    before: str
    after: str
    reason: str
    """Why hooks decide this now or, if they no longer decide anything, why they blocked then."""
    hooks: tuple[str, ...]
    new_input: Mapping[str, Any] | None = None
    new_result: str | None = None
    does: str = ""
    """What the call would do, on one line; empty on events where hooks do not see it."""
