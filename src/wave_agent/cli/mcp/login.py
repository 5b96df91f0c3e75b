"""`wave mcp login`: OAuth for a remote server."""

import asyncio
import json
import os
import webbrowser

import click

from wave_agent.cli.mcp.arguments import name_argument
from wave_agent.cli.mcp.connecting import open_host, startable
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.mcp.values import ServerTransport
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import strip_controls
from wave_agent.workshop.server_overview import overview


@click.command()
@name_argument
@click.option("--no-browser", is_flag=True, help="Only print the URL.")
@cwd_option
@json_option
def login(name: str, no_browser: bool, cwd: str | None, as_json: bool) -> int:
    """Log in to a remote server with your browser

    Prints the server's login page, opens it, and waits until you have logged in. The tokens are stored in WAVE_HOME,
    readable only by you.
    """
    require_no_agent(os.environ, "wave mcp login")
    found = overview(cwd)
    server = startable(found, name)
    if server.entry.transport is ServerTransport.STDIO:
        raise click.UsageError(f"{name} is a program: it needs no login. Pass its key with --env.")

    def show(url: str) -> None:
        click.echo(f"Log in here: {strip_controls(url)}", err=as_json)
        if not no_browser and url.startswith(("https://", "http://")):
            webbrowser.open(url)

    async def run() -> None:
        async with open_host(found) as host:
            await host.login(server, show_url=show)

    asyncio.run(run())
    found.cache.clear_failure(server)
    click.echo(json.dumps({"name": name, "logged_in": True}) if as_json else f"Logged in to {name}.")
    return 0
