"""`wave_agent.testing.model_server` under the name that it was published with."""

from wave_agent.testing.model_server import *  # noqa: F403
