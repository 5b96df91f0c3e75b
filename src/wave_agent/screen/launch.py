"""Opens the screen and cleans up when it closes."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

import click

from wave_agent.agent.options import Options, locate_for
from wave_agent.errors import SettingsError
from wave_agent.permissions.root_user import root_caution
from wave_agent.replay.upkeep import after_session
from wave_agent.screen import garbage_collection
from wave_agent.screen.agents import Agents
from wave_agent.screen.app import WaveApp
from wave_agent.settings.trust import TrustStore
from wave_agent.system.ancestry import handed_down

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def open_screen(options: Callable[[], Options], *, debug_hooks: bool) -> int:
    """Returns the exit status."""
    return asyncio.run(_run(options, debug_hooks=debug_hooks))


async def _run(options: Callable[[], Options], *, debug_hooks: bool) -> int:
    for name in ("COLUMNS", "LINES"):  # if exported, they hold an outdated size and would be used
        os.environ.pop(name, None)
    environment = dict(os.environ)
    if handed_down(environment):  # the agent itself would answer its questions
        raise SettingsError("The screen needs a person, but this was started by another agent. Use wave -p.")
    chosen = options()
    place, home = locate_for(chosen, environment)
    agents = Agents(chosen, place, home)
    remember = partial(TrustStore(home).remember_rule, place.directory)
    app = WaveApp(
        agents,
        remember=remember,
        environment=environment,
        every_hook=debug_hooks,
        caution=partial(root_caution, os.geteuid(), sandbox=chosen.sandbox),
        idle=garbage_collection.tidy,
    )
    try:
        app.prepare()
        garbage_collection.settle()
        loop = asyncio.get_running_loop()
        for number, status in SIGNALS.items():
            loop.add_signal_handler(number, app.end_by_signal, number, status)
        status = await app.run_async()
    finally:
        await app.shut_down()
    return _farewell(app, status)


def _farewell(app: WaveApp, status: int | None) -> int:
    agent = app.open_agent
    if agent is not None:
        after_session(agent.home, agent.settings.cleanup_days)
        if agent.messages and sys.stdout.isatty():
            click.echo(f"wave -r {agent.session_id}   resumes this session")
    return app.return_code or 0 if status is None else status
