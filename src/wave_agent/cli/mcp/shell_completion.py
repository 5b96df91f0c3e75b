"""What Tab completes: names of servers, and rules for their tools."""

from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from wave_agent.errors import WaveError
from wave_agent.text import one_line
from wave_agent.workshop.server_overview import ServerRow, overview


def complete_server(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(row.name, help=row.state) for row in _rows() if row.name.startswith(incomplete)]


def complete_rule(incomplete: str) -> list[CompletionItem]:
    """`mcp__server`, and its tools as far as they were seen. A value may hold several rules."""
    before, comma, last = incomplete.rpartition(",")
    found: dict[str, str] = {}
    for row in _rows() if last.startswith("mcp__") or "mcp__".startswith(last) else ():
        found[f"mcp__{row.name}"] = f"all tools of {row.name}"
        found |= {tool.name: one_line(tool.description, 60) for tool in (row.known.tools if row.known else ())}
    return [
        CompletionItem(f"{before}{comma}{name}", help=note) for name, note in found.items() if name.startswith(last)
    ]


def _rows() -> tuple[ServerRow, ...]:
    with suppress(WaveError, OSError, click.ClickException):  # there is no place for a message while Tab is pressed
        return overview(None).rows
    return ()
