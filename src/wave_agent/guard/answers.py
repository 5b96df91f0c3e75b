"""What guards decided, in the form that a host enforces most reliably. Pure.

A host that cannot do something gets the stricter thing that it can: a question becomes a deny with instructions, a
call that must be rewritten a deny with the rewritten form as advice. If there is nothing to say, nothing is printed.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.guard.hosts import HOSTS, Form, HostRow, Verb
from wave_agent.guard.replacements import in_shape
from wave_agent.hooks.events import EVENTS, HookEvent

_MOST = 10_000
"""Characters of a text; hosts cut or refuse longer ones."""


class HostAnswer(Struct, frozen=True, kw_only=True):
    """What guards want a host to do about one event."""

    verb: Verb | None = None
    """DENY, ASK, ALLOW or END; None: no opinion."""
    reason: str = ""
    """For the model; of a question, for whoever is asked."""
    why: str = ""
    """What a question is about, in the model's version: hooks' own words are for the user."""
    tool_input: Mapping[str, Any] | None = None
    """The host's input as hooks rewrote it."""
    advice: str = ""
    """The rewritten call in words, for hosts that cannot rewrite."""
    context: str = ""
    replacement: str | None = None
    """The text that replaces a tool's result."""
    skips_questions: bool = False
    """The host is in a mode in which it may not ask."""
    shape: Any = None
    """The result as the host sent it: some take a new one only in the same shape."""
    message: str = ""
    """For the user."""


class HostReply(Struct, frozen=True):
    """What the process prints, and its exit status."""

    status: int = 0
    stdout: str = ""
    stderr: str = ""


def reply(host: str, name: str, answer: HostAnswer, *, pass_allow: bool = False) -> HostReply:
    """`name` is the host's name of the event."""
    row = HOSTS[host]
    event = row.events[name]
    possible = degraded(answer, event, row.enforces.get(event, frozenset()), pass_allow=pass_allow)
    if possible.replacement is not None and row.reason_replaces:
        possible = _replaced_by_reason(possible)
    return _FORMS[row.form](row, name, possible)


def _replaced_by_reason(answer: HostAnswer) -> HostAnswer:
    """A deny whose reason is the new result, with everything else that the model should read."""
    said = answer.reason if answer.verb is Verb.DENY else ""
    texts = (answer.replacement or "(withheld by a guard)", said, answer.context)
    return replace(answer, verb=Verb.DENY, reason=_cut("\n".join(filter(None, texts))), context="", replacement=None)


_STRICTEST = (Verb.DENY, Verb.END, Verb.ASK)


def together(answers: Sequence[HostAnswer]) -> HostAnswer:
    """One answer for a call of the host that is several of ours: the strictest, with everybody's reasons. An allow must
    be everybody's."""
    if len(answers) == 1:
        return answers[0]
    verbs = {answer.verb for answer in answers}
    all_allow = Verb.ALLOW if verbs == {Verb.ALLOW} else None
    verb = next((one for one in _STRICTEST if one in verbs), all_allow)
    deciding = [answer for answer in answers if answer.verb is verb]

    def joined(texts: Iterable[str]) -> str:
        return "\n".join(dict.fromkeys(filter(None, texts)))

    replaced = [answer.replacement for answer in answers if answer.replacement is not None]
    return HostAnswer(
        verb=verb,
        reason=joined(answer.reason for answer in deciding),
        why=joined(answer.why for answer in deciding),
        tool_input=next((answer.tool_input for answer in answers if answer.tool_input is not None), None),
        advice=joined(answer.advice for answer in answers),
        context=joined(answer.context for answer in answers),
        replacement="\n".join(replaced) if replaced else None,
        shape=next((answer.shape for answer in answers if answer.shape is not None), None),
        message=joined(answer.message for answer in answers),
    )


