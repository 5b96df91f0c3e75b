"""The events of a recorded session, in the form hooks receive them, with what hooks decided at the time.

Reads our own transcripts and those in the common dialect. The journal says what hooks decided; without a journal, a
tool result may say so.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.call_facts import tool_facts as facts_of
from wave_agent.agent.hook_effects import effects_outside
from wave_agent.events import HookRun
from wave_agent.hooks.events import Decision, HookEvent, changed_files
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.stage import ToolFacts
from wave_agent.replay.comparison import Judgement, recorded
from wave_agent.replay.lines import TranscriptLine, TranscriptLines, result_text
from wave_agent.replay.subagent_lines import SubagentLines, subagents_in
from wave_agent.replay.timeline import main_value
from wave_agent.tools.base import Tool, ToolContext
from wave_agent.tools.registry import every_tool

_BLOCKED_BY_HOOK = re.compile(
    r"\bPreToolUse:\S* .{0,20}(?:hook|blocked|denied)|\bblocked by (?:a )?(?:PreToolUse )?hook\b", re.IGNORECASE
)
"""How other agents tell the model that a hook denied its call."""


class Happening(Struct, frozen=True, kw_only=True):
    """One event of a session."""

    event: HookEvent
    line: int
    written: int
    """Size of the transcript in bytes when it happened."""
    facts: Mapping[str, Any]
    """The event's own stdin fields."""
    call: str
    before: Judgement
    answers: tuple[HookRun, ...] = ()
    """The runs that have an answer of a model."""

    @property
    def tool(self) -> str:
        return str(self.facts.get("tool_name", ""))


class Recording(Struct, frozen=True):
    """What can be replayed of a session, and counts of what cannot."""

    happenings: tuple[Happening, ...]
    cwd: str
    project: str
    erased: int
    """Prompts that hooks blocked: they were not stored."""
    replaced: int
    """Results that hooks replaced: the originals were not stored."""
    skipped: int


class _OpenCall(Struct, frozen=True):
    """A tool call without a result yet."""

    name: str
    tool_input: dict[str, Any]


def recording(lines: TranscriptLines, only: str | None = None) -> Recording:
    """Read a transcript, and those of its subagents. `only`: use only the decisions of the hook with this name."""
    reader = _TranscriptReader(lines, only)
    placed = [((happening.line, 1), happening) for happening in reader.read()]
    replaced, skipped = reader.replaced, lines.skipped
    for one in subagents_in(lines):
        inner = _SubagentReader(one, reader.runs, only)
        line = _line_after(one, lines.lines)
        placed += [((line.number, 0), replace(happening, written=line.before)) for happening in inner.read()]
        replaced, skipped = replaced + inner.replaced, skipped + one.lines.skipped
    placed.sort(key=lambda pair: pair[0])
    found = tuple(happening for _, happening in placed)
    return Recording(found, lines.cwd, lines.project, reader.erased, replaced, skipped)


class _LineAfter(Struct, frozen=True):
    """The line of a session before which the events of a subagent belong."""

    number: int
    before: int
    """Bytes of the transcript before it."""


def _line_after(one: SubagentLines, lines: Sequence[TranscriptLine]) -> _LineAfter:
    """The result of its Task call or, if that is not known, the first prompt, answer or result after its start."""
    size = 0
    for line in lines:
        results = line.parts("tool_result")
        ids = [result.get("tool_use_id") for result in results]
        is_later = not one.call_id and line.kind in ("user", "assistant") and line.at > one.start
        if is_later or (one.call_id and one.call_id in ids):
            return _LineAfter(line.number, size)
        size = line.size
    return _LineAfter(lines[-1].number + 1 if lines else 1, size)


