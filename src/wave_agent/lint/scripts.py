"""A hook script: its language, its code without comments, and what static inspection tells about it."""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import EVENTS, Decision, EventRow, Flow, OnFailure

LARGEST = 1 << 20
"""Maximum size in bytes of a file to check."""


class Language(StrEnum):
    BASH = "bash"
    SH = "sh"
    PYTHON = "python"
    NODE = "node"


_INTERPRETERS = (
    (re.compile(r"\b(?:bash|zsh|ksh)\b"), Language.BASH),
    (re.compile(r"(?:^|[/\s])(?:sh|dash)\b"), Language.SH),
    (re.compile(r"\bpython[\d.]*\b"), Language.PYTHON),
    (re.compile(r"\b(?:node|bun|deno)\b"), Language.NODE),
)
ENDINGS = {
    ".sh": Language.BASH,
    ".bash": Language.BASH,
    ".py": Language.PYTHON,
    ".js": Language.NODE,
    ".mjs": Language.NODE,
    ".cjs": Language.NODE,
}
SHELLS = (Language.BASH, Language.SH)
_DECIDES = re.compile(r"""(?:permissionDecision|decision)\\?["']?\s*[:=]\s*\\?["'](?:block|deny|ask)\b""")
_EXITS_2 = {
    Language.BASH: re.compile(r"\b(?:exit|return)\s+2\b"),
    Language.SH: re.compile(r"\b(?:exit|return)\s+2\b"),
    Language.PYTHON: re.compile(r"\b(?:exit|_exit|SystemExit)\(\s*2\s*\)|\breturn\s+2\b|\b(?:deny|block|ask)\("),
    Language.NODE: re.compile(r"process\.exit\(\s*2\s*\)|process\.exitCode\s*=\s*2\b"),
}
_COMMENT = {
    Language.BASH: re.compile(r"(?:^|(?<=\s))#.*"),
    Language.SH: re.compile(r"(?:^|(?<=\s))#.*"),
    Language.PYTHON: re.compile(r"(?:^|(?<=\s))#.*"),
    Language.NODE: re.compile(r"(?:^|(?<=\s))//.*"),
}
_IGNORE = re.compile(r"(?:#|//)\s*wave:\s*ignore\s+([A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*)")


def language_of(file: str, text: str, interpreter: str = "") -> Language | None:
    """Determined by the interpreter in the command, else the first line, else the file name."""
    first = text.split("\n", 1)[0]
    for hint in (interpreter, first if first.startswith("#!") else ""):
        for pattern, language in _INTERPRETERS:
            if hint and pattern.search(hint):
                return language
    return next((language for ending, language in ENDINGS.items() if file.endswith(ending)), None)


class Script:
    """One script and the hooks that run it. Without hooks it is checked on its own."""

    def __init__(self, file: str, text: str, language: Language, hooks: Sequence[HookDefinition] = ()) -> None:
        self.file = file
        self.text = text
        self.language = language
        self.hooks = tuple(hooks)

    @cached_property
    def lines(self) -> list[str]:
        """The code, line by line, without comments."""
        return [_COMMENT[self.language].sub("", line) for line in self.text.splitlines()]

    @cached_property
    def code(self) -> str:
        return "\n".join(self.lines)

    @property
    def rows(self) -> list[EventRow]:
        return [EVENTS[hook.event] for hook in self.hooks]

    @cached_property
    def can_block(self) -> bool:
        return bool(_DECIDES.search(self.code) or _EXITS_2[self.language].search(self.code))

    @property
    def guards(self) -> bool:
        """It decides about an action that has not happened yet, and its failure would let the action through."""
        open_ones = [hook for hook in self.hooks if hook.on_failure is OnFailure.CONTINUE]
        before = [hook for hook in open_ones if decides_before(EVENTS[hook.event])]
        return self.can_block and (bool(before) or not self.hooks)

    @property
    def runs_elsewhere(self) -> bool:
        """The first line names a tool that provides its own interpreter."""
        return re.match(r"#!.*\b(?:uv|pipx|conda|poetry|nix-shell)\b", self.text) is not None

    def line_of(self, pattern: re.Pattern[str]) -> int | None:
        """The first line of code that matches."""
        return next((number for number, line in enumerate(self.lines, 1) if pattern.search(line)), None)

    @cached_property
    def ignored(self) -> tuple[frozenset[str], dict[int, frozenset[str]]]:
        """Codes disabled by comments: for the whole file if the comment is on its own line, else for that line."""
        everywhere: set[str] = set()
        by_line: dict[int, frozenset[str]] = {}
        for number, line in enumerate(self.text.splitlines(), 1):
            if found := _IGNORE.search(line):
                codes = frozenset(re.split(r"[\s,]+", found[1]))
                if line[: found.start()].strip():
                    by_line[number] = codes
                else:
                    everywhere |= codes
        return frozenset(everywhere), by_line

    def ignores(self, code: str, line: int) -> bool:
        everywhere, by_line = self.ignored
        return code in everywhere or code in by_line.get(line, ())


def decides_before(row: EventRow) -> bool:
    """A block prevents an action here, so a guard's failure should too."""
    return row.function_on_failure is OnFailure.BLOCK


def can_block_at(row: EventRow) -> bool:
    return row.flow[Decision.BLOCK] is not Flow.PROCEED


def delays_a_tool(row: EventRow) -> bool:
    return row.flow[Decision.BLOCK] is Flow.SKIP_TOOL
