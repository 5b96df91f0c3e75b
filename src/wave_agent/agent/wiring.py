"""The parts of an agent, each created from what it depends on; none of them knows the agent.

`Foundation` → `lay_ground` → `Ground` → `make_parts` → `Parts`.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import Compactor
from wave_agent.agent.ground import Above, Ground
from wave_agent.agent.hook_runners import hooks_for
from wave_agent.agent.model_windows import WindowFinder
from wave_agent.agent.new_ground import skill_directories
from wave_agent.agent.outgoing import Draft, Images, RequestForm
from wave_agent.agent.prompt_wiring import briefing_for, tool_on_call
from wave_agent.agent.system_prompt import ENDS_WITH_REPORT
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Parts
from wave_agent.errors import ModelError
from wave_agent.events import HookStarted
from wave_agent.hooks.events import EVENTS
from wave_agent.hooks.manager import Deferred, HookManager, LiveSession, SessionFacts
from wave_agent.hooks.variables import DIRECTORY as EXPORTS
from wave_agent.hooks.verdicts import Said
from wave_agent.models.limits import limits_in
from wave_agent.permissions.decision import ToolKind
from wave_agent.rules.rule import Places
from wave_agent.sessions.transcript import DISPLACED
from wave_agent.tools.base import WITH_SESSION, ToolContext, ToolResult
from wave_agent.tools.registry import EDITS_ON_CALL

if TYPE_CHECKING:
    from wave_agent.agent.expansion import ExpandedPrompt, RefusedPrompt
    from wave_agent.agent.file_watch import FileWatch
    from wave_agent.agent.subagents import Subagents
    from wave_agent.hooks.execution import HookTrace
    from wave_agent.hooks.runners.thinking import Thinker
    from wave_agent.mcp.values import Elicit
    from wave_agent.telemetry.agent_trace import AgentTrace


def make_parts(ground: Ground, above: Above | None = None) -> Parts:
    """Connects what a turn works with. `above`: for the turn of a subagent."""
    foundation, window, tools = ground.foundation, ground.windows.current, ground.tools.values()
    hooks = _hooks(ground) if above is None else above.hooks
    briefing = briefing_for(ground, hooks)
    calls = _calls(ground, hooks, briefing, above)
    draft = _draft(ground, briefing, window)
    return Parts(
        messages=ground.messages,
        hooks=hooks,
        calls=calls,
        model=ground.model,
        model_name=window.name,
        briefing=briefing,
        count=ground.count,
        emit=ground.listeners.emit,
        interactive=bool(foundation.options.interactive),
        reports=lambda: [*(report for tool in tools for report in tool.reports()), *calls.news()],
        draft=draft,
        limits=limits_in(foundation.settings.models.get(window.name, {})),
        compactor=Compactor(
            messages=ground.messages,
            hooks=hooks,
            model=ground.model,
            draft=draft,
            window=window,
            edits=[*(tool.name for tool in tools if tool.kind is ToolKind.EDITS), *EDITS_ON_CALL],
            standing=lambda: [line for tool in tools for line in tool.standing()],
            permission_mode=lambda: calls.mode.value,
            renew=lambda: briefing.renew(calls.mode),
            spend=ground.spending.add,
        ),
        window=window,
        spending=ground.spending,
        fall_back=_fallback(ground),
        expand=_expander(ground, hooks, calls),
    )


def _expander(
    ground: Ground, hooks: HookManager, calls: CallRunner
) -> "Callable[[str], Awaitable[ExpandedPrompt | RefusedPrompt | None]]":
    async def expand(text: str) -> "ExpandedPrompt | RefusedPrompt | None":
        if not text.startswith("/") and (ground.mcp is None or "@" not in text):
            return None
        from wave_agent.agent.expansion import PromptExpander  # lazy: most prompts are plain text

        return await PromptExpander(
            extensions=ground.foundation.gathered.extensions,
            mcp=ground.mcp,
            hooks=hooks,
            calls=calls,
            messages=ground.messages,
            start=ground.foundation.place.start,
        ).expand(text)

    return expand


def _fallback(ground: Ground) -> Callable[[Parts], Parts] | None:
    """How another model takes over, if the user has named one."""
    name = ground.foundation.options.fallback_model
    if not name:
        return None
    if "model" in ground.foundation.settings.managed:
        ground.notices.append(f"The fallback model {name} is ignored: managed settings choose the model.")
        return None
    return lambda parts: replace(with_model(ground, parts, name), fall_back=None)


def with_model(ground: Ground, parts: Parts, model_name: str) -> Parts:
    """The same parts, for another model."""
    window = ground.windows.change(model_name)
    draft = _draft(ground, parts.briefing, window)
    return replace(
        parts,
        model_name=model_name,
        window=window,
        draft=draft,
        limits=limits_in(ground.foundation.settings.models.get(model_name, {})),
        compactor=parts.compactor.with_draft(draft, window),
    )


def _hooks(ground: Ground) -> HookManager:
    foundation = ground.foundation
    return hooks_for(
        foundation,
        SessionFacts(
            session_id=ground.session_id,
            transcript_path=str(ground.transcript),
            project_dir=foundation.project,
            home=os.path.expanduser("~"),
            start=foundation.place.start,
        ),
        outputs=ground.outputs,
        ledger=ground.leftovers.entry,
        on_event=ground.listeners.emit,
        live=LiveSession(
            variables=ground.variables,
            exports=foundation.home / EXPORTS,
            # One of the tools may change its directory.
            directory=lambda: next(filter(None, (tool.directory() for tool in ground.tools.values())), ""),
            door=ground.inside.entered,
            attended=foundation.options.can_use_tool is not None,
            task=lambda: ground.messages.latest_prompt,
            journal=ground.before.hooks,
            deferred=[Deferred(event, Said(hook, text)) for event, hook, text in ground.before.deferred],
            begin_trace=None if ground.trace is None else partial(_begin_hook, ground.trace),
        ),
        ask_server=None if ground.mcp is None else ground.mcp.ask_for_hook,
        reserve=[hook for one in foundation.agents.values() for hook in one.hooks],
        open_thinker=partial(_thinker, ground),
    )


def _begin_hook(trace: "AgentTrace", begun: HookStarted) -> "HookTrace":
    return trace.hook(begun.event, begun.name, begun.tool_use_id, begun.agent_id)


def _thinker(ground: Ground) -> "Thinker":
    from wave_agent.agent.hook_questions import ReadingPlace  # lazy, as the next one: only for hooks that ask a model
    from wave_agent.agent.hook_thinking import thinker_for

    place = ReadingPlace(
        outputs=ground.outputs,
        environment=ground.variables,
        ledger=ground.leftovers.entry,
        sandbox=ground.sandbox,
    )
    usual = ground.windows
    return thinker_for(ground.foundation, place, usual_model=lambda: usual.current.name, spending=ground.spending)


def _authority(ground: Ground, hooks: HookManager) -> Authority:
    foundation, sandbox = ground.foundation, ground.sandbox
    return Authority(
        mode=foundation.mode,
        rules=foundation.settings.rules,
        places=Places(foundation.project, hooks.session.home, hooks.session.start),
        # The model is shown where the full text of a long output is, so it may read there.
        directories=(*foundation.directories, os.path.realpath(ground.outputs), *skill_directories(foundation)),
        find_protected=lambda: foundation.protected,
        border=sandbox.refusal if sandbox else lambda _: None,
    )


def _calls(ground: Ground, hooks: HookManager, briefing: Briefing, above: Above | None) -> CallRunner:
    foundation, windows = ground.foundation, ground.windows
    authority = _authority(ground, hooks) if above is None else above.authority

    async def delegate(arguments: Any, context: ToolContext) -> ToolResult:
        return await subagents.run(arguments, context)

    calls = CallRunner(
        messages=ground.messages,
        hooks=hooks,
        tools=ground.tools,
        few=lambda: briefing.is_small,
        on_call=partial(tool_on_call, ground, hooks),
        ahead=None if ground.mcp is None else ground.mcp.load,
        context=ToolContext(
            project_dir=Path(foundation.project),
            start=Path(foundation.place.start),
            environment=ground.variables if above is None else above.environment,
            outputs=ground.outputs,
            ledger=ground.leftovers.entry,
            sandbox=ground.sandbox,
            door=ground.inside.entered,
            window=lambda: windows.current.known,
            takes_images=windows.takes_images,
            elicit=_elicit(ground, hooks, authority),
            delegate=delegate if above is None else None,
            ends=WITH_SESSION if above is None else ENDS_WITH_REPORT,
            rules=lambda: authority.rules,
            mode=lambda: authority.mode,
        ),
        authority=authority,
        approver=foundation.options.can_use_tool,
        emit=ground.listeners.emit,
        sync=ground.log.require_on_disk if above is None else above.sync,  # before a tool that changes something runs
        changes=ground.changes,
        start_watch=partial(_watch, ground, hooks),
        above=None if above is None else above.calls,
        trace=ground.trace,
    )
    subagents = _SubagentsOnDemand(ground, hooks, calls, authority)
    return calls


class _SubagentsOnDemand:
    """Runs the subagents of a session; what that takes is loaded with the first of them."""

    def __init__(self, ground: Ground, hooks: HookManager, calls: CallRunner, authority: Authority) -> None:
        self._given = ground, hooks, calls, authority
        self._loaded: Subagents | None = None

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        if self._loaded is None:
            from wave_agent.agent.subagents import Subagents  # lazy: most sessions have none

            self._loaded = Subagents(*self._given, make_parts)
        return await self._loaded.run(arguments, context)


def _elicit(ground: Ground, hooks: HookManager, authority: Authority) -> "Elicit | None":
    """Who answers what MCP servers ask the user. None: neither a hook nor the user can."""
    user = ground.foundation.options.elicit
    if ground.mcp is None or not (user or any(EVENTS[hook.event].action_words for hook in hooks.hooks)):
        return None
    from wave_agent.agent.elicitation import HookedElicitation  # lazy: most sessions have no servers

    return HookedElicitation(hooks=hooks, authority=authority, messages=ground.messages, user=user).answer


def _watch(ground: Ground, hooks: HookManager) -> "FileWatch":
    from wave_agent.agent.file_watch import FileWatch, WatchedPlaces  # lazy: many sessions never act

    foundation = ground.foundation
    return FileWatch(
        WatchedPlaces(
            project=foundation.project,
            own=(str(foundation.home),),
            contents=ground.outputs,
            displaced=ground.transcript.with_suffix(DISPLACED),
        ),
        foundation.settings.rules.deny,
        Places(foundation.project, hooks.session.home, hooks.session.start),
        foundation.environment,
        changes=ground.changes,
        messages=ground.messages,
        record=partial(_violated, ground),
        is_busy=lambda: any(tool.is_busy() for tool in (*ground.tools.values(), *ground.helpers)),
        others=lambda: hooks.is_busy,
        approver=foundation.options.may_restore,
    )


def _violated(ground: Ground, facts: Mapping[str, Any]) -> None:
    if ground.trace is not None:
        ground.trace.violated(facts)
    ground.log.violation(facts)


def _draft(ground: Ground, briefing: Briefing, window: WindowFinder) -> Draft:
    def refuse_images(error: ModelError) -> None:
        window.refuse_images()
        notice = f"The server refused a request with images; no more images will be sent. {error}"
        ground.messages.add_notice_block(notice)

    options, facts = ground.foundation.options, ground.foundation.settings.models.get(window.name, {})
    form = RequestForm(
        model=window.name,
        system=lambda: briefing.text,
        tools=lambda: briefing.tools,
        one_call=lambda: briefing.is_small,
        fold=bool(facts.get("foldUserMessages")),
        images=Images(window.takes_images, refuse_images),
        max_output_tokens=options.max_output_tokens or facts.get("maxOutputTokens"),
        effort=options.effort,
    )
    return Draft(form, lambda: ground.messages.for_model)
