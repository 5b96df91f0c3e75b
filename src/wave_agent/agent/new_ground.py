"""`Foundation` → `Ground`: what a session works with is opened or created here."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from wave_agent.agent.foundation import Foundation, sandbox_for
from wave_agent.agent.ground import Ground
from wave_agent.agent.listeners import Listeners
from wave_agent.agent.model_choice import model_for, model_name_for
from wave_agent.agent.model_windows import Windows
from wave_agent.agent.shared_budget import SharedBudget
from wave_agent.agent.spending import RequestCount, Spending
from wave_agent.errors import SandboxError, SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.variables import SessionVariables
from wave_agent.messages import MessageManager
from wave_agent.models.base import Model
from wave_agent.rules.rule import TASK, Places
from wave_agent.sessions.log import SessionLog
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Resumed, transcript_file
from wave_agent.settings.mcp_sources import has_servers
from wave_agent.settings.places import ExtensionKind
from wave_agent.system.credentials import without_credentials
from wave_agent.system.identity import identity
from wave_agent.system.orphans import Leftovers, holder_of
from wave_agent.system.reentrancy import Inside
from wave_agent.tools.base import Tool
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.registry import GrowingTools, ToolsOnCall, builtin_tools
from wave_agent.tools.shells import directory_left, earlier_shells
from wave_agent.tools.task import BUILT_IN, Task, task_tool

if TYPE_CHECKING:
    from wave_agent.mcp.session import McpSession
    from wave_agent.permissions.sandbox import Sandbox
    from wave_agent.telemetry.agent_trace import AgentTrace


def lay_ground(foundation: Foundation, store: Callable[..., FileSessionStore] = FileSessionStore) -> Ground:
    """Opens the session. Raises `SessionError` if it cannot be continued, and `SandboxError`."""
    options, settings, environment = foundation.options, foundation.settings, foundation.environment
    foundation, session_id = _for_session(foundation)
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


def _for_session(foundation: Foundation) -> tuple[Foundation, str]:
    resumed = foundation.options.resume
    session_id = str(uuid.uuid4()) if resumed is None else resumed
    return foundation.in_session(session_id), session_id


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
    return task_tool(more, denied, foundation.withheld_agents)


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


def skill_directories(foundation: Foundation) -> Iterator[str]:
    """Those of the user's own skills, which name their files. What is in them is protected: only reading is free."""
    extensions = foundation.gathered.extensions
    for one in () if extensions is None else extensions.files:
        if one.layer is Layer.USER and one.kind is ExtensionKind.SKILLS:
            yield os.path.realpath(os.path.dirname(one.path))


def _no_identity(_: str) -> Mapping[str, str]:
    return {}
