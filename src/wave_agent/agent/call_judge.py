"""Judging one call: what guards say (`CallReview`), validation, and whoever has to be asked (`CallJudge`)."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.asking import PermissionAsker
from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import CallExaminer, first_look, seen_by, tool_facts
from wave_agent.agent.call_results import CallEnd, CallResults, RequestedCall, hook_note
from wave_agent.agent.consequences import Operation
from wave_agent.formats.readable import why_unreadable
from wave_agent.hooks.events import Decision, Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import TextBlock
from wave_agent.permissions.decision import INSTEAD, Deny, JudgedCall, Permission, Ruling, ToolKind
from wave_agent.system.real_files import Seen
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolInputError


class Reviewed(Struct, frozen=True):
    """A call with everything known about it, and the permission it has."""

    subject: JudgedCall
    permission: Permission
    seen: Mapping[str, Seen] = {}
    """What its paths pointed to."""


class CallReview:
    """What guards say about a call: hooks, protected paths, rules and the mode. No questions are asked, and nothing
    runs: what to do about it is up to this agent, or another one."""

    def __init__(
        self,
        hooks: HookManager,
        authority: Authority,
        examiner: CallExaminer,
        start: str,
        *,
        shown_mode: str | None = None,
    ) -> None:
        """`start` is where relative paths start. `shown_mode` is the mode that hooks see, if not the authority's."""
        self._hooks = hooks
        self._authority = authority
        self._examiner = examiner
        self._start = start
        self._shown_mode = shown_mode

    async def ask_hooks(
        self, call: RequestedCall, tool: Tool, tool_input: Mapping[str, Any], *, may_defer: bool = False
    ) -> Outcome:
        """What PreToolUse hooks say, and the input as they leave it. Unless a call may be deferred, that is an ask."""
        outcome = await self._hooks.run(
            HookEvent.PRE_TOOL_USE,
            call.facts(tool_input),
            permission_mode=self._shown_mode or self._authority.mode.value,
            tool=tool_facts(tool, self._start, call.effects),
        )
        return outcome if may_defer else outcome.as_ask()

    async def permission(
        self, tool: Tool, judged: Outcome, before: Mapping[str, Seen], *, secret: bool = False
    ) -> Reviewed:
        """The permission of a call that hooks have judged.

        `before`: what the paths pointed to when hooks started. `secret`: a hook may have inserted something that the
        model must not see.
        """
        tool_input: Mapping[str, Any] = judged.tool_input or {}
        seen = seen_by(tool, tool_input)
        if swapped := next((path for path, one in seen.items() if before.get(path, one).real != one.real), None):
            why = f"{swapped} was replaced while hooks judged this call. {INSTEAD}"
            denied = Permission(answer=Ruling.DENY, by="a replaced path", for_model=why)
            return Reviewed(JudgedCall(tool=tool.name, tool_input=tool_input), denied, seen)
        subject = await self._examiner.examine(tool, tool_input, seen)
        if secret:
            subject = replace(subject, outside=None, secret=True)
        return Reviewed(subject, self._authority.decide(subject, judged), seen)


class PermittedCall(Struct, frozen=True):
    """A call that may run."""

    tool_input: Mapping[str, Any]
    arguments: Any
    seen: Mapping[str, Seen] = {}
    """What its paths pointed to when the call was judged."""
    notes: tuple[TextBlock, ...] = ()
    """Notes for the model, added to the result."""
    kind: ToolKind = ToolKind.ACTS
    """What it does. A command that only reads does so whatever its tool could do."""
    by: str = ""
    """Who allowed it: `rule`, `hook`, `mode` or `user`."""


class DeniedCall(Struct, frozen=True):
    """A call that must not run."""

    why: str
    notes: tuple[TextBlock, ...] = ()
    by: str = ""
    """One of `DENIED_BY`."""
    tool_input: Mapping[str, Any] = {}


class DeferredCall(Struct, frozen=True):
    """A call that is decided about later."""

    why: str
    """The hooks that deferred it, with their reasons."""


class InvalidCall(Struct, frozen=True):
    """A call whose input does not fit the tool."""

    tool_input: Mapping[str, Any]
    problem: str
    for_model: str


class Answered(IntEnum):
    """Who has already answered whether a call may run."""

    NOT_YET = 0
    HOOK = 1
    PERSON = 2


class _Changed(Struct, frozen=True):
    """A hook or a person asked for permission wants a different input."""

    tool_input: Mapping[str, Any]
    answered: Answered
    rewritten_by: Mapping[str, str] = {}
    """Which hook set each field."""


CallVerdict: TypeAlias = PermittedCall | DeniedCall | DeferredCall | InvalidCall | CallEnd
"""`CallEnd`: hooks refused the call, and it has its result."""


