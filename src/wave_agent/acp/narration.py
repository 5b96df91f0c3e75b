"""Turns the agent's events into the updates an editor gets, in the same order."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from acp.helpers import (
    SessionUpdate,
    plan_entry,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.schema import AgentMessageChunk, PlanEntryStatus, ToolCallProgress, ToolCallStart
from msgspec.structs import replace

from wave_agent.acp.tool_calls import Content, Former, ShownCall, outcome, printed
from wave_agent.events import (
    Error,
    Event,
    HookFinished,
    HookRun,
    HookStarted,
    Notice,
    PermissionRequested,
    ReasoningDelta,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from wave_agent.messages import ToolBlock
from wave_agent.text import clip, strip_controls
from wave_agent.tools.terminal import TerminalLines

TAIL = 16_000
"""Characters kept of a running command's output."""
_STATUSES: Mapping[str, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
}


def own_facts(**facts: Any) -> dict[str, Any]:
    """`_meta` with what only Wave has a word for."""
    return {"wave": facts}


def told(run: HookRun) -> dict[str, Any]:
    """A hook run, for `_meta`."""
    return {**run.to_dict(), "reason": clip(run.reason)}


def notice(text: str, level: str) -> AgentMessageChunk:
    """Something for the user that the model did not say. The protocol has no other place for it."""
    quoted = strip_controls(text).strip().replace("\n", "\n> ")
    chunk = update_agent_message_text(f"\n\n> **Wave:** {quoted}\n\n")
    return chunk.model_copy(update={"field_meta": own_facts(notice=level)})


def plan_of(parameters: Mapping[str, Any]) -> SessionUpdate:
    """The todo list. Skips invalid items: the model may have written anything."""
    todos: Any = parameters.get("todos")
    listed = cast(list[Any], todos) if isinstance(todos, list) else []
    items = [cast(Mapping[str, Any], one) for one in listed if isinstance(one, Mapping)]
    return update_plan(
        plan_entry(str(one.get("content", "")), status=_STATUSES.get(str(one.get("status")), "pending"))
        for one in items
    )


def start(call_id: str, call: ShownCall, content: Sequence[Content], runs: Sequence[HookRun] = ()) -> ToolCallStart:
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=call_id,
        title=call.title,
        kind=call.kind,
        status="in_progress",
        content=[*content] or None,
        locations=call.locations() or None,
        raw_input=dict(call.parameters),
        field_meta=_verdicts(runs),
    )


def _verdicts(runs: Sequence[HookRun]) -> dict[str, Any] | None:
    return own_facts(hooks=[told(run) for run in runs]) if runs else None


class _ShownWork:
    """A call that has no result yet."""

    def __init__(self, call: ShownCall, changes: Sequence[Content]) -> None:
        self.call = call
        self.changes = changes
        self._tail = ""
        self._lines = TerminalLines()

    def print(self, text: str) -> None:
        complete = self._tail.removesuffix(self._lines.pending) + self._lines.feed(text)
        self._tail = (complete + self._lines.pending)[-TAIL:]

    @property
    def output(self) -> str:
        return self._tail


