"""`wave` without a model: offers to set one up before the screen opens."""

import os
from collections.abc import Callable

from wave_agent.agent.foundation import lacks_model
from wave_agent.agent.options import Options
from wave_agent.errors import WaveError
from wave_agent.system.ancestry import agent_above


def offer_setup_if_needed(options: Callable[[], Options]) -> bool:
    """Asks the user at the terminal, if no model is configured. Says nothing about a start that fails anyway.

    False: there is still none, and the user has been told how to get one."""
    if agent_above(os.environ):
        return True
    try:
        needed = lacks_model(options(), os.environ)
    except WaveError:
        return True
    if not needed:
        return True
    from wave_agent.cli.setup import offer_setup  # lazy: only for those who have no model yet

    return offer_setup()
