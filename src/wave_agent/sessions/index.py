"""The sessions of a project: list them, find one, export one as Markdown, delete old ones."""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec import Struct

from wave_agent.errors import SessionError
from wave_agent.messages import (
    BLOCKED,
    DENIED,
    HARNESS,
    ErrorBlock,
    Message,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import DISPLACED, is_session_id, transcript_file, transcripts
from wave_agent.system.orphans import holder_of

SUFFIX = ".jsonl"
FEW = 5000
"""Transcripts in a directory that can be looked at one by one, in less time than it takes to load the index."""
_SHOWN_IDS = 10
"""Session ids that an error message lists."""


class SessionSummary(Struct, frozen=True, kw_only=True):
    """One row of the list."""

    session_id: str
    path: Path
    modified: datetime
    size: int
    first_prompt: str
    """Empty when no prompt was ever accepted."""
    cwd: str = ""
    """Where it was started; empty if the transcript does not say."""
    host: str = ""
    """The agent whose session it is, if it is another one."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.path),
            "modified": self.modified.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "size": self.size,
            "first_prompt": self.first_prompt,
            **({"host": self.host} if self.host else {}),
        }


class TranscriptStamp(NamedTuple):
    """A transcript as it is now."""

    mtime_ns: int
    session_id: str
    size: int


class SessionUse(NamedTuple):
    """When a session was last used. Sorted by time, then by id."""

    mtime_ns: int
    session_id: str
    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / f"{self.session_id}{SUFFIX}"


def session_files(directory: Path, *, few: int = FEW) -> Iterator[Path]:
    """The transcripts in a directory, latest first."""
    return (one.path for one in session_uses(directory, few=few))


def session_uses(directory: Path, *, few: int = FEW) -> Iterator[SessionUse]:
    """The sessions in a directory, latest first. No transcript is opened: there may be a hundred thousand.

    Of more than a `few`, the index tells which were used when: see `sessions.index_file`.
    """
    ids = transcript_ids(directory)
    if len(ids) <= few:
        found = ((one.mtime_ns, one.session_id) for one in sorted(stamps(directory, ids), reverse=True))
    else:
        found = _by_index(directory, ids)
    return (SessionUse(time, name, directory) for time, name in found)


def transcript_ids(directory: Path) -> set[str]:
    """The names of the files that look like transcripts, without the suffix. Some may be something else."""
    try:
        return {name[: -len(SUFFIX)] for name in os.listdir(directory) if name.endswith(SUFFIX)}
    except OSError:
        return set()


def stamps(directory: Path, ids: Iterable[str], skipped: list[Path] | None = None) -> Iterator[TranscriptStamp]:
    """Looks at these transcripts. Something else with such a name, such as a directory, is added to `skipped`."""
    for name in ids:
        if is_session_id(name):
            with suppress(OSError):  # deleted since
                facts = os.stat(os.path.join(directory, f"{name}{SUFFIX}"))
                if stat.S_ISREG(facts.st_mode):
                    yield TranscriptStamp(facts.st_mtime_ns, name, facts.st_size)
                elif skipped is not None:
                    skipped.append(directory / f"{name}{SUFFIX}")


def _by_index(directory: Path, ids: set[str]) -> Iterator[tuple[int, str]]:
    """Time and id, latest first: from the index, except for those that it does not know or that were used since."""
    from wave_agent.sessions.index_file import IndexedSession, IndexFile, Stamp  # lazy: few directories are that large
    from wave_agent.sessions.touched import touched

    home, project = directory.parents[1], directory.name
    notes = touched(home)

    def look_at(some: Iterable[str]) -> list[tuple[int, str]]:
        return sorted(((one.mtime_ns, one.session_id) for one in stamps(directory, some)), reverse=True)

    with IndexFile(home) as index:
        known = set[str]() if notes.overflowed else index.ids(project) & ids
        new = look_at(ids - known)
        if new and not notes.overflowed:  # next time, they need not be looked at
            index.put(project, (IndexedSession(name, Stamp(time)) for time, name in new))
        used = notes.of(project) & known
        left = known - used

        def in_order() -> Iterator[tuple[int, str]]:
            for time, name in index.order(project):
                if name in left:
                    left.discard(name)
                    yield time, name

        yield from merge(new, look_at(used), in_order(), reverse=True)
        yield from look_at(left)  # an index that fails hides nothing


def list_sessions(home: Path, project_dir: str, most: int | None = None) -> list[SessionSummary]:
    """Latest first, at most `most`."""
    return list(islice(summaries(session_files(transcripts(home, project_dir))), most))


def latest_session(home: Path, project_dir: str) -> str:
    """The id of this agent's most recently used session. Raises `SessionError` if there is none."""
    for session in summaries(session_files(transcripts(home, project_dir))):
        if not session.host:
            return session.session_id
    raise SessionError("There is no session in this project yet.")


def find_session(home: Path, project_dir: str, prefix: str) -> Path:
    """The transcript whose id is `prefix`, or the only one that starts with it."""
    exact = transcript_file(home, project_dir, prefix)
    if exact.exists():
        return exact
    like = [name for name in transcript_ids(exact.parent) if name.startswith(prefix)]
    ids = sorted(one.session_id for one in stamps(exact.parent, like))
    if len(ids) == 1:
        return transcript_file(home, project_dir, ids[0])
    if ids:
        listed = f"{', '.join(ids[:_SHOWN_IDS])}{', …' if len(ids) > _SHOWN_IDS else ''}"
        raise SessionError(f'"{prefix}" matches {len(ids)} sessions: {listed}')
    raise SessionError(f'There is no session "{prefix}" in this project; list them with wave sessions.')


def delete_session(path: Path) -> None:
    """Deletes all that is stored of a session. Raises `SessionError` while an agent uses it."""
    remove_files(path)
    forget_in_index(path.parents[2], path.parent.name, [path.stem])


def forget_in_index(home: Path, project: str, ids: Iterable[str]) -> None:
    """Removes what the index says about these sessions. `project` is the name of their directory."""
    from wave_agent.sessions.index_file import IndexFile  # lazy: few sessions are deleted

    with IndexFile(home, create=False) as index:
        index.forget(project, ids)


def remove_files(path: Path) -> None:
    """Deletes a transcript and what is stored beside it. Raises `SessionError` while an agent uses it."""
    store = FileSessionStore(path, holder=partial(holder_of, path.parents[2]))
    try:
        store.open(resumed=True)
        path.unlink()
    except SessionError as error:
        raise SessionError(f"The session {path.stem} cannot be deleted: {error}") from error
    except OSError as error:
        raise SessionError(f"The session {path.stem} cannot be deleted: {error.strerror}") from error
    finally:
        store.close()
    import shutil  # lazy: loads libraries for archives, and few sessions are deleted

    for beside in ("", DISPLACED):
        shutil.rmtree(path.with_suffix(beside), ignore_errors=True)


def summaries(paths: Iterable[Path]) -> Iterator[SessionSummary]:
    """Each is read when it is asked for. Leaves out transcripts that cannot be read."""
    return filter(None, map(summary_of, paths))


def summary_of(path: Path) -> SessionSummary | None:
    """None if the transcript cannot be read."""
    try:
        facts = path.stat()
        with path.open("rb") as file:
            first = file.readline()
            prompt = next((text for line in chain([first], file) if (text := prompt_in(line))), "")
    except OSError:
        return None
    return SessionSummary(
        session_id=path.stem,
        path=path,
        modified=datetime.fromtimestamp(facts.st_mtime, UTC),
        size=facts.st_size,
        first_prompt=prompt,
        cwd=_fact(first, "cwd"),
        host=_fact(first, "host"),
    )


def _fact(line: bytes, key: str) -> str:
    """From the first line of a transcript."""
    if f'"{key}"'.encode() not in line:
        return ""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    value: Any = cast(dict[str, Any], found).get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def prompt_in(line: bytes) -> str:
    """The prompt of the user that this line of a transcript holds; empty if it holds none."""
    if b'"type":"user"' in line:
        with suppress(ValueError, KeyError, TypeError):
            record = cast(dict[str, Any], json.loads(line))
            content: Any = record["message"]["content"]
            if record.get("source", "user") == "user" and isinstance(content, str):
                return content
    return ""


def as_markdown(messages: tuple[Message, ...], title: str) -> str:
    """The conversation as readable Markdown."""
    parts = [f"# {title}"]
    for message in messages:
        for block in message.blocks:
            match block:
                case TextBlock(source="model") if message.role == "user":
                    pass  # the agent's own text for the model: the user got a notice
                case TextBlock(content=content, source="user"):
                    parts.append(f"## You\n\n{content}")
                case TextBlock(content=content, source="model"):
                    parts.append(f"## Wave\n\n{content}")
                case TextBlock(content=content, origin=origin) if origin == HARNESS:
                    parts.append(f"> {_quoted(content)}")
                case TextBlock(content=content, origin=origin):
                    name = f"{origin.hook} on {origin.event}" if origin else "hook"
                    parts.append(f"**Hook {name}:**\n\n{_fenced(content)}")
                case ToolBlock(name=name, parameters=parameters, result=result):
                    called = _fenced(json.dumps(parameters, indent=2, ensure_ascii=False), "json")
                    parts.append(f"**{name}**{_outcome(block)}\n\n{called}\n\n{_fenced(result or '')}")
                case ErrorBlock(content=content):
                    parts.append(f"> **Error:** {_quoted(content)}")
                case NoticeBlock(content=content):
                    parts.append(f"> {_quoted(content)}")
                case ReasoningBlock():
                    pass
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _outcome(block: ToolBlock) -> str:
    if block.success:
        return ""
    if block.error in (BLOCKED, DENIED):
        return f" (denied by hook {block.origin.hook})" if block.origin else " (not run)"
    return " (failed)"


def _quoted(text: str) -> str:
    return text.replace("\n", "\n> ")
