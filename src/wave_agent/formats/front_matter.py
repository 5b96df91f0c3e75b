"""The block of YAML at the top of a Markdown file, between two lines `---`: how skills, commands and agents describe
themselves."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.strict_json import Document, type_name
from wave_agent.formats.yaml_json import YAMLProblemError, parse_yaml

LONGEST = 16_000
"""Characters of the block: the parser takes its time, and anyone may have written the file."""
_FENCE = re.compile(r"---[ \t]*")
_PLAIN_VALUE = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s\"'|>&*!#].*?)[ \t]*")
"""A key and a value on one line that is neither quoted, nor a block, an alias, a tag or a comment."""


class FrontMatterError(ValueError):
    """Why the block cannot be used, and where."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem, self.line = problem, line


class FrontMatter(Struct, frozen=True):
    """A file's values, and the text below them."""

    values: Mapping[str, Any]
    body: str
    document: Document
    """The values with their lines in the file."""

    def line(self, *path: str | int) -> int:
        """The line of a value in the file, or of what is nearest to it."""
        return self.document.line(path) or 1


def parse_front_matter(text: str, *, forgiving: bool = False) -> FrontMatter:
    """A file without such a block is all body. Raises `FrontMatterError`.

    `forgiving` accepts what other agents accept: values such as `[file] [line]` or `Use when: always`, which YAML
    reads as something else or not at all, and a first line `---` that is only a rule.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return FrontMatter({}, "\n".join(lines).strip(), Document({}, {}))
    end = next((at for at, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        if forgiving:
            return FrontMatter({}, "\n".join(lines).strip(), Document({}, {}))
        raise FrontMatterError("the block that starts with --- has no second line ---", 1)
    if sum(map(len, lines[1:end])) > LONGEST:
        raise FrontMatterError(f"the block between the lines --- is longer than {LONGEST:,} characters", 1)
    found = _parsed(lines[1:end], forgiving=forgiving)
    value: Any = {} if found.value is None else found.value
    if not isinstance(value, dict):
        raise FrontMatterError(f"expected lines such as `name: value`, not {type_name(value)}", 2)
    places = {path: line + 1 for path, line in found.lines.items()}
    values = cast("dict[str, Any]", value)
    return FrontMatter(values, "\n".join(lines[end + 1 :]).strip(), Document(values, places))


def _parsed(lines: list[str], *, forgiving: bool) -> Document:
    try:
        return parse_yaml("\n".join(lines))
    except YAMLProblemError as error:
        problem = FrontMatterError(error.problem, error.line + 1)
    if forgiving:
        with suppress(YAMLProblemError):  # the first problem is about what the author wrote
            return parse_yaml("\n".join(map(_quoted, lines)))
    raise problem


def _quoted(line: str) -> str:
    """The line with its value in quotes, so that all of it is text, unless YAML can read it."""
    found = _PLAIN_VALUE.fullmatch(line)
    if found is None:
        return line
    with suppress(YAMLProblemError):
        parse_yaml(line)
        return line
    escaped = found[2].replace("'", "''")
    return f"{found[1]}: '{escaped}'"
