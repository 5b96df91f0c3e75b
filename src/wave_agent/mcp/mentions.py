"""What users write to get something from a server: `/mcp__server__prompt arguments` and `@server:uri`."""

import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.definitions import tool_names
from wave_agent.mcp.values import McpError, PromptDefinition, ResourceDefinition, Server, ServerListing
from wave_agent.text import clip, did_you_mean, one_line, strip_controls

_MENTION = lazy_regex(r"(?<![\w@/.])@([A-Za-z0-9][A-Za-z0-9_-]*):(\S+)")
_TRAILING = ".,;:!?)]}'\""
"""Punctuation after a mention, which belongs to the sentence."""
LONGEST_RESOURCE = 50_000
_TAG = "from-an-mcp-server"
_MARK = lazy_regex(rf"<(?=\s*+/?+\s*+{_TAG})", re.IGNORECASE)


class PromptCommand(Struct, frozen=True, kw_only=True):
    """A prompt of a server, as a command of the user."""

    command: str
    """`/mcp__server__prompt`."""
    server: str
    prompt: PromptDefinition


class ResourceMention(Struct, frozen=True, kw_only=True):
    """A resource of a server, as users mention it in a prompt."""

    text: str
    """`@server:uri`."""
    server: str
    resource: ResourceDefinition


class PromptCall(Struct, frozen=True):
    """A command that the user typed."""

    server: str
    prompt: str
    arguments: Mapping[str, str]


class Typed(Struct, frozen=True):
    """A mention that the user typed."""

    server: str
    uri: str
    content: str
    problem: str = ""

    @staticmethod
    def mentions(text: str, servers: Container[str]) -> Iterator[tuple[str, str]]:
        """The server and URI of each mention of one of these servers, once."""
        found = ((one[1], one[2].rstrip(_TRAILING)) for one in _MENTION.finditer(text))
        return iter(dict.fromkeys(pair for pair in found if pair[0] in servers and pair[1]))

    def __str__(self) -> str:
        """As it is added to the prompt, with its origin. The content cannot end the part that is marked as such."""
        uri = one_line(self.uri, 500).replace('"', "%22")
        if self.problem:
            return f'\n\n<{_TAG} server="{self.server}" resource="{uri}" problem="not available"/>'
        inside = clip(strip_controls(self.content), LONGEST_RESOURCE)
        return "\n\n" + marked(inside, self.server, f' resource="{uri}"')


def marked(text: str, server: str, attributes: str = "") -> str:
    """The text of a server with its origin. It cannot end the part that is marked as such."""
    return f'<{_TAG} server="{server}"{attributes}>\n{unmarked(text)}\n</{_TAG}>'


def unmarked(text: str) -> str:
    """The text of a server, which cannot pretend to be another part of the conversation."""
    return _MARK.sub("&lt;", text) if "<" in text else text


def prompt_commands(listings: Iterable[tuple[Server, ServerListing]]) -> tuple[PromptCommand, ...]:
    found: list[PromptCommand] = []
    for server, listing in listings:
        names = tool_names(server.name, [one.name for one in listing.prompts])
        found += [
            PromptCommand(command=f"/{names[one.name]}", server=server.name, prompt=one)
            for one in listing.prompts
            if one.name in names
        ]
    return tuple(found)


def resource_mentions(listings: Iterable[tuple[Server, ServerListing]]) -> tuple[ResourceMention, ...]:
    return tuple(
        ResourceMention(text=f"@{server.name}:{one.uri}", server=server.name, resource=one)
        for server, listing in listings
        for one in listing.resources
        if not one.is_template
    )


def typed_in(text: str, commands: Sequence[PromptCommand]) -> PromptCall:
    """Reads a command. Raises `McpError` if there is none of that name, or arguments are missing."""
    name, _, rest = text.strip().partition(" ")
    by_name = {one.command.casefold(): one for one in commands}
    found = by_name.get(name.casefold())
    if found is None:
        raise McpError(
            f"There is no prompt {one_line(name, 80)}{did_you_mean(name, (one.command for one in commands))}."
        )
    try:
        words = shlex.split(rest)
    except ValueError:  # a quote that is not closed
        words = rest.split()
    arguments = found.prompt.arguments
    given = {one.name: word for one, word in zip(arguments, words, strict=False)}
    if len(words) > len(arguments) > 0:  # the last one takes the rest, as people write sentences
        given[arguments[-1].name] = " ".join(words[len(arguments) - 1 :])
    missing = [one.name for one in arguments if one.is_required and one.name not in given]
    if missing:
        usage = " ".join(f"<{one.name}>" if one.is_required else f"[{one.name}]" for one in arguments)
        raise McpError(f"{found.command} needs {', '.join(missing)}: {found.command} {usage}")
    return PromptCall(found.server, found.prompt.name, given)
