"""Events of other agents in the transcripts of their project, so that everything that reads sessions covers them.

Each session of a host is a transcript of its own, named after the host. It has the calls that the host announced, the
hook runs, the results it reported, and one `guard_verdict` line for each event.
"""

import hashlib
import json
import mmap
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.guard.calls import HostEvent
from wave_agent.guard.hosts import Verb
from wave_agent.guard.verdicts import JudgedEvent
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import EVENTS, Flow
from wave_agent.messages import (
    DENIED,
    Message,
    MessageAdded,
    PromptAccepted,
    PromptAdded,
    PromptRemoved,
    ToolBlock,
    ToolUpdated,
)
from wave_agent.sessions.hash_chain import Link, last_link
from wave_agent.sessions.recorder import Recorder
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.touched import note_closed
from wave_agent.system.identity import identity
from wave_agent.system.private_files import keep_private, make_private, unwritten

PATIENCE = 2.0
"""Seconds to wait for another guard that writes to the same session: hosts run calls in parallel."""
_TAIL = 1 << 18
"""Bytes at the end of a transcript that are read first."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,48}")


def session_name(host: str, session_id: str) -> str:
    """The id under which a session of a host is kept."""
    if _PLAIN.fullmatch(session_id):
        return f"{host}-{session_id}"
    return f"{host}-{hashlib.sha256(session_id.encode(errors='replace')).hexdigest()[:32]}"


class EarlierVerdicts(Struct, frozen=True, kw_only=True):
    """What the journal of a session says so far."""

    runs: tuple[HookRun, ...] = ()
    blocks: int = 0
    """How often hooks have kept the host working on its current prompt."""
    blocks_in_a_row: int = 0
    """The same, without a tool call in between."""
    kept: int = 0
    """As `blocks`, but a prompt does not start anew: some hosts announce the reason of a block as one."""
    kept_in_a_row: int = 0
    open_calls: Mapping[str, str] = {}
    """Calls without a result: tool and input → id."""


def earlier_for(event: HostEvent, transcript: Path, hooks: Sequence[HookDefinition]) -> EarlierVerdicts:
    """What judging this event with these hooks has to know, which may be nothing: in a long session it takes longer to
    read than to judge."""
    row = EVENTS[event.event]
    lacks_id = row.after_tool and not event.tool_use_id
    if not hooks and row.block_counter is None and not lacks_id:
        return EarlierVerdicts()
    return read_earlier(transcript, everything=any(hook.once for hook in hooks))


def read_earlier(transcript: Path, *, everything: bool = False) -> EarlierVerdicts:
    """`everything`: all runs, not just the latest ones."""
    lines = _lines(transcript, None if everything else _TAIL)
    runs = tuple(run for record in lines if (run := _run(record)) is not None)
    total = in_a_row = kept = kept_in_a_row = 0
    for record in lines:
        if record.get("subtype") != "guard_verdict":
            continue
        event, verdict = record.get("event"), record.get("verdict")
        row = next((row for row in EVENTS.values() if row.event.value == event), None)
        if row is None:
            continue
        if Flow.ERASE_PROMPT in row.flow.values():
            total = in_a_row = 0
        elif row.block_counter is not None:
            blocked = verdict == Verb.DENY.value
            total, in_a_row = (total + 1, in_a_row + 1) if blocked else (0, 0)
            kept, kept_in_a_row = (kept + 1, kept_in_a_row + 1) if blocked else (0, 0)
        elif row.has_tool:
            in_a_row = kept_in_a_row = 0
    return EarlierVerdicts(
        runs=runs,
        blocks=total,
        blocks_in_a_row=in_a_row,
        kept=kept,
        kept_in_a_row=kept_in_a_row,
        open_calls=_open_calls(lines),
    )


def _open_calls(lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in lines:
        message = record.get("message")
        content: Any = cast(Mapping[str, Any], message).get("content") if isinstance(message, dict) else None
        for part in cast(list[Any], content) if isinstance(content, list) else ():
            if isinstance(part, dict):
                _follow(cast(Mapping[str, Any], part), found)
    return found


def _follow(part: Mapping[str, Any], calls: dict[str, str]) -> None:
    if part.get("type") == "tool_use":
        calls[_key(part.get("name"), part.get("input"))] = str(part.get("id"))
    elif part.get("type") == "tool_result":
        done = [key for key, call_id in calls.items() if call_id == part.get("tool_use_id")]
        for key in done:
            del calls[key]


def _key(tool: Any, tool_input: Any) -> str:
    return json.dumps([tool, tool_input], sort_keys=True)


def with_id(event: HostEvent, earlier: EarlierVerdicts) -> HostEvent:
    """Some hosts give calls no id: the result of a call then belongs to the last call that was the same."""
    if event.tool_use_id or not event.calls:
        return event
    first = event.calls[0]
    known = earlier.open_calls.get(_key(first.tool, first.tool_input)) if EVENTS[event.event].after_tool else None
    same = known.partition(".")[0] if known else f"call-{uuid.uuid4().hex[:12]}"
    return msgspec.structs.replace(event, tool_use_id=same)


def _lines(transcript: Path, tail: int | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in _tail(transcript, tail):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(cast(dict[str, Any], record))
    return found


def _tail(transcript: Path, size: int | None) -> list[bytes]:
    """The whole lines at the end of a file; none if it does not exist."""
    try:
        with transcript.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            start = 0 if size is None else max(0, length - size)
            file.seek(start)
            lines = file.read().split(b"\n")
    except OSError:
        return []
    return lines[1:] if start else lines


def _run(record: Mapping[str, Any]) -> HookRun | None:
    if record.get("subtype") != "hook_run":
        return None
    try:
        return msgspec.convert(record, HookRun)
    except msgspec.ValidationError:
        return None


# ------------------------------------------------------------------------------------------------------------- writing


class GuardJournal:
    """The transcript of one session of a host."""

    def __init__(
        self, home: Path, transcript: Path, *, host: str, project: str, start: str, identity: bool = False
    ) -> None:
        """`identity`: the first line says who works on which machine."""
        self._home = home
        self._transcript = transcript
        self._host = host
        self._project = project
        self._start = start
        self._identity = identity

    def write(self, judged: JudgedEvent, *, patience: float = PATIENCE) -> None:
        """Adds an event with everything about it. Raises `SessionError`."""
        if not judged.event.is_prompt:
            return
        self._with_recorder(lambda recorder: _record(recorder, judged), patience)

    def add_runs(self, runs: Sequence[HookRun], *, patience: float = PATIENCE) -> None:
        """Adds runs of hooks that were not awaited. Raises `SessionError`."""

        def write(recorder: Recorder) -> None:
            for run in runs:
                recorder.hook_run(run)

        self._with_recorder(write, patience)

    def _with_recorder(self, write: Callable[[Recorder], None], patience: float) -> None:
        try:
            make_private(self._transcript.parent)
            keep_private(self._home / "projects")
            keep_private(self._transcript.parent)
        except OSError as error:
            raise SessionError(unwritten(f"The journal {self._transcript}", error)) from error
        store = FileSessionStore(self._transcript)
        _open(store, patience)
        try:
            last_uuid, link = _end_of(self._transcript)
            recorder = Recorder(
                store,
                session_id=self._transcript.stem,
                project_dir=self._project,
                start=self._start,
                last_uuid=last_uuid,
                link=link,
            )
            if last_uuid is None and self._transcript.stat().st_size == 0:
                recorder.start(host=self._host, **(identity(self._project) if self._identity else {}))
            write(recorder)
        finally:
            store.close()
            note_closed(self._transcript)


def _open(store: FileSessionStore, patience: float) -> None:
    ends = time.monotonic() + patience
    while True:
        try:
            store.open()
        except SessionError:
            if time.monotonic() >= ends:
                raise
            time.sleep(0.01)
        else:
            return


def _end_of(transcript: Path) -> tuple[str | None, Link | None]:
    """The uuid of the last line, and the end of the chain of hook runs."""
    lines = _tail(transcript, _TAIL)
    link = last_link(lines)
    if link is None and _mentions(transcript, b'"hook_run"'):
        link = last_link(_tail(transcript, None))
    for line in reversed(lines):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and isinstance(name := cast(dict[str, Any], record).get("uuid"), str):
            return name, link
    return None, link


def _mentions(transcript: Path, words: bytes) -> bool:
    """Whether the words may be in it. Much quicker than reading the lines."""
    try:
        with transcript.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.rfind(words) >= 0
    except (OSError, ValueError):  # an empty file cannot be mapped
        return True


def _record(recorder: Recorder, judged: JudgedEvent) -> None:
    """In the order of our own sessions: the call, the hooks, then what became of it."""
    event, row = judged.event, EVENTS[judged.event.event]
    denied = judged.answer.verb in (Verb.DENY, Verb.END)
    prompt = event.facts.get("prompt") if Flow.ERASE_PROMPT in row.flow.values() else None
    before_tool = row.has_tool and not row.after_tool
    if prompt is not None:
        recorder.change(PromptAdded(prompt))
    if before_tool:
        for one in judged.calls:
            block = ToolBlock(one.call_id, one.call.tool, one.call.tool_input)
            recorder.change(MessageAdded(Message("assistant", (block,))))
    for run in judged.runs:
        recorder.hook_run(run)
    if prompt is not None:
        reason = judged.answer.reason
        recorder.change(PromptRemoved(prompt, reason) if denied else PromptAccepted(prompt))
    for one in judged.calls:
        block = ToolBlock(one.call_id, one.call.tool, one.call.tool_input)
        if before_tool and denied:
            reason = judged.answer.reason or judged.answer.why
            recorder.change(ToolUpdated(msgspec.structs.replace(block, result=reason, success=False, error=DENIED)))
        elif row.after_tool:
            response = event.facts.get("tool_response") or {"success": False, "content": event.facts.get("error", "")}
            text = judged.answer.replacement
            result = str(response.get("content", "")) if text is None else text
            done = msgspec.structs.replace(block, result=result, success=bool(response.get("success")))
            recorder.change(ToolUpdated(done))
    recorder.guard_verdict(
        host=event.host,
        event=event.event.value,
        host_event=event.name,
        tool=event.tool,
        tool_use_id=event.tool_use_id,
        verdict=judged.answer.verb.value if judged.answer.verb else "none",
        rewrote=judged.answer.tool_input is not None,
        by=judged.by,
        reason="" if prompt is not None and denied else judged.answer.reason,
        duration_ms=judged.duration_ms,
    )
