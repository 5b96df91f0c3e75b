"""Hooks after a tool: what they make of its result, and which files they change."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_results import CallEnd, CallResults, RequestedCall, hook_note
from wave_agent.formats.readable import readable
from wave_agent.hooks.dialects import Aside, Dialect, has_failed, heard_by
from wave_agent.hooks.events import EVENTS, Flow, HookEvent, changed_files
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.stage import EffectsOf, ToolFacts, unknown_effects
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import Origin, Ran, TextBlock
from wave_agent.tools.base import SameResult, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.files import uninterrupted

if TYPE_CHECKING:
    from wave_agent.tools.hook_edits import WatchedFile


class _Reviewed(Struct, frozen=True):
    """The outcome of the hooks on one event after a tool, and the result they leave."""

    outcome: Outcome
    edits: tuple[TextBlock, ...]
    result: ToolResult
    origin: Origin | None = None
    """Origin of the result, if a hook replaced it."""
    replaced: bool = False


class ResultHooks:
    """Runs the hooks after a tool, and gives the call the result they leave."""

    def __init__(self, hooks: HookManager, authority: Authority, results: CallResults, changes: FileChanges) -> None:
        """`changes` are those of the tools: hooks' changes to the same files are added to them."""
        self._hooks = hooks
        self._authority = authority
        self._results = results
        self._changes = changes
        self._watched: Mapping[str, WatchedFile] = {}

    async def after_failure(
        self,
        call: RequestedCall,
        facts: dict[str, Any],
        result: ToolResult,
        notes: Sequence[TextBlock] = (),
        *,
        error: str = "",
        ran: Ran | None = None,
    ) -> CallEnd:
        """The tool could not do its work. `ran`: it was started."""
        aside = Aside(duration_ms=None if ran is None else ran.duration_ms)
        after = partial(self._review, effects=call.effects, aside=aside)
        reviewed = await after(HookEvent.POST_TOOL_USE_FAILURE, facts, result, failed=False)
        why = reviewed.result.content if reviewed.replaced else error or result.content
        return self._end(call, [reviewed], notes, error=why)

    async def after_run(
        self,
        call: RequestedCall,
        facts: dict[str, Any],
        result: ToolResult,
        ran: Ran,
        notes: Sequence[TextBlock],
        *,
        changed: Sequence[str] = (),
    ) -> CallEnd:
        """The tool has run. The hook's dialect determines which event reports a failed tool; hooks that see it second
        see what the first ones left of the result. `changed`: the files that it changed."""
        aside = Aside(duration_ms=ran.duration_ms, original=result.original)
        after = partial(self._review, effects=call.effects, aside=aside, changed=changed)
        reviewed = [await after(HookEvent.POST_TOOL_USE, facts, result, failed=not result.success)]
        if not result.success:
            left = reviewed[0].result
            reviewed.append(await after(HookEvent.POST_TOOL_USE_FAILURE, facts, left, failed=True))
        if (other := result.also_of) is not None:
            reviewed += await self._review_as(other, call, reviewed[-1], aside)
        return self._end(call, reviewed, notes, ran=ran)

    async def _review_as(
        self, other: SameResult, call: RequestedCall, before: _Reviewed, aside: Aside
    ) -> list[_Reviewed]:
        """What hooks on another tool, which have not seen it yet, make of a result that is also this tool's."""
        facts = {**call.facts(other.tool_input), "tool_name": other.tool}
        left, response = before.result, dict(other.response)
        if before.replaced:
            response |= dict.fromkeys(other.text_fields, left.content)
        result = ToolResult(content=left.content, success=other.success, response=readable(response))
        after = partial(self._review, effects=unknown_effects, aside=aside, but_not_on=call.name)
        failed = not result.success
        reviewed = [await after(HookEvent.POST_TOOL_USE, facts, result, failed=failed)]
        if failed:
            reviewed.append(await after(HookEvent.POST_TOOL_USE_FAILURE, facts, reviewed[0].result, failed=True))
        return [replace(one, result=replace(one.result, success=left.success)) for one in reviewed]

    async def _review(
        self,
        event: HookEvent,
        facts: dict[str, Any],
        result: ToolResult,
        *,
        effects: EffectsOf,
        aside: Aside,
        failed: bool,
        changed: Sequence[str] = (),
        but_not_on: str = "",
    ) -> _Reviewed:
        """What hooks on this event make of a result. `failed`: the tool has run, and failed. `but_not_on`: see
        `HookManager.run`."""
        wrong = {} if result.success else {"error": result.content}
        response = {"success": result.success, "content": result.content, **wrong, **result.response}
        about = {"tool_response": response, "error": result.content, "is_interrupt": False, **changed_files(changed)}
        wanted = {field.name for field in EVENTS[event].stdin}
        facts = {**facts, **{name: value for name, value in about.items() if name in wanted}}
        facts |= {name: {**facts[name], **more} for name, more in readable(result.beside).items() if name in facts}
        tool = ToolFacts(effects=effects)
        run = partial(self._run, but_not_on=but_not_on)
        outcome, edits = await run(event, facts, tool, heard_by(event, failed=failed), aside)
        if outcome.replacement is None:
            return _Reviewed(outcome, edits, result)
        origin = None if outcome.withheld else Origin(outcome.event, outcome.replaced_by)
        left = ToolResult(content=outcome.replacement, success=result.success, ran=result.ran)
        return _Reviewed(outcome, edits, left, origin, replaced=True)

    def _end(
        self,
        call: RequestedCall,
        reviewed: Sequence[_Reviewed],
        notes: Sequence[TextBlock],
        *,
        error: str | None = None,
        ran: Ran | None = None,
    ) -> CallEnd:
        """Gives the call the result that hooks have left, and applies their other outcomes."""
        last = next((one for one in reversed(reviewed) if one.replaced), None)
        if last is None:
            reviewed[0].result.keep()
        final = last or reviewed[0]
        edits = [edit for one in reviewed for edit in one.edits]
        later = self._results.conclude(
            call, final.result, (*notes, *edits), replaced=final.replaced, error=error, origin=final.origin, ran=ran
        )
        more = [operation for one in reviewed for operation in self._results.apply(one.outcome, call)]
        return CallEnd((*later, *more), ends_turn=any(one.outcome.flow is Flow.END_TURN for one in reviewed))

    async def _run(
        self,
        event: HookEvent,
        facts: dict[str, Any],
        tool: ToolFacts,
        dialects: Collection[Dialect],
        aside: Aside,
        *,
        but_not_on: str,
    ) -> tuple[Outcome, tuple[TextBlock, ...]]:
        """Runs the hooks of this event. Their changes to files are known from now on, and reported to the model."""
        mode = self._authority.mode.value
        run = partial(
            self._hooks.run,
            *(event, facts),
            permission_mode=mode,
            tool=tool,
            dialects=dialects,
            aside=aside,
            but_not_on=but_not_on,
        )
        if not self._hooks.waits(event, *EVENTS[event].targets_in(facts)):
            return await run(), ()
        from wave_agent.tools.hook_edits import describe, look, settle  # lazy: most sessions have no such hooks

        changes = self._changes
        before = await asyncio.to_thread(look, changes, self._watched) if changes.has_files else {}
        self._watched = before
        earlier = len(self._hooks.journal)
        try:
            outcome = await run()
        except asyncio.CancelledError:  # cancelled halfway: it can be undone, but is not reported to the model
            if self._waited_for(event, facts, earlier):
                settle(changes, before, seen=False)
            raise
        names = self._waited_for(event, facts, earlier)
        # If none of them applied in the end, something else changed the files.
        edits = await uninterrupted(lambda: settle(changes, before, seen=True)) if before and names else ()
        if not edits:
            return outcome, ()
        text = describe(edits, names, shown=self._shows_edits(outcome, names, facts))
        return outcome, (hook_note(event, ", ".join(names), text),)

    def _shows_edits(self, outcome: Outcome, names: Sequence[str], facts: Mapping[str, Any]) -> bool:
        """Whether the model may see the diff. No hook has seen it: a hook that replaces results may be there to
        withhold something. If the tool failed, other hooks may see the result after these."""
        replacing = {run.name for run in self._hooks.journal if run.original_sha256 is not None}
        later = HookEvent.POST_TOOL_USE_FAILURE
        unseen = self._hooks.watches(later, *EVENTS[later].targets_in(facts)) and has_failed(facts)
        return outcome.replacement is None and replacing.isdisjoint(names) and not unseen

    def _waited_for(self, event: HookEvent, facts: Mapping[str, Any], earlier: int) -> tuple[str, ...]:
        """The hooks of this event that ran for this call since that journal entry, in configuration order."""
        runs = [run for run in self._hooks.journal[earlier:] if run.tool_use_id == facts["tool_use_id"]]
        waited = sorted((run for run in runs if run.event == event and not run.is_async), key=lambda run: run.position)
        return tuple(dict.fromkeys(run.name for run in waited))
