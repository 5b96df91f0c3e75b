"""The parts of an agent, each created from what it depends on; none of them knows the agent.

`Foundation` → `lay_ground` → `Ground` → `make_parts` → `Parts`.
"""

import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import Compactor
from wave_agent.agent.foundation import Foundation, sandbox_for
from wave_agent.agent.ground import Above, Ground
from wave_agent.agent.hook_runners import hooks_for
from wave_agent.agent.instructions import instructions
from wave_agent.agent.listeners import Listeners
from wave_agent.agent.model_choice import model_for, model_name_for
from wave_agent.agent.model_windows import WindowFinder, Windows
from wave_agent.agent.outgoing import Draft, Images, RequestForm
from wave_agent.agent.shared_budget import SharedBudget
from wave_agent.agent.spending import RequestCount, Spending, requests_in_words
from wave_agent.agent.surroundings import ProjectSurroundings, look_around
from wave_agent.agent.system_prompt import (
    ENDS_WITH_REPORT,
    SUBAGENT,
    SUBAGENT_LIMIT,
    PromptFacts,
    SystemPrompt,
    mode_words,
    system_prompt,
)
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Parts
from wave_agent.errors import ModelError, SandboxError, SettingsError
from wave_agent.events import HookStarted
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import EVENTS
from wave_agent.hooks.manager import Deferred, HookManager, LiveSession, SessionFacts
from wave_agent.hooks.variables import DIRECTORY as EXPORTS
from wave_agent.hooks.variables import SessionVariables
from wave_agent.hooks.verdicts import Said
from wave_agent.messages import NOT_RUN, MessageManager
from wave_agent.models.base import Model, ToolSpec
from wave_agent.models.limits import limits_in
from wave_agent.models.profiles import Profile
from wave_agent.permissions.decision import INSTEAD, PermissionMode, ToolKind
from wave_agent.rules.rule import SAME_TOOL, TASK, Places
from wave_agent.sessions.log import SessionLog
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import DISPLACED, Resumed, transcript_file
from wave_agent.settings.mcp_sources import has_servers
from wave_agent.settings.places import ExtensionKind
from wave_agent.system.credentials import without_credentials
from wave_agent.system.identity import identity
from wave_agent.system.orphans import Leftovers, holder_of
from wave_agent.system.reentrancy import Inside
from wave_agent.tools.base import WITH_SESSION, Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.bash import default_shell
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.registry import EDITS_ON_CALL, GrowingTools, ToolsOnCall, builtin_tools
from wave_agent.tools.shells import directory_left, earlier_shells
from wave_agent.tools.task import BUILT_IN, Task, task_tool

if TYPE_CHECKING:
    from wave_agent.agent.expansion import ExpandedPrompt, RefusedPrompt
    from wave_agent.agent.file_watch import FileWatch
    from wave_agent.agent.subagents import Subagents
    from wave_agent.hooks.execution import HookTrace
    from wave_agent.hooks.runners.thinking import Thinker
    from wave_agent.mcp.session import McpSession
    from wave_agent.mcp.values import Elicit
    from wave_agent.permissions.sandbox import Sandbox
    from wave_agent.telemetry.agent_trace import AgentTrace


