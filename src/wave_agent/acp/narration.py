"""Turns the agent's events into the updates an editor gets, in the same order."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from acp.helpers import (
    SessionUpdate,
    plan_entry,
    tool_terminal_ref,
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
from wave_agent.lazy_regex import lazy_regex
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


_SILENT = frozenset({"none", "allow", "ask"})
"""Outcomes of hook runs that add nothing to what a command has printed."""
_EXIT_CODE = lazy_regex(r"\[exit code ([0-9]{1,3})\]")


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

    def __init__(self, call: ShownCall, changes: Sequence[Content], terminal: str = "") -> None:
        self.call = call
        self.changes = changes
        self.terminal = terminal
        """The name of the terminal in which its output is shown; empty: as text."""
        self.has_printed = False
        self._new = ""
        self._tail = ""
        self._lines = TerminalLines()

    def print(self, text: str) -> None:
        self.has_printed = True
        if self.terminal:
            self._new += text
            return
        complete = self._tail.removesuffix(self._lines.pending) + self._lines.feed(text)
        self._tail = (complete + self._lines.pending)[-TAIL:]

    @property
    def content(self) -> list[Content]:
        """What it shows before it has a result."""
        return [tool_terminal_ref(self.terminal)] if self.terminal else [*self.changes]

    @property
    def tail(self) -> str:
        return self._tail

    def take_new(self) -> dict[str, Any]:
        """What it has printed since the last time, for its terminal."""
        data, self._new = self._new.replace("\r\n", "\n").replace("\n", "\r\n"), ""
        return {"terminal_output": {"terminal_id": self.terminal, "data": data}} if data else {}


class EditorNarration:
    """What an editor is shown of one session."""

    def __init__(
        self,
        *,
        cwd: str,
        project: str,
        find_call: Callable[[str], ToolBlock | None],
        former: Former,
        terminals: bool = False,
    ) -> None:
        """`terminals`: the editor shows what commands print in terminals of its own, an extension of the protocol that
        Zed began."""
        self._cwd, self._project = cwd, project
        self._terminals = terminals
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
        """What is left at the end of a turn. The answer to the prompt has the `error` that it ended with."""
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
        terminal = key if self._terminals and call.prints else ""
        work = self._running[key] = _ShownWork(call, call.changes(self._former), terminal)
        begun = start(key, call, work.content)
        info = {"terminal_info": {"terminal_id": key, "cwd": self._cwd}}
        return begun.model_copy(update={"field_meta": info}) if terminal else begun

    def shown(self, name: str, parameters: Mapping[str, Any], whose: str = "") -> ShownCall:
        return ShownCall(name=name, parameters=parameters, cwd=self._cwd, project=self._project, whose=whose)

    def _printed(self, event: ToolOutput) -> None:
        work = self._running.get(_key(event.id, event.agent_id))
        if work is not None and work.call.prints:
            work.print(event.text)

    def progress(self, event: ToolOutput) -> ToolCallProgress | None:
        """What a running command has printed so far; None if that is not shown, or it has ended."""
        key = _key(event.id, event.agent_id)
        work = self._running.get(key)
        if work is None or not work.has_printed:
            return None
        if work.terminal:
            return update_tool_call(key).model_copy(update={"field_meta": work.take_new()})
        return update_tool_call(key, status="in_progress", content=[printed(work.tail)])

    def asked_about(self, call_id: str) -> str:
        """The id under which the editor knows the call that someone is asked about."""
        return self._asked.get(call_id, call_id)

    def permitted(self, key: str, call: ShownCall, changes: Sequence[Content]) -> SessionUpdate:
        """Someone allowed a call, possibly one that hooks have rewritten: from now on this is what it does."""
        work = self._running.get(key)
        if work is None:
            return update_tool_call(key, status="in_progress", title=call.title, content=changes)
        work.call, work.changes = call, changes
        return update_tool_call(key, status="in_progress", title=call.title, content=work.content)

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
        return [update_tool_call(key, title=call.title, content=work.content, raw_input=dict(call.parameters))]

    def _finished(self, event: ToolFinished) -> list[SessionUpdate]:
        key = _key(event.id, event.agent_id)
        block = None if event.agent_id else self._find_call(event.id)
        work = self._running.pop(key, None)
        begun: list[SessionUpdate] = []
        if work is None:  # it never started, since a hook ended the turn
            if block is None:
                return []
            work = _ShownWork(self.shown(block.name, block.parameters), ())
            begun = [start(key, work.call, ())]
        end = update_tool_call(
            key, status="completed" if event.success else "failed", content=self._shown_at_end(event, key, work, block)
        )
        facts = self.verdicts(key)
        if block is not None and block.error:
            facts["wave"]["error"] = block.error
        if work.terminal and work.has_printed:
            facts |= {**work.take_new(), "terminal_exit": _exit(work.terminal, event)}
        ended = end.model_copy(update={"field_meta": facts})
        is_plan = event.success and work.call.name == "TodoWrite" and event.agent_id is None
        return [*begun, ended, *([plan_of(work.call.parameters)] if is_plan else ())]

    def _shown_at_end(
        self, event: ToolFinished, key: str, work: _ShownWork, block: ToolBlock | None
    ) -> Sequence[Content]:
        images = () if block is None else block.images
        words = outcome(work.call, event.result, success=event.success, images=images, changes=work.changes)
        if not (work.terminal and work.has_printed):
            return words
        hooks_spoke = any(run.outcome not in _SILENT for run in self._runs[key])
        return [*work.content, *(words if hooks_spoke else ())]

    def _named(self, event: Notice | Error) -> str:
        whose = self._types.get(event.agent_id or "")
        return f"Subagent {whose}: {event.content}" if whose else event.content


def _key(call_id: str, agent_id: str | None) -> str:
    """Unique in the session: models number the calls of each subagent anew."""
    return f"{agent_id}/{call_id}" if agent_id else call_id


def _exit(terminal: str, event: ToolFinished) -> dict[str, Any]:
    """How a command ended, for its terminal. Only its result says so."""
    codes = _EXIT_CODE.findall(event.result)
    code = 0 if event.success else int(codes[-1]) if codes else None
    return {"terminal_id": terminal, "exit_code": code, "signal": None}
