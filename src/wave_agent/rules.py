"""Permission rules: `Tool` or `Tool(pattern)`, as settings and a hook's `if` write them."""

import re
from collections.abc import Mapping
from enum import Enum
from posixpath import join, normpath
from typing import Any

from msgspec import Struct

from wave_agent.text import compile_strictly

PATH_FIELDS: Mapping[str, str] = {
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Glob": "path",
    "Grep": "path",
}
_PATH_FIELDS = {tool.casefold(): field for tool, field in PATH_FIELDS.items()}
"""File tools, and the input field with the path that a pattern is compared with."""


class RuleError(ValueError):
    """Why a rule cannot be used, and what to write instead."""


class Purpose(Enum):
    """What a match would do. It decides on which side to err."""

    RESTRICT = "deny or ask"
    PERMIT = "allow"


class Places(Struct, frozen=True):
    """What relative patterns and `~/` refer to. Absolute paths."""

    project: str
    home: str


class Rule(Struct, frozen=True):
    """One parsed rule."""

    text: str
    tool: str
    pattern: str | None = None

    def matches(
        self, tool: str, tool_input: Mapping[str, Any], places: Places, purpose: Purpose = Purpose.RESTRICT
    ) -> bool:
        """Whether the rule speaks of this call."""
        name = tool.casefold()
        if self.pattern is None:
            # `mcp__server` stands for every tool of that server; `mcp__server__tool` for itself alone.
            whole_server = self.tool.startswith("mcp__") and self.tool.count("__") == 1
            return name == self.tool or (whole_server and name.startswith(f"{self.tool}__"))
        if name != self.tool:
            return False
        if name == "bash":
            return _matches_command(self.pattern, str(tool_input.get("command", "")), purpose)
        return _matches_path(self.pattern, str(tool_input.get(_PATH_FIELDS[name]) or "."), places)


_SHAPE = re.compile(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)