def lay_ground(foundation: Foundation, store: Callable[..., FileSessionStore] = FileSessionStore) -> Ground:
    """Opens the session. Raises `SessionError` if it cannot be continued, and `SandboxError`."""
    options, settings, environment = foundation.options, foundation.settings, foundation.environment
    session_id = str(uuid.uuid4()) if options.resume is None else options.resume
    transcript = transcript_file(foundation.home, foundation.project, session_id)
    kept = store(transcript, holder=partial(holder_of, foundation.home))
    model_name = model_name_for(options.model, settings, environment)
    model = options.model_client or model_for(
        options.wishes, settings, environment, model=model_name, home=foundation.home
    )
    resumed = None if options.resume is None else _resumed(kept, transcript)
    before = resumed or Resumed()
    changes = FileChanges()
    builtin = builtin_tools(changes, earlier_shells(before.messages), directory_left(before.messages))
    try:  # last: nothing else would release the session, or remove the files a sandbox has written
        sandbox = sandbox_for(foundation, session_id) if foundation.sandbox else None
    except SandboxError:
        kept.close()
        raise
    inside = Inside()
    log = SessionLog(
        kept, session_id, foundation.place, before, identity=identity if settings.record_identity else _no_identity
    )
    notices = [*_skipped(before), *foundation.notices]
    mcp: McpSession | None = None
    trace = _trace(foundation, session_id, notices, lambda server: "" if mcp is None else mcp.protocol_of(server))
    listeners = Listeners(log, options.callbacks, inside, trace)
    messages: MessageManager = MessageManager(
        before.messages, lambda change: listeners.changed(change, messages), before.compacted
    )
    windows = Windows(model, model_name, settings, messages.add_notice_block)
    leftovers = _leftovers(foundation, transcript)
    task = _task_tool(foundation)
    own = {tool.name: tool for tool in (*builtin, task, *_skill_tool(foundation), *options.tools)}
    shared = _shared_budget(foundation, session_id)
    try:
        shared.open()
        if has_servers(foundation.gathered, foundation.place, foundation.home, options):
            mcp = _servers(
                foundation, session_id, leftovers, sandbox, notices=notices, notify=messages.add_notice_block
            )
    except SettingsError:
        kept.close()
        shared.close()
        if trace is not None:
            trace.leave()
        if sandbox is not None:
            sandbox.close()
        raise
    return Ground(
        foundation=foundation,
        session_id=session_id,
        transcript=transcript,
        resumed=resumed,
        leftovers=leftovers,
        log=log,
        inside=inside,
        listeners=listeners,
        messages=messages,
        model=model if trace is None else _traced_model(foundation, model, trace, windows),
        windows=windows,
        spending=Spending(windows.prices, foundation.max_cost, shared=shared),
        count=RequestCount(foundation.max_turns, shared=shared),
        shared=shared,
        helpers=[],
        tools=own if mcp is None else GrowingTools(own, mcp.tools),
        on_call=ToolsOnCall(changes),
        mcp=mcp,
        changes=changes,
        sandbox=sandbox,
        variables=_variables(foundation, session_id),
        notices=notices,
        instructions=[],
        trace=trace,
    )


def _skipped(before: Resumed) -> list[str]:
    found = f"{before.skipped} lines of the transcript could not be read and were skipped."
    return [found] if before.skipped else []


def _resumed(kept: FileSessionStore, transcript: Path) -> Resumed:
    from wave_agent.sessions.touched import note_opened  # lazy: most sessions are new

    resumed = kept.resume()
    note_opened(transcript)
    return resumed


def _servers(
    foundation: Foundation,
    session_id: str,
    leftovers: Leftovers,
    sandbox: "Sandbox | None",
    *,
    notices: list[str],
    notify: Callable[[str], None],
) -> "McpSession | None":
    from wave_agent.agent.mcp_servers import open_servers  # lazy: most sessions have no servers

    return open_servers(
        foundation,
        session_id=session_id,
        fixed=_fixed_variables(foundation, session_id),
        ledger=leftovers.entry,
        sandbox=sandbox,
        notices=notices,
        notify=notify,
    )


def _trace(
    foundation: Foundation, session_id: str, notices: list[str], protocol_of: Callable[[str], str]
) -> "AgentTrace | None":
    asked = foundation.settings.telemetry_endpoint is not None or "opentelemetry.sdk" in sys.modules
    if not asked and not any(name.startswith("OTEL_") for name in foundation.environment):
        return None
    from wave_agent.agent.telemetry import open_trace  # lazy: telemetry is off unless it is asked for

    return open_trace(foundation, session_id, notices, protocol_of)


def _traced_model(foundation: Foundation, model: Model, trace: "AgentTrace", windows: Windows) -> Model:
    from wave_agent.agent.traced_model import TracedModel, server_facts  # lazy: see above

    return TracedModel(model, trace, server_facts(foundation, windows.current.name), windows.prices)


def _task_tool(foundation: Foundation) -> Task:
    more = {name: one.description for name, one in foundation.agents.items()}
    places, rules = Places(foundation.project, os.path.expanduser("~")), foundation.settings.rules.deny
    denied = [
        name
        for name in (*BUILT_IN, *more)
        if any(rule.matches(Task.name, {"subagent_type": name}, places) for rule in rules if rule.tool == TASK)
    ]
    return task_tool(more, denied)


def _shared_budget(foundation: Foundation, session_id: str) -> SharedBudget:
    down, above = foundation.handed_down, foundation.above
    own = down.budgets[-1].file if down and down.budgets else None
    return SharedBudget(session_id, own, () if above is None else above.budgets)


