"""Builds the timeline of a session: what happened when and for how long, how it ended, and who saw it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from wave_agent.effects.calls import effects_of
from wave_agent.effects.shown import summary
from wave_agent.effects.surroundings import Surroundings
from wave_agent.events import HookRun
from wave_agent.hooks.events import BLOCK_WORDS, BLOCKING_WORDS, EVENTS, HookEvent
from wave_agent.messages import HARNESS
from wave_agent.replay.facts import BEFORE_THE_PROMPT
from wave_agent.replay.lines import TranscriptLine, TranscriptLines, result_text
from wave_agent.replay.outcomes import is_failure
from wave_agent.replay.subagent_lines import SubagentLines
from wave_agent.system.timestamps import moment_of

MODEL, USER = "model", "user"

_SEEN: Mapping[str, tuple[str, ...]] = {
    "context": (MODEL,),
    "ask": (USER,),
    "stop": (USER,),
    "failure": (USER,),
}
"""Who reads what a hook said, by outcome. The reader of a block's reason depends on the event."""


class Span(Struct, frozen=True, kw_only=True):
    """Something that happened. Times are in seconds since 1970."""

    kind: str
    """`prompt`, `model`, `hook`, `tool` or `note`"""
    title: str
    start: float
    end: float
    line: int
    """Line number in the transcript."""
    turn: int = 0
    verdict: str = ""
    """How a hook decided, or how a tool ended."""
    text: str = ""
    """The full text: a prompt, an answer, a result or a reason."""
    seen_by: tuple[str, ...] = ()
    bad: bool = False
    """It blocked or failed."""
    exact: bool = True
    """False if its start was estimated from its neighbours."""
    run: HookRun | None = None
    """The journal entry, for a hook."""
    agent_id: str = ""
    """The subagent in which it happened; its own transcript has the line, unless it is a hook."""
    agent_type: str = ""
    facts: Mapping[str, Any] = {}

    @property
    def duration_ms(self) -> float:
        return round((self.end - self.start) * 1000, 3)


class TurnSpan(Struct, frozen=True):
    """One turn: a prompt and all work on it."""

    number: int
    start: float
    end: float


class Timeline(Struct, frozen=True, kw_only=True):
    session_id: str
    cwd: str
    spans: tuple[Span, ...]
    turns: tuple[TurnSpan, ...]
    skipped: int

    @property
    def start(self) -> float:
        return min((span.start for span in self.spans), default=0.0)

    @property
    def end(self) -> float:
        return max((span.end for span in self.spans), default=0.0)


def timeline(
    session_id: str, lines: TranscriptLines, subagents: Sequence[SubagentLines] = (), *, effects: bool = True
) -> Timeline:
    """Build a timeline, with what its subagents did. Times missing from transcripts of older versions are estimated.

    Without `effects`, it does not say what each call would do: reading all commands takes most of the time.
    """
    builder = _Builder(lines.cwd, effects=effects)
    for line in lines.lines:
        builder.add(line)
    found = [*builder.spans, *builder.waiting]
    for one in subagents:
        found += _of_subagent(one, found, effects=effects)
    spans = sorted(found, key=lambda span: (span.start, span.kind != "prompt", span.line))
    return Timeline(
        session_id=session_id,
        cwd=lines.cwd,
        spans=tuple(spans),
        turns=tuple(_turns(spans)),
        skipped=lines.skipped + sum(one.lines.skipped for one in subagents),
    )


def _of_subagent(one: SubagentLines, above: Sequence[Span], *, effects: bool) -> list[Span]:
    """What a subagent did, in the turn of the session in which it started."""
    builder = _Builder(one.lines.cwd, effects=effects)
    for line in one.lines.lines:
        builder.add(line)
    turn = max((span.turn for span in above if span.kind == "prompt" and span.start <= one.start), default=0)
    return [
        msgspec.structs.replace(
            span,
            kind="note" if span.kind == "prompt" else span.kind,
            title=f"task: {span.title}" if span.kind == "prompt" else span.title,
            seen_by=(MODEL,) if span.kind == "prompt" else span.seen_by,
            turn=turn,
            agent_id=one.agent_id,
            agent_type=one.agent_type,
        )
        for span in builder.spans
    ]


