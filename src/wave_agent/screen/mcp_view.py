"""`/mcp`: the session's MCP servers, their tools, and what waits for the user."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from wave_agent.screen.completion import CompletionItem
from wave_agent.screen.hooks_view import HookRow
from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question
from wave_agent.text import one_line, reveal

if TYPE_CHECKING:  # loaded only if there are servers
    from wave_agent.mcp.pins import WaitingTool
    from wave_agent.mcp.server_status import ServerStatus
    from wave_agent.mcp.session import McpSession
    from wave_agent.mcp.values import Server

OFFER, LEAVE_OUT = "offer", "leave out"


def target_of(server: "Server") -> str:
    """What runs, or where the server is."""
    from wave_agent.mcp.secrets import target_of  # lazy: most sessions have no servers

    return target_of(server)


def server_row(one: "ServerStatus") -> HookRow:
    """A server on one line; its tools as details."""
    waiting = f" · {len(one.waiting)} waiting" if one.waiting else ""
    line = Content.assemble(
        plain(f"{one_line(one.server.name, 24):<25}", "bold"),
        plain(f"{one.state:<14}", "$text-warning" if one.problem else "$text-accent"),
        plain(f"{len(one.tools)} tools{waiting}  "),
        plain(one_line(target_of(one.server), 60), "$muted"),
    )
    return HookRow(line, Content("\n").join(_details(one)))


def _details(one: "ServerStatus") -> Iterator[Content]:
    place = one.server.source if one.server.line is None else f"{one.server.source}:{one.server.line}"
    facts = {"runs": target_of(one.server), "from": f"{one.server.layer} ({place})", "problem": one.problem}
    for name, text in facts.items():
        if text:
            yield Content.assemble(plain(f"{name:>10}  ", "$muted"), plain(reveal(text)))
    listed = (
        ("tool", one.tools),
        ("waits", tuple(f"{tool.name or 'its instructions'} ({tool.why}): /mcp trust" for tool in one.waiting)),
        ("denied", one.denied),
        ("prompt", tuple(prompt.name for prompt in one.prompts)),
        ("resource", tuple(resource.uri for resource in one.resources)),
        ("note", one.notices),
    )
    for name, texts in listed:
        for text in texts:
            yield Content.assemble(plain(f"{name:>10}  ", "$muted"), plain(one_line(text, 200)))


class ToolsQuestion(Question):
    """Whether the model may use tools that are new or have changed."""

    def __init__(self, waiting: "Sequence[tuple[Server, WaitingTool]]") -> None:
        parts: list[Content] = []
        for server, one in waiting:
            parts.append(plain(f"{server.name}: {one.name or 'its instructions'} ({one.why})", "bold"))
            parts += [plain(f"  {reveal(line)}") for line in one.diff.splitlines()]
        choices = (
            Choice(LEAVE_OUT, "No: the model does not get them", "n"),
            Choice(OFFER, "I have reviewed them: offer them to the model", "y"),
        )
        super().__init__("Tools of MCP servers are new or have changed", Content("\n").join(parts), choices)


def mentionable(servers: "McpSession") -> list[CompletionItem]:
    """Prompts as commands, resources as mentions."""
    prompts = [
        CompletionItem(f"{one.command} " if one.prompt.arguments else one.command, _about(one.prompt.description))
        for one in servers.prompts()
    ]
    resources = [
        CompletionItem(f"{one.text} ", _about(one.resource.description or one.resource.name))
        for one in servers.resources()
    ]
    return prompts + resources


def _about(text: str) -> str:
    return one_line(text, 80)
