"""What a subagent is built on: mostly what the agent above is built on."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.ground import Ground
from wave_agent.agent.listeners import Listeners
from wave_agent.agent.model_windows import Windows
from wave_agent.agent.result import Callbacks
from wave_agent.agent.spending import RequestCount, Spending
from wave_agent.errors import SessionError
from wave_agent.events import Event, ToolStarted, of_subagent
from wave_agent.hooks.manager import AgentIdentity, HookManager
from wave_agent.messages import MessageManager
from wave_agent.models.base import Model
from wave_agent.sessions.log import SessionLog
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Resumed
from wave_agent.settings.agent_definitions import AgentDefinition
from wave_agent.text import one_line
from wave_agent.tools.base import Tool, ToolContext
from wave_agent.tools.bash import Bash
from wave_agent.tools.bash_output import BashOutput
from wave_agent.tools.changes.of_subagents import SubagentChanges
from wave_agent.tools.kill_shell import KillShell
from wave_agent.tools.registry import ToolsOnCall, builtin_tools

if TYPE_CHECKING:
    from wave_agent.telemetry.agent_trace import AgentTrace

_SHOWN = 100
"""Characters of one line about a call."""


class SubagentGround(Struct, frozen=True, kw_only=True):
    """What one subagent is built on."""

    identity: AgentIdentity
    definition: AgentDefinition
    ground: Ground
    above: Ground
    call_id: str
    """The Task call that started it."""
    own_tools: tuple[Tool, ...]
    """Those that no other agent uses."""

    @property
    def named(self) -> dict[str, str]:
        """What its transcript begins with, so that it can be told whose it is."""
        whose = {"agent_id": self.identity.agent_id, "agent_type": self.identity.agent_type}
        return {**whose, "tool_use_id": self.call_id}

    def directory(self) -> str:
        """Its current directory, if it has changed."""
        return next(filter(None, (tool.directory() for tool in self.ground.tools.values())), "")

    def in_background(self) -> tuple[str, ...]:
        """The commands that end with it."""
        return tuple(command for tool in self.own_tools for command in tool.in_background())

    async def close(self, hooks: HookManager, status: str) -> None:
        """Ends what its tools have left running. Nothing that fails keeps the rest open. `status`: how it ended."""
        if self.ground.trace is not None:
            self.ground.trace.end(status)
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
    trace = None if above.trace is None else above.trace.subagent(agent_id, definition.name, context.call_id)
    listeners = Listeners(log, Callbacks(on_event=_followed(above, agent_id, context)), above.inside, trace)
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
        model=above.model if trace is None else _traced_model(above.model, trace, windows),
        trace=trace,
        windows=windows,
        tools=tools,
        # The author of a definition that has no Edit means all tools like it.
        on_call=ToolsOnCall(changes, lambda name: definition.has_tool(name) and definition.has_tool("Edit")),
        changes=changes,
        spending=Spending(windows.prices, above=above.spending),
        count=RequestCount(definition.max_turns, above.count),
        shared=above.shared,
        notices=[],
        instructions=[],
        loaded_skills=[],
        role=[definition.prompt],
    )
    identity = AgentIdentity(agent_id=agent_id, agent_type=definition.name, transcript_path=str(transcript))
    above.helpers.extend(own_tools)
    return SubagentGround(
        identity=identity,
        definition=definition,
        ground=ground,
        above=above,
        call_id=context.call_id,
        own_tools=own_tools,
    )


def _traced_model(model: Model, trace: "AgentTrace", windows: Windows) -> Model:
    from wave_agent.agent.traced_model import TracedModel  # lazy: loaded if telemetry is on

    return model.for_agent(trace, windows.prices) if isinstance(model, TracedModel) else model


def _tools(above: Ground, definition: AgentDefinition, own: dict[str, Tool]) -> dict[str, Tool]:
    """Those of the agent above that the definition permits. A built-in tool that was replaced stays replaced."""
    tools = {
        name: own[name] if name in own and type(own[name]) is type(tool) else tool
        for name, tool in above.tools.items()
        if not tool.delegates and definition.has_tool(name)
    }
    useless = () if Bash.name in tools else (BashOutput.name, KillShell.name)
    return {name: tool for name, tool in tools.items() if name not in useless}


def _followed(above: Ground, agent_id: str, context: ToolContext) -> Callable[[Event], None]:
    """Those who follow the agent above also follow the subagent: its calls are the output of the Task call."""

    def emit(event: Event) -> None:
        if isinstance(event, ToolStarted):
            value = next((value for value in event.parameters.values() if isinstance(value, str)), "")
            context.emit(one_line(f"{event.name}: {value}", _SHOWN) + "\n")
        above.listeners.emit(of_subagent(event, agent_id))

    return emit
