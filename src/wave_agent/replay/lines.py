"""Reads a transcript into validated lines: each a JSON object with a kind, a line number and a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.sessions.transcript import read_lines
from wave_agent.system.timestamps import moment_of


class TranscriptLine(Struct, frozen=True, kw_only=True):
    """One line of a transcript."""

    number: int
    record: dict[str, Any]
    at: float
    """Seconds since 1970. A line without a timestamp gets that of the line before it."""
    size: int = 0
    """Bytes of the transcript up to the end of this line."""

    @property
    def kind(self) -> str:
        """The type or, for our own lines, the subtype."""
        kind = self.record.get("subtype" if self.record.get("type") == "system" else "type")
        return kind if isinstance(kind, str) else ""

    @property
    def source(self) -> str:
        """Who wrote a line with the user role."""
        source = self.record.get("source", "user")
        return source if isinstance(source, str) else ""

    @property
    def content(self) -> Any:
        message = self.record.get("message")
        return cast(dict[str, Any], message).get("content") if isinstance(message, dict) else None

    def parts(self, kind: str) -> list[dict[str, Any]]:
        """The parts of its content of this kind."""
        content = self.content
        if not isinstance(content, list):
            return []
        found = [cast(dict[str, Any], part) for part in cast(list[Any], content) if isinstance(part, dict)]
        return [part for part in found if part.get("type") == kind]

    @property
    def text(self) -> str:
        """The text a person or a model wrote."""
        content = self.content
        return (
            content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in self.parts("text"))
        )


class TranscriptLines(Struct, frozen=True):
    """The readable lines of a transcript."""

    lines: tuple[TranscriptLine, ...]
    skipped: int
    """Number of unreadable lines."""
    path: Path | None = None
    """The file they were read from."""

    @property
    def cwd(self) -> str:
        """The session's working directory, if its lines say."""
        return next((cwd for line in self.lines if isinstance(cwd := line.record.get("cwd"), str)), "")

    @property
    def project(self) -> str:
        """The project directory; the working directory if the session does not name one."""
        said = self.lines[0].record.get("project") if self.lines else None
        return said if isinstance(said, str) else self.cwd


def lines_of(path: Path) -> TranscriptLines:
    """Read a transcript. Raises `SessionError` if nothing can be read."""
    return replace(parse_lines(read_lines(path)), path=path)


def parse_lines(raw: Sequence[bytes]) -> TranscriptLines:
    found: list[TranscriptLine] = []
    skipped, size, at = 0, 0, 0.0
    for number, line in enumerate(raw, 1):
        size += len(line) + 1
        record = _record(line)
        if record is None:
            skipped += bool(line.strip())
            continue
        moment = moment_of(record.get("timestamp"))
        at = at if moment is None else moment
        found.append(TranscriptLine(number=number, record=record, at=at, size=size))
    return TranscriptLines(tuple(found), skipped)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found: object = msgspec.json.decode(line)
    except (ValueError, RecursionError):  # or something that only Python's own reader accepts
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def result_text(part: dict[str, Any]) -> str:
    """The text of a `tool_result`: a string, or the text parts of a list."""
    content: Any = part.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [cast(dict[str, Any], one) for one in cast(list[Any], content) if isinstance(one, dict)]
    texts = [part.get("text", "") for part in parts if part.get("type") != "image"]
    return "\n".join(str(text) for text in texts)
