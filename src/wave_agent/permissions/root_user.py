"""What to say to someone who starts the agent as root."""

from wave_agent.permissions.decision import PermissionMode


def root_caution(uid: int, mode: str, *, sandbox: bool) -> str:
    """A warning if this user may do everything, and the agent asks about nothing. Empty otherwise."""
    if uid != 0 or mode != PermissionMode.BYPASS or sandbox:
        return ""
    return (
        f"You are root, and {mode} lets every call run that no hook or rule stops: a mistake can break the whole "
        "machine. Start wave as another user, in a container, or with --sandbox."
    )
