"""The interface of a tool: a name, a typed input, and one method."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from msgspec import Struct

from wave_agent.messages import Image
from wave_agent.permissions.decision import PermissionMode, Rules, ToolKind
from wave_agent.rules.rule import Rule
from wave_agent.shell.values import Placed, WriteTarget, escape
from wave_agent.system.processes import Ledger, no_ledger
from wave_agent.system.real_files import Seen
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.tools.room import Room, room_in

if TYPE_CHECKING:
    from wave_agent.permissions.sandbox import Sandbox


WITH_SESSION = "with this session"
SCHEMAS = "schemas.json"
"""The schemas of the built-in tools, by name."""


class SameResult(Struct, frozen=True, kw_only=True):
    """A call of another tool whose result this is as well: hooks on that tool see it, too."""

    tool: str
    tool_input: Mapping[str, Any]
    success: bool
    response: Mapping[str, Any]
    """As in `ToolResult`."""
    text_fields: tuple[str, ...]
    """The fields of `response` that hold the text which hooks may have replaced."""


class ToolResult(Struct, frozen=True, kw_only=True):
    """The result of one call."""

    content: str
    """The text for the model."""
    success: bool = True
    ran: bool = True
    """False: the tool could not do its work at all (bad input, missing file). A command that failed has run."""
    response: Mapping[str, Any] = {}
    """The tool's own fields in a hook's `tool_response`, in addition to `success` and `content`."""
    long: bool = False
    """The call asked for a longer result than usual."""
    images: tuple[Image, ...] = ()
    """Images shown to the model with the text, if it accepts images."""
    beside: Mapping[str, Any] = {}
    """What the result adds to the tool's `hook_facts`: fields by fact. Dropped when a hook replaces the result."""
    original: str | None = None
    """The former text of the file that the call changed. For hooks whose dialect includes it."""
    notice: str = ""
    """For the user, who has to do something about it."""
    ends_turn: bool = False
    """The turn ends after this call."""
    changed: tuple[str, ...] = ()
    """Files that a subagent changed for this call."""
    permits: tuple[Rule, ...] = ()
    """Calls that need no consent for the rest of the turn. No rule that asks or denies gives way to it."""
    also_of: SameResult | None = None
    keep: Callable[[], None] = lambda: None
    """Writes what was held back (see `ToolContext.hold`). Called once it is certain that the result is not replaced."""


class ToolInputError(Exception):
    """The model's input is invalid. The message says what to change."""


class ToolInterrupted(asyncio.CancelledError):
    """The tool was cancelled; carries the result so far."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class TaskChangeKind(StrEnum):
    CREATED = "created"
    COMPLETED = "completed"


class TaskChange(Struct, frozen=True):
    """What a call would do to one item of the todo list."""

    kind: TaskChangeKind
    id: str
    subject: str
    description: str = ""


async def _takes_none() -> bool:
    return False


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a call may know about its session."""

    project_dir: Path
    start: Path | None = None
    """Where the agent was started, if not in the project directory."""
    environment: Mapping[str, str]
    """For processes started by a tool; without the agent's own keys."""
    outputs: Path
    """A private directory for output that is too long for the model."""
    emit: Callable[[str], None] = lambda _: None
    """Receives output as it arrives, for the front end."""
    hold: bool = False
    """A hook may still replace the result: none of it may reach the disk before `ToolResult.keep`."""
    ledger: Ledger = no_ledger
    """For code that starts a process."""
    sandbox: "Sandbox | None" = None
    """The sandbox for commands, if any."""
    window: Callable[[], int | None] = lambda: None
    """The model's context window in tokens, if known by now."""

    takes_images: Callable[[], Awaitable[bool]] = _takes_none
    """Whether the model accepts images, according to the settings or its server."""

    judged: Mapping[str, Seen] | None = None
    """What the paths of this call pointed to when it was permitted. None: not examined."""

    unread: tuple[str, ...] = ()
    """Regular expressions for real paths that rules keep a search from opening."""

    elicit: Callable[[Any], Awaitable[Any]] | None = None
    """Answers what an MCP server asks the user. None: the run is not interactive."""

    rules: Callable[[], Rules] = Rules
    """The permission rules that apply now, for a tool that finds out late what it reaches."""

    mode: Callable[[], PermissionMode] | None = None
    """The permission mode that applies now. None: unknown."""

    door: Door = no_door
    """Entered around code of the embedding program, in whatever thread it runs."""

    call_id: str = ""
    """The call that runs now."""

    traceparent: str = ""
    """The call's place in a trace, for what it starts; empty: telemetry is off."""
    ends: str = WITH_SESSION
    """When commands in the background end at the latest."""

    delegate: "Callable[[Any, ToolContext], Awaitable[ToolResult]] | None" = None
    """Runs a subagent. None: there are none, or the call is made by one."""

    def room(self, *, asked: bool = False) -> Room:
        """How long the result of a call may be. `asked`: the call asks for more than usual."""
        return room_in(self.window(), asked=asked)

    def seen(self, path: str) -> Seen | None:
        """What may be used under this path; None if not examined yet."""
        return None if self.judged is None else self.judged.get(path)

    @property
    def cwd(self) -> Path:
        """Where commands start and relative paths are resolved."""
        return self.start or self.project_dir


