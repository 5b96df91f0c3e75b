"""What a subagent is built on: mostly what the agent above is built on."""

import uuid
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.ground import Ground
from wave_agent.agent.listeners import Listeners
from wave_agent.agent.options import Windows
from wave_agent.agent.result import Callbacks
from wave_agent.agent.spending import RequestCount, Spending
from wave_agent.errors import SessionError
from wave_agent.events import Event, ToolStarted, of_subagent
from wave_agent.hooks.manager import AgentIdentity, HookManager
from wave_agent.messages import MessageManager
from wave_agent.sessions.log import SessionLog
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Resumed
from wave_agent.settings.agent_definitions import AgentDefinition
from wave_agent.settings.layers import ExtensionKind
from wave_agent.text import one_line
from wave_agent.tools.base import Tool, ToolContext
from wave_agent.tools.changes.of_subagents import SubagentChanges
from wave_agent.tools.registry import ToolsOnCall, builtin_tools

_SHOWN = 100
"""Characters of one line about a call."""


class SubagentGround(Struct, frozen=True, kw_only=True):
    """What one subagent is built on."""

    identity: AgentIdentity
    definition: AgentDefinition
    ground: Ground
    above: Ground
    own_tools: tuple[Tool, ...]
    """Those that no other agent uses."""

    def directory(self) -> str:
        """Its current directory, if it has changed."""
        return next(filter(None, (tool.directory() for tool in self.ground.tools.values())), "")

    async def close(self, hooks: HookManager) -> None:
        """Ends what its tools have left running. Nothing that fails keeps the rest open."""
        for tool in self.own_tools:
            if notice := await tool.close():
                with suppress(SessionError):  # noted: see `SessionLog.failure`
                    self.ground.messages.add_notice_block(notice, "info")
            self.above.helpers.remove(tool)
        if self.ground.windows is not self.above.windows:
            await self.ground.windows.close()
        hooks.end_agent()
        with suppress(SessionError):
            self.ground.log.close()


def lay_subagent_ground(above: Ground, definition: AgentDefinition, model: str, context: ToolContext) -> SubagentGround:
    """Hooks, rules, sandbox, processes and limits are those of the agent above; conversation, transcript, tools that
    remember something, and what it has read are its own."""
    agent_id = uuid.uuid4().hex[:16]
    transcript = above.outputs / "subagents" / f"{agent_id}.jsonl"
    log = SessionLog(FileSessionStore(transcript), above.session_id, above.foundation.place, Resumed())
    listeners = Listeners(log, Callbacks(on_event=_followed(above, agent_id, context)), above.inside)
    messages: MessageManager = MessageManager((), lambda change: listeners.changed(change, messages))
    settings = above.foundation.settings
    same = model == above.windows.current.name
    windows = above.windows if same else Windows(above.model, model, settings, messages.add_notice_block)
    changes = SubagentChanges(above.changes)
    own = {tool.name: tool for tool in builtin_tools(changes)}
    tools = _tools(above, definition, own)
    own_tools = tuple(tool for tool in tools.values() if own.get(tool.name) is tool)
    ground = replace(
        above,
        transcript=transcript,
        resumed=None,
        log=log,
        listeners=listeners,
        messages=messages,
        windows=windows,
        tools=tools,
        # The author of a definition that has no Edit means all tools like it.
        on_call=ToolsOnCall(changes, lambda name: definition.has_tool(name) and definition.has_tool("Edit")),
        changes=changes,
        spending=Spending(windows.prices, above=above.spending),
        count=RequestCount(definition.max_turns, above.count),
        notices=[],
        instructions=[],
        role=_role(above, definition, messages.add_notice_block),
    )
    identity = AgentIdentity(agent_id=agent_id, agent_type=definition.name, transcript_path=str(transcript))
    above.helpers.extend(own_tools)
    return SubagentGround(identity=identity, definition=definition, ground=ground, above=above, own_tools=own_tools)


def _role(above: Ground, definition: AgentDefinition, notify: Callable[[str], None]) -> str:
    """Its instructions, and the skills that it has from the start."""
    extensions = above.foundation.gathered.extensions
    known = {} if extensions is None else extensions.of(ExtensionKind.SKILLS)
    texts = [definition.prompt]
    for name in definition.skills:
        skill = known.get(name)
        if skill is None or skill.has_changed:
            notify(f"{definition.source}: skills: {name} is not used: {_why_unused(skill is None)}.")
        else:
            texts.append(f"Skill {name}:\n\n{skill.body.strip()}")
    return "\n\n".join(filter(None, texts))


def _why_unused(missing: bool) -> str:
    return "there is no such skill" if missing else "it has changed since this session started"


def _tools(above: Ground, definition: AgentDefinition, own: dict[str, Tool]) -> dict[str, Tool]:
    """Those of the agent above that the definition permits. A built-in tool that was replaced stays replaced."""
    return {
        name: own[name] if name in own and type(own[name]) is type(tool) else tool
        for name, tool in above.tools.items()
        if not tool.delegates and definition.has_tool(name)
    }


def _followed(above: Ground, agent_id: str, context: ToolContext) -> Callable[[Event], None]:
    """Those who follow the agent above also follow the subagent: its calls are the output of the Task call."""

    def emit(event: Event) -> None:
        if isinstance(event, ToolStarted):
            value = next((value for value in event.parameters.values() if isinstance(value, str)), "")
            context.emit(one_line(f"{event.name}: {value}", _SHOWN) + "\n")
        above.listeners.emit(of_subagent(event, agent_id))

    return emit
