"""Permission modes as the modes of a session."""

from collections.abc import Mapping

from acp.schema import SessionMode, SessionModeState

from wave_agent.permissions.decision import PermissionMode

_MODES: Mapping[PermissionMode, tuple[str, str]] = {
    PermissionMode.DEFAULT: ("Ask", "Reads freely; asks before it edits files or runs commands"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Edits files in the project without asking; asks before commands"),
    PermissionMode.PLAN: ("Plan", "Only reads, and proposes a plan"),
    PermissionMode.DONT_ASK: ("Don't ask", "Runs only what rules allow, and never asks"),
    PermissionMode.BYPASS: ("Bypass permissions", "Runs everything that no rule or hook denies"),
}


def mode_state(current: str) -> SessionModeState:
    return SessionModeState(
        current_mode_id=current,
        available_modes=[
            SessionMode(id=mode.value, name=name, description=meaning) for mode, (name, meaning) in _MODES.items()
        ],
    )


def mode_named(mode_id: str) -> PermissionMode | None:
    return PermissionMode(mode_id) if mode_id in PermissionMode.__members__.values() else None
