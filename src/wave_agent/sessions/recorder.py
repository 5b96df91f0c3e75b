"""The transcript: one JSON line for everything that happened, append-only.

`user` and `assistant` lines use the format that existing hooks parse; our own lines are `system`:

    {"type":"session","version":1,…}                                    the first line
    {"type":"user"|"assistant","message":{"role":…,"content":…},…}      the conversation
    {"type":"system","subtype":"error"|"notice"|"hook_run"|"prompt_blocked"|"compact",…}
    {"type":"system","subtype":"violation"|"guard_verdict",…}
    {"type":"system","subtype":"deferred_call",…}                       a call that waits for a decision
    {"type":"system","subtype":"opening"|"known",…}                     how requests begin, and changes announced since
    {"type":"system","subtype":"usage",…}                               tokens and cost of a turn

A prompt is written to disk only after hooks have accepted it.
"""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import (
    HARNESS,
    AsideUpdated,
    Block,
    BlockAdded,
    Change,
    Compacted,
    ErrorBlock,
    Image,
    MessageAdded,
    NoticeBlock,
    Opening,
    PromptAccepted,
    PromptAdded,
    PromptRemoved,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
    ToolUpdated,
)
from wave_agent.sessions.hash_chain import Link, following, seed
from wave_agent.sessions.store import FileSessionStore, SessionStore
from wave_agent.sessions.transcript import Record, Resumed, encode, load_session, transcript_file, transcripts
from wave_agent.system.timestamps import Clock, stamp, utc_now

if TYPE_CHECKING:
    from wave_agent.sessions.redaction import ErasedPrompt  # few prompts are erased

__all__ = [  # Mostly re-exports: everything about sessions can be imported from here.
    "FileSessionStore",
    "Record",
    "Recorder",
    "Resumed",
    "SessionStore",
    "load_session",
    "transcript_file",
    "transcripts",
]

VERSION = 1


class Recorder:
    """Turns changes of the conversation into records."""

    def __init__(
        self,
        store: SessionStore,
        *,
        session_id: str,
        project_dir: str,
        start: str = "",
        last_uuid: str | None = None,
        link: Link | None = None,
        now: Clock = utc_now,
    ) -> None:
        """`start` is where the agent was started, if not in the project directory.

        When a session is resumed, `last_uuid` is that of its last line and `link` the last one of its journal."""
        self._store = store
        self._session_id = session_id
        self._project_dir = project_dir
        self._cwd = start or project_dir
        self._parent = last_uuid
        self._link = link or seed(session_id)
        self._now = now
        self._waiting: list[Record] | None = None
        """Records since a prompt that no hook has judged yet."""
        self._erased: list[ErasedPrompt] = []
        """Prompts that must not reach the disk, not even quoted by hooks that finish late."""
        self._failure: SessionError | None = None

    def start(self, **facts: Any) -> None:
        """Writes the first line."""
        head = {"type": "session", "version": VERSION, "session_id": self._session_id, "cwd": self._cwd}
        head |= {"project": self._project_dir} if self._cwd != self._project_dir else {}
        self._append({**head, "timestamp": self._timestamp(), **facts})
        self._tell_failure()

    def hook_run(self, run: HookRun) -> None:
        self._write({"type": "system", "subtype": "hook_run", **msgspec.to_builtins(run)})
        self._tell_failure()

    def violation(self, facts: Mapping[str, Any]) -> None:
        """A file that rules protect was changed."""
        self._write({"type": "system", "subtype": "violation", **facts})
        self._tell_failure()

    def guard_verdict(self, **facts: Any) -> None:
        """What guards decided about an event of another agent."""
        self._write({"type": "system", "subtype": "guard_verdict", **facts})
        self._tell_failure()

    def deferred_call(self, tool_id: str | None) -> None:
        """A call that a hook deferred. None: it has been taken up again."""
        self._write({"type": "system", "subtype": "deferred_call", "tool_use_id": tool_id})

    def usage(self, facts: Mapping[str, Any]) -> None:
        """What a turn used and cost."""
        self._write({"type": "system", "subtype": "usage", **facts})
        self._tell_failure()

    def opening(self, opening: Opening) -> None:
        """How all requests begin from now on."""
        self._write({"type": "system", "subtype": "opening", **msgspec.to_builtins(opening)})
        self._tell_failure()

    def known(self, known: Mapping[str, str]) -> None:
        """What the model knows after a message about changes."""
        self._write({"type": "system", "subtype": "known", "known": dict(known)})
        self._tell_failure()

    def change(self, change: Change) -> None:
        self._record(change)
        self._tell_failure()

    def _record(self, change: Change) -> None:
        match change:
            case PromptAdded():
                self._waiting = []
                for erased in self._erased:
                    erased.fresh = False
            case PromptAccepted(text=text):
                # Runs first: context that arrived while the prompt was judged was delivered with it.
                for record in self._release():
                    self._write(record)
                self._write(_user_line((TextBlock(text, "user"),)))
            case PromptRemoved(text=text, reason=reason, typed=typed):
                waited = self._release()
                # The newest occasion among them is the prompt's own: context from its hooks is dropped with it.
                occasion = max((record.get("occasion", 0) for record in waited), default=0)
                from wave_agent.sessions.redaction import ErasedPrompt  # lazy: few prompts are erased

                self._erased += [ErasedPrompt(one) for one in (text, typed) if one or one is text]
                for record in waited:
                    self._write(record)
                blocked = {"type": "system", "subtype": "prompt_blocked", "reason": reason, "length": len(text)}
                self._write(blocked | ({"occasion": occasion} if occasion else {}))
            case MessageAdded(message=message):
                self._write(_user_line(message.blocks) if message.role == "user" else _assistant_line(message.blocks))
            case BlockAdded(block=block):
                self._write({"type": "system", "subtype": _SUBTYPES[type(block)], **_plain(block)})
            case ToolUpdated(block=block, ran=ran):
                self._write(_result_line(block) | ({} if ran is None else msgspec.to_builtins(ran)))
            case Compacted():
                self._write({"type": "system", "subtype": "compact", **msgspec.to_builtins(change)})
            case AsideUpdated():
                pass  # its result is part of the prompt, if that is accepted

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
            "cwd": self._cwd,
        }
        line = {**record, **frame}
        if record.get("subtype") == "hook_run":
            line["run"] = self._link.run + 1
            self._link = following(self._link, encode(line))
            line["chain"] = self._link.chain
        self._append(line)
        self._parent = line_id

    def _append(self, line: Record) -> None:
        """A store that fails keeps the line, so later lines are passed to it as well."""
        try:
            self._store.append(line)
        except SessionError as error:
            self._failure = error

    def _tell_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _timestamp(self) -> str:
        return stamp(self._now())


