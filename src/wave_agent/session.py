"""The transcript: one JSON line for everything that happened, only ever appended to.

Lines of `user` and `assistant` are in the dialect that existing hooks parse; what is ours alone is `system`:

    {"type":"session","version":1,…}                                    the first line
    {"type":"user"|"assistant","message":{"role":…,"content":…},…}      the conversation
    {"type":"system","subtype":"error"|"notice"|"hook_run"|"prompt_blocked"|"compact",…}

A prompt reaches the disk only when hooks have accepted it.
"""

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from wave_agent.erasure import ErasedPrompt, without
from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import (
    Block,
    BlockAdded,
    Change,
    Compacted,
    ErrorBlock,
    Message,
    MessageAdded,
    MessageManager,
    NoticeBlock,
    Origin,
    PromptAccepted,
    PromptAdded,
    PromptRemoved,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
    ToolUpdated,
)

VERSION = 1
Record = dict[str, Any]


class SessionStore(Protocol):
    """The seam between the agent and the disk."""

    def append(self, record: Record) -> None:
        """Returns when the record is in the file. Raises `SessionError` if it cannot be."""
        ...


_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def transcripts(home: Path, project_dir: str) -> Path:
    """The directory with the transcripts of a project."""
    return home / "projects" / re.sub(r"[^A-Za-z0-9]", "-", project_dir)


def transcript_file(home: Path, project_dir: str, session_id: str) -> Path:
    """Where the transcript of a session of this project stands. The id must not be able to leave that place."""
    if not _SESSION_ID.fullmatch(session_id):
        raise SessionError(f'"{session_id[:80]}" is not a session id.')
    return transcripts(home, project_dir) / f"{session_id}.jsonl"


def make_private(directory: Path) -> None:
    """The directory with all parents; those that are new are the user's alone."""
    if not directory.is_dir():
        make_private(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)


class FileSessionStore:
    """One file, private to the user, opened at the first record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def append(self, record: Record) -> None:
        try:
            if self._descriptor is None:
                make_private(self.path.parent)
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._seal(self._descriptor)
            line = _encode(record) + b"\n"
            # One write per record: another reader never sees half a line where the system can help it.
            if os.write(self._descriptor, line) != len(line):
                raise OSError("the disk took only a part of the record")
        except OSError as error:
            raise SessionError(f"The transcript {self.path} cannot be written: {error}") from error

    def _seal(self, descriptor: int) -> None:
        """Ends a line that a crash has torn, so that the next record does not become a part of it."""
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _encode(record: Record) -> bytes:
    try:
        return msgspec.json.encode(record)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(record, separators=(",", ":")).encode()


class Recorder:
    """Turns what happens to the conversation into records."""

    def __init__(
        self,
        store: SessionStore,
        *,
        session_id: str,
        project_dir: str,
        last_uuid: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`last_uuid` is that of the last line when a session is resumed."""
        self._store = store
        self._session_id = session_id
        self._project_dir = project_dir
        self._parent = last_uuid
        self._now = now
        self._waiting: list[Record] | None = None
        """Records since a prompt that no hook has judged yet."""
        self._erased: list[ErasedPrompt] = []
        """Prompts that must not reach the disk, also not as quotations of hooks that end late."""

    def start(self, **facts: Any) -> None:
        """The first line."""
        head = {"type": "session", "version": VERSION, "session_id": self._session_id, "cwd": self._project_dir}
        self._store.append({**head, "timestamp": self._timestamp(), **facts})

    def hook_run(self, run: HookRun) -> None:
        self._write({"type": "system", "subtype": "hook_run", **msgspec.to_builtins(run)})

    def change(self, change: Change) -> None:
        match change:
            case PromptAdded():
                self._waiting = []
                for erased in self._erased:
                    erased.fresh = False
            case PromptAccepted(text=text):
                # Runs first: context that came while the prompt was judged has gone with it.
                for record in self._release():
                    self._write(record)
                self._write(_user_line((TextBlock(text, "user"),)))
            case PromptRemoved(text=text, reason=reason):
                waited = self._release()
                # The newest occasion among them is the prompt's own: what its hooks had to add goes with it.
                occasion = max((record.get("occasion", 0) for record in waited), default=0)
                self._erased.append(ErasedPrompt(text))
                for record in waited:
                    self._write(record)
                blocked = {"type": "system", "subtype": "prompt_blocked", "reason": reason, "length": len(text)}
                self._write(blocked | ({"occasion": occasion} if occasion else {}))
            case MessageAdded(message=message):
                self._write(_user_line(message.blocks) if message.role == "user" else _assistant_line(message.blocks))
            case BlockAdded(block=block):
                self._write({"type": "system", "subtype": _SUBTYPES[type(block)], **_plain(block)})
            case ToolUpdated(block=block):
                self._write(_result_line(block))
            case Compacted(summary=summary, upto=upto):
                self._write({"type": "system", "subtype": "compact", "summary": summary, "upto": upto})

    def _release(self) -> list[Record]:
        waited, self._waiting = self._waiting or [], None
        return waited

    def _write(self, record: Record) -> None:
        if self._waiting is not None:
            self._waiting.append(record)
            return
        if self._erased:
            record = _unquoting(record, self._erased)
        line_id = str(uuid.uuid4())
        frame = {
            "uuid": line_id,
            "parentUuid": self._parent,
            "timestamp": self._timestamp(),
            "sessionId": self._session_id,
            "cwd": self._project_dir,
        }
        self._store.append({**record, **frame})
        self._parent = line_id

    def _timestamp(self) -> str:
        return self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_SUBTYPES: Mapping[type, str] = {ErrorBlock: "error", NoticeBlock: "notice"}