def parse_rule(text: str) -> Rule:
    """Raises `RuleError`."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise RuleError(f'"{text}" is not a rule: write Tool or Tool(pattern), such as Bash(git push:*) or Read(.env)')
    tool, pattern = shape[1].casefold(), shape[2]
    pattern = pattern and pattern.strip()
    if pattern is None or (pattern in ("*", ":*") and tool not in _PATH_FIELDS):
        return Rule(text, tool)
    if tool not in _PATH_FIELDS and tool != "bash":
        known = ", ".join(["Bash", *PATH_FIELDS])
        raise RuleError(f'"{text}": only {known} take a pattern; write "{shape[1]}" for every call of that tool')
    if not _PREFIX.sub("", pattern):
        raise RuleError(f'"{text}": the pattern is empty; write "{shape[1]}" for every call of that tool')
    if tool != "bash":
        _check_path_pattern(text, pattern)
    return Rule(text, tool, pattern)


def _check_path_pattern(text: str, pattern: str) -> None:
    """A pattern that could never match would be a guard that is not there."""
    inner = pattern.removeprefix("//").removeprefix("~/").removeprefix("./").strip("/")
    if any(part in ("", ".", "..") for part in inner.split("/")):
        raise RuleError(f'"{text}": write the path without empty, "." and ".." parts; // in front makes it absolute')
    try:
        compile_strictly(_glob(pattern))
    except ValueError as error:
        raise RuleError(f'"{text}": the pattern cannot be read: {error}') from None


# Where one command ends and another may begin. Quotes are not looked at: taking a piece of a string for a command
# makes a restriction match more, never less.
_BETWEEN_COMMANDS = re.compile(r"\$\(|&&|\|\||[;&|\n(){}`]")
_PREFIX = re.compile(r":\*$")
# An allow rule's `*` must not reach over into another command, a substitution or a redirection.
_ONE_COMMAND = r"[^;&|<>\n`$(){}]*"


def _matches_command(pattern: str, command: str, purpose: Purpose) -> bool:
    """Restrictions hold for the whole line and every piece of it, permissions only for a line that is one command."""
    anything = _ONE_COMMAND if purpose is Purpose.PERMIT else ".*"
    prefix = _PREFIX.search(pattern)
    literal = _PREFIX.sub("", pattern)
    expression = anything.join(re.escape(piece) for piece in literal.split("*"))
    if prefix:
        expression += rf"(?:[ \t]{anything})?"
    compiled = re.compile(expression, re.DOTALL)
    candidates = [command.strip()]
    if purpose is Purpose.RESTRICT:
        candidates += _pieces(command.replace("\\\n", " "))
    return any(compiled.fullmatch(candidate) for candidate in candidates)


_REDIRECTION = re.compile(r"\d*(?:>>|>&|<&|&>|[<>])\s*[^\s;&|]*")
_QUOTING = re.compile(r"[\\'\"]")
_BEFORE_A_COMMAND = re.compile(
    r"(?:(?:if|then|elif|else|while|until|do|time|exec|command|builtin|nohup|sudo|env|nice|setsid|eval|xargs|!)"
    r"(?:\s+-\S+)*|timeout(?:\s+-\S+)*\s+\S+|\w+=\S*)\s+"
)
_DEEPEST = 32
"""Words in front of a command that are looked behind."""


def _pieces(line: str) -> list[str]:
    """What may be a command in this line, as written and without what can stand in front of, behind or around one."""
    found: list[str] = []
    for piece in _BETWEEN_COMMANDS.split(line):
        plain = " ".join(_QUOTING.sub("", _REDIRECTION.sub(" ", piece)).split())
        found += [piece.strip(), plain]
        for _ in range(_DEEPEST):
            found.append(_without_directory(plain))
            in_front = _BEFORE_A_COMMAND.match(plain)
            if in_front is None:
                break
            plain = plain[in_front.end() :]
            found.append(plain)
    return found


def _without_directory(command: str) -> str:
    """`/usr/bin/git push` → `git push`."""
    program, blank, rest = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]}{blank}{rest}"


def _matches_path(pattern: str, path: str, places: Places) -> bool:
    """gitignore-style: a pattern without a slash matches at any depth, a matched directory covers what is below it."""
    path = normpath(join(places.project, path))
    path = path.replace("//", "/", 1)  # POSIX lets two leading slashes stand; they must not dodge a rule
    if pattern.startswith("//"):
        base, pattern = "/", pattern[2:]
    elif pattern.startswith("~/"):
        base, pattern = places.home, pattern[2:]
    else:
        base, pattern = places.project, pattern.removeprefix("./")
        if "/" not in pattern.rstrip("/"):
            pattern = f"**/{pattern}"
    base = normpath(base)
    inside = "" if path == base else path.removeprefix(base.rstrip("/") + "/")
    if inside == path:
        return False
    return re.fullmatch(_glob(pattern.strip("/")) + r"(?:/.*)?", inside, re.DOTALL) is not None


_GLOB_TOKEN = re.compile(
    r"(?P<deep>(?:^|(?<=/))\*\*(?:/|$))|(?P<many>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]"
)


def _glob(pattern: str) -> str:
    """The regular expression of a gitignore-style glob."""
    out, at = "", 0
    for token in _GLOB_TOKEN.finditer(pattern):
        out += re.escape(pattern[at : token.start()])
        at = token.end()
        if token["deep"] is not None:
            out += ".*" if at == len(pattern) else "(?:.*/)?"
        elif token["many"] is not None:
            out += "[^/]*"
        elif token["one"] is not None:
            out += "[^/]"
        else:
            out += f"(?!/)[{'^' if token['not'] else ''}{_class(token['set'])}]"
    return out + re.escape(pattern[at:])


def _class(members: str) -> str:
    """The inside of a character class; ranges stay ranges."""
    return re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", members)
