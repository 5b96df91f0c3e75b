"""Judges an event of another agent with everything that judges our own calls: hooks, rules, effects, protected paths
and trust. Permission modes do not apply: the host has its own."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import CallExaminer, first_look, tool_facts
from wave_agent.agent.call_judge import CallReview, unjudged
from wave_agent.agent.call_results import RequestedCall
from wave_agent.agent.foundation import Foundation
from wave_agent.agent.hook_runners import hooks_for
from wave_agent.events import Event, HookFinished, HookRun
from wave_agent.guard.answers import HostAnswer, together
from wave_agent.guard.calls import HostCall, HostEvent, host_input
from wave_agent.guard.hosts import HOSTS, Verb
from wave_agent.guard.journal import EarlierVerdicts
from wave_agent.guard.places import host_files
from wave_agent.guard.verdicts import JudgedEvent, JudgedHostCall
from wave_agent.hooks.dialects import has_failed, heard_by
from wave_agent.hooks.events import EVENTS, Decision, Flow
from wave_agent.hooks.manager import HookManager, LiveSession, SessionFacts
from wave_agent.hooks.stage import ToolFacts
from wave_agent.hooks.verdicts import Blocks, Outcome
from wave_agent.permissions.decision import JudgedCall, Permission, PermissionMode, Ruling, decide
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import Places
from wave_agent.sessions.transcript import transcript_file
from wave_agent.settings.sources import Gathered
from wave_agent.system.credentials import without_credentials
from wave_agent.tools.base import Tool, ToolContext, ToolResult
from wave_agent.tools.registry import every_tool

if TYPE_CHECKING:
    from wave_agent.hooks.runners.thinking import Thinker

_VERBS: Mapping[Flow, Verb | None] = {
    Flow.PROCEED: None,
    Flow.JUDGE: None,
    Flow.CONFIRM: Verb.ASK,
    Flow.ERASE_PROMPT: Verb.DENY,
    Flow.SKIP_TOOL: Verb.DENY,
    Flow.REFUSE_CALL: Verb.DENY,
    Flow.FEEDBACK: Verb.DENY,
    Flow.KEEP_WORKING: Verb.DENY,
    Flow.SKIP_COMPACTION: Verb.DENY,
    Flow.DECLINE: Verb.DENY,
    Flow.DEFER_CALL: Verb.ASK,
    Flow.REFUSE_TASK: Verb.DENY,
    Flow.END_TURN: Verb.END,
}
"""What the flow of our own agent is for a host."""


class ForeignTool(Tool):
    """A tool that only the host has: it may do anything."""

    description = "A tool of another agent."

    class Input(Struct):
        """Anything: its owner validates it."""

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        raise NotImplementedError("this tool belongs to another agent")


def tool_named(name: str) -> Tool:
    """Ours, or a stand-in for one that only the host has."""
    known = next((tool for tool in every_tool() if tool.name == name), None)
    return known or type("ForeignTool", (ForeignTool,), {"name": name})()


class HostJudge:
    """Judges the events of one session of a host."""

    def __init__(self, foundation: Foundation, event: HostEvent, session_id: str, earlier: EarlierVerdicts) -> None:
        """`earlier` is what the journal of the session says so far."""
        self._event = event
        self._earlier = earlier
        self._runs: list[HookRun] = []
        self._foundation = foundation = replace(foundation, gathered=_without_own_hooks(foundation, event.host))
        home, project = foundation.home, foundation.project
        transcript = transcript_file(home, project, session_id)
        self._outputs = transcript.with_suffix("")
        session = SessionFacts(
            session_id=event.session_id or session_id,
            transcript_path=event.transcript or str(transcript),
            project_dir=project,
            home=os.path.expanduser("~"),
            start=event.directory,
            host=event.host,
        )
        live = LiveSession(attended=False, journal=earlier.runs)
        self._hooks: HookManager = hooks_for(
            foundation,
            session,
            outputs=self._outputs,
            on_event=self._listen,
            live=live,
            open_thinker=self._thinker,
        )
        self._authority = Authority(
            mode=PermissionMode.BYPASS,
            rules=foundation.settings.rules,
            places=Places(project, session.home, event.directory),
            directories=foundation.directories,
            find_protected=lambda: _protected(foundation),
        )

    def _thinker(self) -> "Thinker":
        """Hooks ask the model that is configured for us: the host does not say which one it uses."""
        from wave_agent.agent.hook_questions import (
            ReadingPlace,  # lazy, as the next one: only for hooks that ask a model
        )
        from wave_agent.agent.hook_thinking import thinker_for

        environment = without_credentials(self._foundation.environment)
        return thinker_for(self._foundation, ReadingPlace(outputs=self._outputs, environment=environment))

    def _listen(self, event: Event) -> None:
        if isinstance(event, HookFinished):
            self._runs.append(event.run)

    async def judge(self) -> JudgedEvent:
        """Total: an error while judging is a deny before a tool, and is raised elsewhere."""
        began = monotonic()
        event = self._event
        if not event.is_prompt:
            return JudgedEvent(event=event, answer=HostAnswer())
        if EVENTS[event.event].flow[Decision.NONE] is Flow.JUDGE:
            calls = [await self._call(call, event.call_id(number)) for number, call in enumerate(event.calls)]
            found = JudgedEvent(
                event=event,
                answer=together([one.answer for one in calls]),
                by="; ".join(dict.fromkeys(one.by for one in calls if one.by and one.answer.verb is not None)),
                calls=tuple(calls),
            )
        else:
            found = await self._other()
        if event.permission_mode in HOSTS[event.host].modes_that_skip_questions:
            found = replace(found, answer=replace(found.answer, skips_questions=True))
        return replace(found, runs=tuple(self._runs), duration_ms=round((monotonic() - began) * 1000, 1))

    async def close(self) -> tuple[HookRun, ...]:
        """Ends what runs in the background; returns the runs that have been added since."""
        known = len(self._runs)
        await self._hooks.close()
        return tuple(self._runs[known:])

    # --------------------------------------------------------------------------------------------------------- a call

    async def _call(self, call: HostCall, call_id: str) -> JudgedHostCall:
        try:
            return await self._judged(call, call_id)
        except Exception as error:  # a call that cannot be judged does not run
            return JudgedHostCall(
                call, call_id, HostAnswer(verb=Verb.DENY, reason=f"Not run: {unjudged(error)}."), "an error"
            )

    async def _judged(self, call: HostCall, call_id: str) -> JudgedHostCall:
        event, tool = self._event, tool_named(call.tool)
        context = self._context(call)
        examiner = CallExaminer(self._authority, context, self._hooks.search_path)
        review = CallReview(self._hooks, self._authority, examiner, call.directory, shown_mode=event.permission_mode)
        tool_input = tool.normalise(call.tool_input, call.directory)
        requested = RequestedCall(call_id, call.tool, tool_input, effects=examiner.effects_here(tool))
        before = first_look(tool, tool_input)
        outcome = await review.ask_hooks(requested, tool, tool_input)
        if outcome.flow in (Flow.SKIP_TOOL, Flow.END_TURN):
            return JudgedHostCall(call, call_id, _answer(outcome), _names(outcome))
        reviewed = await review.permission(tool, outcome, before)
        permission = _stricter(reviewed.permission, self._by_own_name(call, outcome))
        answer = replace(_said(permission), context=_texts(outcome), message=_notes(outcome))
        if outcome.rewritten_by and answer.verb is not Verb.DENY:
            answer = _with_rewrite(answer, call, event, tool_input, outcome)
        return JudgedHostCall(call, call_id, answer, permission.by)

    def _context(self, call: HostCall) -> ToolContext:
        foundation = self._foundation
        return ToolContext(
            project_dir=Path(foundation.project),
            start=Path(call.directory),
            environment={**without_credentials(foundation.environment), **foundation.settings.env},
            outputs=self._outputs,
        )

    def _by_own_name(self, call: HostCall, outcome: Outcome) -> Permission | None:
        """What rules say that use the host's name of the tool."""
        name, authority = self._event.tool, self._authority
        if name == call.tool:
            return None
        subject = JudgedCall(tool=name, tool_input=self._event.tool_input)
        silent = Outcome(event=outcome.event, flow=Flow.JUDGE)
        return decide(subject, authority.mode, authority.rules, silent, authority.places)

    # --------------------------------------------------------------------------------------------------- other events

    async def _other(self) -> JudgedEvent:
        event = self._event
        if not EVENTS[event.event].has_tool:
            outcome = await self._run({})
            return JudgedEvent(event=event, answer=_answer(outcome), by=_names(outcome))
        calls: list[JudgedHostCall] = []
        for number, call in enumerate(event.calls):
            call_id, tool = event.call_id(number), tool_named(call.tool)
            tool_input = tool.normalise(call.tool_input, call.directory)
            examiner = CallExaminer(self._authority, self._context(call), self._hooks.search_path)
            effects = examiner.effects_here(tool)
            facts = RequestedCall(call_id, call.tool, tool_input).facts(tool_input)
            outcome = await self._run(facts, tool_facts(tool, call.directory, effects))
            answer = replace(_answer(outcome), shape=event.tool_output)
            if outcome.rewritten_by and answer.verb is not Verb.DENY:
                answer = _with_rewrite(answer, call, event, tool_input, outcome)
            calls.append(JudgedHostCall(call, call_id, answer, _names(outcome)))
        answer = together([one.answer for one in calls])
        return JudgedEvent(
            event=event,
            answer=answer,
            by="; ".join(dict.fromkeys(one.by for one in calls if one.by)),
            calls=tuple(calls),
        )

    async def _run(self, facts: Mapping[str, Any], tool: ToolFacts | None = None) -> Outcome:
        event, row = self._event, EVENTS[self._event.event]
        known = {**event.facts, **facts}
        blocks = None
        if row.block_counter is not None:  # hosts do not count, and some have no limit
            earlier = self._earlier
            if known["stop_hook_active"]:  # the host says that a block keeps it working
                blocks = Blocks(total=earlier.kept, in_a_row=earlier.kept_in_a_row)
            else:
                blocks = Blocks(total=earlier.blocks, in_a_row=earlier.blocks_in_a_row)
            known |= {
                row.block_counter: blocks.total,
                "stop_hook_active": known["stop_hook_active"] or blocks.total > 0,
            }
        return await self._hooks.run(
            event.event,
            known,
            permission_mode=event.permission_mode,
            tool=tool,
            blocks=blocks,
            dialects=heard_by(event.event, failed=has_failed(known)),
        )


