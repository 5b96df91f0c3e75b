"""What a tool is: a name, a typed input, and one method."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from wave_agent.permissions import Kind
from wave_agent.processes import Ledger, no_ledger
from wave_agent.sandbox import Sandbox
from wave_agent.shell.values import Write, escape


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came of one call."""

    content: str
    """What the model reads."""
    success: bool = True
    ran: bool = True
    """False: the tool could not do its work at all (bad input, missing file). A command that failed has run."""
    response: Mapping[str, Any] = {}
    """The tool's own fields in a hook's `tool_response`, beside `success` and `content`."""
    keep: Callable[[], None] = lambda: None
    """Writes what was held back (see `ToolContext.hold`). Called once it is clear that the result stays as it is."""


class ToolInputError(Exception):
    """The model's input cannot be used. The text tells the model what to change."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a call may know of the session around it."""

    project_dir: Path
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


class Tool(ABC):
    """One instance per session: what a tool remembers between calls lives in it."""

    name: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[Kind] = Kind.ACTS
    path_fields: ClassVar[tuple[str, ...]] = ()
    """Input fields with a path: made absolute before any hook sees them."""
    polls: ClassVar[bool] = False
    """It looks how something else gets on: the same call again and again, with the same result, is fine."""
    Input: ClassVar[type[Struct]]

    @abstractmethod
    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        """Does the work. `arguments` is an instance of `Input`. Cancelling ends the work and everything it started.

        Raises `ToolInputError` for input that fits the schema but cannot be used.
        """

    async def close(self) -> None:  # noqa: B027 - most tools leave nothing running
        """Ends what the tool has left running. Called once, when the session ends."""

    # ---------------------------------------------------------------------------------------------------- for the agent

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the input object, self-contained."""
        (schema,), components = msgspec.json.schema_components([self.Input], ref_template="#/$defs/{name}")
        top: dict[str, Any] = dict(components.pop(self.Input.__name__, schema))
        top.pop("title", None)
        if components:
            top["$defs"] = dict(components)
        return top

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
        except msgspec.ValidationError as error:
            raise ToolInputError(f"{self.name}: invalid input: {error}") from None

    def normalise(self, tool_input: Mapping[str, Any], project_dir: str) -> dict[str, Any]:
        """The input with absolute paths and `~` expanded. Never fails: what cannot be a path stays as it is."""
        changed = dict(tool_input)
        for field in self.path_fields:
            value = changed.get(field)
            if isinstance(value, str) and value and "\0" not in value:
                changed[field] = os.path.normpath(os.path.join(project_dir, os.path.expanduser(value)))
        return changed

    def paths(self, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths that a call touches."""
        return tuple(str(tool_input[field]) for field in self.path_fields if tool_input.get(field))

    def written_paths(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[Write, ...]:
        """What a call visibly writes to."""
        return tuple(Write(escape(path)) for path in self.paths(tool_input)) if self.kind is Kind.EDITS else ()
