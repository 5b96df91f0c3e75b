"""`wave` without a model: offers to set one up before the screen opens."""

import os
from collections.abc import Callable

from wave_agent.agent.foundation import lacks_model
from wave_agent.agent.options import Options
from wave_agent.errors import WaveError
from wave_agent.system.ancestry import agent_above


def offer_setup_if_needed(options: Callable[[], Options]) -> None:
    """Asks the user at the terminal, if no model is configured. Says nothing about a start that fails anyway."""
    if agent_above(os.environ):
        return
    try:
        needed = lacks_model(options(), os.environ)
    except WaveError:
        return
    if needed:
        from wave_agent.cli.setup import offer_setup  # lazy: only for those who have no model yet

        offer_setup()