def _answer(outcome: Outcome) -> HostAnswer:
    """The outcome of hooks alone."""
    verb = Verb.ALLOW if outcome.decision is Decision.ALLOW else _VERBS[outcome.flow]
    if outcome.flow is Flow.CONFIRM and outcome.decision is Decision.NONE:
        verb = None  # the host asks, as it would without us
    notes = _notes(outcome)
    ends = verb is Verb.END
    return HostAnswer(
        verb=verb,
        reason=outcome.refusal or outcome.reason,
        why=_names(outcome),
        context=_texts(outcome),
        replacement=outcome.replacement,
        message="" if ends else notes,
    )


def _said(permission: Permission) -> HostAnswer:
    if permission.answer is Ruling.DENY:
        return HostAnswer(verb=Verb.DENY, reason=permission.for_model)
    if permission.answer is Ruling.ASK:
        return HostAnswer(verb=Verb.ASK, reason=permission.for_user, why=permission.why)
    by_mode = permission.by.startswith("mode ")
    return HostAnswer() if by_mode else HostAnswer(verb=Verb.ALLOW, reason=permission.for_user)


_RANKS = (Ruling.ALLOW, Ruling.ASK, Ruling.DENY)


def _stricter(one: Permission, other: Permission | None) -> Permission:
    return one if other is None or _RANKS.index(one.answer) >= _RANKS.index(other.answer) else other