class _TranscriptReader:
    def __init__(self, lines: TranscriptLines, only: str | None, runs: "_Journal | None" = None) -> None:
        self.lines = lines.lines
        self.cwd = lines.cwd
        self.only = only
        self.erased = 0
        self.replaced = 0
        self.runs = _journal(lines.lines) if runs is None else runs
        self.calls: dict[str, _OpenCall] = {}
        self.denied = _denied(lines.lines)
        self.stop_blocks = 0
        self.answer = ""
        self.changed: set[str] = set()
        """Files changed since the last prompt."""

    def read(self) -> Iterator[Happening]:
        written = 0
        for at, line in enumerate(self.lines):
            if line.kind == "user":
                yield from self.user(line, written)
            elif line.kind == "assistant":
                yield from self.assistant(line, at)
            elif line.kind == "prompt_blocked":
                self.erased += 1
            written = line.size

    def answered(self, runs: Sequence[HookRun]) -> tuple[HookRun, ...]:
        return tuple(run for run in runs if run.answer is not None)

    def judged(self, runs: Sequence[HookRun]) -> Judgement:
        return recorded([run for run in runs if self.only in (None, run.name)])

    def user(self, line: TranscriptLine, written: int) -> Iterator[Happening]:
        if results := line.parts("tool_result"):
            for result in results:
                yield from self.result(line, result, written)
        elif self.is_prompt(line):
            self.stop_blocks, self.answer = 0, ""
            self.changed.clear()
            runs = self.runs.before(HookEvent.USER_PROMPT_SUBMIT, line.number)
            yield Happening(
                event=HookEvent.USER_PROMPT_SUBMIT,
                line=line.number,
                written=written,
                facts={"prompt": line.text},
                call=line.text,
                before=self.judged(runs),
                answers=self.answered(runs),
            )

    def is_prompt(self, line: TranscriptLine) -> bool:
        return line.source == "user" and bool(line.text) and not line.record.get("isMeta") and not _is_aside(line)

    def assistant(self, line: TranscriptLine, at: int) -> Iterator[Happening]:
        self.answer = line.text or self.answer
        calls = line.parts("tool_use")
        for call in calls:
            yield from self.call(line, call)
        if not calls and line.text and not _is_aside(line) and _ends(self.lines, at + 1):
            yield self.stop(line)

    def call(self, line: TranscriptLine, call: Mapping[str, Any]) -> Iterator[Happening]:
        name, given, call_id = call.get("name"), call.get("input"), str(call.get("id", ""))
        if not isinstance(name, str) or not isinstance(given, dict):
            return
        tool_input = normalised(name, cast(dict[str, Any], given), self.cwd)
        runs = self.runs.of(HookEvent.PRE_TOOL_USE, call_id)
        first = min((run.occasion for run in runs), default=0)
        judged = [run for run in runs if run.occasion == first]  # if the user changed the input, hooks judged it again
        left = rewritten(tool_input, runs)
        own = [run for run in judged if self.only in (None, run.name) and run.rewrote]
        before = self.judged(judged)
        if not runs and self.only is None and call_id in self.denied:
            before = replace(before, decision=Decision.BLOCK, reason="denied by a hook, according to its result")
        self.calls[call_id] = _OpenCall(name, left)
        yield Happening(
            event=HookEvent.PRE_TOOL_USE,
            line=line.number,
            written=line.size,
            facts={"tool_name": name, "tool_input": tool_input, "tool_use_id": call_id},
            call=main_value(tool_input),
            before=replace(before, tool_input=rewritten(tool_input, own) if own else None),
            answers=self.answered(judged),
        )

    def result(self, line: TranscriptLine, result: Mapping[str, Any], written: int) -> Iterator[Happening]:
        call_id = str(result.get("tool_use_id", ""))
        call = self.calls.pop(call_id, None)
        ours = "source" in line.record
        ran = "error" not in line.record if ours else not result.get("is_error")
        if call is None or not ran:
            return
        content = result_text(dict(result))[: line.record.get("own_length")]
        fields: Any = line.record.get("toolUseResult")
        own = cast(dict[str, Any], fields) if isinstance(fields, dict) else {}
        changed = _texts(line.record.get("changed_files"))
        self.changed.update(changed)
        runs = self.runs.of(HookEvent.POST_TOOL_USE, call_id)
        replaced = any(run.original_sha256 for run in runs)
        self.replaced += replaced
        yield Happening(
            event=HookEvent.POST_TOOL_USE,
            line=line.number,
            written=written,
            facts={
                "tool_name": call.name,
                "tool_input": call.tool_input,
                "tool_use_id": call_id,
                "tool_response": {**own, "success": not result.get("is_error"), "content": content},
                **changed_files(changed),
            },
            call=main_value(call.tool_input),
            before=self.judged(runs),
            answers=self.answered(runs),
        )

    def stop(self, line: TranscriptLine) -> Happening:
        return self.end(line, HookEvent.STOP, self.runs.after(HookEvent.STOP, line.number))

    def end(
        self, line: TranscriptLine, event: HookEvent, runs: Sequence[HookRun], more: Mapping[str, str] | None = None
    ) -> Happening:
        before = self.judged(runs)
        blocks, self.stop_blocks = self.stop_blocks, self.stop_blocks + before.blocks
        return Happening(
            event=event,
            line=line.number,
            written=line.size,
            facts={
                "stop_hook_active": blocks > 0,
                "stop_block_count": blocks,
                "last_assistant_message": self.answer,
                **changed_files(sorted(self.changed)),
                **(more or {}),
            },
            call=self.answer,
            before=before,
            answers=self.answered(runs),
        )


