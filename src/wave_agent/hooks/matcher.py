"""Decides whether a hook's matcher applies to an event, and explains why."""

import re
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from wave_agent.formats.user_regex import compile_strictly, matching_glob, why_slow
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.rule import SAME_TOOL
from wave_agent.text import NAME_LIMIT

KNOWN_TOOLS = (
    *("Bash", "BashOutput", "KillShell", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep"),
    *("TodoWrite", "WebFetch", "WebSearch", "Task", "Agent", "Skill", "LS", "NotebookRead", "TodoRead", "KillBash"),
    *("ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "SlashCommand", "TaskOutput", "TaskStop", "ToolSearch"),
)
"""Tool names used in settings files. Matchers may use others, but these are never the start of an expression."""

_EXPRESSION = frozenset(".^$()[]{}+\\")
_TOOL_WITH_ARGUMENT = lazy_regex(rf"({'|'.join(KNOWN_TOOLS)})\(", re.IGNORECASE)
_PLAIN = lazy_regex(r"[\w-]+")
_GLOB = lazy_regex(r"[\w*?-]+")


class MatcherError(ValueError):
    """Why a matcher cannot be used, and what to write instead."""


class MatcherForm(StrEnum):
    """How one alternative of a matcher was parsed."""

    ALL = "everything"
    NAME = "name"
    GLOB = "glob"
    EXPRESSION = "regular expression"


class Alternative(Struct, frozen=True):
    text: str
    form: MatcherForm
    test: Callable[[str], bool]


class Matcher(Struct, frozen=True):
    """A parsed matcher. It matches if any of its alternatives does."""

    text: str
    alternatives: tuple[Alternative, ...]

    def matches(self, target: str) -> bool:
        """A target longer than any name always matches: running a hook needlessly is the safe choice."""
        if len(target) > NAME_LIMIT:
            return True
        also = SAME_TOOL.get(target.casefold())
        targets = (target,) if also is None else (target, also.capitalize())
        return any(alternative.test(one) for alternative in self.alternatives for one in targets)

    def explain(self) -> str:
        """How the matcher was parsed: `name "Bash" or glob "mcp__*"`."""
        return " or ".join(
            str(alternative.form) if alternative.form is MatcherForm.ALL else f'{alternative.form} "{alternative.text}"'
            for alternative in self.alternatives
        )


EVERYTHING = Matcher("", (Alternative("", MatcherForm.ALL, lambda _: True),))


def parse_matcher(text: str) -> Matcher:
    """Parse a matcher. Raises `MatcherError`: an invalid matcher must never silently match nothing."""
    if text.strip() in ("", "*"):
        return Matcher(text, EVERYTHING.alternatives)
    parts = [part.strip() for part in _split(text)]
    if not any(parts):
        raise MatcherError('it is empty; to match every tool, write "*"')
    return Matcher(text, tuple(_alternative(part) for part in parts if part))


_OF_AN_EXPRESSION = lazy_regex(r"\\|^\^|\$$|/")
_EVERY_FILE = ("", "*", ".*")


def parse_file_matcher(text: str) -> Matcher:
    """Parse a matcher that holds file names, separated by `|`: literal, or with `*` and `?`. Raises `MatcherError`."""
    if text.strip() in _EVERY_FILE:
        return Matcher(text, EVERYTHING.alternatives)
    parts = [part.strip() for part in text.split("|") if part.strip()]
    if not parts:
        raise MatcherError('it is empty; to match every file, write "*"')
    if wrong := next((part for part in parts if _OF_AN_EXPRESSION.search(part)), None):
        raise MatcherError(f'"{wrong}" is not a file name: write names without directories, such as ".env|*.lock"')
    return Matcher(text, tuple(_file_name(part) for part in parts))


def _file_name(text: str) -> Alternative:
    if "*" not in text and "?" not in text:
        return Alternative(text, MatcherForm.NAME, lambda target: target == text)
    pattern = _glob(text)
    return Alternative(text, MatcherForm.GLOB, lambda target: pattern.fullmatch(target) is not None)


def _glob(text: str, flags: int = 0) -> re.Pattern[str]:
    pieces = [re.escape(piece).replace(r"\?", ".") for piece in text.split("*")]
    return re.compile(matching_glob(pieces), flags | re.DOTALL)


def _split(text: str) -> list[str]:
    """Split at `|` and `,` outside brackets."""
    parts: list[str] = []
    depth, in_class, start, at = 0, False, 0, 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            at += text[at + 1 : at + 2] == "]"  # a bracket right after the opening one is literal
        elif character in "({":
            depth += 1
        elif character in ")}":
            depth -= 1
        elif character in "|," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]


def _alternative(text: str) -> Alternative:
    if _PLAIN.fullmatch(text):
        wanted = text.casefold()
        return Alternative(text, MatcherForm.NAME, lambda target: target.casefold() == wanted)
    if tool := _TOOL_WITH_ARGUMENT.match(text):
        raise MatcherError(f'a matcher contains only tool names: write "{tool[1]}" and put "if": "{text}" on the hook')
    if not _EXPRESSION.isdisjoint(text):
        return Alternative(text, MatcherForm.EXPRESSION, _expression(text))
    if _GLOB.fullmatch(text):
        pattern = _glob(text, re.IGNORECASE)
        return Alternative(text, MatcherForm.GLOB, lambda target: pattern.fullmatch(target) is not None)
    raise MatcherError(f'"{text}" is neither a tool name, a pattern with * or ?, nor a regular expression')


_GROUP_OPENING = lazy_regex(r"\(\?(?:[aimsux-]*[:)]|[!=]|<[!=]|P<\w+>)")
_TOOL_EXPRESSION = lazy_regex(r"[\w\-*?.^$()\[\]{}+\\|,:]*")


def _expression(text: str) -> Callable[[str], bool]:
    try:
        pattern = compile_strictly(text)
    except ValueError as error:
        raise MatcherError(f'"{text}" is not a valid regular expression: {error}') from None
    if slow := why_slow(text):
        raise MatcherError(f'"{text}" is not a usable regular expression: {slow}')
    if not _TOOL_EXPRESSION.fullmatch(_GROUP_OPENING.sub("", text)):
        raise MatcherError(f'"{text}" can never match: only tool names are compared; to check the input, use "if"')
    return lambda target: pattern.search(target) is not None
