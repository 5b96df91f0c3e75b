"""A transcript on disk: its location, the encoding of a line, and loading the session from it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import (
    Block,
    Compacted,
    ErrorBlock,
    Image,
    Kept,
    Message,
    MessageManager,
    NoticeBlock,
    Opening,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.sessions.hash_chain import Link, last_link

Record = dict[str, Any]

DISPLACED = ".displaced"
"""Suffix of the directory for changed files that were moved away because a rule protects them."""
_UNKNOWN_SIDE = 1000
"""Pixels, for images recorded by other agents, which do not store the size."""


def transcripts(home: Path, project_dir: str) -> Path:
    """The directory with a project's transcripts."""
    return home / "projects" / "".join(one if one.isascii() and one.isalnum() else "-" for one in project_dir)


def is_session_id(text: str) -> bool:
    """ASCII letters, digits, `-` and `_`, at most 64, starting with a letter or digit."""
    is_word = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return is_word and len(text) <= 64 and text[0].isalnum()


def transcript_file(home: Path, project_dir: str, session_id: str) -> Path:
    """The location of a session's transcript. The id must not be able to escape that directory."""
    if not is_session_id(session_id):
        shown = ascii(session_id if len(session_id) <= 80 else f"{session_id[:80]}…")
        raise SessionError(
            f"{shown} is not a session id (letters, digits, - and _, at most 64); list them with wave sessions."
        )
    return transcripts(home, project_dir) / f"{session_id}.jsonl"


def encode(record: Record) -> bytes:
    """The line of a record, without a newline. The same record always gives the same bytes."""
    try:
        return msgspec.json.encode(record)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(record, separators=(",", ":")).encode()


def read_lines(path: Path) -> list[bytes]:
    """Raises a `SessionError` that says why it cannot be read."""
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        raise SessionError(f"There is no session {path.stem} in this project.") from None
    except OSError as error:
        raise SessionError(f"The transcript {path} cannot be read: {error}") from error


class Used(Struct, frozen=True):
    """What a session has used and cost."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = 0
    """None: unknown."""
    saved_usd: float = 0

    def __add__(self, other: "Used") -> "Used":
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Used(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            cost,
            self.saved_usd + other.saved_usd,
        )


class Resumed(Struct, frozen=True, kw_only=True):
    """A session as recorded in its transcript."""

    messages: tuple[Message, ...] = ()
    hooks: tuple[HookRun, ...] = ()
    deferred: tuple[tuple[str, str, str], ...] = ()
    """Context still waiting for a prompt: event, hook, text."""
    last_uuid: str | None = None
    link: Link | None = None
    """The end of the journal's chain."""
    blank: bool = True
    """The agent was killed before it wrote anything."""
    compacted: Compacted | None = None
    opening: Opening | None = None
    """How its requests begin; None if none was sent, or if an older version wrote the transcript."""
    used: Used = Used()
    deferred_call: str | None = None
    """The call that waits for a decision, unless it has a result by now."""
    skipped: int = 0
    """Unreadable lines."""


def load_session(path: Path) -> Resumed:
    """Reads as much as possible; torn or foreign lines are skipped and counted."""
    lines = read_lines(path)
    loader = _TranscriptLoader()
    for line in lines:
        try:
            loader.line(_decode(line))
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            loader.skipped += bool(line.strip())
    return loader.result(last_link(lines), blank=not any(lines))


def _decode(line: bytes) -> Record:
    try:
        return cast(Record, msgspec.json.decode(line))
    except msgspec.DecodeError:  # an escaped lone surrogate: unusual, but we write them
        return cast(Record, json.loads(line))


