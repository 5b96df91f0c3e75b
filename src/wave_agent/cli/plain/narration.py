"""Turns what happens into lines, each of which says by its first word whose it is."""

from collections.abc import Callable

from wave_agent.agent.call_names import subject
from wave_agent.cli.hook_reports import HookReports
from wave_agent.events import (
    Error,
    Event,
    HookFinished,
    HookRun,
    HookStarted,
    Notice,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from wave_agent.messages import BLOCKED, DENIED, STOPPED, ToolBlock
from wave_agent.screen.call_words import description_of
from wave_agent.screen.changes import counts, diff_in
from wave_agent.screen.run_looks import look_of, mattered
from wave_agent.screen.sizes import clean, folded, size_of
from wave_agent.screen.todo_items import STATES, items_in
from wave_agent.text import one_line

ERROR_LINES = 5
"""Lines of a failed call's result that are said; `/output` has them all."""


class LineNarration:
    """`say` prints whole lines. `find_call` returns a call from the conversation."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        project: str,
        find_call: Callable[[str], ToolBlock | None],
        every_hook: bool = False,
    ) -> None:
        self._say = say
        self._project = project
        self._find_call = find_call
        self._every_hook = every_hook
        self._reports = HookReports()
        self._answer: str | None = None
        """The line of the answer that is not complete; None if there is no answer."""
        self._explained: set[str] = set()
        """Calls whose refusal a hook's line has explained."""
        self.calls: list[str] = []
        """The ids of this session's calls, oldest first."""

    def tell(self, event: Event) -> None:
        match event:
            case TextDelta(text=text, agent_id=None):
                self._text(text)
                return
            case TextDelta():
                return
            case _:
                pass
        lines = self._lines(event)
        if lines or isinstance(event, TurnEnded):
            self.end_answer()
        for line in lines:
            self._say(line)

    def _text(self, text: str) -> None:
        if self._answer is None:
            self._answer = "Wave: "
            text = text.lstrip()
            if not text:
                self._answer = None
                return
        *complete, self._answer = (self._answer + text).split("\n")
        for line in complete:
            self._say(line.rstrip())

    def end_answer(self) -> None:
        """The rest of an answer, which has no newline."""
        rest, self._answer = self._answer, None
        if rest is not None and rest.strip():
            self._say(rest.rstrip())

    def _lines(self, event: Event) -> list[str]:
        match event:
            case ToolStarted():
                self._reports.started(event)
                return [] if event.agent_id else self._called(event)
            case ToolFinished(agent_id=None):
                return self._finished(event)
            case HookStarted(status_message=words) if words:
                return [f"Hook {one_line(event.name, 60)} runs: {one_line(words, 160)}"]
            case HookFinished(run=run):
                return self._ran(run)
            case SubagentStarted():
                self._reports.subagent(event)
            case Notice(content=content, agent_id=agent_id, level=level):
                word = "Notice" if level == "info" else "Warning"
                return self._named(word, content, agent_id)
            case Error(content=content, agent_id=agent_id):
                return self._named("Error", content, agent_id)
            case _:
                pass
        return []

    def _named(self, word: str, content: str, agent_id: str | None) -> list[str]:
        """A hook's line begins with the hook, any other message with this word."""
        return [
            line if line.startswith('Hook "') else f"{word}: {line}" for line in self._reports.lines(content, agent_id)
        ]

    def _called(self, event: ToolStarted) -> list[str]:
        self.calls.append(event.id)
        purpose = description_of(event.parameters)
        about = subject(event.parameters, self._project)
        if event.name == "Task":
            given = event.parameters
            about = one_line(f"{given.get('subagent_type', '')}: {given.get('description', '')}", 120)
        if event.name == "TodoWrite":
            return []  # told when it is accepted
        return [f"{event.name}: {about}".rstrip(": ") + (f" ({purpose})" if purpose else "")]

    def _finished(self, event: ToolFinished) -> list[str]:
        block = self._find_call(event.id)
        if block is None:
            return []
        result = clean(event.result).strip("\n")
        if event.success:
            if block.name == "TodoWrite":
                return self._todo(block)
            diff = diff_in(result)
            return [f"  result: {f'changed, {counts(diff)}' if diff else size_of(result)}"]
        if event.id in self._explained:
            return ["  result: not run"]
        word = "denied" if block.error in (DENIED, BLOCKED, STOPPED) else "failed"
        text, more = folded(result, ERROR_LINES)
        first, *others = text.split("\n")
        rest = [f"  and {more:,} more lines: /output" if more > 1 else "  and 1 more line: /output"] if more else []
        return ["\n".join([f"  {word}: {first}", *(f"  {line}" for line in others), *rest])]

    @staticmethod
    def _todo(block: ToolBlock) -> list[str]:
        items = items_in(block.parameters)
        done = sum(one.status == "completed" for one in items)
        if not items:
            return ["Todo list: empty"]
        lines = [f"  {STATES.get(one.status, STATES['pending'])}: {one.content}" for one in items]
        return ["\n".join([f"Todo list: {done} of {len(items)} done", *lines])]

    def _ran(self, run: HookRun) -> list[str]:
        if notice := self._reports.finished(run):
            if run.tool_use_id:
                self._explained.add(run.tool_use_id)
            return [notice]
        look = look_of(run)
        is_said_later = run.outcome in ("failure", "deny", "block", "stop") and run.mode != "shadow"
        if not self._every_hook and (is_said_later or not mattered(run)):
            return []
        would = "would have " if run.mode == "shadow" else ""
        why = f": {one_line(run.reason, 160)}" if run.reason else ""
        where = f" in {run.agent_type}" if run.agent_type else ""
        return [f'Hook "{one_line(run.name, 60)}" on {run.event}{where} {would}{look.word}{why}']