def _skill_tool(foundation: Foundation) -> tuple[Tool, ...]:
    if foundation.gathered.extensions is None:
        return ()
    from wave_agent.agent.skills import Skill, model_skills, user_skills  # lazy: many sessions have no skills

    skills = model_skills(foundation.gathered.extensions)
    return (Skill(skills, for_user=user_skills(foundation.gathered.extensions)),) if skills else ()


def _leftovers(foundation: Foundation, transcript: Path) -> Leftovers:
    guards = to_builtins(foundation.gathered.user_guards) if foundation.above is None else None
    unattended = not foundation.options.interactive
    return Leftovers(foundation.home, transcript, project=foundation.project, unattended=unattended, guards=guards)


def _variables(foundation: Foundation, session_id: str) -> SessionVariables:
    inherited = {**without_credentials(foundation.environment), **foundation.settings.env}
    return SessionVariables(inherited, fixed=_fixed_variables(foundation, session_id))


def _fixed_variables(foundation: Foundation, session_id: str) -> dict[str, str]:
    """By the session id, the next agent recognises what this one left running if it is killed."""
    handed_down = foundation.handed_down
    return {**(handed_down.variable() if handed_down else {}), "WAVE_SESSION_ID": session_id}


def make_parts(ground: Ground, above: Above | None = None) -> Parts:
    """Connects what a turn works with. `above`: for the turn of a subagent."""
    foundation, window, tools = ground.foundation, ground.windows.current, ground.tools.values()
    hooks = _hooks(ground) if above is None else above.hooks
    briefing = _briefing(ground, hooks)
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


def _on_call(ground: Ground, hooks: HookManager, name: str) -> Tool | None:
    """A tool that is loaded when it is called. Not if a guard of Edit does not see it: it would be a way around. Raises
    `ToolInputError` for a server's tool, if it is known why there is none."""
    if ground.role is not None and name.casefold() in SAME_TOOL:
        raise ToolInputError(f"{NOT_RUN}a subagent cannot start others. Do the work yourself.")
    if ground.mcp is not None and name.startswith("mcp__"):
        from wave_agent.agent.server_parts import why_no_tool  # lazy: see above

        if why := why_no_tool(name, ground.mcp.servers()):
            raise ToolInputError(f'There is no tool "{name}". {why} {INSTEAD}')
    return None if hooks.overlooks(name, "Edit") else ground.on_call.find(name)


def _briefing(ground: Ground, hooks: HookManager) -> Briefing:
    """A caller's own system prompt replaces ours. Plan mode and the sandbox are always mentioned. Instructions that are
    omitted are noted."""
    foundation, options, sandbox = ground.foundation, ground.foundation.options, ground.sandbox
    start = foundation.place.start
    session = PromptFacts(
        project_dir=foundation.project,
        working_dir="" if start == foundation.project else f"{start} (commands and relative paths start here)",
        shell=default_shell(),
        interactive=options.interactive if ground.role is None else None,
        asks=options.can_use_tool is not None,
        allowed=tuple(dict.fromkeys(rule.text for rule in foundation.settings.rules.allow)),
        subagent=ground.role is not None,
    )
    own = options.system_prompt if ground.role is None else None
    place, home = foundation.place, foundation.home

    def denied(real: str, facts: os.stat_result) -> str | None:
        from wave_agent.permissions.hard_links import why_unread  # lazy: not every project has instructions

        return why_unread(foundation.settings.rules, Places(foundation.project, os.path.expanduser("~")), real, facts)

    ours = (
        {}
        if options.system_prompt is not None
        else instructions(
            place,
            home,
            foundation.claude_home,
            denied=denied,
            tell=ground.notices.append,
            loaded=ground.instructions.append,
        )
    )

    def is_small() -> bool:
        return ground.windows.current.profile is Profile.SMALL

    def compose(mode: PermissionMode, around: ProjectSurroundings) -> SystemPrompt:
        nonlocal has_notebooks
        has_notebooks = around.has_notebooks
        short, how = None, ""
        if is_small():
            from wave_agent.agent.small_models import INSTRUCTIONS, call_example  # lazy: only for such models

            short, how = INSTRUCTIONS, call_example(tools())
        if own_role := "\n\n".join(filter(None, ground.role or ())):
            short = own_role
        first = (
            system_prompt(session, mode, around, short) if own is None else SystemPrompt(own, {"System prompt": own})
        )
        plan = mode_words(session, mode) if own is not None and mode is PermissionMode.PLAN else ""
        skills = _listed_skills(ground)
        added = {
            "Additional instructions": options.append_system_prompt,
            **_said_by_servers(ground),
        }
        around_us = {
            "Sandbox": sandbox.description if sandbox else "",
            "Subagent": "" if ground.role is None else _subagent_words(ground.count.limit),
        }
        headed = (f"{name}:\n\n{text}" for name, text in (*ours.items(), *skills.items()))
        texts = (first.text, *headed, *added.values(), plan)
        parts = {**first.parts, **ours, **skills, **_listed_subagents(ground), **added, **around_us}
        return SystemPrompt(
            "\n\n".join(filter(None, (*texts, *around_us.values(), how))),
            {name: text for name, text in parts.items() if text},
        )

    specs = _Specs(ground.tools)
    has_notebooks = False

    def tools() -> Sequence[ToolSpec]:
        if not is_small():
            missing = has_notebooks and _FOR_NOTEBOOKS not in ground.tools
            late = _on_call(ground, hooks, _FOR_NOTEBOOKS) if missing else None
            return (*specs.current(), *(() if late is None else (specs.of(late),)))
        from wave_agent.agent.small_models import brief_specs  # lazy: only for such models

        return brief_specs(ground.tools.values())

    return Briefing(
        compose,
        news=partial(mode_words, session, changed=True),
        look=partial(look_around, foundation.project, foundation.environment) if own is None else None,
        messages=ground.messages,
        tools=tools,
        profile=lambda: ground.windows.current.profile,
        opening=ground.before.opening,
        log=ground.log,
        servers=ground.mcp,
    )