def failed(host: str, name: str, why: str) -> HostReply:
    """The guard could not judge: a deny where the host can deny. An event that is not this host's is one, too."""
    row = HOSTS[host]
    event = row.events.get(name, HookEvent.PRE_TOOL_USE)
    known = name if name in row.events else next(iter(row.events))
    if not EVENTS[event].has_rewrites:  # nothing is about to run: the session must not hang on it
        return HostReply(stderr=f"wave guard: {why}\n")
    return _FORMS[row.form](row, known, HostAnswer(verb=Verb.DENY, reason=f"wave guard: {why}"))


def degraded(answer: HostAnswer, event: HookEvent, can: frozenset[Verb], *, pass_allow: bool = False) -> HostAnswer:
    """The answer with nothing in it that the host would ignore."""
    before_tool = EVENTS[event].has_rewrites
    if answer.tool_input is not None and Verb.REWRITE not in can and answer.verb is not Verb.DENY:
        text = f"A guard wants this call to be different. Repeat it like this: {answer.advice}"
        answer = replace(answer, verb=Verb.DENY, reason="\n".join(filter(None, (answer.reason, text))))
    if answer.verb is Verb.ASK and (Verb.ASK not in can or answer.skips_questions):
        text = f"Not run: {answer.why or 'a guard asks'}. This run is not interactive. Do without it, or tell the user."
        answer = replace(answer, verb=Verb.DENY, reason=text)
    if answer.verb is Verb.END and Verb.END not in can:
        # Before a tool, ending the turn includes not running it. At the end of a turn, it is what happens anyway.
        ends_anyway = EVENTS[event].block_counter is not None
        answer = replace(answer, verb=None if ends_anyway else Verb.DENY)
    if answer.replacement is not None and Verb.REPLACE not in can:
        shown = f"Use this in place of the tool's result: {answer.replacement}"
        answer = replace(answer, context="\n".join(filter(None, (answer.context, shown))))
    if answer.verb is Verb.ALLOW and not (pass_allow and Verb.ALLOW in can):
        answer = replace(answer, verb=None, reason="")
    if answer.verb is Verb.DENY and Verb.DENY not in can and not before_tool:  # feedback, as far as it is read
        context = "\n".join(filter(None, (answer.reason, answer.context)))
        answer = replace(answer, verb=None, context=context, message=answer.message or answer.reason)
    denied = answer.verb is Verb.DENY
    if denied and answer.context:  # where hosts read a deny, they read nothing else
        answer = replace(answer, reason="\n".join(filter(None, (answer.reason, answer.context))), context="")
    return replace(
        answer,
        reason=_cut(answer.reason),
        tool_input=None if denied else answer.tool_input,
        context=_cut(answer.context) if Verb.CONTEXT in can else "",
        replacement=answer.replacement if Verb.REPLACE in can else None,
        message=_cut(answer.message) if Verb.TELL in can else "",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}… (cut)"


# -------------------------------------------------------------------------------------------------------------- forms


def _printed(found: Mapping[str, Any]) -> HostReply:
    return HostReply(stdout=json.dumps(found) + "\n") if found else HostReply()


def _exit_two(answer: HostAnswer) -> HostReply:
    """Never without a reason: some hosts let a silent exit 2 pass."""
    return HostReply(2, "", f"{answer.reason.strip() or 'Denied by wave guard.'}\n")


def _claude(row: HostRow, name: str, answer: HostAnswer) -> HostReply:
    event = row.events[name]
    denied = answer.verb is Verb.DENY
    if denied and answer.replacement is None and _DECISIONS.get(event) is not _behavior:
        return _exit_two(answer)
    specific: dict[str, Any] = dict(_DECISIONS.get(event, _no_decision)(answer))
    if answer.tool_input is not None:
        specific["updatedInput"] = answer.tool_input
    if answer.context:
        specific["additionalContext"] = answer.context
    if answer.replacement is not None:
        specific["updatedToolOutput"] = in_shape(answer.shape, answer.replacement)
    found: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": name, **specific}} if specific else {}
    if answer.verb is Verb.END:
        found |= {"continue": False, "stopReason": answer.reason or "Stopped by a guard."}
    if denied and answer.replacement is not None:  # exit 2 would drop the replacement
        found |= {"decision": "block", "reason": answer.reason or "Denied by wave guard."}
    if answer.message:
        found["systemMessage"] = answer.message
    return _printed(found)


