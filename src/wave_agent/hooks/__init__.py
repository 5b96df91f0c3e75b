"""Hooks: commands and functions that run when the agent gets a prompt, uses a tool, or is about to stop."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wave_agent.hooks.authoring import (
        Answer,
        CallEffects,
        HookCall,
        allow,
        ask,
        context,
        deny,
        grant,
        refuse,
        replace_output,
        rewrite,
        stop,
        tell,
    )
    from wave_agent.hooks.events import HookEvent
    from wave_agent.hooks.execution import HookExecutionResult
    from wave_agent.hooks.manager import HookManager
    from wave_agent.hooks.script import Hook, hook

_HOME = {
    **dict.fromkeys(("Answer", "CallEffects", "HookCall", "allow", "ask", "context", "deny"), "authoring"),
    **dict.fromkeys(("grant", "refuse", "replace_output", "rewrite", "stop", "tell"), "authoring"),
    "Hook": "script",
    "HookEvent": "events",
    "HookExecutionResult": "execution",
    "HookManager": "manager",
    "hook": "script",
}

__all__ = [
    "Answer",
    "CallEffects",
    "Hook",
    "HookCall",
    "HookEvent",
    "HookExecutionResult",
    "HookManager",
    "allow",
    "ask",
    "context",
    "deny",
    "grant",
    "hook",
    "refuse",
    "replace_output",
    "rewrite",
    "stop",
    "tell",
]


def __getattr__(name: str) -> object:
    """Load names on first use: a hook script that imports `deny` should not pay for the manager."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
