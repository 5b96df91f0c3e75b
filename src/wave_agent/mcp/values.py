"""What is known about servers and their tools: values without behaviour."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import Layer
from wave_agent.system.extras import install_extra

USER_SCOPE = "user"
"""How `Server.scope` begins for servers of the user."""
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
"""Of which the names of servers consist, and those of tools as the model sees them."""
EXTRA_MISSING = f"MCP servers need the extra: {install_extra('mcp')}"


class ServerTransport(StrEnum):
    """How a server is spoken to."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class OAuth(Struct, frozen=True, kw_only=True):
    """The `oauth` part of an entry."""

    client_id: str = ""
    client_secret: str = ""
    """Of a client that was registered with one."""
    callback_port: int | None = None
    scopes: str = ""
    metadata_url: str = ""


class ServerEntry(Struct, frozen=True, kw_only=True):
    """One entry of `mcpServers`, with its variables expanded."""

    transport: ServerTransport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    headers_helper: str = ""
    """A shell command whose stdout is a JSON object with more headers."""
    oauth: OAuth | None = None
    timeout: float | None = None
    """Seconds for one call. None: the default."""
    always_load: bool = False
    """Connected at the start, even if its tools are cached."""


class Server(Struct, frozen=True, kw_only=True):
    """A server that applies in this session: it won its name, no list forbids it, and it may be started."""

    name: str
    entry: ServerEntry
    layer: Layer
    source: str
    """The file it is configured in."""
    line: int | None = None
    identity: str = ""
    """A digest of the entry and of the files that it names. Cached lists belong to one identity."""
    environment: Mapping[str, str] = {}
    """The complete environment of its process."""
    directory: str = ""
    """Where its process starts: the project."""
    scope: str = ""
    """Whose pins apply to its tools: the project's directory, or a name for the user's own servers. With the server's
    name it is the key of `ConsentStore.pins`. Neither the entry nor the values of its variables are part of it."""
    variables: tuple[str, ...] = ()
    """The environment variables that its entry uses."""

    @property
    def is_of_project(self) -> bool:
        """Whether the project brought it, and not the user."""
        return self.layer in (Layer.PROJECT, Layer.LOCAL)


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool as its server describes it, unchanged."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = {}
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = {}
    meta: Mapping[str, Any] = {}
    other: Mapping[str, Any] = {}
    """What else the protocol has: icons, and how it is executed. `unknown`: what it does not have."""


class ResourceDefinition(Struct, frozen=True, kw_only=True):
    uri: str
    """Of a template, with `{parameters}`."""
    name: str = ""
    description: str = ""
    mime_type: str = ""
    is_template: bool = False


class PromptArgument(Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    is_required: bool = False


class PromptDefinition(Struct, frozen=True, kw_only=True):
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerListing(Struct, frozen=True, kw_only=True):
    """What a server offers."""

    tools: tuple[ToolDefinition, ...] = ()
    resources: tuple[ResourceDefinition, ...] = ()
    prompts: tuple[PromptDefinition, ...] = ()
    instructions: str = ""
    server: str = ""
    """Its own name and version."""
    protocol: str = ""
    """The revision of the protocol that was agreed on."""


class McpResult(Struct, frozen=True, kw_only=True):
    """The result of one call."""

    content: tuple[Mapping[str, Any], ...] = ()
    """The content array, as the protocol has it."""
    structured: Any = None
    is_error: bool = False
    cut: int = 0
    """Bytes that were dropped, since the result was too large."""


class Elicitation(Struct, frozen=True, kw_only=True):
    """A server asks the user for something."""

    server: str
    message: str
    mode: str = "form"
    url: str = ""
    schema: Mapping[str, Any] = {}


class ElicitationAnswer(Struct, frozen=True, kw_only=True):
    action: str = "decline"
    """`accept`, `decline` or `cancel`."""
    content: Mapping[str, Any] = {}


Elicit = Callable[[Elicitation], Awaitable[ElicitationAnswer]]
Progress = Callable[[float, float | None, str], None]
"""How much is done, of how much, and a message."""


class McpError(WaveError):
    """A server could not be reached, or refused. The message says which one, why, and what to do."""


class LoginNeededError(McpError):
    """The server wants a login first. The message names the command."""


class McpHost(Protocol):
    """The process that speaks the protocol, as the rest of the program sees it."""

    def begin(self) -> None:
        """Starts loading it, without waiting. Does nothing if it runs."""
        ...

    async def connect(self, server: Server, *, deadline: float) -> ServerListing:
        """Connects, or uses the connection there is, and lists what the server offers. Raises `McpError`."""
        ...

    async def call(
        self,
        server: Server,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> McpResult:
        """Calls a tool by the server's own name for it; connects first if necessary. Cancelling cancels the call at
        the server. `meta` goes along as `_meta`; it is only passed if there is any. Raises `McpError`."""
        ...

    async def read_resource(self, server: Server, uri: str) -> McpResult:
        """Its contents as a content array. Raises `McpError`."""
        ...

    async def get_prompt(self, server: Server, name: str, arguments: Mapping[str, str]) -> str:
        """The text of its messages. Raises `McpError`."""
        ...

    async def login(self, server: Server, *, show_url: Callable[[str], None]) -> None:
        """Logs in with OAuth: the URL is for the user's browser. Raises `McpError`."""
        ...

    def listen(self, changed: Callable[[str, ServerListing], None]) -> None:
        """Called with a server's name and its new listing whenever a server says that its list has changed."""
        ...

    async def close(self) -> None:
        """Ends the servers and the process with everything they started. Never raises."""
        ...
