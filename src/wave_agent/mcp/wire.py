"""What the agent and the process that speaks the protocol say to each other: one JSON object per line, over a socket.

Entries with their secrets go this way too, never through a command line or an environment that others can read.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from wave_agent.mcp.values import Elicitation, ElicitationAnswer, McpResult, Server, ServerListing

# ----------------------------------------------------------------------------------------------------- from the agent


class Setup(Struct, frozen=True, kw_only=True, tag=True):
    """The first message."""

    home: str
    roots: tuple[str, ...]
    marks: Mapping[str, str]
    """Variables that every server gets, by which its processes are found again."""
    is_confined: bool
    """Whether to ask before anything is started: `Confine`."""


class ConnectServer(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    server: Server
    deadline: float


class CallTool(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    server: Server
    tool: str
    arguments: Mapping[str, Any]
    elicits: bool
    """Whether there is a user or a hook to answer what the server asks."""
    expected: str = ""
    """`tools_digest` of the tools that the agent knows. If the server has to be connected anew and offers others, the
    call is not sent. Empty: they are not known."""
    meta: Mapping[str, str] = {}
    """The `_meta` of the request."""


class ReadResource(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    server: Server
    uri: str


class GetPrompt(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    server: Server
    name: str
    arguments: Mapping[str, str]


class LogIn(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    server: Server


class CancelRequest(Struct, frozen=True, kw_only=True, tag=True):
    id: int


class ElicitationAnswered(Struct, frozen=True, kw_only=True, tag=True):
    """To `ElicitationAsked`."""

    question: int
    answer: ElicitationAnswer


class Confined(Struct, frozen=True, kw_only=True, tag=True):
    """To `Confine`. With `descriptor`, that descriptor comes along, and the command expects it under this number."""

    question: int
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    descriptor: int | None = None
    error: str = ""


class CloseAll(Struct, frozen=True, kw_only=True, tag=True):
    pass


Request = ConnectServer | CallTool | ReadResource | GetPrompt | LogIn
FromAgent = Setup | Request | CancelRequest | ElicitationAnswered | Confined | CloseAll

# ------------------------------------------------------------------------------------------------------- from the host


class Ready(Struct, frozen=True, kw_only=True, tag=True):
    pass


class Listed(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    listing: ServerListing


class Finished(Struct, frozen=True, kw_only=True, tag=True):
    """The result of a call or of a resource."""

    id: int
    result: McpResult


class Texted(Struct, frozen=True, kw_only=True, tag=True):
    """The text of a prompt; empty after a login."""

    id: int
    text: str = ""


class Failed(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    message: str
    needs_login: bool = False


class Progressed(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    done: float
    total: float | None = None
    message: str = ""


class ElicitationAsked(Struct, frozen=True, kw_only=True, tag=True):
    """A server asks the user, during call `id`."""

    id: int
    question: int
    elicitation: Elicitation


class LoginUrl(Struct, frozen=True, kw_only=True, tag=True):
    id: int
    url: str


class Changed(Struct, frozen=True, kw_only=True, tag=True):
    server: str
    listing: ServerListing


class Confine(Struct, frozen=True, kw_only=True, tag=True):
    """Asks whether a server may start this now, and for the command line that runs it in the sandbox, if there is
    one."""

    question: int
    server: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str


class Spawned(Struct, frozen=True, kw_only=True, tag=True):
    """A process group of a server."""

    group: int


class Exited(Struct, frozen=True, kw_only=True, tag=True):
    """What was started for this `Confine` has ended."""

    question: int


Reply = Listed | Finished | Texted | Failed
FromHost = Ready | Reply | Progressed | ElicitationAsked | LoginUrl | Changed | Confine | Spawned | Exited

_encoder = msgspec.json.Encoder(enc_hook=repr)
decode_from_agent = msgspec.json.Decoder(FromAgent).decode
decode_from_host = msgspec.json.Decoder(FromHost).decode


def encode(message: FromAgent | FromHost) -> bytes:
    """One line."""
    return _encoder.encode(message) + b"\n"


class LineSplitter:
    """Bytes in, whole lines out. Does not search twice through what it has already seen."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        first, *more = data.split(b"\n")
        self._parts.append(first)
        if not more:
            return []
        whole = b"".join(self._parts)
        self._parts = [more.pop()]
        return [whole, *more]


def tools_digest(listing: ServerListing) -> str:
    """The same for the same tools, in both processes."""
    return sha256(msgspec.json.encode(listing.tools)).hexdigest()
