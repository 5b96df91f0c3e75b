"""`wave_agent.settings.hook_entries` under the name that it was published with."""

from wave_agent.settings.hook_entries import *  # noqa: F403
