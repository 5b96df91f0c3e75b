"""What a hook run amounts to, and whether it matters, in words and signs."""

from collections.abc import Mapping
from typing import NamedTuple

from wave_agent.events import HookRun
from wave_agent.hooks.events import BLOCK_WORDS, EVENTS, FAILURE_WORD, Decision, Flow, HookEvent


class RunLook(NamedTuple):
    glyph: str
    word: str
    style: str
    matters: bool = True


LOOKS: Mapping[str, RunLook] = {
    "deny": RunLook("⊘", "denied", "$text-error"),
    "block": RunLook("⊘", "blocked", "$text-error"),
    "stop": RunLook("■", "ended the turn", "$text-error"),
    "failure": RunLook("!", "failed", "$text-warning"),
    "context": RunLook("+", "added context", "$text-accent"),
    "ask": RunLook("?", "asked", "$text-warning", matters=False),
    "allow": RunLook("✓", "allowed", "$text-success", matters=False),
    "none": RunLook("·", "had no opinion", "$muted", matters=False),
}
REWROTE = RunLook("~", "rewrote the input", "$text-accent")
REPLACED = RunLook("~", "replaced the result", "$text-accent")


def look_of(run: HookRun) -> RunLook:
    """The strongest effect of the run."""
    found = LOOKS.get(run.outcome, LOOKS["none"])
    if run.rewrote and not found.matters:
        return REWROTE
    return REPLACED if run.original_sha256 and not found.matters else found


def mattered(run: HookRun) -> bool:
    return look_of(run).matters


_SHOWN_BY_ITSELF = frozenset({Flow.SKIP_TOOL, Flow.REFUSE_CALL, Flow.ERASE_PROMPT})
"""Events on which a block produces a result or error with its reason."""


def is_told(run: HookRun) -> bool:
    """Whether the conversation already shows this run's reason, on the call's card or as the prompt's error."""
    blocks = run.outcome in BLOCK_WORDS or (run.outcome == FAILURE_WORD and not run.let_through)
    known = run.event in HookEvent.__members__.values()
    return (
        blocks
        and known
        and run.mode != "shadow"
        and EVENTS[HookEvent(run.event)].flow[Decision.BLOCK] in _SHOWN_BY_ITSELF
    )
