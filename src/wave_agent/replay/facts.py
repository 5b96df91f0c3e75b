"""What a transcript says about its prompts, calls and hook runs, read in one pass.

A company has hundreds of thousands of transcripts. So only the fields that are counted are decoded, and of most lines
that is little.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from wave_agent.hooks.events import EVENTS, ContextPlace
from wave_agent.system.timestamps import moment_of

BEFORE_THE_PROMPT = frozenset(
    row.event.value for row in EVENTS.values() if row.context in (ContextPlace.BEFORE_PROMPT, ContextPlace.AFTER_PROMPT)
)
"""Events whose runs come before their prompt in the transcript."""
_RUN = b'{"type":"system","subtype":"hook_run",'
"""How the recorder begins such a line. Other lines are decoded to find out what they are."""
_NOTES = frozenset({"error", "notice", "compact"})


class RunFact(Struct, kw_only=True):
    """One hook run. Fields as in the journal, except for the last ones."""

    event: str
    name: str
    layer: str
    outcome: str
    duration_ms: float
    command: str = ""
    failure: str | None = None
    mode: str = "enforce"
    look: int = 1
    exit_code: int | None = None
    rewrote: bool = False
    let_through: bool = False
    is_async: bool = False
    tool_use_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    reason: str = ""
    model: str = ""
    tokens: int = 0
    run: int = 0
    started: str = ""
    timestamp: str = ""
    at: float = 0.0
    """When it started, in seconds since 1970."""
    turn: int = 0
    """The number of its prompt; 0: before the first one."""


class CallFact(Struct, kw_only=True):
    """One tool call."""

    id: str
    tool: str
    input: Raw
    at: float
    """When the tool started or, if it did not run, when the model asked for it."""
    turn: int
    success: bool | None = None
    """None: it has no result."""
    error: str | None = None
    """Why it did not run."""
    by: str = ""
    """The hook that denied it."""
    duration_ms: float | None = None
    changed_files: int = 0
    result: Raw = Raw(b"null")

    @property
    def arguments(self) -> Mapping[str, Any]:
        try:
            found: Any = json.loads(bytes(self.input))
        except (ValueError, RecursionError):
            return {}
        return cast(dict[str, Any], found) if isinstance(found, dict) else {}


class TranscriptHead(Struct, kw_only=True):
    """The first line of a session."""

    host: str = ""
    """The agent, if it is another one."""
    cwd: str = ""
    project: str = ""
    user: str = ""
    hostname: str = ""
    repository: str = ""


class Spent(Struct, kw_only=True):
    """What all turns have used."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = 0.0
    """None: unknown."""


class TranscriptFacts(Struct, kw_only=True):
    head: TranscriptHead
    started: float = 0.0
    ended: float = 0.0
    prompts: list[str]
    """A blocked one is empty: it was never stored."""
    blocked_prompts: int = 0
    runs: list[RunFact]
    calls: dict[str, CallFact]
    turns: dict[int, tuple[float, float]]
    """When each turn began and ended, without hooks that nobody waited for."""
    spent: Spent


class _Message(Struct):
    content: Raw = Raw(b"null")


class _Origin(Struct):
    hook: str = ""


class _Line(Struct):
    type: str = ""
    subtype: str = ""
    timestamp: str = ""
    source: str = "user"
    is_meta: bool = msgspec.field(default=False, name="isMeta")
    message: _Message | None = None
    error: Raw = Raw(b"null")
    origins: list[_Origin | None] = []
    started: str = ""
    duration_ms: float | None = None
    changed_files: Raw = Raw(b"null")


