"""Hooks that are being rolled out: enforced in a share of all sessions, in the others only watched."""

from msgspec.structs import replace

from wave_agent.hooks.definitions import HookDefinition, Mode


def share_of(session_id: str) -> float:
    """A number from 0 up to 1 that belongs to this session, and is as likely as any other.

    A hook is enforced if its share is greater. So the same sessions come first for every hook, and a larger share adds
    sessions to those that a smaller one had."""
    import hashlib  # lazy: few hooks are rolled out

    return int.from_bytes(hashlib.sha256(session_id.encode()).digest()[:6]) / (1 << 48)


def in_session(hook: HookDefinition, share: float) -> HookDefinition:
    """The hook as it applies in a session with this share."""
    if hook.rollout is None or share < hook.rollout:
        return hook
    return replace(hook, mode=Mode.SHADOW)
