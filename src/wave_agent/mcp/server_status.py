"""What there is to say about a server of a session."""

from enum import StrEnum

from msgspec import Struct

from wave_agent.mcp.pins import WaitingTool
from wave_agent.mcp.values import PromptDefinition, ResourceDefinition, Server


class ServerState(StrEnum):
    """How far a server is."""

    UNKNOWN = "not connected"
    CACHED = "cached"
    """Its tools are known from an earlier session; it is connected when the first of them is called."""
    CONNECTING = "connecting"
    READY = "ready"
    NEEDS_LOGIN = "needs a login"
    FAILED = "failed"


class ServerStatus(Struct, frozen=True, kw_only=True):
    """What there is to say about one server."""

    server: Server
    state: ServerState
    problem: str = ""
    """Why it failed, and what to do."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the model may call."""
    waiting: tuple[WaitingTool, ...] = ()
    """New and changed tools, which the user has to confirm."""
    denied: tuple[str, ...] = ()
    """Tools that a rule denies: the model does not get them."""
    notices: tuple[str, ...] = ()
    """Why some of its tools are not offered at all."""
    instructions: str = ""
    prompts: tuple[PromptDefinition, ...] = ()
    resources: tuple[ResourceDefinition, ...] = ()