def _plain(block: ErrorBlock | NoticeBlock) -> Record:
    found: Record = msgspec.to_builtins(block)
    found.pop("type")
    return found


_QUOTING: Mapping[str, tuple[str, ...]] = {
    "hook_run": ("reason", "before", "after", "deferred"),
    "prompt_blocked": ("reason",),
    "error": ("content",),
    "notice": ("content",),
}
"""Fields in which a hook may quote a prompt."""


def _unquoting(record: Record, prompts: list[ErasedPrompt]) -> Record:
    """The record with its free texts, and only these, rid of erased prompts."""
    if record.get("source") == "hook":
        content: Any = record["message"]["content"]
        if isinstance(content, str):
            content = without(content, prompts)
        else:
            content = [{**part, "text": without(part["text"], prompts)} for part in cast(list[Record], content)]
        return {**record, "message": {**record["message"], "content": content}}
    return record | {key: without(record[key], prompts) for key in _QUOTING.get(record.get("subtype", ""), ())}


def _user_line(blocks: tuple[Block, ...]) -> Record:
    texts = [block for block in blocks if isinstance(block, TextBlock)]
    content: Any = [{"type": "text", "text": block.content} for block in texts]
    line: Record = {
        "type": "user",
        "message": {"role": "user", "content": texts[0].content if len(texts) == 1 else content},
        "source": texts[0].source if texts else "user",
    }
    if any(block.origin for block in texts):
        line["origins"] = [msgspec.to_builtins(block.origin) for block in texts]
    return line


def _assistant_line(blocks: tuple[Block, ...]) -> Record:
    content: list[Record] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            content.append({"type": "text", "text": block.content})
        elif isinstance(block, ReasoningBlock):
            content.append({"type": "thinking", "thinking": block.content})
        elif isinstance(block, ToolBlock):
            content.append({"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.parameters)})
    return {"type": "assistant", "message": {"role": "assistant", "content": content}}


def _result_line(block: ToolBlock) -> Record:
    result = {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": block.result or "",
        "is_error": not block.success,
    }
    line: Record = {"type": "user", "message": {"role": "user", "content": [result]}, "source": "tool"}
    if block.error is not None:
        line["error"] = block.error
    if block.origin is not None:
        line["origins"] = [msgspec.to_builtins(block.origin)]
    return line


# ------------------------------------------------------------------------------------------------------------- loading


class Resumed(Struct, frozen=True, kw_only=True):
    """A session as its transcript tells it."""

    messages: tuple[Message, ...] = ()
    hooks: tuple[HookRun, ...] = ()
    deferred: tuple[tuple[str, str, str], ...] = ()
    """Context that still waits for a prompt: event, hook, text."""
    last_uuid: str | None = None
    compacted: Compacted | None = None
    skipped: int = 0
    """Lines that could not be read."""


def load_session(path: Path) -> Resumed:
    """Reads what can be read; a torn or foreign line is skipped and counted."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise SessionError(f"There is no session {path.stem} in this project.") from None
    except OSError as error:
        raise SessionError(f"The transcript {path} cannot be read: {error}") from error
    loader = _Loader()
    for line in lines:
        try:
            loader.line(_decode(line))
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            loader.skipped += bool(line.strip())
    return loader.result()


def _decode(line: bytes) -> Record:
    try:
        return cast(Record, msgspec.json.decode(line))
    except msgspec.DecodeError:  # an escaped lone surrogate: unusual, but ours
        return cast(Record, json.loads(line))


class _Loader:
    def __init__(self) -> None:
        self.manager = MessageManager()
        self.hooks: list[HookRun] = []
        self.waiting: list[HookRun] = []
        self.void: set[int | None] = set()
        """Occasions whose prompt was erased: their context is not kept."""
        self.last_uuid: str | None = None
        self.compacted: Compacted | None = None
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
            text = result["content"]
            self.manager.update_tool_block(
                result["tool_use_id"],
                result=text if isinstance(text, str) else json.dumps(text),
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
            if run.deferred:
                self.waiting.append(run)
        elif subtype == "prompt_blocked":
            self.void.add(record.get("occasion"))
        elif subtype == "compact":
            found = _sound(Compacted(record["summary"], record["upto"]))
            self.compacted = Compacted(found.summary, max(0, min(found.upto, len(self.manager.messages))))

    def result(self) -> Resumed:
        # The order of the configuration, not that in which the hooks ended.
        kept = [run for run in self.waiting if run.occasion not in self.void]
        waiting = sorted(kept, key=lambda run: (run.occasion, run.position))
        return Resumed(
            messages=tuple(self.manager.messages),
            hooks=tuple(self.hooks),
            deferred=tuple((run.event, run.name, text) for run in waiting for text in run.deferred),
            last_uuid=self.last_uuid,
            compacted=self.compacted,
            skipped=self.skipped,
        )


Value = TypeVar("Value", bound=Struct)


def _sound(value: Value) -> Value:
    """The value, checked as if it had been read: a line can hold anything. Raises `msgspec.ValidationError`."""
    return msgspec.convert(msgspec.to_builtins(value), type(value))


def _assistant_blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield TextBlock(content, "model")
        return
    for part in content:
        if part["type"] == "text":
            yield TextBlock(part["text"], "model")
        elif part["type"] == "thinking":
            yield ReasoningBlock(part["thinking"])
        elif part["type"] == "tool_use":
            yield ToolBlock(part["id"], part["name"], part["input"])
