"""The entry of one hook run in the journal of its session."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from wave_agent.events import HookRun
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookExecutionResult, HookKind
from wave_agent.hooks.semantics import lets_through, withholds
from wave_agent.hooks.stage import Stage
from wave_agent.hooks.verdicts import AddContext, Approve, Ask, Block, Defer, EndTurn, Failure, Role, Verdict
from wave_agent.text import clip


def journal_entry(
    hook: HookDefinition,
    stage: Stage,
    look: int,
    *,
    result: HookExecutionResult,
    verdict: Verdict,
    started: str,
    is_cancelled: bool = False,
) -> HookRun:
    """The entry of one run. Pure."""
    row, payload, changes = stage.occurrence.row, stage.payload, verdict.rewrite
    before = None if changes is None else payload.get("tool_input")
    return HookRun(
        event=row.event.value,
        name=hook.name,
        command=hook.shown_command,
        layer=hook.layer.value,
        tool_use_id=payload.get("tool_use_id"),
        exit_code=result.exit_code if hook.kind is HookKind.COMMAND else None,
        outcome=verdict.word(row),
        failure=verdict.failure_kind.value if verdict.failure_kind else None,
        mode=hook.mode.value,
        look=look,
        rewrote=changes is not None,
        let_through=not is_cancelled and _is_let_through(hook, stage, verdict.failure),
        agent_id=payload.get("agent_id"),
        agent_type=payload.get("agent_type"),
        duration_ms=round(result.duration, 3),
        reason=clip(_reason(verdict)),
        is_async=hook.is_async,
        is_late=stage.occurrence.is_late,
        before=before,
        after=None if before is None or changes is None else stage.rewritten(hook, changes)[0],
        original_sha256=_digest(payload) if verdict.replacement is not None or withholds(row, verdict) else None,
        deferred=_deferred(hook, stage, verdict),
        occasion=stage.occurrence.number,
        position=hook.position,
        started=started,
        model=result.model,
        tokens=result.tokens,
        answer=None if result.opinion is None else result.opinion.to_dict(),
        calls=result.calls,
    )


def _is_let_through(hook: HookDefinition, stage: Stage, failure: Failure | None) -> bool:
    """Whether the run failed, could have had a say, and is only reported."""
    here = stage.occurrence
    has_say = hook.role is Role.ENFORCE and here.is_waited_for and not here.is_late
    return failure is not None and has_say and lets_through(here.row, failure)


def _deferred(hook: HookDefinition, stage: Stage, verdict: Verdict) -> tuple[str, ...]:
    """Context of a run that is not awaited, to be sent with a later request or prompt."""
    if stage.occurrence.waits_for(hook) or hook.role is Role.SHADOW:
        return ()
    wakes = tuple(one.reason for one in verdict.effects if isinstance(one, Block) and hook.role is Role.REWAKE)
    return (*(effect.text for effect in verdict.effects if isinstance(effect, AddContext)), *wakes)


def _reason(verdict: Verdict) -> str:
    """The reasons behind a verdict, one per line."""
    texts = [
        effect.message if isinstance(effect, Failure) else effect.reason
        for effect in verdict.effects
        if isinstance(effect, Block | Ask | Defer | Approve | EndTurn | Failure)
    ]
    return "\n".join(filter(None, texts))


def _digest(payload: Mapping[str, Any]) -> str:
    response = payload.get("tool_response", payload.get("error"))
    return hashlib.sha256(json.dumps(response, sort_keys=True).encode()).hexdigest()
