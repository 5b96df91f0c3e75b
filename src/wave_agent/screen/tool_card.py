"""A tool call as a card: running, done, failed or blocked. When open, it shows input, output and changes."""

import json
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import NamedTuple, Self

from textual.content import Content

from wave_agent.agent.call_names import subject
from wave_agent.messages import BLOCKED, DENIED, STOPPED, ToolBlock
from wave_agent.screen.call_words import description_of
from wave_agent.screen.changes import change_of, counts, diff_in
from wave_agent.screen.diff import numbered
from wave_agent.screen.entries import OPEN_LIMIT, Entry
from wave_agent.screen.plain import plain
from wave_agent.screen.sizes import clean, elapsed, folded, size_of
from wave_agent.text import one_line
from wave_agent.tools.diff import unified_diff
from wave_agent.tools.terminal import TerminalLines

TAIL = 16_000
"""Maximum characters kept of a running command's output."""


class CardLook(NamedTuple):
    glyph: str
    word: str
    style: str


class State(Enum):
    RUNNING = CardLook("◌", "running", "$text-accent")
    DONE = CardLook("●", "", "$text-success")
    FAILED = CardLook("✗", "failed", "$text-error")
    BLOCKED = CardLook("⊘", "blocked", "$text-warning")


def state_of(block: ToolBlock) -> State:
    if block.result is None:
        return State.RUNNING
    if block.success:
        return State.DONE
    return State.BLOCKED if block.error in (DENIED, BLOCKED, STOPPED) else State.FAILED


class ToolCard(Entry):
    def __init__(self, block: ToolBlock, project: str, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.block = block
        self._project = project
        self._clock = clock
        self._started = clock()
        self._took: float | None = None
        self._tail = ""
        self._lines = TerminalLines()

    # ---------------------------------------------------------------------------------------------------------- changes

    def output(self, text: str) -> None:
        """Output of the running tool."""
        complete = self._tail.removesuffix(self._lines.pending) + self._lines.feed(text)
        self._tail = (complete + self._lines.pending)[-TAIL:]
        self.redraw()

    def waited(self, seconds: float) -> None:
        """Time spent waiting for the user, which is not part of the call's duration."""
        self._started += seconds

    def finish(self, block: ToolBlock) -> None:
        if self.block.result is None:
            self._took = self._clock() - self._started
        self.block = block
        self.redraw()

    def again(self) -> Self:
        fresh = type(self)(self.block, self._project, self._clock)
        fresh._took = self._took
        fresh._started, fresh._tail, fresh._lines = self._started, self._tail, self._lines
        return fresh

    def copied(self) -> str:
        """What came of the call: its output, or the change as a diff."""
        result = clean(self.block.result if self.block.result is not None else self._tail).strip("\n")
        return diff_in(result) or result

    # ---------------------------------------------------------------------------------------------------------- drawing

    @property
    def state(self) -> State:
        return state_of(self.block)

    def redraw(self) -> None:
        if self.is_attached:
            for state in State:
                self.set_class(state is self.state, f"-{state.name.lower()}")
        super().redraw()

    def closed_content(self) -> Content:
        lines = [self._header()]
        if self.state is State.RUNNING:
            last = self._tail.rstrip().rpartition("\n")[2]
            lines += [plain(f"  {one_line(last, 120)}", "$muted")] if last else []
        elif self.state in (State.FAILED, State.BLOCKED):
            reason, more = folded(clean(self.block.result or "").strip("\n"), 3)
            lines.append(plain(f"  {reason}".replace("\n", "\n  ") + (" …" if more else ""), self.state.value.style))
        return Content("\n").join(lines)

    def open_content(self) -> Content:
        parts = [self._header(), *self._input(), *self._result()]
        return Content("\n").join(parts)

    def _header(self) -> Content:
        look = self.state.value
        purpose = description_of(self.block.parameters)
        notes = " · ".join(note for note in (purpose, look.word, self._summary(), self._time()) if note)
        about = self._subject()
        return Content.assemble(
            plain(f"{look.glyph} ", look.style),
            plain(self.block.name, "bold"),
            plain(f" {about}" if about else ""),
            plain(f"  {notes}" if notes else "", "$muted"),
        )

    def _subject(self) -> str:
        return subject(self.block.parameters, self._project)

    def _summary(self) -> str:
        result = self.block.result or ""
        if self.state is not State.DONE:
            return ""
        diff = diff_in(result)
        return counts(diff) if diff else size_of(result)

    def _time(self) -> str:
        return elapsed(self._took) if self._took is not None and self._took >= 0.1 else ""

    def _input(self) -> list[Content]:
        """An edit is shown as a diff, a command as is, anything else as JSON."""
        parameters = self.block.parameters
        if self.state is State.DONE and diff_in(self.block.result or ""):
            return []
        # Once a file is written there is no old version to compare with, so a new file is all additions.
        written = unified_diff("", str(parameters["content"])) if "content" in parameters else ""
        if diff := written if self.state is State.DONE else change_of(self.block.name, parameters):
            return [numbered(diff)]
        if isinstance(command := parameters.get("command"), str):
            return [plain(f"$ {command}", "$text-primary")]
        return [plain(json.dumps(parameters, indent=2, ensure_ascii=False, default=str), "$text-primary")]

    def _result(self) -> list[Content]:
        result = clean(self.block.result if self.block.result is not None else self._tail).strip("\n")
        if diff := diff_in(result):
            return [plain(result.split("\n", 1)[0], "$muted"), numbered(diff)]
        text, more = folded(result, OPEN_LIMIT)
        rest = [plain(f"… {more:,} more lines, in the transcript", "$muted")] if more else []
        by = self.block.origin
        origin = [plain(f"written by hook {by.hook} on {by.event}", "$text-accent")] if by else []
        return [*origin, plain(text), *rest]
