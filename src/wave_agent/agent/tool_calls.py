"""One tool call: PreToolUse hooks, permission, the tool itself, the hooks after it."""

import asyncio
import os
import shlex
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.consequences import Operation, TellModel, When, consequences, perform
from wave_agent.errors import SessionError
from wave_agent.events import Event, PermissionRequested, ToolOutput, ToolStarted
from wave_agent.formats.readable import readable, readable_text, why_unreadable
from wave_agent.hooks.dialects import Aside, Dialect, has_failed, heard_by
from wave_agent.hooks.events import EVENTS, Decision, Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.stage import ToolFacts
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import DENIED, NOT_RUN, STOPPED, MessageManager, Origin, Ran, TextBlock
from wave_agent.permissions.decision import (
    INSTEAD,
    Allow,
    Approver,
    Deny,
    JudgedCall,
    Permission,
    PermissionMode,
    PermissionRequest,
    Rules,
    Ruling,
    ToolKind,
    decide,
    suggested_together,
    suggestions,
    unanswered,
)
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import Places, Rule, path_expression
from wave_agent.system.real_files import Seen, is_below, look
from wave_agent.system.timestamps import Clock, stamp, utc_now
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolInterrupted, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.files import uninterrupted
from wave_agent.tools.output import fitted
from wave_agent.tools.registry import find_tool

if TYPE_CHECKING:
    from wave_agent.tools.hook_edits import WatchedFile

INTERRUPTED = "Interrupted by the user before it was done."
_SEARCHES = ("grep",)
"""Tools that open files their input does not name."""
NOT_BEGUN = f"{NOT_RUN}the turn was interrupted before this call began."


class RequestedCall(Struct, frozen=True):
    """A call as the model made it."""

    id: str
    name: str
    parameters: Mapping[str, Any] | None
    """None: what the model wrote is not a JSON object."""
    problem: str = ""


class CallEnd(Struct, frozen=True):
    """What a call leaves to do at the end of its batch."""

    later: tuple[Operation, ...] = ()
    ends_turn: bool = False


class _Permitted(Struct, frozen=True):
    """A call that may run."""

    tool_input: Mapping[str, Any]
    arguments: Any
    seen: Mapping[str, Seen] = {}
    """What its paths pointed to when the call was judged."""
    notes: tuple[TextBlock, ...] = ()
    """Notes for the model, added to the result."""


class Answered(IntEnum):
    """Who has already answered whether a call may run."""

    NOBODY = 0
    HOOK = 1
    PERSON = 2


class _Changed(Struct, frozen=True):
    """A hook or a person asked for permission wants a different input."""

    tool_input: Mapping[str, Any]
    answered: Answered
    rewritten_by: Mapping[str, str] = {}
    """Which hook set each field."""


class _Heard(Struct, frozen=True):
    """The outcome of the hooks on one event after a tool, and the result they leave."""

    outcome: Outcome
    edits: tuple[TextBlock, ...]
    result: ToolResult
    origin: Origin | None = None
    """Origin of the result, if a hook replaced it."""
    replaced: bool = False