def _with_rewrite(
    answer: HostAnswer, call: HostCall, event: HostEvent, tool_input: Mapping[str, Any], outcome: Outcome
) -> HostAnswer:
    wanted = outcome.tool_input or {}
    if wanted == tool_input:
        return answer
    # As the host wrote it, except for what hooks changed: `normalise` has made paths absolute.
    changed = {
        key: call.tool_input[key] if key in call.tool_input and tool_input.get(key) == wanted[key] else wanted[key]
        for key in wanted
    }
    advice = f"{call.tool} {json.dumps(dict(wanted), ensure_ascii=False)}"
    found = host_input(call, event.tool_input, changed)
    if found is None:
        text = f"A guard wants this call to be different. Repeat it like this: {advice}"
        return replace(answer, verb=Verb.DENY, reason="\n".join(filter(None, (answer.reason, text))))
    return replace(answer, tool_input=found, advice=advice)


def _names(outcome: Outcome) -> str:
    said = outcome.reasons.get(outcome.decision, ())
    names = ", ".join(dict.fromkeys(one.hook for one in said))
    return f"hook {names}" if names else ""


def _texts(outcome: Outcome) -> str:
    return "\n".join(said.text for said in outcome.model_contexts)


def _notes(outcome: Outcome) -> str:
    """For the user, without what the question itself says."""
    asked = {said.text for said in outcome.reasons.get(Decision.ASK, ())}
    return "\n".join(note.text for note in outcome.for_user() if note.text not in asked)


def _protected(foundation: Foundation) -> ProtectedPaths:
    """Also the settings in which guards are installed: an agent could remove them there."""
    found = foundation.protected
    files = host_files(foundation.project, foundation.environment)
    return replace(found, files=found.files | {path for file in files for path in (file, os.path.realpath(file))})


def _without_own_hooks(foundation: Foundation, host: str) -> Gathered:
    """The host runs the hooks in its own settings itself."""
    gathered, settings = foundation.gathered, foundation.settings
    own = {os.path.realpath(file) for file in host_files(foundation.project, foundation.environment, only=host)}
    kept = tuple(hook for hook in settings.hooks.hooks if os.path.realpath(hook.source) not in own)
    return replace(gathered, settings=replace(settings, hooks=replace(settings.hooks, hooks=kept)))
