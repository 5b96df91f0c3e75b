"""The pages of the CLI reference, from the commands themselves: their help, arguments and options."""

import re
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import NamedTuple

import click

from wave_agent.cli.main import wave

_EXAMPLES = "\b\n"
"""How click marks a paragraph that keeps its line breaks."""


class Entry(NamedTuple):
    path: tuple[str, ...]
    command: click.Command
    context: click.Context

    @property
    def name(self) -> str:
        return " ".join(self.path)


def entries(command: click.Command, path: tuple[str, ...], parent: click.Context | None = None) -> Iterator[Entry]:
    """The command and all below it."""
    context = click.Context(command, info_name=path[-1], parent=parent, **command.context_settings)
    yield Entry(path, command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from entries(below, (*path, name), context)


def prose(text: str) -> str:
    """Words of a help text, with what Markdown would read as markup made literal."""
    return re.sub(r"([\\*<\[\]|`])", r"\\\1", " ".join(text.split()))


def wrapped(text: str) -> str:
    return fill(text, 118, break_long_words=False, break_on_hyphens=False)


def told(command: click.Command) -> str:
    """The help: paragraphs as prose, and what keeps its lines as a block."""
    parts: list[str] = []
    for paragraph in (command.help or "").split("\n\n"):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        if paragraph.strip(" \n").startswith(_EXAMPLES):
            parts.append("\n".join(["```text picture", *lines[1:], "```"]))
        elif any(lines):
            parts.append(wrapped(prose(paragraph)))
    return "\n\n".join(parts)


def options(entry: Entry) -> str:
    rows = ["| option | meaning |", "| --- | --- |"]
    for parameter in entry.command.get_params(entry.context):
        record = parameter.get_help_record(entry.context)
        if record is not None and record[1]:
            names, meaning = record
            shown = names.replace("|", "\\|")
            rows.append(f"| `{shown}` | {prose(meaning)} |")
    return "\n".join(rows)


def section(entry: Entry) -> str:
    usage = " ".join([entry.name, *entry.command.collect_usage_pieces(entry.context)])
    parts = [f"## {entry.name}", told(entry.command), f"```text picture\n{usage}\n```"]
    if not isinstance(entry.command, click.Group) or entry.command.invoke_without_command:
        parts.append(options(entry))
    return "\n\n".join(part for part in parts if part)


def page(title: str, about: str, found: Sequence[Entry]) -> str:
    return "\n\n".join([f"# {title}", wrapped(f"{about} `--help` prints the same."), *map(section, found)]) + "\n"


def pages() -> dict[str, str]:
    """The pages by their names: one for `wave` and its small commands, and one for each group."""
    below = list(entries(wave, ("wave",)))
    groups = sorted(
        {entry.path[1] for entry in below if len(entry.path) > 1 and isinstance(entry.command, click.Group)}
    )
    alone = [entry for entry in below if len(entry.path) == 1 or entry.path[1] not in groups]
    links = ", ".join(f"[`wave {name}`](cli/{name}.md)" for name in groups)
    about = f"Every option of `wave` and of its small commands. The groups have pages of their own: {links}."
    found = {"cli.md": page("The command line", about, alone)}
    for name in groups:
        group = [entry for entry in below if entry.path[1:2] == (name,)]
        about = f"Every command below `wave {name}`. [`wave` itself](../cli.md) is on another page."
        found[f"cli/{name}.md"] = page(f"wave {name}", about, group)
    return found
