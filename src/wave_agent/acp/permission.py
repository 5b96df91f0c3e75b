"""Questions to the user as `session/request_permission`, and what the answers mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from msgspec import Struct

from wave_agent.acp.tool_calls import Content, ShownCall, said
from wave_agent.permissions.decision import Allow, Deny, PermissionRequest, RestoreRequest

ALLOW, REJECT, ALWAYS = "allow", "reject", "always"
_LISTED = 20
"""Maximum number of files in one question."""


class EditorAnswer(Struct, frozen=True):
    """What the user wants."""

    decision: Allow | Deny
    rules: tuple[str, ...] = ()
    """To be kept for good."""


def question(
    request: PermissionRequest,
    *,
    session_id: str,
    key: str,
    call: ShownCall,
    changes: Sequence[Content],
    facts: Mapping[str, Any],
) -> RequestPermissionRequest:
    """`key` is the id under which the editor knows the call; `facts` go into `_meta`."""
    by = f"Asked by {request.by}" if request.by else "Asked"
    words = [f"{by}: {request.reason}" if request.reason else f"{by}."]
    if request.question:
        words.insert(0, request.question)
    if request.does and not changes:
        words.append(f"It {request.does}.")
    return RequestPermissionRequest(
        session_id=session_id,
        tool_call=ToolCallUpdate(
            tool_call_id=key,
            title=call.title,
            kind=call.kind,
            status="pending",
            content=[said("\n\n".join(words)), *changes],
            locations=call.locations() or None,
            raw_input=dict(call.parameters),
            field_meta=dict(facts),
        ),
        options=_options(request),
        field_meta=dict(facts),
    )


def _options(request: PermissionRequest) -> list[PermissionOption]:
    """`always` is offered only if rules can answer the question."""
    always = [
        PermissionOption(
            option_id=f"{ALWAYS}-{number}",
            name=f"Always allow in this project: {', '.join(rules)}",
            kind="allow_always",
        )
        for number, rules in enumerate(offered_rules(request), 1)
    ]
    return [
        PermissionOption(option_id=ALLOW, name="Allow once", kind="allow_once"),
        *always,
        PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
    ]


def offered_rules(request: PermissionRequest) -> list[tuple[str, ...]]:
    if not request.lasting:
        return []
    return [*((rule,) for rule in request.suggestions), *((request.together,) if request.together else ())]


def answer_to(request: PermissionRequest, response: RequestPermissionResponse) -> EditorAnswer | None:
    """None: the user turned away from the question, which answers nothing. An option that was not offered denies."""
    if not isinstance(response.outcome, AllowedOutcome):
        return None
    chosen = response.outcome.option_id
    rules = {f"{ALWAYS}-{number}": rules for number, rules in enumerate(offered_rules(request), 1)}
    if chosen == ALLOW or chosen in rules:
        return EditorAnswer(Allow(), rules.get(chosen, ()))
    if chosen != REJECT:
        return EditorAnswer(Deny("the editor gave an answer that was not offered."))
    if request.question:
        return EditorAnswer(Deny("you said no."))
    return EditorAnswer(Deny("the user said no. Do without it, or ask what to do instead."))


KEEP, RESTORE = "keep", "restore"


def restore_question(request: RestoreRequest, *, session_id: str, key: str, project: str) -> RequestPermissionRequest:
    """Whether a change that rules deny may stand. To reject is to restore, which is what the rules say."""
    changes = request.changes
    files = "a file" if len(changes) == 1 else f"{len(changes):,} files"
    lines = [
        f"- {one.kind} {one.path.removeprefix(f'{project}/')}" + (f" ({one.rule})" if one.rule else "")
        for one in changes[:_LISTED]
    ]
    if len(changes) > _LISTED:
        lines.append(f"- and {len(changes) - _LISTED:,} more")
    doubt = "\n\nSomething else was running meanwhile, and may have done it." if request.meanwhile else ""
    title = f"{request.tool_name} changed {files} that rules protect. Keep the change?"
    return RequestPermissionRequest(
        session_id=session_id,
        tool_call=ToolCallUpdate(
            tool_call_id=key,
            title=title,
            content=[said(f"{title}\n\n" + "\n".join(lines) + doubt)],
        ),
        options=[
            PermissionOption(option_id=KEEP, name="Keep the change", kind="allow_once"),
            PermissionOption(option_id=RESTORE, name="Restore; the changed version is kept", kind="reject_once"),
        ],
    )


def keeps(response: RequestPermissionResponse) -> bool:
    return isinstance(response.outcome, AllowedOutcome) and response.outcome.option_id == KEEP
