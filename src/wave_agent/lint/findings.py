"""Findings: what is wrong, where, and how to fix it."""

from typing import Any

from msgspec import Struct

from wave_agent.lint.codes import CODES, Level


class TextEdit(Struct, frozen=True):
    """Replace a span of a file with other text."""

    file: str
    span: tuple[int, int]
    text: str


class RunBit(Struct, frozen=True):
    """Make a file executable for everyone who may read it."""

    file: str


class LineEndings(Struct, frozen=True):
    """Convert a file to LF line endings."""

    file: str


Repair = TextEdit | RunBit | LineEndings


class Finding(Struct, frozen=True, kw_only=True):
    code: str
    file: str
    line: int
    reason: str
    """A message specific to this finding."""
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
    """A finding with a known code."""
    row = CODES[code]
    return Finding(code=code, file=file, line=line or 1, reason=reason, level=row.level, fix=row.fix, repair=repair)


class Hit(Struct, frozen=True):
    """A finding in a script, not yet assigned to a file."""

    code: str
    line: int
    reason: str