class _TranscriptLoader:
    def __init__(self) -> None:
        self.manager = MessageManager()
        self.hooks: list[HookRun] = []
        self.waiting: list[HookRun] = []
        self.void: set[int | None] = set()
        """Occasions whose prompt was erased: their context is dropped."""
        self.last_uuid: str | None = None
        self.compacted: Compacted | None = None
        self.opening: Opening | None = None
        self.used = Used()
        self.deferred_call: str | None = None
        self.skipped = 0

    def line(self, record: Record) -> None:
        kind = record["type"]
        if kind == "user":
            self.user(record)
        elif kind == "assistant":
            self.manager.add_assistant_message(
                *[_sound(block) for block in _assistant_blocks(record["message"]["content"])]
            )
        elif kind == "system":
            self.system(record)
        if isinstance(name := record.get("uuid"), str):
            self.last_uuid = name

    def user(self, record: Record) -> None:
        content = record["message"]["content"]
        origins = [msgspec.convert(origin, Origin | None) for origin in record.get("origins", [])]
        if isinstance(content, list) and content and cast(Record, content[0]).get("type") == "tool_result":
            result = cast(Record, content[0])
            origin = origins[0] if origins else None
            success = not result.get("is_error", False)
            text, images = _result(result["content"])
            self.manager.update_tool_block(
                result["tool_use_id"],
                result=text,
                images=images,
                success=success,
                error=record.get("error"),
                origin=origin,
            )
            return
        source = record.get("source", "user")
        parts = cast(list[Record], content)
        texts: list[str] = [content] if isinstance(content, str) else [part["text"] for part in parts]
        padded = [*origins, *[None] * len(texts)]
        self.manager.add_user_message(*[_sound(TextBlock(text, source, padded[at])) for at, text in enumerate(texts)])
        if source == "user":
            self.waiting.clear()
        for origin in origins:
            self.delivered(origin)

    def delivered(self, origin: Origin | None) -> None:
        """Waiting context that reached the model during a turn."""
        for at, run in enumerate(self.waiting):
            if origin == Origin(run.event, run.name):
                rest = run.deferred[1:]
                self.waiting[at : at + 1] = [replace(run, deferred=rest)] if rest else []
                return

    def system(self, record: Record) -> None:
        subtype = record["subtype"]
        if subtype == "error":
            self.manager.add_error_block(_sound(ErrorBlock(record["content"])).content)
        elif subtype == "notice":
            notice = _sound(NoticeBlock(record["content"], record.get("level", "warning")))
            self.manager.add_notice_block(notice.content, notice.level)
        elif subtype == "hook_run":
            run = msgspec.convert(record, HookRun)
            self.hooks.append(run)
            if run.deferred and not run.agent_id:  # a subagent ends with the agent above
                self.waiting.append(run)
        elif subtype == "prompt_blocked":
            self.void.add(record.get("occasion"))
        elif subtype == "compact":
            kept = (record.get("words", ""), record.get("facts", ""))
            found = _sound(Compacted(record["summary"], record["upto"], *kept))
            self.compacted = replace(found, upto=max(0, min(found.upto, len(self.manager.messages))))
        elif subtype == "deferred_call":
            self.deferred_call = record["tool_use_id"]
        elif subtype == "usage":
            self.used += msgspec.convert(record, Used)
        elif subtype == "opening":
            self.opening = msgspec.convert(record, Opening)
        elif subtype == "known" and self.opening is not None:
            self.opening = _sound(replace(self.opening, known=record["known"]))

    def result(self, link: Link | None, *, blank: bool) -> Resumed:
        # In configuration order, not in the order in which the hooks finished.
        kept = [run for run in self.waiting if run.occasion not in self.void]
        waiting = sorted(kept, key=lambda run: (run.occasion, run.position))
        return Resumed(
            messages=tuple(self.manager.messages),
            hooks=tuple(self.hooks),
            deferred=tuple((run.event, run.name, text) for run in waiting for text in run.deferred),
            last_uuid=self.last_uuid,
            link=link,
            blank=blank,
            compacted=self.compacted,
            opening=self.opening,
            used=self.used,
            deferred_call=self.deferred_call,
            skipped=self.skipped,
        )


Value = TypeVar("Value", bound=Struct)


def _sound(value: Value) -> Value:
    """Validates the value as if it had just been read: a line can hold anything. Raises `msgspec.ValidationError`."""
    return msgspec.convert(msgspec.to_builtins(value), type(value))


def _result(content: Any) -> tuple[str, tuple[Image, ...]]:
    """A text, or a text and images as `recorder` writes them. Any other list is kept as JSON."""
    if isinstance(content, str):
        return content, ()
    parts = cast(list[Record], content)
    if [part["type"] for part in parts] != ["text", *["image"] * (len(parts) - 1)]:
        return json.dumps(content), ()
    return parts[0]["text"], tuple(_image(part) for part in parts[1:])


def _image(part: Record) -> Image:
    source = part["source"]
    size = part.get("width", _UNKNOWN_SIDE), part.get("height", _UNKNOWN_SIDE)
    return _sound(Image(source["media_type"], source["data"], *size))


def _assistant_blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield TextBlock(content, "model")
        return
    for part in content:
        if part["type"] == "text":
            yield TextBlock(part["text"], "model", kept=_kept(part))
        elif part["type"] == "thinking":
            yield ReasoningBlock(part["thinking"], part.get("field", ""), _kept(part))
        elif part["type"] == "tool_use":
            yield ToolBlock(part["id"], part["name"], part["input"], kept=_kept(part))


def _kept(part: Record) -> Kept | None:
    """Without it the session can go on, so one that cannot be read is dropped."""
    try:
        return msgspec.convert(part.get("kept"), Kept | None)
    except msgspec.ValidationError:
        return None
