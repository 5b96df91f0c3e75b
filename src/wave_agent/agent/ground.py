"""What a session is built on, and what a subagent gets from the agent above it."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.agent.authority import Authority
from wave_agent.agent.foundation import Foundation
from wave_agent.agent.instructions import LoadedInstructions
from wave_agent.agent.listeners import Listeners
from wave_agent.agent.model_windows import Windows
from wave_agent.agent.shared_budget import SharedBudget
from wave_agent.agent.spending import RequestCount, Spending
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.variables import SessionVariables
from wave_agent.messages import MessageManager
from wave_agent.models.base import Model
from wave_agent.sessions.log import SessionLog
from wave_agent.sessions.transcript import Resumed
from wave_agent.system.orphans import Leftovers
from wave_agent.system.reentrancy import Inside
from wave_agent.tools.base import Tool
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.registry import ToolsOnCall

if TYPE_CHECKING:
    from wave_agent.mcp.session import McpSession
    from wave_agent.permissions.sandbox import Sandbox
    from wave_agent.telemetry.agent_trace import AgentTrace


class Ground(Struct, frozen=True, kw_only=True):
    """What a session is built on: created once, and released when the agent closes."""

    foundation: Foundation
    session_id: str
    transcript: Path
    resumed: Resumed | None
    """The session so far, if it is continued."""
    leftovers: Leftovers
    log: SessionLog
    inside: Inside
    listeners: Listeners
    messages: MessageManager
    model: Model
    windows: Windows
    tools: Mapping[str, Tool]
    """Grows while MCP servers connect."""
    on_call: ToolsOnCall
    """Tools that the model may call although it was not offered them."""
    mcp: "McpSession | None"
    """The MCP servers, if any may run."""
    changes: FileChanges
    sandbox: "Sandbox | None"
    variables: SessionVariables
    spending: Spending
    count: RequestCount
    shared: SharedBudget
    """What this agent uses, together with those that its commands start."""
    notices: list[str]
    """To show when the session starts."""
    instructions: list[LoadedInstructions]
    """The files with instructions that are passed to the model, once they are known."""
    helpers: list[Tool]
    """The tools of the subagents that are running."""
    trace: "AgentTrace | None" = None
    """Telemetry's view of the agent, if telemetry is on."""
    loaded_skills: list[str] = []
    """For a subagent: the skills that are part of its instructions."""
    role: list[str] | None = None
    """For a subagent: its instructions, and its skills once they are loaded. Empty texts: the usual instructions."""

    def refresh_spending(self) -> None:
        """Count what agents that commands have started used since."""
        self.spending.refresh()
        self.count.refresh()

    @property
    def before(self) -> Resumed:
        """The session so far; empty for a new one."""
        return self.resumed or Resumed()

    @property
    def outputs(self) -> Path:
        """The directory for outputs that are too long for the conversation."""
        return self.transcript.with_suffix("")


class Above(Struct, frozen=True):
    """The agent to which a subagent belongs, and what the subagent gets from it."""

    calls: CallRunner
    hooks: HookManager
    """Its hooks, for the subagent."""
    authority: Authority
    """The same."""
    sync: Callable[[], Awaitable[None]]
    environment: Mapping[str, str]
    """The variables of its commands."""
