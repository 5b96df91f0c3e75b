"""Which tools of a server are offered: those that are exactly what they were when the user accepted them."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from wave_agent.mcp.definitions import (
    OfferedTool,
    clean_text,
    definition_digest,
    definition_text,
    offer,
    plain_name,
    text_digest,
    tool_names,
)
from wave_agent.mcp.values import Server, ServerListing, ToolDefinition
from wave_agent.text import one_line, reveal

INSTRUCTIONS = ""
"""The key of a server's instructions among its pins: no tool has an empty name."""
MOST_TOOLS = 2000


class Pins(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user has accepted of one server."""

    tools: Mapping[str, str] = {}
    """The server's own name of a tool → digest of its whole definition; `INSTRUCTIONS` → of its instructions."""
    texts: Mapping[str, str] = {}
    """The definitions as they were, for `WaitingTool.diff`."""


SINCE: Mapping[str, str] = {"new": "is new", "changed": "has changed"}
"""`WaitingTool.why` as a part of a sentence."""


class WaitingTool(Struct, frozen=True, kw_only=True):
    """A tool that is not offered until the user confirms it with `wave mcp trust`."""

    name: str
    """The server's own name for it; `INSTRUCTIONS` for its instructions."""
    why: Literal["new", "changed"]
    now: str = ""
    """Its whole definition, as text for a person."""
    before: str = ""

    @property
    def shown(self) -> str:
        """Its name, for a person."""
        return "its instructions" if self.name == INSTRUCTIONS else one_line(reveal(self.name), 100)

    @property
    def diff(self) -> str:
        """What is different, as a unified diff; of a new one, its definition."""
        from difflib import unified_diff  # lazy: only for a person who looks at it

        before, now = self.before.split("\n") if self.before else [], self.now.split("\n")
        lines = unified_diff(before, now, "accepted", "now", lineterm="", n=2)
        return "\n".join(lines)


class Offered(Struct, frozen=True, kw_only=True):
    """What of a listing reaches the model."""

    server: str
    tools: tuple[OfferedTool, ...] = ()
    """Sorted by name."""
    waiting: tuple[WaitingTool, ...] = ()
    instructions: str = ""
    """The server's, cleaned and cut; empty while they wait."""
    left_out: tuple[str, ...] = ()
    """For the user: tools that cannot be offered at all, and why."""
    notices: tuple[str, ...] = ()
    """The same, and which tools wait."""


def pins_of(listing: ServerListing) -> Pins:
    """Pins for everything that this listing offers."""
    known, _ = _digests(listing.tools)
    found = {name: digest for name, (digest, _) in known.items()}
    texts = {name: definition_text(tool) for name, (_, tool) in known.items()}
    if listing.instructions:
        found[INSTRUCTIONS] = text_digest(listing.instructions)
        texts[INSTRUCTIONS] = _shown_instructions(listing)
    return Pins(tools=found, texts=texts)


def offered(server: Server, listing: ServerListing, pins: Pins | None) -> Offered:
    """`pins` None: the server has never been seen, and everything is offered; pin it (`ConsentStore.pin_first`)."""
    known, left_out = _digests(listing.tools)
    accepted: dict[str, ToolDefinition] = {}
    waiting: list[WaitingTool] = []
    for name, (digest, tool) in known.items():
        if pins is None or pins.tools.get(name) == digest:
            accepted[name] = tool
        else:
            waiting.append(_waiting(name, definition_text(tool), pins))
    instructions = listing.instructions
    if instructions and pins is not None and pins.tools.get(INSTRUCTIONS) != text_digest(instructions):
        waiting.append(_waiting(INSTRUCTIONS, _shown_instructions(listing), pins))
        instructions = ""
    # Only what is offered takes part: a tool that waits must not change the name of another, and so its rules.
    names = tool_names(server.name, accepted)
    tools: list[OfferedTool] = []
    for raw, tool in accepted.items():
        try:
            if raw not in names:
                raise ValueError("its name cannot be told from another one's")
            tools.append(offer(tool, names[raw], plain_name(server.name, raw)))
        except ValueError as error:
            left_out[raw] = str(error)
    unusable = tuple(_unusable(server.name, left_out))
    return Offered(
        server=server.name,
        tools=tuple(sorted(tools, key=lambda one: one.name)),
        waiting=tuple(sorted(waiting, key=lambda one: one.name)),
        instructions=clean_text(instructions),
        left_out=unusable,
        notices=(*unusable, *_about_waiting(server.name, waiting)),
    )


def _digests(tools: Iterable[ToolDefinition]) -> tuple[dict[str, tuple[str, ToolDefinition]], dict[str, str]]:
    """Name → digest and definition, and name → why a tool cannot be offered at all."""
    known: dict[str, tuple[str, ToolDefinition]] = {}
    left_out: dict[str, str] = {}
    for at, tool in enumerate(tools):
        try:
            if at >= MOST_TOOLS:
                raise ValueError(f"the server has more than {MOST_TOOLS:,} tools")
            if not tool.name:
                raise ValueError("it has no name")
            digest = definition_digest(tool)
            if known.get(tool.name, (digest,))[0] != digest:
                raise ValueError("the server lists several tools of this name")
            known[tool.name] = (digest, tool)
        except ValueError as error:
            left_out[tool.name] = str(error)
    return {name: one for name, one in known.items() if name not in left_out}, left_out


def _waiting(name: str, now: str, pins: Pins) -> WaitingTool:
    why: Literal["new", "changed"] = "changed" if name in pins.tools else "new"
    return WaitingTool(name=name, why=why, now=now, before=pins.texts.get(name, ""))


def _shown_instructions(listing: ServerListing) -> str:
    return "\n".join(map(reveal, listing.instructions.split("\n")))


def _unusable(server: str, left_out: Mapping[str, str]) -> Iterable[str]:
    for name, why in sorted(left_out.items()):
        yield f"MCP server {server}: its tool {one_line(reveal(name), 100) or '(no name)'} is not offered: {why}."


def _about_waiting(server: str, waiting: Iterable[WaitingTool]) -> Iterable[str]:
    for why in ("changed", "new"):
        names = [one.shown for one in waiting if one.why == why]
        if names:
            listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            yield f"MCP server {server}: not offered, since {why}: {listed}. Review with: wave mcp trust {server}"