def _subagent_words(limit: int | None) -> str:
    limited = "" if limit is None else SUBAGENT_LIMIT.format(requests=requests_in_words(limit))
    return " ".join(filter(None, (SUBAGENT, limited)))


def _listed_skills(ground: Ground) -> dict[str, str]:
    if "Skill" not in ground.tools:
        return {}
    from wave_agent.agent.skills import listed_skills, model_skills  # lazy: see above

    skills = model_skills(ground.foundation.gathered.extensions)
    unloaded = [skill for name, skill in skills.items() if name not in ground.loaded_skills]
    listed = listed_skills(unloaded, ground.windows.current.known)
    return {"Skills": f"The tool Skill loads one of these.\n{listed}"} if listed else {}


def _listed_subagents(ground: Ground) -> dict[str, str]:
    """The description of Task lists them; when a session is resumed, there may be others."""
    task = ground.tools.get(Task.name)
    return {"Types of subagents": task.listed} if isinstance(task, Task) else {}


def _said_by_servers(ground: Ground) -> dict[str, str]:
    if ground.mcp is None:
        return {}
    from wave_agent.agent.server_parts import server_parts  # lazy: see above

    return server_parts(ground.mcp.servers())


_FOR_NOTEBOOKS = "NotebookEdit"
"""Offered in projects that contain notebooks."""


class _Specs:
    """The tools as they are described to the model. Each is described once."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._described: dict[int, tuple[Tool, ToolSpec]] = {}

    def current(self) -> tuple[ToolSpec, ...]:
        return tuple(map(self.of, list(self._tools.values())))

    def of(self, tool: Tool) -> ToolSpec:
        if id(tool) not in self._described:
            self._described[id(tool)] = tool, ToolSpec(tool.name, tool.description, tool.schema())
        return self._described[id(tool)][1]


def _authority(ground: Ground, hooks: HookManager) -> Authority:
    foundation, sandbox = ground.foundation, ground.sandbox
    return Authority(
        mode=foundation.mode,
        rules=foundation.settings.rules,
        places=Places(foundation.project, hooks.session.home, hooks.session.start),
        # The model is shown where the full text of a long output is, so it may read there.
        directories=(*foundation.directories, os.path.realpath(ground.outputs), *_skill_directories(foundation)),
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
        on_call=partial(_on_call, ground, hooks),
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


def _skill_directories(foundation: Foundation) -> Iterator[str]:
    """Those of the user's own skills, which name their files. What is in them is protected: only reading is free."""
    extensions = foundation.gathered.extensions
    for one in () if extensions is None else extensions.files:
        if one.layer is Layer.USER and one.kind is ExtensionKind.SKILLS:
            yield os.path.realpath(os.path.dirname(one.path))


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


def _no_identity(_: str) -> Mapping[str, str]:
    return {}
