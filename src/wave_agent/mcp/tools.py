"""A server's tool as a tool of the agent."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec.structs import replace

from wave_agent.mcp.definitions import OfferedTool
from wave_agent.mcp.values import (
    Elicit,
    Elicitation,
    ElicitationAnswer,
    McpError,
    McpResult,
    Progress,
    Server,
    ToolDefinition,
)
from wave_agent.shell.values import WriteTarget, escape
from wave_agent.text import did_you_mean, one_line
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult

if TYPE_CHECKING:
    from wave_agent.effects.argument_paths import ArgumentPaths

_PROGRESS = 200
"""Characters of one message about progress."""
_SHOWN = 10
"""Fields named in a message."""
_LONGEST_NAME = 80
_NOT_ASKED = (
    "[Note: the server asked the user for something. The user did not see it: this run is not interactive, so it "
    "was declined.]"
)


class CallServer(Protocol):
    """How a tool reaches its server. Without `elicit`, what the server asks the user is declined. Raises `McpError`,
    also if the tool is not what was offered any more."""

    async def __call__(
        self,
        server: Server,
        tool: ToolDefinition,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None,
        elicit: Elicit | None,
        traceparent: str = "",
    ) -> McpResult: ...


class _Nobody:
    """Answers what a server asks the user if no user can be asked."""

    def __init__(self) -> None:
        self.was_asked = False

    async def decline(self, _: Elicitation) -> ElicitationAnswer:
        self.was_asked = True
        return ElicitationAnswer()


class McpTool(Tool):
    """Each is an instance of its own class: see `mcp_tool`."""

    def __init__(self, server: Server, offered: OfferedTool, call: CallServer, reader: str) -> None:
        self.server = server
        self.offered = offered
        self.reader = reader
        """The tool that reads the server's resources; empty if the model has none."""
        self._call = call

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        """An error of the connection is the call's result, and so is one that the tool reports."""
        nobody = _Nobody()
        try:
            result = await self._call(
                self.server,
                self.offered.definition,
                arguments,
                progress=_progress(context.emit),
                elicit=context.elicit or nobody.decline,
                traceparent=context.traceparent,
            )
        except McpError as error:
            from wave_agent.mcp.mentions import unmarked  # lazy: see below

            # It quotes what the server said or printed last.
            return ToolResult(content=unmarked(str(error)), success=False, ran=False)
        from wave_agent.mcp.results import tool_result  # lazy: the first request needs tools, but no results

        takes_images = _has_image(result) and await context.takes_images()
        found = tool_result(result, takes_images=takes_images, server=self.server.name, reader=self.reader)
        notes = [*self._about_unknown(arguments), *([_NOT_ASKED] if nobody.was_asked else [])]
        return replace(found, content="\n\n".join((found.content, *notes))) if notes else found

    def _about_unknown(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """A server usually ignores arguments that it does not know."""
        fields, schema = self._fields(), self.offered.definition.input_schema
        unknown = [one_line(name, _LONGEST_NAME) for name in arguments if name not in fields]
        if unknown and fields and not {"additionalProperties", "patternProperties"} & schema.keys():
            yield (
                f"[Note: this tool has no argument {', '.join(unknown[:_SHOWN])}{did_you_mean(unknown[0], fields)}. "
                f"Its arguments are {', '.join([*fields][:_SHOWN])}.]"
            )

    def hook_facts(self) -> Mapping[str, Any]:
        """The server is named as it is configured, the tool as the server calls it."""
        definition = self.offered.definition
        about = {"server": self.server.name, "tool": definition.name, "annotations": dict(definition.annotations)}
        return {"mcp": about}

    def other_names(self) -> tuple[str, ...]:
        return (self.offered.plain,) if self.offered.plain != self.name else ()

    def claims_to_read(self) -> bool:
        """Only for servers that the user chose: a project's server would say anything."""
        return not self.server.is_of_project and self.offered.definition.annotations.get("readOnlyHint") is True

    def bases(self) -> tuple[str, ...]:
        """Directories that a relative path may mean: those that the server was started with, such as the roots of a
        file server."""
        entry = self.server.entry
        return tuple(one for one in (*entry.args, *entry.env.values()) if one.startswith(("/", "~/")))

    def schema(self) -> dict[str, Any]:
        return {"type": "object", **self.offered.input_schema}

    def nullable(self) -> frozenset[str]:
        return frozenset(
            name for name, field in self._fields().items() if _types(field) is None or "null" in (_types(field) or ())
        )

    def parse(self, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """Checks what a model gets wrong most; the server checks the rest. Raises a `ToolInputError`."""
        fields, required = self._fields(), self.offered.definition.input_schema.get("required")
        needed = [str(name) for name in cast("list[Any]", required)] if isinstance(required, list) else []
        if missing := next((name for name in needed if name not in tool_input), None):
            raise self._wrong(f"missing required field `{missing}`. Required fields: {', '.join(needed[:_SHOWN])}")
        if self.offered.definition.input_schema.get("additionalProperties") is False:
            for name in tool_input:
                if name not in fields:
                    known = ", ".join([*fields][:_SHOWN]) or "none"
                    raise self._wrong(f"unknown field `{name}`{did_you_mean(name, fields)}. The fields are {known}")
        for name, value in tool_input.items():
            types = _types(fields[name]) if name in fields else None
            if types and not any(_is(value, one) for one in types):
                raise self._wrong(f"expected {' or '.join(types)}, got {_type(value)} - at `$.{name}`")
        return dict(tool_input)

    def written_paths(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[WriteTarget, ...]:
        """Whatever the input may name: what the tool does with it is not known."""
        if self.claims_to_read():
            return ()
        named, starts = self._named(tool_input, context), self._starts(context)
        # A pattern that begins with a wildcard is about everything, and about no guard in particular.
        patterns = [one for one in named.patterns if not any(one.startswith(f"{escape(at)}/**") for at in starts)]
        return tuple(WriteTarget(one) for one in (*map(escape, named.paths), *patterns))

    def may_name(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[str, ...]:
        return tuple(self._named(tool_input, context).paths)

    def _named(self, tool_input: Mapping[str, Any], context: ToolContext) -> "ArgumentPaths":
        from wave_agent.effects.arguments import named_paths  # lazy: with the first call

        _, variables = self.place(context)
        return named_paths(tool_input, self._starts(context), variables.get("HOME", ""), os.path.lexists)

    def _starts(self, context: ToolContext) -> tuple[str, ...]:
        directory, _ = self.place(context)
        return (directory, str(context.project_dir), *self.bases())

    def _fields(self) -> Mapping[str, Any]:
        found: Any = self.offered.definition.input_schema.get("properties")
        return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else {}

    def _wrong(self, problem: str) -> ToolInputError:
        return ToolInputError(f"{self.name}: invalid input: {problem}")


def mcp_tool(server: Server, offered: OfferedTool, call: CallServer, reader: str = "") -> McpTool:
    """The tool as the model is offered it."""
    facts = {"name": offered.name, "description": offered.description or f"{offered.name} of an MCP server."}
    return type(offered.name, (McpTool,), facts)(server, offered, call, reader)


def _progress(emit: Callable[[str], None]) -> Progress:
    def show(done: float, of: float | None, message: str) -> None:
        amount = f"{done:g} of {of:g}" if of else f"{done:g}"
        emit(f"{amount} {one_line(message, _PROGRESS)}".strip() + "\n")

    return show


def _has_image(result: McpResult) -> bool:
    return any(block.get("type") == "image" for block in result.content)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}


def _is(value: Any, kind: str) -> bool:
    with suppress(ArithmeticError, ValueError):  # infinity
        return _CHECKS[kind](value)
    return False


def _type(value: Any) -> str:
    return next((kind for kind in ("integer", *_CHECKS) if _is(value, kind)), "something else")


def _types(field: Any) -> tuple[str, ...] | None:
    """The JSON types that a field states. None: it states none, or states them in a way that only the server reads."""
    if not isinstance(field, Mapping):
        return None
    stated: Any = cast(Mapping[str, Any], field).get("type")
    kinds = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    return tuple(map(str, kinds)) if kinds and all(kind in _CHECKS for kind in kinds) else None
