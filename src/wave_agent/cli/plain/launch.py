"""Opens a session in lines, and cleans up when it ends."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from wave_agent.agent.options import Options, locate_for
from wave_agent.cli.plain.session import PlainSession
from wave_agent.cli.plain.terminal import Teletype
from wave_agent.cli.quick import written
from wave_agent.errors import SettingsError
from wave_agent.permissions.root_user import root_caution
from wave_agent.replay.upkeep import after_session
from wave_agent.screen.agents import Agents
from wave_agent.settings.trust import TrustStore
from wave_agent.system.ancestry import handed_down

ENDINGS = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def open_plain(options: Callable[[], Options], *, debug_hooks: bool) -> int:
    """Returns the exit status."""
    return asyncio.run(_run(options, debug_hooks=debug_hooks))


async def _run(options: Callable[[], Options], *, debug_hooks: bool) -> int:
    environment = dict(os.environ)
    if handed_down(environment):  # the agent itself would answer its questions
        raise SettingsError("wave --plain needs a person, but this was started by another agent. Use wave -p.")
    chosen = options()
    place, home = locate_for(chosen, environment)
    session = PlainSession(
        Agents(chosen, place, home),
        Teletype(sys.stdin.fileno(), sys.stdout),
        remember=partial(TrustStore(home).remember_rule, place.directory),
        environment=environment,
        every_hook=debug_hooks,
        caution=partial(root_caution, os.geteuid(), sandbox=chosen.sandbox),
    )
    loop = asyncio.get_running_loop()
    try:
        session.prepare()
        loop.add_signal_handler(signal.SIGINT, session.interrupt)
        for number, status in ENDINGS.items():
            loop.add_signal_handler(number, session.leave, status)
        status = await session.run()
    finally:
        await session.shut_down()
    agent = session.open_agent
    if agent is not None:
        after_session(agent.home, agent.settings.cleanup_days)
        if agent.messages:
            written(status, f"To resume this session: wave --plain -r {agent.session_id}\n")
    return status