class Tool(ABC):
    """One instance per session: it holds what a tool remembers between calls."""

    name: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[ToolKind] = ToolKind.ACTS
    own: ClassVar[bool] = False
    """It touches only what this session has started, so it runs without consent in every mode."""
    path_fields: ClassVar[tuple[str, ...]] = ()
    """Input fields that contain a path: made absolute before any hook sees them."""
    runs_bash: ClassVar[bool] = False
    """It runs its `command` with Bash on this machine: what the line says is all that happens."""
    polls: ClassVar[bool] = False
    """It checks the progress of something else: repeating the same call, with the same result, is fine."""
    delegates: ClassVar[bool] = False
    """Its work consists of calls that are judged, and run beside others, one by one."""
    notes_changes: ClassVar[bool] = False
    """It notes itself which files it changes, in `FileChanges`."""
    brief: ClassVar[str] = ""
    """The description for small models, which then get only `brief_fields` of the input. Empty: made from the full
    one, with all fields."""
    brief_fields: ClassVar[tuple[str, ...]] = ()
    dispensable: ClassVar[bool] = False
    """Small models are not offered this tool: they do better with fewer."""
    Input: ClassVar[type[Struct]]

    @abstractmethod
    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        """Does the work. `arguments` is an instance of `Input`. Cancelling ends the work and everything it started.

        Raises `ToolInputError` for input that matches the schema but cannot be used, and may raise `ToolInterrupted`
        when cancelled.
        """

    def reports(self) -> Sequence[str]:
        """News for the model's next request that no call asked for. Each is returned once."""
        return ()

    def task_changes(self, arguments: Any) -> tuple[TaskChange, ...]:
        """The items of the todo list that this call adds or completes."""
        return ()

    def without_task_changes(self, arguments: Any, refused: Sequence[TaskChange]) -> Any:
        """The arguments without these changes."""
        return arguments

    def standing(self) -> Sequence[str]:
        """Facts the model needs as long as they last, for when the conversation is summarised."""
        return ()

    def in_background(self) -> Sequence[str]:
        """The commands that it runs in the background now, each on one line."""
        return ()

    def is_busy(self) -> bool:
        """Something that a call started is still running."""
        return False

    def is_of_use(self) -> bool:
        """A dispensable tool may be called now, although it was not offered: a result has named it."""
        return False

    def directory(self) -> str:
        """The directory it has moved the session to; empty: the session is where it was started."""
        return ""

    async def close(self) -> str | None:
        """Ends what the tool left running. Called once, when the session ends. Returns a notice for the user."""
        return None

    def shown_by(self, arguments: Any) -> tuple[str, ...]:
        """The tools that show the model what this call prints, besides this one."""
        return ()

    def hook_facts(self) -> Mapping[str, Any]:
        """Stdin fields that hooks get about every call of this tool, besides its name and input."""
        return {}

    def other_names(self) -> tuple[str, ...]:
        """Names under which rules that restrict may mean this tool."""
        return ()

    def claims_to_read(self) -> bool:
        """It says of itself that it only reads, and the user chose to believe that: in the modes `default` and
        `acceptEdits` it runs without asking."""
        return False

    def may_name(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[str, ...]:
        """Absolute paths that the input may name, if it is not known which of its fields contain paths."""
        return ()

    def why_impossible(self, tool_input: Mapping[str, Any], context: ToolContext) -> str | None:
        """Why a call with this valid input must not run, whatever permits it. None: it may."""
        return None

    def bases(self) -> tuple[str, ...]:
        """Further directories that relative paths in its input may start from."""
        return ()

    # ---------------------------------------------------------------------------------------------------- for the agent

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the input object, self-contained."""
        (schema,), components = msgspec.json.schema_components([self.Input], ref_template="{name}")
        return _inlined(schema, components)

    def nullable(self) -> frozenset[str]:
        """Input fields that may be null."""
        return _nullable(self.Input)

    def parse(self, tool_input: Mapping[str, Any]) -> Any:
        """Raises a `ToolInputError` that names the field."""
        for field in self.path_fields:
            if "\0" in str(tool_input.get(field, "")):
                raise ToolInputError(f"{self.name}: invalid input: a path cannot contain NUL - at `$.{field}`")
        try:
            return msgspec.convert(dict(tool_input), self.Input, strict=False)
        except UnicodeError:
            raise ToolInputError(f"{self.name}: invalid input: a lone surrogate is not a character") from None
        except msgspec.ValidationError as error:
            from wave_agent.tools.inputs import explained  # lazy: most input is valid

            raise ToolInputError(f"{self.name}: invalid input: {explained(str(error), self.schema())}") from None

    def normalise(self, tool_input: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """The input with absolute paths and `~` expanded. Never fails: a value that cannot be a path stays as it is."""
        changed = dict(tool_input)
        for field in self.path_fields:
            value = changed.get(field)
            if isinstance(value, str) and value and "\0" not in value:
                with suppress(ValueError):  # a user name that no system can look up
                    value = os.path.expanduser(value)
                changed[field] = os.path.normpath(os.path.join(directory, value))
        return changed

    def paths(self, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths a call touches."""
        return tuple(str(tool_input[field]) for field in self.path_fields if tool_input.get(field))

    def written_paths(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[WriteTarget, ...]:
        """The paths a call visibly writes to."""
        return (
            tuple(WriteTarget(escape(path)) for path in self.paths(tool_input)) if self.kind is ToolKind.EDITS else ()
        )

    def unread_words(self, tool_input: Mapping[str, Any], context: ToolContext) -> int:
        """The number of words of a command that takes too much work to read. 0: it was read."""
        return 0

    def place(self, context: ToolContext) -> tuple[str, Mapping[str, str]]:
        """The directory and the environment that the next call would run in."""
        return str(context.cwd), context.environment

    def git_runs(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[tuple[Placed, ...], Sequence[str]]:
        """The git commands a call visibly runs, and the names of the variables it sets."""
        return (), ()


class BuiltinTool(Tool):
    """A tool of this package. `make docs` writes down its schema: deriving all of them takes a fiftieth of a start."""

    def schema(self) -> dict[str, Any]:
        return msgspec.json.decode(_derived()[self.name])


@cache
def _nullable(kind: type[Struct]) -> frozenset[str]:
    """Derived once: every call of the tool needs it."""
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if isinstance(found := msgspec.inspect.type_info(field.type), msgspec.inspect.UnionType) and found.includes_none
    )


@cache
def _derived() -> Mapping[str, msgspec.Raw]:
    return msgspec.json.decode(Path(__file__).with_name(SCHEMAS).read_bytes(), type=dict[str, msgspec.Raw])


def _says_nothing(default: Any) -> bool:
    return default is None or default is False or default == ""


def _inlined(schema: Any, components: Mapping[str, Any], inside: tuple[str, ...] = ()) -> Any:
    """The schema without references: many servers and small models do not follow them. A default that says nothing is
    left out: every request has room for the schemas of all tools.

    A recursive type becomes a plain object where it would start again.
    """
    if isinstance(schema, list):
        return [_inlined(one, components, inside) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast(dict[str, Any], schema)
    name = found.get("$ref")
    if not isinstance(name, str):
        said = {key: value for key, value in found.items() if key != "default" or not _says_nothing(value)}
        return {key: _inlined(value, components, inside) for key, value in said.items()}
    if name in inside:
        return {"type": "object"}
    target = {key: value for key, value in components[name].items() if key != "title"}
    rest = {key: value for key, value in found.items() if key != "$ref"}
    return {**_inlined(target, components, (*inside, name)), **rest}