def _permission_decision(answer: HostAnswer) -> Mapping[str, Any]:
    if answer.verb is None:
        return {}
    return {"permissionDecision": answer.verb.value, "permissionDecisionReason": answer.reason}


def _behavior(answer: HostAnswer) -> Mapping[str, Any]:
    if answer.verb is None:
        return {}
    message = {"message": answer.reason or "Denied by wave guard."} if answer.verb is Verb.DENY else {}
    return {"decision": {"behavior": answer.verb.value, **message}}


def _no_decision(_: HostAnswer) -> Mapping[str, Any]:
    return {}


_DECISIONS: Mapping[HookEvent, Callable[[HostAnswer], Mapping[str, Any]]] = {
    HookEvent.PRE_TOOL_USE: _permission_decision,
    HookEvent.PERMISSION_REQUEST: _behavior,
}
"""Events on which a decision goes into `hookSpecificOutput`."""


def _gemini(_: HostRow, name: str, answer: HostAnswer) -> HostReply:
    if answer.verb is Verb.DENY:
        return _exit_two(answer)
    found: dict[str, Any] = {}
    specific: dict[str, Any] = {}
    if answer.verb is Verb.END:
        found |= {"continue": False, "stopReason": answer.reason or "Stopped by a guard."}
    elif answer.verb is not None:
        found |= {"decision": answer.verb.value, "reason": answer.reason}
    if answer.tool_input is not None:
        specific["tool_input"] = answer.tool_input
    if answer.context:
        specific["additionalContext"] = answer.context
    if specific:
        found["hookSpecificOutput"] = {"hookEventName": name, **specific}
    if answer.message:
        found["systemMessage"] = answer.message
    return _printed(found)


def _snake(_: HostRow, __: str, answer: HostAnswer) -> HostReply:
    found: dict[str, Any] = {}
    specific: dict[str, Any] = {}
    if answer.verb is Verb.DENY:
        found |= {"decision": "deny", "reason": answer.reason or "Denied by wave guard."}
    if answer.tool_input is not None:
        specific["tool_input"] = answer.tool_input
    if answer.context:
        specific["additional_context"] = answer.context
    if specific:
        found["hook_specific_output"] = specific
    if answer.message:
        found["system_message"] = answer.message
    return _printed(found)


def _cursor(row: HostRow, name: str, answer: HostAnswer) -> HostReply:
    if answer.verb is None:
        return HostReply()
    if not EVENTS[row.events[name]].has_tool:
        return _printed({"continue": False, "user_message": answer.reason})
    reason = answer.reason or f"wave guard: {answer.verb}"
    return _printed({"permission": answer.verb.value, "user_message": reason, "agent_message": reason})


def _copilot(_: HostRow, __: str, answer: HostAnswer) -> HostReply:
    found: dict[str, Any] = {}
    if answer.verb is not None:
        found |= {"permissionDecision": answer.verb.value, "permissionDecisionReason": answer.reason}
    if answer.tool_input is not None:
        found["modifiedArgs"] = answer.tool_input
    if answer.context:
        found["additionalContext"] = answer.context
    return _printed(found)


def _plugin(_: HostRow, __: str, answer: HostAnswer) -> HostReply:
    found: dict[str, Any] = {}
    if answer.verb is Verb.DENY:
        found["deny"] = answer.reason or "Denied by wave guard."
    if answer.tool_input is not None:
        found["input"] = answer.tool_input
    if answer.replacement is not None:
        found["output"] = answer.replacement
    return _printed(found)


_FORMS: Mapping[Form, Callable[[HostRow, str, HostAnswer], HostReply]] = {
    Form.EXIT_TWO: _claude,
    Form.GEMINI: _gemini,
    Form.SNAKE: _snake,
    Form.CURSOR: _cursor,
    Form.COPILOT: _copilot,
    Form.PLUGIN: _plugin,
}