class CallRunner:
    """Runs single calls. Every call gets exactly one result."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        tools: Mapping[str, Tool],
        context: ToolContext,
        rules: Rules,
        mode: PermissionMode,
        directories: tuple[str, ...],
        protected: ProtectedPaths,
        approver: Approver | None,
        emit: Callable[[Event], None],
        sync: Callable[[], None] = lambda: None,
        border: Callable[[str], str | None] = lambda _: None,
        changes: FileChanges | None = None,
        now: Clock = utc_now,
    ) -> None:
        """`directories` are those considered inside the project, as real paths. `sync` is called before a tool that
        changes something: the record of the call is on disk before its effect. `border` says why a path must not be
        written, whatever has been permitted. `changes` are those of the tools: hooks' changes to the same files are
        added to them.
        """
        self._messages = messages
        self._hooks = hooks
        self._tools = tools
        self._context = context
        self._rules = rules
        self.mode = mode
        """May change at any time; a change applies from the next call."""
        self._directories = directories
        self._protected = protected
        self._approver = approver
        self._emit = emit
        self._sync = sync
        self._border = border
        self._changes = changes or FileChanges()
        self._watched: Mapping[str, WatchedFile] = {}
        self._now = now
        self._begun: set[str] = set()
        """Calls whose tool has started."""
        self._places = Places(hooks.session.project_dir, hooks.session.home, hooks.session.start)

    def allow(self, rule: Rule) -> None:
        """From now on, calls that match the rule run without the question the mode would ask."""
        self._rules = replace(self._rules, allow=(*self._rules.allow, rule))

    @property
    def rules(self) -> Rules:
        return self._rules

    def reads_only(self, call: RequestedCall) -> bool:
        """It may run in parallel with other read-only calls."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.kind is ToolKind.READS and call.parameters is not None

    def polls(self, call: RequestedCall) -> bool:
        """It only checks the progress of something else."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.polls

    def refuse(self, call: RequestedCall, problem: str) -> CallEnd:
        """Refuses a call without judging it: no hook sees it."""
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        return self._refuse(call, problem)

    def skip(self, call: RequestedCall) -> None:
        """A call of a batch that a hook ended."""
        self._finish(call, ToolResult(content=STOPPED, success=False), error=STOPPED)

    def interrupted(self, call_id: str) -> str:
        """The result of a call that an interrupt left without one."""
        return INTERRUPTED if call_id in self._begun else NOT_BEGUN

    async def run(self, call: RequestedCall) -> CallEnd:
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        try:
            tool = find_tool(call.name, self._tools.values())
        except ToolInputError as error:
            return self._refuse(call, str(error))
        if call.parameters is None:
            return self._refuse(call, call.problem)
        try:
            permitted, later = await self._judge(call, tool, call.parameters)
        except SessionError:
            raise
        except Exception as error:  # a call that cannot be judged does not run
            return self._unjudged(call, error)
        end = permitted if isinstance(permitted, CallEnd) else await self._use(call, tool, permitted)
        return CallEnd((*later, *end.later), end.ends_turn)

    async def _judge(
        self, call: RequestedCall, tool: Tool, parameters: Mapping[str, Any]
    ) -> tuple[_Permitted | CallEnd, tuple[Operation, ...]]:
        """What may run, or an end if nothing may; and the operations that wait for the end of the batch."""
        changed, later = _Changed(parameters, Answered.NOBODY), ()
        while True:
            tool_input = tool.normalise(changed.tool_input, str(self._context.cwd))
            before = _first_look(tool, tool_input)
            judged = await self._before(call, tool, tool_input)
            later = (*later, *self._apply(judged, call))
            if judged.flow in (Flow.SKIP_TOOL, Flow.END_TURN):
                return CallEnd(ends_turn=judged.flow is Flow.END_TURN), later
            judged = replace(judged, rewritten_by={**changed.rewritten_by, **judged.rewritten_by})
            permitted = await self._permit(call, tool, judged, changed.answered, before)
            if not isinstance(permitted, _Changed):
                return permitted, later
            # No input runs unseen: guards and rules also judge a replacement from whoever was asked.
            changed = permitted

    def _unjudged(self, call: RequestedCall, error: Exception) -> CallEnd:
        """An error while judging a call is a deny: a guard or a rule might have denied it."""
        why = unjudged(error)
        if not isinstance(error, OSError):  # a bug, which must be reported; anything else is caused by the path
            self._messages.add_error_block(strip_controls(f"{call.name} was not run: {why}"))
        return self._deny(call, f"{why}. {INSTEAD}", ())

    def _refuse(self, call: RequestedCall, problem: str) -> CallEnd:
        self._finish(call, ToolResult(content=problem, success=False), error=problem)
        return CallEnd()

    # ------------------------------------------------------------------------------------------------------ permission

    async def _permit(
        self, call: RequestedCall, tool: Tool, judged: Outcome, answered: Answered, before: Mapping[str, Seen]
    ) -> _Permitted | _Changed | CallEnd:
        """Validates, judges and asks. An end if the tool must not run; the call then has its result.

        `answered`: who has already answered the question, with this input as the answer. `before`: what the paths
        pointed to when hooks started to judge.
        """
        tool_input: Mapping[str, Any] = judged.tool_input or {}
        try:
            if unreadable := why_unreadable(tool_input):  # a hook, or whoever was asked, has inserted it
                raise ToolInputError(f"{tool.name}: invalid input: {unreadable}")
            arguments = tool.parse(tool_input)
        except ToolInputError as error:
            wrong = ToolResult(content=_blame(str(error), judged), success=False, ran=False)
            return await self._failed(call, self._facts(call, tool_input), wrong, error=str(error))
        notes = self._rewritten(call, tool, judged)
        written = tool.paths(tool_input) if tool.kind is ToolKind.EDITS else ()
        if beyond := next((why for path in written if (why := self._border(path)) is not None), None):
            return self._deny(call, beyond, notes)
        seen = seen_by(tool, tool_input)
        if swapped := next((path for path, one in seen.items() if before.get(path, one).real != one.real), None):
            return self._deny(call, f"{swapped} was replaced while hooks judged this call. {INSTEAD}", notes)
        subject = subject_of(tool, tool_input, self._context, self._directories, self._protected, seen=seen)
        subject = await self._with_other_names(tool, subject, seen)
        if subject.protected is None:
            subject = replace(subject, protected=await self._changed_by_git(tool, tool_input), by_git=True)
        if notes:
            subject = replace(subject, outside=None)  # a hook may have inserted it; its values are not for the model
        permission = decide(subject, self.mode, self._rules, judged, self._places)
        if permission.answer is Ruling.DENY:
            if permission.for_user:
                self._messages.add_notice_block(f"{tool.name} was not run: {permission.for_user}")
            return self._deny(call, permission.for_model, notes)
        needed = Answered.PERSON if permission.needs_person else Answered.HOOK
        permitted = _Permitted(tool_input, arguments, seen, notes)
        if permission.answer is Ruling.ALLOW or answered >= needed:
            return permitted
        if answered is Answered.NOBODY:
            hooks = await self._ask_hooks(call, tool, subject)
            later = self._apply(hooks, call)
            if hooks.flow in (Flow.REFUSE_CALL, Flow.END_TURN):
                return CallEnd(later, ends_turn=hooks.flow is Flow.END_TURN)
            if hooks.flow is Flow.JUDGE and (hooks.rewritten_by or not permission.needs_person):
                changed = _Changed(hooks.tool_input or {}, Answered.HOOK, hooks.rewritten_by)
                return changed if hooks.rewritten_by else permitted
            told = [permission.for_user, *(said.text for said in hooks.reasons.get(Decision.ASK, ()))]
            permission = replace(permission, for_user="\n".join(told))
        return await self._ask_person(call, subject, permission, permitted)

    async def _with_other_names(self, tool: Tool, subject: JudgedCall, seen: Mapping[str, Seen]) -> JudgedCall:
        """The call with other names of its file (hard links), if the patterns of rules could match them."""
        name = tool.name.casefold()
        rules = [rule for rule in (*self._rules.deny, *self._rules.ask) if rule.pattern is not None]
        rules = [rule for rule in rules if rule.tool == name]
        linked = [(path, facts) for path, one in seen.items() if (facts := _linked(one)) is not None] if rules else []
        if not linked:
            return subject
        from wave_agent.permissions.hard_links import other_names, places_of  # lazy: few files have two names

        where = places_of(rules, self._places)
        for path, facts in linked:
            found = await asyncio.to_thread(other_names, facts, where)
            fields = [field for field in tool.path_fields if subject.tool_input.get(field) == path]
            others = tuple({**subject.tool_input, **dict.fromkeys(fields, other)} for other in found.names)
            subject = replace(
                subject,
                other_inputs=(*subject.other_inputs, *others),
                unsure=subject.unsure if found.complete else path,
            )
        return subject

    async def _changed_by_git(self, tool: Tool, tool_input: Mapping[str, Any]) -> str | None:
        """A git command names no files: asks git what it would change, in a thread."""
        runs, assigned = tool.git_runs(tool_input, self._context)
        if not runs:
            return None
        from wave_agent.permissions.git.effects import (  # lazy: a session may never use git
            GitLine,
            changed_by_git,
            find_git,
            meddles,
        )

        return await asyncio.to_thread(
            changed_by_git,
            GitLine(
                runs=runs,
                assigned=tuple(assigned),
                meddles=meddles(tool.written_paths(tool_input, self._context)),
            ),
            self._protected.files,
            self._protected.directories,
            beside=self._protected.beside,
            program=find_git(self._hooks.search_path, self._places.project),
            environment=dict(self._context.environment),
        )

    async def _ask_person(
        self, call: RequestedCall, subject: JudgedCall, question: Permission, permitted: _Permitted
    ) -> _Permitted | _Changed | CallEnd:
        answer = await self._ask(call, subject, question)
        if isinstance(answer, Deny):
            return self._deny(call, answer.message or f"permission was denied. {INSTEAD}", permitted.notes)
        return permitted if answer.updated_input is None else _Changed(answer.updated_input, Answered.PERSON)

    def _deny(self, call: RequestedCall, why: str, notes: Sequence[TextBlock]) -> CallEnd:
        told = why if why.startswith(NOT_RUN) else NOT_RUN + why
        return CallEnd(self._conclude(call, ToolResult(content=told, success=False), notes, error=DENIED))

    def _rewritten(self, call: RequestedCall, tool: Tool, judged: Outcome) -> tuple[TextBlock, ...]:
        """Which hook changed which fields of the input, never the values: they may be secret."""
        before = tool.normalise(call.parameters or {}, self._places.project)
        after = judged.tool_input or {}
        fields: dict[str, list[str]] = {}
        for field, hook in judged.rewritten_by.items():
            if (field in before, before.get(field)) != (field in after, after.get(field)):
                fields.setdefault(hook, []).append(field)
        return tuple(
            _note(
                judged.event, hook, strip_controls(f"Hook {hook} changed the input of this call: {', '.join(changed)}.")
            )
            for hook, changed in fields.items()
        )

    async def _ask_hooks(self, call: RequestedCall, tool: Tool, subject: JudgedCall) -> Outcome:
        facts = self._facts(call, subject.tool_input)
        return await self._hooks.run(
            HookEvent.PERMISSION_REQUEST,
            {**facts, "permission_suggestions": suggestions(subject, self._places)},
            permission_mode=self.mode.value,
            tool=self._tool_facts(tool),
            dialects=heard_by(HookEvent.PERMISSION_REQUEST, attended=self._approver is not None),
        )

    async def _before(self, call: RequestedCall, tool: Tool, tool_input: Mapping[str, Any]) -> Outcome:
        return await self._hooks.run(
            HookEvent.PRE_TOOL_USE,
            self._facts(call, tool_input),
            permission_mode=self.mode.value,
            tool=self._tool_facts(tool),
        )

    async def _ask(self, call: RequestedCall, subject: JudgedCall, question: Permission) -> Allow | Deny:
        self._emit(
            PermissionRequested(
                id=call.id, tool_name=subject.tool, tool_input=subject.tool_input, reason=question.for_user
            )
        )
        if self._approver is None:
            by_mode = question.by.startswith("mode ") and not subject.outside
            rule = next(iter(suggestions(subject, self._places)), "") if by_mode else ""
            allowing = f". To allow it: --allowed-tools {shlex.quote(rule)}" if rule else ""
            self._messages.add_notice_block(
                f"{subject.tool} was not run, as nobody could be asked: {question.for_user}{allowing}"
            )
            return Deny(unanswered(question).for_model)
        await self._hooks.run(
            HookEvent.NOTIFICATION,
            {
                "message": f"Your permission is needed to use {subject.tool}: {question.for_user}",
                "title": "Permission needed",
                "notification_type": "permission_prompt",
            },
            permission_mode=self.mode.value,
        )
        request = PermissionRequest(
            tool_name=subject.tool,
            tool_input=subject.tool_input,
            reason=question.for_user,
            suggestions=suggestions(subject, self._places),
            together=suggested_together(subject, self._places),
            tool_use_id=call.id,
            by=question.by,
        )
        from wave_agent.agent.approval import answer_of  # lazy: only if someone can be asked

        return await answer_of(self._approver, request, self._messages.add_error_block, self._context.door)

    # ------------------------------------------------------------------------------------------------- running the tool

    async def _use(self, call: RequestedCall, tool: Tool, permitted: _Permitted) -> CallEnd:
        facts = self._facts(call, permitted.tool_input)
        started, clock = stamp(self._now()), monotonic()
        result = _readable(await self._execute(call, tool, permitted, facts))
        ran = Ran(started, round((monotonic() - clock) * 1000, 3))
        if not result.ran:
            return await self._failed(call, facts, result, permitted.notes, ran=ran)
        return await self._after(call, facts, result, ran, permitted.notes)

    async def _execute(
        self, call: RequestedCall, tool: Tool, permitted: _Permitted, facts: dict[str, Any]
    ) -> ToolResult:
        """The result, even if the tool could not do its work."""

        def stream(text: str) -> None:
            self._emit(ToolOutput(id=call.id, text=text))

        # While a hook may still redact the result, none of it is shown.
        after = (HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE)
        hidden = any(self._hooks.watches(event, tool.name) for event in after)
        context = replace(self._context, judged=permitted.seen, unread=self._unread(tool, permitted.tool_input))
        context = replace(context, hold=True) if hidden else replace(context, emit=stream)
        if tool.kind is not ToolKind.READS:
            self._sync()
        try:
            await asyncio.sleep(0)  # lets an interrupt requested by a callback take effect before anything is done
            self._begun.add(call.id)
            with context.door():
                return await tool.run(permitted.arguments, context)
        except ToolInputError as error:
            return ToolResult(content=str(error), success=False, ran=False)
        except (Exception, SystemExit) as error:  # a bug in a tool is the call's result, not the end of the agent
            what = strip_controls(f"{tool.name} failed: {type(error).__name__}: {error}")
            return ToolResult(content=what, success=False, ran=False)
        except asyncio.CancelledError as error:  # the turn is over, so hooks are notified but not waited for
            if isinstance(error, ToolInterrupted) and not hidden:  # output a hook might have redacted is not stored
                with suppress(SessionError):  # noted: see `SessionLog.failure`
                    self._finish(call, error.result, error=INTERRUPTED)
            await self._hooks.run(
                HookEvent.POST_TOOL_USE_FAILURE,
                {**facts, "error": INTERRUPTED, "is_interrupt": True},
                permission_mode=self.mode.value,
                waited=False,
            )
            raise asyncio.CancelledError from None  # the plain class: a task group knows no other

    def _unread(self, tool: Tool, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
        """What a search must skip: rules apply to the files it would open, not only to where it starts. An ask rule
        that matched this call has been answered."""
        if tool.name.casefold() not in _SEARCHES:
            return ()
        asked = (rule for rule in self._rules.ask if not rule.matches(tool.name, tool_input, self._places))
        rules = (rule for rule in (*self._rules.deny, *asked) if rule.tool in ("read", tool.name.casefold()))
        patterns = (pattern for rule in rules for pattern in (rule.pattern, rule.also) if pattern is not None)
        return tuple(dict.fromkeys(path_expression(pattern, self._places) for pattern in patterns))

    async def _failed(
        self,
        call: RequestedCall,
        facts: dict[str, Any],
        result: ToolResult,
        notes: Sequence[TextBlock] = (),
        *,
        error: str = "",
        ran: Ran | None = None,
    ) -> CallEnd:
        """The tool could not do its work. `ran`: it was started."""
        aside = Aside(duration_ms=None if ran is None else ran.duration_ms)
        heard = await self._heard(HookEvent.POST_TOOL_USE_FAILURE, facts, result, aside, failed=False)
        why = heard.result.content if heard.replaced else error or result.content
        return self._ended(call, [heard], notes, error=why)

    async def _after(
        self, call: RequestedCall, facts: dict[str, Any], result: ToolResult, ran: Ran, notes: Sequence[TextBlock]
    ) -> CallEnd:
        """The tool has run. The hook's dialect determines which event reports a failed tool; hooks that see it second
        see what the first ones left of the result."""
        aside = Aside(duration_ms=ran.duration_ms, original=result.original)
        heard = [await self._heard(HookEvent.POST_TOOL_USE, facts, result, aside, failed=not result.success)]
        if not result.success:
            left = heard[0].result
            heard.append(await self._heard(HookEvent.POST_TOOL_USE_FAILURE, facts, left, aside, failed=True))
        return self._ended(call, heard, notes, ran=ran)

    async def _heard(
        self, event: HookEvent, facts: dict[str, Any], result: ToolResult, aside: Aside, *, failed: bool
    ) -> _Heard:
        """What hooks on this event make of a result. `failed`: the tool has run, and failed."""
        wrong = {} if result.success else {"error": result.content}
        response = {"success": result.success, "content": result.content, **wrong, **result.response}
        about = {"tool_response": response, "error": result.content, "is_interrupt": False}
        wanted = {field.name for field in EVENTS[event].stdin}
        told = {**facts, **{name: value for name, value in about.items() if name in wanted}}
        outcome, edits = await self._hooks_after(event, told, heard_by(event, failed=failed), aside)
        if outcome.replacement is None:
            return _Heard(outcome, edits, result)
        origin = None if outcome.withheld else Origin(outcome.event, outcome.replaced_by)
        left = ToolResult(content=outcome.replacement, success=result.success, ran=result.ran)
        return _Heard(outcome, edits, left, origin, replaced=True)

    def _ended(
        self,
        call: RequestedCall,
        heard: Sequence[_Heard],
        notes: Sequence[TextBlock],
        *,
        error: str | None = None,
        ran: Ran | None = None,
    ) -> CallEnd:
        """Gives the call the result that hooks have left, and applies their other outcomes."""
        last = next((one for one in reversed(heard) if one.replaced), None)
        if last is None:
            heard[0].result.keep()
        told = last or heard[0]
        edits = [edit for one in heard for edit in one.edits]
        later = self._conclude(
            call, told.result, (*notes, *edits), replaced=told.replaced, error=error, origin=told.origin, ran=ran
        )
        more = [operation for one in heard for operation in self._apply(one.outcome, call)]
        return CallEnd((*later, *more), ends_turn=any(one.outcome.flow is Flow.END_TURN for one in heard))

    async def _hooks_after(
        self, event: HookEvent, facts: dict[str, Any], dialects: Collection[Dialect], aside: Aside
    ) -> tuple[Outcome, tuple[TextBlock, ...]]:
        """Runs the hooks after a tool. Their changes to files are known from now on, and reported to the model."""
        changes = self._changes
        run = partial(self._hooks.run, event, facts, permission_mode=self.mode.value, dialects=dialects, aside=aside)
        if not self._hooks.waits(event, facts["tool_name"]):
            return await run(), ()
        from wave_agent.tools.hook_edits import describe, look, settle  # lazy: most sessions have no such hooks

        before = await asyncio.to_thread(look, changes, self._watched) if changes.has_files else {}
        self._watched = before
        earlier = len(self._hooks.journal)
        try:
            outcome = await run()
        except asyncio.CancelledError:  # cancelled halfway: it can be undone, but is not reported to the model
            if self._waited_for(event, facts, earlier):
                settle(changes, before, seen=False)
            raise
        names = self._waited_for(event, facts, earlier)
        # If none of them applied in the end, something else changed the files.
        edits = await uninterrupted(lambda: settle(changes, before, seen=True)) if before and names else ()
        if not edits:
            return outcome, ()
        # No hook has seen this diff: a hook that replaces results may be there to withhold something. If the tool
        # failed, other hooks may see the result after these.
        replacing = {run.name for run in self._hooks.journal if run.original_sha256 is not None}
        unseen = self._hooks.watches(HookEvent.POST_TOOL_USE_FAILURE, facts["tool_name"]) and has_failed(facts)
        shown = outcome.replacement is None and replacing.isdisjoint(names) and not unseen
        text = describe(edits, names, shown=shown)
        return outcome, (_note(event, ", ".join(names), text),)

    def _waited_for(self, event: HookEvent, facts: Mapping[str, Any], earlier: int) -> tuple[str, ...]:
        """The hooks of this event that ran for this call since that journal entry, in configuration order."""
        runs = [run for run in self._hooks.journal[earlier:] if run.tool_use_id == facts["tool_use_id"]]
        waited = sorted((run for run in runs if run.event == event and not run.is_async), key=lambda run: run.position)
        return tuple(dict.fromkeys(run.name for run in waited))

    # --------------------------------------------------------------------------------------------------------- helpers

    def _apply(self, outcome: Outcome, call: RequestedCall) -> tuple[Operation, ...]:
        """Applies what can be applied now; returns what must wait for the end of the batch."""
        operations = consequences(outcome, tool_id=call.id)
        perform([operation for operation in operations if operation.when is When.NOW], self._messages)
        return tuple(operation for operation in operations if operation.when is When.AFTER_RESULTS)

    def _finish(
        self,
        call: RequestedCall,
        result: ToolResult,
        *,
        error: str | None = None,
        origin: Origin | None = None,
        ran: Ran | None = None,
    ) -> None:
        self._messages.update_tool_block(
            call.id,
            result=fitted(result, self._context),
            success=result.success,
            error=error,
            origin=origin,
            ran=ran,
            images=result.images,
        )

    def _conclude(
        self,
        call: RequestedCall,
        result: ToolResult,
        notes: Sequence[TextBlock],
        *,
        replaced: bool = False,
        error: str | None = None,
        origin: Origin | None = None,
        ran: Ran | None = None,
    ) -> tuple[Operation, ...]:
        """Finishes the call with a result that includes the notes for the model.

        A replaced result is left as it is: the notes then follow the results of the batch.
        """
        if notes and not replaced:
            ran = None if ran is None else replace(ran, own_length=len(result.content))
            result = replace(result, content="\n\n".join([result.content, *(note.content for note in notes)]))
            notes = ()
        self._finish(call, result, error=error, origin=origin, ran=ran)
        return (TellModel(tuple(notes), When.AFTER_RESULTS),) if notes else ()

    def _facts(self, call: RequestedCall, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        return {"tool_name": call.name, "tool_input": tool_input, "tool_use_id": call.id}

    def _tool_facts(self, tool: Tool) -> ToolFacts:
        return tool_facts(tool, str(self._context.cwd))


def tool_facts(tool: Tool, start: str) -> ToolFacts:
    """What rewriting hooks need to know about a tool. `start` is where relative paths start."""
    return ToolFacts(
        nullable=tool.nullable(),
        normalise=lambda tool_input: tool.normalise(tool_input, start),
        why_invalid=lambda tool_input: _why_invalid(tool, tool.normalise(tool_input, start)),
    )


def _why_invalid(tool: Tool, tool_input: Mapping[str, Any]) -> str:
    try:
        tool.parse(tool_input)
    except ToolInputError as error:
        return str(error)
    return ""


def _readable(result: ToolResult) -> ToolResult:
    """Hooks, the model and the transcript get the same text of a result, readable for all of them."""
    return replace(result, content=readable_text(result.content), response=readable(result.response))


def _note(event: HookEvent, hook: str, text: str) -> TextBlock:
    return TextBlock(text, "hook", Origin(event, hook))


def seen_by(tool: Tool, tool_input: Mapping[str, Any]) -> dict[str, Seen]:
    """What the paths of a call point to. Text that cannot be a path points nowhere: the tool refuses it. Raises
    `OSError` if the system cannot say."""
    return {path: look(path) for path in tool.paths(tool_input) if "\0" not in path}


def _first_look(tool: Tool, tool_input: Mapping[str, Any]) -> dict[str, Seen]:
    """The same, before hooks run. Hooks see every call; paths that cannot be examined are refused after them."""
    try:
        return seen_by(tool, tool_input)
    except OSError:
        return {}


def subject_of(
    tool: Tool,
    tool_input: Mapping[str, Any],
    context: ToolContext,
    directories: Sequence[str],
    protected: ProtectedPaths,
    *,
    seen: Mapping[str, Seen] | None = None,
) -> JudgedCall:
    """What permission is decided on. `directories` are those considered inside the project, as real paths. `seen` is
    what the paths point to, if that is already known."""
    seen = seen_by(tool, tool_input) if seen is None else seen
    outside = [one.real for one in seen.values() if not any(is_below(one.real, base) for base in directories)]
    guards = map(protected.touched, tool.written_paths(tool_input, context))
    resolved = {field: seen[path].real for field in tool.path_fields if (path := str(tool_input.get(field))) in seen}
    return JudgedCall(
        tool=tool.name,
        tool_input=tool_input,
        kind=tool.kind,
        inside=not outside,
        outside=next(iter(outside), None),
        protected=next((path for path in guards if path is not None), None),
        real_input={**tool_input, **resolved},
        own=tool.own,
    )


def _linked(seen: Seen) -> os.stat_result | None:
    """The stat of a file that has other names."""
    try:
        facts = os.lstat(seen.real)
    except OSError:
        return None
    return facts if facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode) else None


def unjudged(error: Exception) -> str:
    """Why a call could not be judged."""
    where = error.filename if isinstance(error, OSError) else None
    what = error.strerror if isinstance(error, OSError) else None
    told = f"{type(error).__name__}: {error}" if what is None else f"{where}: {what}" if where else what
    return strip_controls(f"it could not be judged ({told})")


def _blame(problem: str, judged: Outcome) -> str:
    """An invalid input that a hook rewrote is the hook's fault, not the model's."""
    if not judged.rewritten_by:
        return problem
    fields = ", ".join(f"{field} by hook {hook}" for field, hook in judged.rewritten_by.items())
    return f"{problem}\nThe input was rewritten by hooks ({fields})."
