"""Terminal tables, and options shared by several `wave hooks` commands."""

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
    "--since",
    metavar="SPAN",
    callback=_read_since,
    help="Only sessions from this long ago until now: 90m, 12h, 7d, 4w.",
)
cwd_option = click.option("--cwd", metavar="DIR", help="Use the project in DIR instead of the current directory.")
secrets_option = click.option(
    "--show-secrets", is_flag=True, help="Do not mask text that looks like a key, token or password."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Aligned lines; the columns in `right` are right-aligned. Control characters are stripped."""
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
    """The text as one line, truncated to `limit`."""
    flat = " ".join(strip_controls(text).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1]}…"


def milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
