"""Options that several commands share."""

from datetime import timedelta

import click


def _read_since(_: click.Context, __: click.Parameter, value: str | None) -> timedelta | None:
    from wave_agent.replay.selection import parse_since  # lazy: few commands have this option

    try:
        return None if value is None else parse_since(value)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error)) from None


cwd_option = click.option("--cwd", metavar="DIR", help="Use the project in DIR instead of the current directory.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
secrets_option = click.option(
    "--show-secrets", is_flag=True, help="Do not mask text that looks like a key, token or password."
)
since_option = click.option(
    "--since", metavar="SPAN", callback=_read_since, help="Only sessions from the last SPAN: 90m, 12h, 7d, 4w."
)
