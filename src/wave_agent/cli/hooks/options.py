"""Shared by the hook commands: options, JSON arguments and tables."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import click
from msgspec.structs import replace

from wave_agent.formats.strict_json import StrictJSONError, parse_document, type_name
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Dialect
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.sources import SourceChoice
from wave_agent.text import strip_controls

with_settings = click.option(
    "--settings", multiple=True, metavar="FILE", help="Load an extra settings file, on top of all others."
)
with_mode = click.option(
    "--permission-mode",
    metavar="MODE",
    type=click.Choice([mode.value for mode in PermissionMode]),
    help="The permission mode: default, acceptEdits, plan, dontAsk or bypassPermissions.",
)
in_dialect = click.option(
    "--dialect",
    type=click.Choice([dialect.value for dialect in Dialect]),
    help="Treat every hook as if it were written for this agent.",
)


def choice_of(settings: Sequence[str]) -> SourceChoice:
    """Which settings to read."""
    return SourceChoice(overlays=settings).in_environment(os.environ)


def read_as(hooks: Iterable[HookDefinition], dialect: str | None) -> tuple[HookDefinition, ...]:
    """The hooks as if all were written in this dialect; unchanged if it is None."""
    return tuple(hook if dialect is None else replace(hook, dialect=Dialect(dialect)) for hook in hooks)


def json_object(text: str, source: str) -> dict[str, Any]:
    """Parse `text` as a JSON object. Raises a usage error with `source`, line and column."""
    try:
        value = parse_document(text).value
    except StrictJSONError as error:
        raise click.UsageError(f"{source}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"{source} must be a JSON object, not {type_name(value)}.")
    return cast(dict[str, Any], value)


def object_in_file(name: str) -> dict[str, Any]:
    """`-` is stdin."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return json_object(content.decode(), "stdin" if name == "-" else name)
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} is not UTF-8.") from None


def indented(label: str, text: str, *, width: int = 9) -> Iterator[str]:
    """A label with the lines of a text next to it."""
    for number, line in enumerate(strip_controls(text).splitlines() or [""]):
        yield f"    {label if number == 0 else '':<{width}} {line}".rstrip()