class CallJudge:
    """Decides whether a call may run, and with which input."""

    def __init__(
        self,
        *,
        review: CallReview,
        authority: Authority,
        asker: PermissionAsker,
        results: CallResults,
        context: ToolContext,
        notify: Callable[[str], None],
        on_refusal: Callable[[RequestedCall], None] = lambda _: None,
    ) -> None:
        """`context` is that of the session. `notify` shows the user why a call was denied. `on_refusal` is called if
        hooks refuse a call, before it has its result."""
        self._review = review
        self._authority = authority
        self._asker = asker
        self._results = results
        self._context = context
        self._start = str(context.cwd)
        self._notify = notify
        self._on_refusal = on_refusal

    async def judge(
        self, call: RequestedCall, tool: Tool, parameters: Mapping[str, Any]
    ) -> tuple[CallVerdict, tuple[Operation, ...]]:
        """The verdict, and the operations that wait for the end of the batch."""
        changed, later = _Changed(parameters, Answered.NOT_YET), ()
        while True:
            tool_input = tool.normalise(changed.tool_input, self._start)
            before = first_look(tool, tool_input)
            said = await self._review.ask_hooks(call, tool, tool_input, may_defer=True)
            deferred = self._deferring(said, call)
            judged = said.as_ask()
            is_refused = judged.flow in (Flow.SKIP_TOOL, Flow.END_TURN)
            if is_refused:
                self._on_refusal(call)
            later = (*later, *self._results.apply(judged, call))
            if is_refused:
                return CallEnd(ends_turn=judged.flow is Flow.END_TURN), later
            judged = replace(judged, rewritten_by={**changed.rewritten_by, **judged.rewritten_by})
            verdict = await self._permit(call, tool, judged, changed.answered, before, deferred=deferred)
            if isinstance(verdict, DeferredCall):
                return verdict, ()  # it has no result yet, so no message may follow it
            if isinstance(verdict, DeniedCall) and verdict.by == _NOBODY and self._could_wait_alone(said, call):
                verdict = replace(verdict, why=f"{verdict.why} {_ALONE}")
            if not isinstance(verdict, _Changed):
                return verdict, later
            # No input runs unseen: guards and rules also judge a replacement from whoever was asked.
            changed = verdict

    def _could_wait_alone(self, said: Outcome, call: RequestedCall) -> bool:
        """A hook wanted to defer it, which only its neighbours prevent."""
        deferred = said.flow is Flow.DEFER_CALL and not self._asker.is_attended
        return deferred and not call.may_wait and not self._asker.is_subagent

    def _deferring(self, said: Outcome, call: RequestedCall) -> str:
        """Why this call is deferred; empty: it is not, or cannot be."""
        deferring = said.reasons.get(Decision.DEFER, ())
        if said.flow is not Flow.DEFER_CALL or self._asker.is_attended:
            return ""
        if not call.may_wait:
            names = ", ".join(dict.fromkeys(one.hook for one in deferring))
            self._notify(
                f"Hook {names} deferred {call.name}, but only the single call of an answer can be deferred, and none "
                "of a subagent; it needs confirmation instead."
            )
            return ""
        return "\n".join(
            one.text if one.text.startswith(f"Hook {one.hook} ") else f"Hook {one.hook}: {one.text}"
            for one in deferring
        )

    async def _permit(
        self,
        call: RequestedCall,
        tool: Tool,
        judged: Outcome,
        answered: Answered,
        before: Mapping[str, Seen],
        *,
        deferred: str = "",
    ) -> CallVerdict | _Changed:
        """Validates, judges and asks.

        `answered`: who has already answered the question, with this input as the answer. `before`: what the paths
        pointed to when hooks started to judge. `deferred`: why the decision comes later.
        """
        tool_input: Mapping[str, Any] = judged.tool_input or {}
        try:
            arguments = _parsed(tool, tool_input)
        except ToolInputError as error:
            return InvalidCall(tool_input, str(error), _blame(str(error), judged))
        notes = _rewrite_notes(call, tool, judged, self._authority.places.project)
        if beyond := self._beyond_border(tool, tool_input):
            return DeniedCall(beyond, notes, "sandbox", tool_input)
        # A hook may have inserted what is in the input; its values are not for the model.
        reviewed = await self._review.permission(tool, judged, before, secret=bool(notes))
        subject, permission = reviewed.subject, reviewed.permission
        if permission.answer is Ruling.DENY:
            if permission.for_user:
                self._notify(f"{tool.name} was not run: {permission.for_user}")
            return DeniedCall(permission.for_model, notes, _denier(permission.by), tool_input)
        if deferred:
            return DeferredCall(deferred)
        by = _ANSWERED_BY.get(answered) or _allower(permission.by)
        permitted = PermittedCall(tool_input, arguments, reviewed.seen, notes, subject.kind, by)
        needed = Answered.PERSON if permission.needs_person else Answered.HOOK
        if permission.answer is Ruling.ALLOW or answered >= needed:
            return permitted
        if answered is Answered.NOT_YET:
            return await self._ask(call, tool, subject, permission, permitted)
        return await self._ask_user(call, subject, permission, permitted)

    def _beyond_border(self, tool: Tool, tool_input: Mapping[str, Any]) -> str | None:
        """Why the call must not run, whatever has been permitted: it would write to a path or reach a host beyond the
        sandbox."""
        written = tool.paths(tool_input) if tool.kind is ToolKind.EDITS else ()
        beyond = (why for path in written if (why := self._authority.border(path)) is not None)
        return next(beyond, None) or tool.why_impossible(tool_input, self._context)

    async def _ask(
        self, call: RequestedCall, tool: Tool, subject: JudgedCall, question: Permission, permitted: PermittedCall
    ) -> CallVerdict | _Changed:
        """Asks hooks and, unless they answer the question, the user."""
        hooks = await self._asker.ask_hooks(call, tool, subject)
        is_refused = hooks.flow in (Flow.REFUSE_CALL, Flow.END_TURN)
        if is_refused:
            self._on_refusal(call)
        later = self._results.apply(hooks, call)
        if is_refused:
            return CallEnd(later, ends_turn=hooks.flow is Flow.END_TURN)
        if hooks.flow is Flow.JUDGE and (hooks.rewritten_by or not question.needs_person):
            changed = _Changed(hooks.tool_input or {}, Answered.HOOK, hooks.rewritten_by)
            return changed if hooks.rewritten_by else replace(permitted, by=HOOK)
        reasons = [question.for_user, *(said.text for said in hooks.reasons.get(Decision.ASK, ()))]
        return await self._ask_user(call, subject, replace(question, for_user="\n".join(reasons)), permitted)

    async def _ask_user(
        self, call: RequestedCall, subject: JudgedCall, question: Permission, permitted: PermittedCall
    ) -> PermittedCall | DeniedCall | _Changed:
        answer = await self._asker.ask_user(call, subject, question)
        if isinstance(answer, Deny):
            by = USER if self._asker.is_attended else _denier(question.by, _NOBODY)
            why = answer.message or f"permission was denied. {INSTEAD}"
            return DeniedCall(why, permitted.notes, by, subject.tool_input)
        if answer.updated_input is None:
            return replace(permitted, by=USER)
        return _Changed(answer.updated_input, Answered.PERSON)