def _turns(spans: Sequence[Span]) -> list[TurnSpan]:
    found: dict[int, list[Span]] = {}
    for span in spans:
        if span.turn and not (span.run and span.run.is_async):  # async hooks are not awaited
            found.setdefault(span.turn, []).append(span)
    return [
        TurnSpan(number, min(span.start for span in own), max(span.end for span in own))
        for number, own in sorted(found.items())
    ]


class _RunningCall(Struct, frozen=True):
    """A tool call without a result yet."""

    name: str
    tool_input: Any
    asked: float


class _Builder:
    def __init__(self, directory: str, *, effects: bool) -> None:
        """`directory` is where the session was started."""
        self.with_effects = effects
        self.directory = directory or "/"
        self.spans: list[Span] = []
        self.calls: dict[str, _RunningCall] = {}
        self.hooks_of: dict[str, list[Span]] = {}
        """The hook runs of each call."""
        self.turn = 0
        self.waiting: list[Span] = []
        """Hook runs that belong to the next prompt: they come before it in the transcript."""
        self.last = 0.0
        """When the previous line was written."""
        self._kinds = {
            "user": self.user,
            "assistant": self.assistant,
            "hook_run": self.hook_run,
            "prompt_blocked": self.prompt_blocked,
            "error": self.note,
            "notice": self.note,
            "compact": self.note,
        }

    def add(self, line: TranscriptLine) -> None:
        handler = self._kinds.get(line.kind)
        if handler is not None:
            handler(line)
        self.last = line.at

    def user(self, line: TranscriptLine) -> None:
        if results := line.parts("tool_result"):
            for result in results:
                self.result(line, result)
        elif line.source == "hook":
            self.note(line)
        elif not line.record.get("isMeta"):
            self.prompt(line, line.text, (USER, MODEL))

    def prompt(self, line: TranscriptLine, text: str, seen_by: tuple[str, ...], verdict: str = "") -> None:
        self.turn += 1
        own = [msgspec.structs.replace(span, turn=self.turn) for span in self.waiting]
        self.waiting = []
        start = min((span.start for span in own), default=line.at)
        self.spans += own
        self.spans.append(
            Span(
                kind="prompt",
                title=text,
                text=text,
                start=start,
                end=start,
                line=line.number,
                turn=self.turn,
                seen_by=seen_by,
                verdict=verdict,
                bad=bool(verdict),
            )
        )

    def prompt_blocked(self, line: TranscriptLine) -> None:
        length = line.record.get("length", 0)
        self.prompt(line, f"(a prompt of {length} characters, not stored)", (USER,), "blocked")

    def assistant(self, line: TranscriptLine) -> None:
        calls = line.parts("tool_use")
        for call in calls:
            self.calls[str(call.get("id"))] = _RunningCall(str(call.get("name", "")), call.get("input"), line.at)
        text = line.text
        asks = f"calls {', '.join(str(call.get('name', '')) for call in calls)}" if calls else ""
        thought = "\n".join(str(part.get("thinking", "")) for part in line.parts("thinking"))
        self.spans.append(
            Span(
                kind="model",
                title=" · ".join(filter(None, [asks, text])) or "(thinking)",
                text=text,
                start=min(self.last or line.at, line.at),
                end=line.at,
                line=line.number,
                turn=self.turn,
                seen_by=(USER, MODEL),
                exact=False,
                facts={"reasoning": thought} if thought else {},
            )
        )

    def result(self, line: TranscriptLine, result: dict[str, Any]) -> None:
        name = str(result.get("tool_use_id"))
        call = self.calls.pop(name, _RunningCall("(a tool)", None, line.at))
        start, end, exact = self._times(line, name, call)
        refused = isinstance(line.record.get("error"), str)
        failed = bool(result.get("is_error"))
        text = result_text(result)
        facts: dict[str, Any] = {"input": call.tool_input, "id": name, **self._effects(call)}
        if origins := line.record.get("origins"):
            facts["replaced by"] = origins
        self.spans.append(
            Span(
                kind="tool",
                title=f"{call.name} {main_value(call.tool_input)}".strip(),
                text=text,
                start=start,
                end=end,
                line=line.number,
                turn=self.turn,
                verdict="not run" if refused else "failed" if failed else "",
                bad=refused or failed,
                seen_by=(USER, MODEL),
                exact=exact,
                facts=facts,
            )
        )

    def _effects(self, call: _RunningCall) -> dict[str, Any]:
        """What the call says that it does. Nothing is looked up: scripts and links may have changed since."""
        if not self.with_effects or not isinstance(call.tool_input, Mapping):
            return {}
        around = Surroundings(directory=self.directory, project=self.directory)
        found = effects_of(call.name, cast(Mapping[str, Any], call.tool_input), around)
        return {"does": summary(found, self.directory)}

    def _times(self, line: TranscriptLine, name: str, call: _RunningCall) -> tuple[float, float, bool]:
        """When the tool itself ran, without the hooks around it."""
        started, duration = moment_of(line.record.get("started")), line.record.get("duration_ms")
        if started is not None and isinstance(duration, int | float):
            return started, started + duration / 1000, True
        if isinstance(line.record.get("error"), str):  # it never ran
            return line.at, line.at, True
        own = self.hooks_of.get(name, ())
        before = [span.end for span in own if not _follows_tool(span)]
        after = [span.start for span in own if _follows_tool(span)]
        start = max([call.asked, *before])
        return start, max(start, min([line.at, *after])), False

    def hook_run(self, line: TranscriptLine) -> None:
        try:
            run = msgspec.convert(line.record, HookRun)
        except msgspec.ValidationError:
            return
        start = moment_of(run.started)
        exact = start is not None
        if start is None:
            start = line.at - run.duration_ms / 1000
        span = Span(
            kind="hook",
            title=f"{run.name} on {run.event}",
            text=run.reason,
            start=start,
            end=start + run.duration_ms / 1000,
            line=line.number,
            turn=self.turn,
            verdict=verdict_of(run),
            bad=run.outcome in BLOCKING_WORDS or is_failure(run),
            seen_by=seen_by(run),
            exact=exact,
            run=run,
            agent_id=run.agent_id or "",
            agent_type=run.agent_type or "",
        )
        (self.waiting if run.event in BEFORE_THE_PROMPT else self.spans).append(span)
        if run.tool_use_id:
            self.hooks_of.setdefault(run.tool_use_id, []).append(span)

    def note(self, line: TranscriptLine) -> None:
        to_model = line.kind in ("user", "compact")
        text = line.text or str(line.record.get("content") or line.record.get("summary") or "")
        by_us = msgspec.to_builtins(HARNESS) in line.record.get("origins", ())
        names = {
            "user": f"{'Wave' if by_us else 'a hook'} tells the model",
            "error": "error",
            "notice": "notice",
            "compact": "summary",
        }
        facts = {key: line.record[key] for key in ("origins", "level", "upto") if key in line.record}
        self.spans.append(
            Span(
                kind="note",
                title=f"{names[line.kind]}: {text}",
                text=text,
                start=line.at,
                end=line.at,
                line=line.number,
                turn=self.turn,
                seen_by=(MODEL,) if to_model else (USER,),
                bad=line.kind == "error",
                facts=facts,
            )
        )