class _ContentPart(Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    input: Raw = Raw(b"null")
    text: str = ""
    tool_use_id: str = ""
    content: Raw = Raw(b"null")
    is_error: bool = False


Value = TypeVar("Value")


def read_facts(lines: Iterable[bytes]) -> TranscriptFacts:
    """Never raises: what cannot be read is left out."""
    reader = _Reader()
    for line in lines:
        reader.add(line)
    return reader.facts


class _Reader:
    def __init__(self) -> None:
        self.facts = TranscriptFacts(head=TranscriptHead(), prompts=[], runs=[], calls={}, turns={}, spent=Spent())
        self.turn = 0
        self.at = 0.0
        """The time of the latest line that has one."""
        self.waiting: list[RunFact] = []
        """Runs that belong to the next prompt."""

    def add(self, line: bytes) -> None:
        if line.startswith(_RUN):
            self.hook_run(line)
            return
        found = _decoded(line, _LINE)
        if found is None:
            return
        self.pass_time(found.timestamp)
        if found.type == "user" and found.message is not None:
            self.user(found, found.message)
        elif found.type == "assistant" and found.message is not None:
            self.last_until(self.at)
            for part in self.parts(found.message):
                if part.type == "tool_use":
                    call = CallFact(id=part.id, tool=part.name, input=part.input, at=self.at, turn=self.turn)
                    self.facts.calls[part.id] = call
        elif found.type == "system":
            self.system(found, line)
        elif found.type == "session":
            self.head(line)
        if not self.facts.head.cwd and b'"cwd"' in line:  # another agent's transcript has no first line of its own
            self.head(line)

    def head(self, line: bytes) -> None:
        self.facts.head = _decoded(line, _HEAD) or self.facts.head

    def pass_time(self, timestamp: str) -> None:
        moment = moment_of(timestamp) if timestamp else None
        if moment is not None:
            self.at = moment
            self.facts.started = self.facts.started or moment
            self.facts.ended = max(self.facts.ended, moment)

    def last_until(self, end: float, start: float | None = None) -> None:
        """The current turn has lasted until `end`."""
        if self.turn:
            first, last = self.facts.turns.get(self.turn, (end, end))
            self.facts.turns[self.turn] = min(first, end if start is None else start), max(last, end)

    def user(self, line: _Line, message: _Message) -> None:
        parts = self.parts(message)
        results = [part for part in parts if part.type == "tool_result"]
        if results:
            for part in results:
                self.result(line, part)
            self.last_until(self.at)
        elif line.source == "hook":
            self.last_until(self.at)
        elif not line.is_meta:
            text = _decoded(bytes(message.content), _TEXT)
            self.prompt("\n".join(part.text for part in parts) if text is None else text)

    def parts(self, message: _Message) -> list[_ContentPart]:
        return _decoded(bytes(message.content), _PARTS) or []

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.facts.prompts.append(text)
        start = min([self.at, *(run.at for run in self.waiting)])
        for run in self.waiting:
            self.place(run)
        self.waiting = []
        self.last_until(self.at, start)

    def result(self, line: _Line, part: _ContentPart) -> None:
        call = self.facts.calls.get(part.tool_use_id)
        if call is None:
            return
        call.success = not part.is_error
        call.error = _decoded(bytes(line.error), _TEXT)
        call.by = next((origin.hook for origin in line.origins if origin is not None), "") if call.error else ""
        call.duration_ms = line.duration_ms
        call.at = moment_of(line.started) or call.at
        call.changed_files = len(_decoded(bytes(line.changed_files), _LIST) or [])
        call.result = part.content

    def system(self, line: _Line, raw: bytes) -> None:
        if line.subtype == "hook_run":
            self.hook_run(raw)
        elif line.subtype == "prompt_blocked":
            self.prompt("")
            self.facts.blocked_prompts += 1
        elif line.subtype in _NOTES:
            self.last_until(self.at)
        elif line.subtype == "usage" and (used := _decoded(raw, _SPENT)) is not None:
            so_far = self.facts.spent
            so_far.requests += used.requests
            so_far.input_tokens += used.input_tokens
            so_far.output_tokens += used.output_tokens
            so_far.cache_read_tokens += used.cache_read_tokens
            unknown = so_far.cost_usd is None or used.cost_usd is None
            so_far.cost_usd = None if unknown else (so_far.cost_usd or 0) + (used.cost_usd or 0)

    def hook_run(self, line: bytes) -> None:
        run = _decoded(line, _RUN_FACT)
        if run is None:
            return
        self.pass_time(run.timestamp)
        started = moment_of(run.started) if run.started else None
        run.at = self.at - run.duration_ms / 1000 if started is None else started
        self.facts.runs.append(run)
        if run.event in BEFORE_THE_PROMPT:
            self.waiting.append(run)
        else:
            self.place(run)

    def place(self, run: RunFact) -> None:
        run.turn = self.turn
        if not run.is_async:  # nobody waits for it
            self.last_until(run.at + run.duration_ms / 1000, run.at)


_LINE = msgspec.json.Decoder(_Line)
_HEAD = msgspec.json.Decoder(TranscriptHead)
_RUN_FACT = msgspec.json.Decoder(RunFact)
_SPENT = msgspec.json.Decoder(Spent)
_PARTS = msgspec.json.Decoder(list[_ContentPart])
_TEXT = msgspec.json.Decoder(str)
_LIST = msgspec.json.Decoder(list[Raw])


def _decoded(data: bytes, decoder: "msgspec.json.Decoder[Value]") -> Value | None:
    try:
        return decoder.decode(data)
    except (msgspec.ValidationError, RecursionError):  # not what it claims to be
        return None
    except ValueError:
        return _with_surrogates(data, decoder)


def _with_surrogates(data: bytes, decoder: "msgspec.json.Decoder[Value]") -> Value | None:
    """A lone surrogate is not valid, but the recorder writes what models and tools say: it is replaced."""
    try:
        return decoder.decode(json.dumps(_clean(json.loads(data))).encode())
    except (ValueError, RecursionError):  # torn, or not JSON
        return None


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(one) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in cast(dict[Any, Any], value).items()}
    return value