HOOK, USER = "hook", "user"
_ANSWERED_BY: Mapping[Answered, str] = {Answered.HOOK: HOOK, Answered.PERSON: USER}
_NOBODY = "nobody_to_ask"
_ALONE = "Make this call alone, and it can be decided later."
_DENIERS = (("protected path ", "protected_path"), ("a replaced path", "path"), ("rule ", "rule"))
_ALLOWERS = (("rule ", "rule"), ("rules ", "rule"), ("hook ", HOOK))


def _denier(by: str, otherwise: str = "mode") -> str:
    """What denied a call, in one word for hooks. A rule that only asks does not deny by itself."""
    return next((word for begins, word in _DENIERS if by.startswith(begins)), otherwise)


def _allower(by: str) -> str:
    """What allowed a call, in one word."""
    return next((word for begins, word in _ALLOWERS if by.startswith(begins)), "mode")


def unjudged(error: Exception) -> str:
    """Why a call could not be judged."""
    where = error.filename if isinstance(error, OSError) else None
    what = error.strerror if isinstance(error, OSError) else None
    reason = f"{type(error).__name__}: {error}" if what is None else f"{where}: {what}" if where else what
    return strip_controls(f"it could not be judged ({reason})")


def _parsed(tool: Tool, tool_input: Mapping[str, Any]) -> Any:
    """Raises `ToolInputError`."""
    if unreadable := why_unreadable(tool_input):  # a hook, or whoever was asked, has inserted it
        raise ToolInputError(f"{tool.name}: invalid input: {unreadable}")
    return tool.parse(tool_input)


def _blame(problem: str, judged: Outcome) -> str:
    """An invalid input that a hook rewrote is the hook's fault, not the model's."""
    if not judged.rewritten_by:
        return problem
    fields = ", ".join(f"{field} by hook {hook}" for field, hook in judged.rewritten_by.items())
    return f"{problem}\nThe input was rewritten by hooks ({fields})."


def _rewrite_notes(call: RequestedCall, tool: Tool, judged: Outcome, project: str) -> tuple[TextBlock, ...]:
    """Which hook changed which fields of the input, never the values: they may be secret."""
    before = tool.normalise(call.parameters or {}, project)
    after = judged.tool_input or {}
    fields: dict[str, list[str]] = {}
    for field, hook in judged.rewritten_by.items():
        if (field in before, before.get(field)) != (field in after, after.get(field)):
            fields.setdefault(hook, []).append(field)
    return tuple(
        hook_note(
            judged.event,
            hook,
            strip_controls(f"Hook {hook} changed the input of this call: {', '.join(names)}."),
        )
        for hook, names in fields.items()
    )
