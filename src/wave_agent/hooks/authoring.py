"""Hooks as Python functions: a typed event in, a typed answer out.

Imports nothing: a hook script pays for every import at every tool call.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class CallEffects:
    """What a tool call would do. Paths are absolute; `*`, `?` and `**` in them are wildcards, brackets quote."""

    __slots__ = ("complete", "deletes", "hosts", "reads", "runs", "truncated", "writes")

    def __init__(self, found: "Mapping[str, Any]") -> None:
        self.reads: list[str] = found.get("reads") or []
        """Files whose content it reads."""
        self.writes: list[str] = found.get("writes") or []
        self.deletes: list[str] = found.get("deletes") or []
        self.runs: list[list[str]] = found.get("runs") or []
        """The words of each command, those in other commands and in scripts of the project included."""
        self.hosts: list[str] = found.get("hosts") or []
        """`*` is a host that the call does not name."""
        self.complete: bool = found.get("complete") is True
        """Whether this is all. False: it may do more."""
        self.truncated: bool = bool(found.get("truncated"))
        """A list was too long and is cut. `complete` is then false."""


class HookCall:
    """The event a hook is called with: its stdin object, with properties. `call["any_field"]` reads any other field."""

    __slots__ = ("payload",)

    def __init__(self, payload: "Mapping[str, Any]") -> None:
        self.payload = payload

    def __getitem__(self, field: str) -> "Any":
        return self.payload[field]

    def get(self, field: str, default: "Any" = None) -> "Any":
        return self.payload.get(field, default)

    @property
    def event(self) -> str:
        return self.payload["hook_event_name"]

    @property
    def session(self) -> str:
        return self.payload["session_id"]

    @property
    def cwd(self) -> str:
        return self.payload["cwd"]

    @property
    def transcript_path(self) -> str:
        return self.payload["transcript_path"]

    @property
    def permission_mode(self) -> str:
        return self.payload["permission_mode"]

    @property
    def agent_id(self) -> str:
        """The subagent in which this happens; empty in the agent itself."""
        return self.payload.get("agent_id", "")

    @property
    def agent_type(self) -> str:
        """The subagent's type; empty in the agent itself."""
        return self.payload.get("agent_type", "")

    @property
    def prompt(self) -> str:
        """What the user wrote; empty on other events."""
        return self.payload.get("prompt", "")

    @property
    def tool(self) -> str:
        """The tool's name; empty on events without one."""
        return self.payload.get("tool_name", "")

    @property
    def input(self) -> "Mapping[str, Any]":
        """The tool's input; empty on events without one."""
        return self.payload.get("tool_input") or {}

    @property
    def effects(self) -> CallEffects:
        """What the call would do, before it runs; on other events nothing is known, so it is not complete."""
        return CallEffects(self.payload.get("effects") or {})

    @property
    def original_input(self) -> "Mapping[str, Any] | None":
        """On a second look, the input before hooks rewrote it."""
        return self.payload.get("original_tool_input")

    @property
    def response(self) -> "Mapping[str, Any]":
        """What the tool returned; empty before it ran. Of an MCP server's tool: `content` is the text, and `blocks` the
        content array."""
        found: Any = self.payload.get("tool_response") or {}
        if not isinstance(found, list):
            return found
        texts = [str(one.get("text", "")) for one in found if one.get("type") == "text"]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
        return {"content": "\n".join(texts), "blocks": found}

    @property
    def changed_files(self) -> "list[str]":
        """Absolute paths of the files that the call, the turn or the session changed; empty on other events."""
        return list(self.payload.get("changed_files") or ())

    @property
    def error(self) -> str:
        """Why a tool failed, or what kind of failure ended the turn; empty on other events."""
        return self.payload.get("error", "")

    @property
    def message(self) -> str:
        """The text of a notification; empty on other events."""
        return self.payload.get("message", "")

    @property
    def target(self) -> str:
        """What happened, in one word: how a session started or ended, what triggered a summary, which notification."""
        fields = ("notification_type", "trigger", "source", "reason")
        return next((self.payload[field] for field in fields if field in self.payload), "")

    @property
    def suggestions(self) -> "list[str]":
        """Rules that would answer a permission question permanently; empty on other events."""
        return list(self.payload.get("permission_suggestions") or ())

    @property
    def is_interrupt(self) -> bool:
        return bool(self.payload.get("is_interrupt"))

    @property
    def stop_hook_active(self) -> bool:
        return bool(self.payload.get("stop_hook_active"))


_STRICTNESS = {"block": 3, "ask": 2, "approve": 1}


class Answer(dict["str", "Any"]):
    """A hook's answer, in JSON form. Combine several with `|`: `rewrite(command="ls") | tell("cleaned up")`.

    Of two decisions, the stricter wins, with its reason; rewrites, contexts and messages add up.
    """

    def __or__(self, other: "dict[str, Any]") -> "Answer":  # pyright: ignore[reportIncompatibleMethodOverride]
        merged = Answer({**self, **other})
        for text in ("additionalContext", "systemMessage"):
            if text in self and text in other:
                merged[text] = f"{self[text]}\n{other[text]}"
        if _STRICTNESS.get(self.get("decision", ""), 0) > _STRICTNESS.get(other.get("decision", ""), 0):
            merged.update(decision=self["decision"], reason=self.get("reason", ""))
        mine, theirs = self.get("hookSpecificOutput", {}), other.get("hookSpecificOutput", {})
        if mine and theirs:
            merged["hookSpecificOutput"] = {**mine, **theirs}
            if "updatedInput" in mine and "updatedInput" in theirs:
                merged["hookSpecificOutput"]["updatedInput"] = {**mine["updatedInput"], **theirs["updatedInput"]}
        return merged


def deny(reason: str) -> Answer:
    """Block the tool call, the prompt or the stop; after a tool has run, give the model feedback."""
    return Answer(decision="block", reason=reason)


def ask(reason: str) -> Answer:
    """Ask the user to confirm this tool call."""
    return Answer(decision="ask", reason=reason)


def allow(reason: str = "") -> Answer:
    """Let the tool call run without asking. Cannot override a deny or ask rule."""
    return Answer(decision="approve", reason=reason)


def grant(**fields: "Any") -> Answer:
    """On PermissionRequest: allow, with these fields of the tool's input set."""
    answer: dict[str, Any] = {"behavior": "allow", **({"updatedInput": fields} if fields else {})}
    return Answer(hookSpecificOutput={"decision": answer})


def refuse(message: str, *, interrupt: bool = False) -> Answer:
    """On PermissionRequest: deny, and send the message to the model. `interrupt` also ends the whole turn."""
    return Answer(hookSpecificOutput={"decision": {"behavior": "deny", "message": message, "interrupt": interrupt}})


def stop(reason: str) -> Answer:
    """End the whole turn. The reason is shown to the user."""
    return Answer({"continue": False, "stopReason": reason})


def context(text: str) -> Answer:
    """Add this text to the model's context."""
    return Answer(additionalContext=text)


def rewrite(**fields: "Any") -> Answer:
    """Set these fields of the tool's input; None removes one."""
    return Answer(hookSpecificOutput={"updatedInput": fields})


def replace_output(text: str) -> Answer:
    """Replace the tool's result with this text, for the model and in the transcript."""
    return Answer(hookSpecificOutput={"updatedToolOutput": text})


def tell(text: str) -> Answer:
    """Warn the user; the model does not see it."""
    return Answer(systemMessage=text)