def verdict_of(run: HookRun) -> str:
    """How a hook decided, in words."""
    words = [run.outcome]
    if run.failure:
        words.append(f"({run.failure}{', let through' if run.let_through else ''})")
    if run.rewrote:
        words.append("+ rewrite")
    if run.original_sha256:
        words.append("+ new result")
    if run.look > 1:
        words.append("on the second look")
    if run.mode != "enforce":
        words.append(f"({run.mode})")
    if run.model or run.answer is not None:
        tokens = f", {run.tokens:,} tokens" if run.tokens else ""
        read = f", {len(run.calls)} call{'s' * (len(run.calls) > 1)}" if run.calls else ""
        words.append(f"(asked {run.model or 'a model'}{tokens}{read})")
    return " ".join(words)


def seen_by(run: HookRun) -> tuple[str, ...]:
    """Who read what this run said."""
    if run.mode != "enforce":
        return ()
    if run.outcome in BLOCK_WORDS and run.event in set(HookEvent):
        return (EVENTS[HookEvent(run.event)].reason_reader.value,)
    return _SEEN.get(run.outcome, ())


_MAIN = ("command", "file_path", "pattern", "path", "url", "query", "prompt")


def _follows_tool(span: Span) -> bool:
    event = span.run.event if span.run else ""
    return event in set(HookEvent) and EVENTS[HookEvent(event)].after_tool


def main_value(tool_input: Any) -> str:
    """The most telling value of a tool's input, on one line."""
    if not isinstance(tool_input, Mapping):
        return ""
    fields = cast(Mapping[str, Any], tool_input)
    found = next((fields[name] for name in _MAIN if isinstance(fields.get(name), str)), "")
    return " ".join(str(found).split())
