"""Wave Agent: a coding agent for the terminal and for Python, built around hooks."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wave_agent.agent.agent import Agent
    from wave_agent.agent.one_shot import run
    from wave_agent.agent.result import Callbacks, Result
    from wave_agent.errors import (
        AgentClosedError,
        ArgumentError,
        InsideTurnError,
        ModelError,
        SessionError,
        SettingsError,
        UntrustedHooksError,
        WaveError,
    )
    from wave_agent.hooks.events import HookEvent
    from wave_agent.hooks.execution import HookExecutionResult
    from wave_agent.hooks.manager import HookManager
    from wave_agent.messages import (
        ErrorBlock,
        Message,
        MessageManager,
        NoticeBlock,
        ReasoningBlock,
        TextBlock,
        ToolBlock,
    )
    from wave_agent.models.conversion import convert_messages_for_api
    from wave_agent.permissions.decision import Allow, Deny, PermissionRequest
    from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
    from wave_agent.tools.custom import tool

__version__ = "0.2.0"
"""Written here, where the build reads it: looking it up in the installed package takes longer than `wave --version`."""

_HOME = {
    "Agent": "agent.agent",
    "AgentClosedError": "errors",
    "Allow": "permissions.decision",
    "ArgumentError": "errors",
    "Callbacks": "agent.result",
    "Deny": "permissions.decision",
    "ErrorBlock": "messages",
    "HookEvent": "hooks.events",
    "HookExecutionResult": "hooks.execution",
    "HookManager": "hooks.manager",
    "InsideTurnError": "errors",
    "Message": "messages",
    "MessageManager": "messages",
    "ModelError": "errors",
    "NoticeBlock": "messages",
    "PermissionRequest": "permissions.decision",
    "ReasoningBlock": "messages",
    "Result": "agent.result",
    "SessionError": "errors",
    "SettingsError": "errors",
    "TextBlock": "messages",
    "Tool": "tools.base",
    "ToolBlock": "messages",
    "ToolContext": "tools.base",
    "ToolInputError": "tools.base",
    "ToolResult": "tools.base",
    "UntrustedHooksError": "errors",
    "WaveError": "errors",
    "convert_messages_for_api": "models.conversion",
    "run": "agent.one_shot",
    "tool": "tools.custom",
}

__all__ = [
    "Agent",
    "AgentClosedError",
    "Allow",
    "ArgumentError",
    "Callbacks",
    "Deny",
    "ErrorBlock",
    "HookEvent",
    "HookExecutionResult",
    "HookManager",
    "InsideTurnError",
    "Message",
    "MessageManager",
    "ModelError",
    "NoticeBlock",
    "PermissionRequest",
    "ReasoningBlock",
    "Result",
    "SessionError",
    "SettingsError",
    "TextBlock",
    "Tool",
    "ToolBlock",
    "ToolContext",
    "ToolInputError",
    "ToolResult",
    "UntrustedHooksError",
    "WaveError",
    "convert_messages_for_api",
    "run",
    "tool",
]


def __dir__() -> "list[str]":
    """Includes names that are not loaded yet."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Load names on first use: `import wave_agent` alone costs next to nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
