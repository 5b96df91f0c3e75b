"""Questions on the terminal that are answered with a number or a name."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from wave_agent.text import one_line, strip_controls

_SHOWN = 20
"""Lines of a long list. The rest is found by typing a part of the name."""


def choose_row(question: str, rows: Sequence[str], default: int | None) -> int:
    """The index of the chosen row. The rows are numbered from 1."""
    for number, row in enumerate(rows, 1):
        click.echo(f"  {number:>2}  {row}")
    while True:
        answer = ask(question, default=None if default is None else str(default + 1))
        if answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(rows):
            return int(answer) - 1
        click.echo(f"Type a number from 1 to {len(rows)}.")


def choose_name(
    question: str, names: Sequence[str], default: str | None, describe: Callable[[str], str] = lambda name: name
) -> str:
    """One of the names, by its number, the name itself or a part of it that no other has; or a name not listed."""
    shown = names
    while True:
        _list(shown, describe)
        answer = ask(question, default=default)
        if answer in names:
            return answer
        if answer.isascii() and answer.isdigit() and 0 < int(answer) <= min(len(shown), _SHOWN):
            return shown[int(answer) - 1]
        matching = [name for name in names if answer.lower() in name.lower()]
        if len(matching) == 1:
            return matching[0]
        if not matching and click.confirm(f'"{one_line(answer, 100)}" is not listed. Use it anyway?'):
            return answer
        shown = matching or names


def _list(names: Sequence[str], describe: Callable[[str], str]) -> None:
    for number, name in enumerate(names[:_SHOWN], 1):
        click.echo(f"  {number:>2}  {strip_controls(describe(name))}")
    if len(names) > _SHOWN:
        click.echo(f"      and {len(names) - _SHOWN:,} more: type a part of the name")


def ask(question: str, *, default: str | None = None, hidden: bool = False) -> str:
    """The answer, without blanks around it."""
    answer: Any = click.prompt(question, default=default, hide_input=hidden, type=str, show_default=not hidden)
    return str(answer).strip()
