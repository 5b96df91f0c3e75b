"""What a tool is: a name, a typed input, and one method."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from wave_agent.messages import Image
from wave_agent.permissions.decision import ToolKind
from wave_agent.permissions.sandbox import Sandbox
from wave_agent.shell.values import Placed, WriteTarget, escape
from wave_agent.system.processes import Ledger, no_ledger
from wave_agent.system.real_files import Seen
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.tools.room import Room, room_in


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came of one call."""

    content: str
    """What the model reads."""
    success: bool = True
    ran: bool = True
    """False: the tool could not do its work at all (bad input, missing file). A command that failed has run."""
    response: Mapping[str, Any] = {}
    """The tool's own fields in a hook's `tool_response`, beside `success` and `content`."""
    long: bool = False
    """The call asked for more than a result usually has."""
    images: tuple[Image, ...] = ()
    """What the model is shown beside the text, if it takes images."""
    original: str | None = None
    """The text of the file that the call has changed, as it was before. For hooks whose dialect tells it."""
    keep: Callable[[], None] = lambda: None
    """Writes what was held back (see `ToolContext.hold`). Called once it is clear that the result stays as it is."""


class ToolInputError(Exception):
    """The model's input cannot be used. The text tells the model what to change."""


class ToolInterrupted(asyncio.CancelledError):
    """The tool was cancelled, and this is what came of it until then."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


async def _takes_none() -> bool:
    return False


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a call may know of the session around it."""

    project_dir: Path
    start: Path | None = None
    """Where the agent was started, if that is not the project directory."""
    environment: Mapping[str, str]
    """For processes that a tool starts; without the agent's own keys."""
    outputs: Path
    """A private directory for what is too long for the model."""
    emit: Callable[[str], None] = lambda _: None
    """Output as it comes, for the front end."""
    hold: bool = False
    """A hook may still replace the result: nothing of it may reach the disk before `ToolResult.keep`."""
    ledger: Ledger = no_ledger
    """For whoever starts a process."""
    sandbox: Sandbox | None = None
    """What commands are confined by, if anything."""
    window: Callable[[], int | None] = lambda: None
    """How many tokens the model can take in, if that is known by now."""

    takes_images: Callable[[], Awaitable[bool]] = _takes_none
    """Whether the model takes images: what the settings say, or its server."""

    judged: Mapping[str, Seen] | None = None
    """What the paths of this call led to when it was permitted. None: nobody has looked."""

    unread: tuple[str, ...] = ()
    """Regular expressions of real paths that rules keep a search from opening."""

    door: Door = no_door
    """Opened around code of the program, in whatever thread it runs."""

    def room(self, *, asked: bool = False) -> Room:
        """How long the result of a call may be. `asked`: the call asks for more than usual."""
        return room_in(self.window(), asked=asked)

    def seen(self, path: str) -> Seen | None:
        """What may be used under this path; None if nobody has looked yet."""
        return None if self.judged is None else self.judged.get(path)

    @property
    def cwd(self) -> Path:
        """Where commands start, and what relative paths refer to."""
        return self.start or self.project_dir


class Tool(ABC):
    """One instance per session: what a tool remembers between calls lives in it."""

    name: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[ToolKind] = ToolKind.ACTS
    own: ClassVar[bool] = False
    """It touches only what this session has started, so it runs without consent in every mode."""
    path_fields: ClassVar[tuple[str, ...]] = ()
    """Input fields with a path: made absolute before any hook sees them."""
    polls: ClassVar[bool] = False
    """It looks how something else gets on: the same call again and again, with the same result, is fine."""
    Input: ClassVar[type[Struct]]

    @abstractmethod
    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        """Does the work. `arguments` is an instance of `Input`. Cancelling ends the work and everything it started.

        Raises `ToolInputError` for input that fits the schema but cannot be used, and may raise `ToolInterrupted` when
        it is cancelled.
        """

    def reports(self) -> Sequence[str]:
        """What the model should know with its next request, though no call asked for it. Each is given once."""
        return ()

    def standing(self) -> Sequence[str]:
        """What the model has to know as long as it lasts, for when the conversation is summarised."""
        return ()

    def directory(self) -> str:
        """Where it has taken the session; empty: it is where it was started."""
        return ""

    async def close(self) -> str | None:
        """Ends what the tool has left running. Called once, when the session ends. Returns what to tell the user."""
        return None

    # ---------------------------------------------------------------------------------------------------- for the agent

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the input object, self-contained."""
        (schema,), components = msgspec.json.schema_components([self.Input], ref_template="{name}")
        return _inlined(schema, components)

    def nullable(self) -> frozenset[str]:
        """Input fields that may be null."""
        return frozenset(
            field.encode_name
            for field in msgspec.structs.fields(self.Input)
            if isinstance(kind := msgspec.inspect.type_info(field.type), msgspec.inspect.UnionType)
            and kind.includes_none
        )

    def parse(self, tool_input: Mapping[str, Any]) -> Any:
        """Raises `ToolInputError` that names the field."""
        for field in self.path_fields:
            if "\0" in str(tool_input.get(field, "")):
                raise ToolInputError(f"{self.name}: invalid input: a path cannot hold a NUL character - at `$.{field}`")
        try:
            return msgspec.convert(dict(tool_input), self.Input, strict=False)
        except UnicodeError:
            raise ToolInputError(f"{self.name}: invalid input: half a surrogate pair is no character") from None
        except msgspec.ValidationError as error:
            from wave_agent.tools.inputs import explained  # lazy: most input is right

            raise ToolInputError(f"{self.name}: invalid input: {explained(str(error), self.schema())}") from None

    def normalise(self, tool_input: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """The input with absolute paths and `~` expanded. Never fails: what cannot be a path stays as it is."""
        changed = dict(tool_input)
        for field in self.path_fields:
            value = changed.get(field)
            if isinstance(value, str) and value and "\0" not in value:
                with suppress(ValueError):  # a user's name that no system can look up
                    value = os.path.expanduser(value)
                changed[field] = os.path.normpath(os.path.join(directory, value))
        return changed

    def paths(self, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths that a call touches."""
        return tuple(str(tool_input[field]) for field in self.path_fields if tool_input.get(field))

    def written_paths(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[WriteTarget, ...]:
        """What a call visibly writes to."""
        return (
            tuple(WriteTarget(escape(path)) for path in self.paths(tool_input)) if self.kind is ToolKind.EDITS else ()
        )

    def git_runs(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[tuple[Placed, ...], Sequence[str]]:
        """The git commands that a call visibly runs, and the names of the variables that it sets."""
        return (), ()


def _inlined(schema: Any, components: Mapping[str, Any], inside: tuple[str, ...] = ()) -> Any:
    """The schema without references: many servers and small models do not follow them.

    A type that holds itself becomes any object at the place where it would begin again.
    """
    if isinstance(schema, list):
        return [_inlined(one, components, inside) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast(dict[str, Any], schema)
    name = found.get("$ref")
    if not isinstance(name, str):
        return {key: _inlined(value, components, inside) for key, value in found.items()}
    if name in inside:
        return {"type": "object"}
    target = {key: value for key, value in components[name].items() if key != "title"}
    rest = {key: value for key, value in found.items() if key != "$ref"}
    return {**_inlined(target, components, (*inside, name)), **rest}
