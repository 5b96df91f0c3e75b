"""What was found, where, and how it could be repaired."""

from typing import Any

from msgspec import Struct

from wave_agent.lint.codes import CODES, Level


class TextEdit(Struct, frozen=True):
    """Other text for a part of a file."""

    file: str
    span: tuple[int, int]
    text: str


class RunBit(Struct, frozen=True):
    """The right to be run, for whoever may read it."""

    file: str


class LineEndings(Struct, frozen=True):
    """LF at the end of each line."""

    file: str


Repair = TextEdit | RunBit | LineEndings


class Finding(Struct, frozen=True, kw_only=True):
    code: str
    file: str
    line: int
    reason: str
    """What was found here, in words of its own."""
    level: Level
    fix: str
    repair: Repair | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "level": self.level.value,
            "file": self.file,
            "line": self.line,
            "reason": self.reason,
            "fix": self.fix,
            "fixable": self.repair is not None,
        }


def finding(code: str, file: str, line: int | None, reason: str, repair: Repair | None = None) -> Finding:
    """One of a known code."""
    row = CODES[code]
    return Finding(code=code, file=file, line=line or 1, reason=reason, level=row.level, fix=row.fix, repair=repair)


class Hit(Struct, frozen=True):
    """A finding in a script, before it has a file."""

    code: str
    line: int
    reason: str