_SUBTYPES: Mapping[type, str] = {ErrorBlock: "error", NoticeBlock: "notice"}


def _plain(block: ErrorBlock | NoticeBlock) -> Record:
    found: Record = msgspec.to_builtins(block)
    found.pop("type")
    return found


_QUOTING: Mapping[str, tuple[str, ...]] = {
    "hook_run": ("reason", "before", "after", "deferred", "answer", "calls"),
    "prompt_blocked": ("reason",),
    "error": ("content",),
    "notice": ("content",),
}
"""Fields in which a hook may quote a prompt."""


def _unquoting(record: Record, prompts: "list[ErasedPrompt]") -> Record:
    """The record with erased prompts removed from its free-text fields, and only from these."""
    from wave_agent.sessions.redaction import without  # lazy: see above

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
    if any(block.origin == HARNESS for block in texts):
        line["isMeta"] = True  # tells readers of this format that no person wrote it
    if any(block.origin for block in texts):
        line["origins"] = [msgspec.to_builtins(block.origin) for block in texts]
    return line


def _assistant_line(blocks: tuple[Block, ...]) -> Record:
    content: list[Record] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            content.append({"type": "text", "text": block.content, **_kept(block)})
        elif isinstance(block, ReasoningBlock):
            field = {"field": block.field} if block.field else {}
            content.append({"type": "thinking", "thinking": block.content, **field, **_kept(block)})
        elif isinstance(block, ToolBlock):
            call = {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.parameters)}
            content.append({**call, **_kept(block)})
    return {"type": "assistant", "message": {"role": "assistant", "content": content}}


def _kept(block: TextBlock | ReasoningBlock | ToolBlock) -> Record:
    return {} if block.kept is None else {"kept": msgspec.to_builtins(block.kept)}


def _image(image: Image) -> Record:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source, "width": image.width, "height": image.height}


def _result_line(block: ToolBlock) -> Record:
    text = block.result or ""
    result = {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": [{"type": "text", "text": text}, *map(_image, block.images)] if block.images else text,
        "is_error": not block.success,
    }
    line: Record = {"type": "user", "message": {"role": "user", "content": [result]}, "source": "tool"}
    if block.error is not None:
        line["error"] = block.error
    if block.origin is not None:
        line["origins"] = [msgspec.to_builtins(block.origin)]
    return line
