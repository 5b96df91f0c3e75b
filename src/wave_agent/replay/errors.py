"""Errors of a replay."""

from wave_agent.errors import WaveError


class ReplayError(WaveError):
    """The replay could not be started or completed."""


class UnknownHookError(ReplayError):
    """There is no hook with this name."""
