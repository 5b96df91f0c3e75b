"""`wave mcp remove`: take a server out of the file it is configured in."""

import json
import os
from contextlib import suppress

import click

from wave_agent.cli.mcp.arguments import name_argument
from wave_agent.cli.mcp.options import scope_option, server_files, unknown_server
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.errors import SettingsError
from wave_agent.mcp.server_files import ServerFile
from wave_agent.system.ancestry import require_no_agent
from wave_agent.workshop.server_overview import overview


@click.command()
@name_argument
@scope_option
@cwd_option
@json_option
def remove(name: str, scope: str | None, cwd: str | None, as_json: bool) -> int:
    """Remove a server

    Everything else in the file stays as it is.
    """
    require_no_agent(os.environ, "wave mcp remove")
    files = server_files(cwd, scope)
    having = [one for one in files.values() if name in one.servers]
    if not having:
        raise unknown_server(name, [known for one in files.values() for known in one.servers])
    if len(having) > 1:
        scopes = " and ".join(one.scope for one in having)
        raise click.UsageError(f'The server "{name}" is configured in {scopes}: choose one with --scope.')
    found = having[0]
    _forget(name, found, cwd)
    found.write(found.text_without(name))
    if as_json:
        click.echo(json.dumps({"name": name, "scope": found.scope, "file": str(found.file)}))
    else:
        click.echo(f"Removed {name} from {found.file}.")
    return 0


def _forget(name: str, file: ServerFile, cwd: str | None) -> None:
    """Consent, pins and the cached list go with the entry: another server of that name is a new one."""
    with suppress(SettingsError):  # other settings are broken: that must not keep anyone from removing a server
        found = overview(cwd)
        for row in found.rows:
            if row.name == name and row.server is not None and row.server.source == str(file.file):
                found.store.forget(row.server)
                found.cache.forget(name)
