"""Tables for the terminal, and options that several commands of `wave hooks` share."""

from collections.abc import Sequence
from datetime import timedelta

import click

from wave_agent.replay.selection import parse_since
from wave_agent.text import strip_controls


def _read_since(_: click.Context, __: click.Parameter, value: str | None) -> timedelta | None:
    try:
        return None if value is None else parse_since(value)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error)) from None


since_option = click.option(
    "--since", metavar="SPAN", callback=_read_since, help="Only sessions of this span of time: 90m, 12h, 7d, 4w."
)
cwd_option = click.option("--cwd", metavar="DIR", help="The project, instead of the current directory.")
secrets_option = click.option(
    "--show-secrets", is_flag=True, help="Do not mask what looks like a key, a token or a password."
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Lines of equal columns; the columns in `right` are aligned to the right. Nothing in them can reach the
    terminal as a control."""
    cells = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def one_line(text: str, limit: int = 0) -> str:
    """The text as one line, cut where it is too long."""
    flat = " ".join(strip_controls(text).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1]}…"


def milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
