"""How a hook says the same thing in each host: the JSON it prints. Pure.

A word that is missing for an event cannot be said in that host.
"""

from collections.abc import Callable, Mapping
from typing import Any

REASON = "reason-7"
CONTEXT = "context-7"
REPLACED = "replaced-7"
REWRITTEN = "touch rewritten"

Answers = Mapping[str, Mapping[str, Any]]
"""A word → what the hook prints."""

BEFORE, AFTER, PROMPT, STOP = "before_tool", "after_tool", "prompt", "stop"


def _specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _permission(word: str, **more: Any) -> dict[str, Any]:
    return _specific("PreToolUse", permissionDecision=word, permissionDecisionReason=REASON, **more)


_BLOCK = {"decision": "block", "reason": REASON}
_OUTPUT = {"stdout": REPLACED, "stderr": "", "interrupted": False, "isImage": False}
"""A result of Claude Code's shell: it takes no other shape."""


def _claude(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    return {
        BEFORE: {
            "deny": _permission("deny"),
            "allow": _permission("allow"),
            "ask": _permission("ask"),
            "unknown": _permission("prohibit"),
            "rewrite": _permission("allow", updatedInput=dict(tool_input)),
            "context": _specific("PreToolUse", additionalContext=CONTEXT),
        },
        AFTER: {
            "block": _BLOCK,
            "replace": _specific("PostToolUse", updatedToolOutput=_OUTPUT),
            "context": _specific("PostToolUse", additionalContext=CONTEXT),
        },
        PROMPT: {"block": _BLOCK, "context": _specific("UserPromptSubmit", additionalContext=CONTEXT)},
        STOP: {"block": _BLOCK},
    }


def _without(answers: Mapping[str, Answers], **words: tuple[str, ...]) -> Mapping[str, Answers]:
    return {
        event: {word: value for word, value in found.items() if word not in words.get(event, ())}
        for event, found in answers.items()
    }


def _codex(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    found = _claude(tool_input)
    replace = {"decision": "block", "reason": REPLACED}  # in place of the result
    return {**found, AFTER: {**found[AFTER], "replace": replace}}


def _qwen(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    return _without(_claude(tool_input), after_tool=("replace",))


def _kimi(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    words = ("ask", "rewrite", "context")
    found = _without(_claude(tool_input), before_tool=words, after_tool=("replace", "context"), prompt=("context",))
    denied = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": REASON}}
    return {**found, PROMPT: {"block": denied}, STOP: {"block": denied}, AFTER: {"block": denied}}


def _gemini(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    deny = {"decision": "deny", "reason": REASON}
    return {
        BEFORE: {
            "deny": deny,
            "allow": {"decision": "allow"},
            "ask": {"decision": "ask", "reason": REASON},
            "unknown": {"decision": "prohibit", "reason": REASON},
            "rewrite": _specific("BeforeTool", tool_input=dict(tool_input)),
        },
        AFTER: {
            "block": deny,
            "replace": {"decision": "deny", "reason": REPLACED},
            "context": _specific("AfterTool", additionalContext=CONTEXT),
        },
        PROMPT: {"block": deny, "context": _specific("BeforeAgent", additionalContext=CONTEXT)},
        STOP: {"block": deny},
    }


def _vibe(tool_input: Mapping[str, Any]) -> Mapping[str, Answers]:
    deny = {"decision": "deny", "reason": REASON}
    return {
        BEFORE: {
            "deny": deny,
            "allow": {"decision": "allow"},
            "unknown": {"decision": "prohibit", "reason": REASON},
            "rewrite": {"hook_specific_output": {"tool_input": dict(tool_input)}},
        },
        AFTER: {
            "block": deny,
            "replace": {"decision": "deny", "reason": REPLACED},
            "context": {"hook_specific_output": {"additional_context": CONTEXT}},
        },
        STOP: {"block": deny},
    }


DIALECTS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Answers]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "kimi": _kimi,
    "vibe": _vibe,
    "wave": _claude,
}
"""What each host's hooks can print, given the input of the shell tool to rewrite a call to; `wave` for our own."""