class EditorNarration:
    """What an editor is shown of one session."""

    def __init__(self, *, cwd: str, project: str, find_call: Callable[[str], ToolBlock | None], former: Former) -> None:
        self._cwd, self._project = cwd, project
        self._find_call = find_call
        self._former = former
        self._running: dict[str, _ShownWork] = {}
        self._runs: defaultdict[str, list[HookRun]] = defaultdict(list)
        self._types: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._held: Error | None = None
        self.other_runs: list[HookRun] = []
        """Hook runs of this turn that are about no call."""

    def begin(self) -> None:
        """A turn begins."""
        self._running.clear()
        self._runs.clear()
        self._asked.clear()
        self._held = None
        self.other_runs = []

    def tell(self, event: Event) -> list[SessionUpdate]:
        late = [] if isinstance(event, HookStarted | HookFinished | TurnEnded) else self._release()
        return [*late, *self._updates(event)]

    def last(self, error: str | None) -> list[SessionUpdate]:
        """What is left at the end of a turn. The `error` that it ended with is told by the answer to the prompt."""
        if self._held is not None and self._held.content == error:
            self._held = None
        return self._release()

    def _release(self) -> list[SessionUpdate]:
        held, self._held = self._held, None
        return [] if held is None else [notice(self._named(held), "error")]

    def _updates(self, event: Event) -> list[SessionUpdate]:
        match event:
            case TextDelta(text=text, agent_id=None):
                return [update_agent_message_text(text)]
            case ReasoningDelta(text=text, agent_id=None):
                return [update_agent_thought_text(text)]
            case ToolStarted():
                return [self._started(event)]
            case ToolOutput():
                self._printed(event)
            case PermissionRequested():
                self._asked[event.id] = _key(event.id, event.agent_id)
            case ToolFinished():
                return self._finished(event)
            case HookFinished(run=run):
                return self._ran(run)
            case SubagentStarted():
                self._types[event.agent_id] = event.agent_type
            case Notice():
                return [notice(self._named(event), event.level)]
            case Error():
                self._held = event
            case _:
                pass
        return []

    def _started(self, event: ToolStarted) -> SessionUpdate:
        key = _key(event.id, event.agent_id)
        call = self.shown(event.name, event.parameters, self._types.get(event.agent_id or "", ""))
        running = self._running[key] = _ShownWork(call, call.changes(self._former))
        return start(key, call, running.changes)

    def shown(self, name: str, parameters: Mapping[str, Any], whose: str = "") -> ShownCall:
        return ShownCall(name=name, parameters=parameters, cwd=self._cwd, project=self._project, whose=whose)

    def _printed(self, event: ToolOutput) -> None:
        running = self._running.get(_key(event.id, event.agent_id))
        if running is not None and running.call.kind == "execute":
            running.print(event.text)

    def progress(self, event: ToolOutput) -> ToolCallProgress | None:
        """What a running command has printed so far; None if that is not shown, or it has ended."""
        key = _key(event.id, event.agent_id)
        running = self._running.get(key)
        if running is None or not running.output:
            return None
        return update_tool_call(key, status="in_progress", content=[printed(running.output)])

    def asked_about(self, call_id: str) -> str:
        """The id under which the editor knows the call that someone is asked about."""
        return self._asked.get(call_id, call_id)

    def permitted(self, key: str, call: ShownCall, changes: Sequence[Content]) -> SessionUpdate:
        """Someone allowed a call, possibly one that hooks have rewritten: from now on this is what it does."""
        running = self._running.get(key)
        if running is not None:
            running.call, running.changes = call, changes
        return update_tool_call(key, status="in_progress", title=call.title, content=changes)

    def verdicts(self, key: str) -> dict[str, Any]:
        """The hook runs about a call so far."""
        return _verdicts(self._runs[key]) or own_facts(hooks=[])

    def _ran(self, run: HookRun) -> list[SessionUpdate]:
        if run.tool_use_id is None:
            self.other_runs.append(run)
            return []
        key = _key(run.tool_use_id, run.agent_id)
        self._runs[key].append(run)
        work = self._running.get(key)
        if work is None or run.after is None or run.mode == "shadow":
            return []
        work.call = replace(work.call, parameters=run.after)  # what is shown must be what would run
        work.changes = work.call.changes(self._former)
        call = work.call
        return [update_tool_call(key, title=call.title, content=work.changes, raw_input=dict(call.parameters))]

    def _finished(self, event: ToolFinished) -> list[SessionUpdate]:
        key = _key(event.id, event.agent_id)
        block = None if event.agent_id else self._find_call(event.id)
        running = self._running.pop(key, None)
        begun: list[SessionUpdate] = []
        if running is None:  # it never started, since a hook ended the turn
            if block is None:
                return []
            running = _ShownWork(self.shown(block.name, block.parameters), ())
            begun = [start(key, running.call, ())]
        images = () if block is None else block.images
        shown = outcome(running.call, event.result, success=event.success, images=images, changes=running.changes)
        end = update_tool_call(key, status="completed" if event.success else "failed", content=shown)
        facts = self.verdicts(key)
        if block is not None and block.error:
            facts["wave"]["error"] = block.error
        ended = end.model_copy(update={"field_meta": facts})
        is_plan = event.success and running.call.name == "TodoWrite" and event.agent_id is None
        return [*begun, ended, *([plan_of(running.call.parameters)] if is_plan else ())]

    def _named(self, event: Notice | Error) -> str:
        whose = self._types.get(event.agent_id or "")
        return f"Subagent {whose}: {event.content}" if whose else event.content


def _key(call_id: str, agent_id: str | None) -> str:
    """Unique in the session: models number the calls of each subagent anew."""
    return f"{agent_id}/{call_id}" if agent_id else call_id