class _SubagentReader(_TranscriptReader):
    """Reads the transcript of a subagent. The journal is that of its session."""

    def __init__(self, one: SubagentLines, runs: "_Journal", only: str | None) -> None:
        super().__init__(one.lines, only, runs)
        self._path = one.path
        self._stops = iter(runs.of_agent(HookEvent.SUBAGENT_STOP, one.agent_id))
        self._whose = {"agent_id": one.agent_id, "agent_type": one.agent_type}

    def read(self) -> Iterator[Happening]:
        for happening in super().read():
            yield replace(happening, facts={**happening.facts, **self._whose})

    def is_prompt(self, line: TranscriptLine) -> bool:
        """No user has submitted its task."""
        return False

    def stop(self, line: TranscriptLine) -> Happening:
        own = {"agent_transcript_path": str(self._path)}
        return self.end(line, HookEvent.SUBAGENT_STOP, next(self._stops, ()), own)


def _texts(found: Any) -> list[str]:
    return [one for one in cast(list[Any], found) if isinstance(one, str)] if isinstance(found, list) else []


def _is_aside(line: TranscriptLine) -> bool:
    """Whether the line belongs to a subagent, whose prompt was not submitted by the user."""
    return bool(line.record.get("isSidechain"))


def _denied(lines: Sequence[TranscriptLine]) -> set[str]:
    """The calls whose results say that a hook denied them."""
    results = (result for line in lines for result in line.parts("tool_result") if result.get("is_error"))
    return {str(result.get("tool_use_id")) for result in results if _BLOCKED_BY_HOOK.search(result_text(result)[:500])}


def _ends(lines: Sequence[TranscriptLine], at: int) -> bool:
    """Whether an answer without calls ended its turn: nothing more of it follows, and it was not interrupted."""
    for line in islice(lines, at, None):
        if line.kind in ("hook_run", "user", "assistant", "error", "notice"):
            interrupted = line.kind == "notice" and line.record.get("content") == "Interrupted."
            return line.kind not in ("assistant", "error") and not interrupted
    return True


# ---------------------------------------------------------------------------------------------------------- the journal


class _Journal:
    """Hook runs, indexed by what they judged."""

    def __init__(self, runs: Sequence[tuple[int, HookRun]], bounds: Sequence[int]) -> None:
        """`bounds` are the lines of prompts, answers and results: a run without a call lies between two of them."""
        self._bounds = bounds
        self._calls: dict[tuple[str, str | None], list[HookRun]] = {}
        self._between: dict[tuple[str, int], list[HookRun]] = {}
        for line, run in runs:
            self._calls.setdefault((run.event, run.tool_use_id), []).append(run)
            self._between.setdefault((run.event, bisect_left(bounds, line)), []).append(run)

    def of(self, event: HookEvent, call_id: str) -> list[HookRun]:
        return self._calls.get((event.value, call_id), [])

    def of_agent(self, event: HookEvent, agent_id: str) -> list[list[HookRun]]:
        """The runs in one subagent, for each time that it happened."""
        occasions: dict[int, list[HookRun]] = {}
        for run in self._calls.get((event.value, None), ()):
            if run.agent_id == agent_id:
                occasions.setdefault(run.occasion, []).append(run)
        return list(occasions.values())

    def before(self, event: HookEvent, line: int) -> list[HookRun]:
        return self._between.get((event.value, bisect_left(self._bounds, line)), [])

    def after(self, event: HookEvent, line: int) -> list[HookRun]:
        return self._between.get((event.value, bisect_right(self._bounds, line)), [])


def _journal(lines: Sequence[TranscriptLine]) -> _Journal:
    runs: list[tuple[int, HookRun]] = []
    for line in lines:
        if line.kind == "hook_run":
            try:
                run = msgspec.convert(line.record, HookRun)
            except msgspec.ValidationError:
                continue
            runs.append((line.number, run))
    bounds = [line.number for line in lines if line.kind in ("user", "assistant", "prompt_blocked")]
    return _Journal(runs, bounds)


def rewritten(tool_input: dict[str, Any], runs: Sequence[HookRun]) -> dict[str, Any]:
    """The input after these runs: each one's changes, applied in configuration order."""
    left = dict(tool_input)
    for run in sorted(runs, key=lambda run: (run.look, run.position)):
        if run.before is None or run.after is None:
            continue
        left.update({key: value for key, value in run.after.items() if run.before.get(key) != value})
        for key in run.before.keys() - run.after.keys():
            left.pop(key, None)
    return left


# -------------------------------------------------------------------------------------------------------------- tools


@cache
def _tools() -> Mapping[str, Tool]:
    return {tool.name: tool for tool in every_tool()}


def normalised(name: str, tool_input: dict[str, Any], project: str) -> dict[str, Any]:
    """The input as hooks see it."""
    tool = _tools().get(name)
    return tool_input if tool is None or not project else tool.normalise(tool_input, project)


def tool_facts(name: str, context: ToolContext) -> ToolFacts:
    """What hooks need to know about a tool, with effects as they would be now."""
    tool = _tools().get(name)
    if tool is None:
        return ToolFacts()
    return facts_of(tool, str(context.cwd), effects_outside(tool, context, search_path(context.environment)))
