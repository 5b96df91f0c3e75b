"""Glob patterns and `.gitignore` files as regular expressions. Has only fast imports.

Not `pathspec`: it takes longer to import than a search does, and differs from git on rules like `/?/**/`; tests compare
this module with git. Not `rules.path_patterns`: that one never backtracks, since rules guard against whoever writes the
path, but it has no braces and no `.gitignore` semantics. A search runs in a process with a time limit.
"""

import re

from wave_agent.lazy_regex import lazy_regex

_SPECIAL_IN_CLASS = lazy_regex(r"[\\\[\]^&~|]|(?<=-)-")


class _Translator:
    """One pass over one pattern."""

    def __init__(self, pattern: str, *, braces: bool) -> None:
        self._pattern = pattern
        self._closed_braces = _closed_braces(pattern) if braces else frozenset[int]()
        self._at = 0

    def sequence(self, *, segment_begins: bool = True, inside_braces: bool = False) -> str:
        """The expression up to the end of the pattern, or of this alternative."""
        out: list[str] = []
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if inside_braces and char in ",}":
                break
            self._at += 1
            if char == "*":
                out.append(self._stars(segment_begins=segment_begins, inside_braces=inside_braces))
            elif char == "?":
                out.append("[^/]")
            elif char == "[":
                out.append(self._class())
            elif char == "{" and self._at - 1 in self._closed_braces:
                out.append(self._alternatives(segment_begins=segment_begins))
            elif char == "\\" and self._at < len(self._pattern):
                out.append(re.escape(self._pattern[self._at]))
                self._at += 1
            else:
                out.append(re.escape(char))
            segment_begins = self._pattern[self._at - 1] == "/"
        return "".join(out)

    def _stars(self, *, segment_begins: bool, inside_braces: bool) -> str:
        rest = self._pattern[self._at :].lstrip("*")
        count = len(self._pattern) - self._at - len(rest) + 1
        self._at = len(self._pattern) - len(rest)
        if count < 2 or not segment_begins:
            return "[^/]*"
        if rest.startswith("/"):
            self._at += 1
            return "(?:.*/)?"
        return ".*" if not rest or (inside_braces and rest[0] in ",}") else "[^/]*"

    def _class(self) -> str:
        found = re.compile(r"([!^]?)(\]?[^\]]*)\]").match(self._pattern, self._at)
        if found is None:
            return r"\["
        members = _SPECIAL_IN_CLASS.sub(r"\\\g<0>", found[2])
        expression = f"(?!/)[{'^' if found[1] else ''}{members}]"
        try:
            re.compile(expression)
        except re.error:  # such as [z-a]
            return r"\["
        self._at = found.end()
        return expression

    def _alternatives(self, *, segment_begins: bool) -> str:
        out: list[str] = []
        while True:
            out.append(self.sequence(segment_begins=segment_begins, inside_braces=True))
            end = self._pattern[self._at : self._at + 1]
            self._at += len(end)
            if end != ",":
                return f"(?:{'|'.join(out)})"


def _closed_braces(pattern: str) -> frozenset[int]:
    """Positions of the opening braces that are closed. In one pass: backtracking would never finish on `{{{{…`."""
    open_ones: list[int] = []
    closed: set[int] = set()
    for at, char in enumerate(pattern):
        if pattern[at - 1 : at] == "\\":
            continue
        if char == "{":
            open_ones.append(at)
        elif char == "}" and open_ones:
            closed.add(open_ones.pop())
    return frozenset(closed)


def has_open_brace(pattern: str) -> bool:
    """It has a brace that starts no alternatives, but was probably meant to."""
    return pattern.replace("\\{", "").count("{") > len(_closed_braces(pattern))


def translate(pattern: str, *, braces: bool = True) -> str:
    """`*` and `?` stay within a name, `**/` matches any directories, `{a,b}` either."""
    return _Translator(pattern, braces=braces).sequence()


class GlobPattern:
    """A pattern for paths below a directory. Without a slash it matches names at any depth; a leading `!` negates."""

    def __init__(self, pattern: str) -> None:
        self._negated = pattern.startswith("!")
        pattern = pattern.removeprefix("!").removeprefix("./")
        pattern = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
        self._expression = re.compile(translate(pattern), re.DOTALL)

    def matches(self, path: str) -> bool:
        return (self._expression.fullmatch(path) is not None) is not self._negated


class IgnoreFile:
    """The rules of one `.gitignore`."""

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _rule(line))]
        # Most paths match no rule: one check settles that.
        together = "|".join(f"(?:{expression})" for expression, _, _ in self._rules)
        self._any = re.compile(together, re.DOTALL) if self._rules else None
        self._each = [
            (re.compile(expression, re.DOTALL), ignores, only_directories)
            for expression, ignores, only_directories in reversed(self._rules)
        ]

    def ignores(self, path: str, *, is_directory: bool) -> bool | None:
        """What the last rule for this path says. None: no rule matches."""
        if self._any is None or not self._any.fullmatch(path):
            return None
        for expression, ignores, only_directories in self._each:
            if (is_directory or not only_directories) and expression.fullmatch(path):
                return ignores
        return None


def _rule(line: str) -> tuple[str, bool, bool] | None:
    """Expression, whether it ignores, whether it is for directories only."""
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    pattern = line.removeprefix("!")
    only_directories = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    if "/" not in pattern:
        return f"(?:.*/)?{translate(pattern, braces=False)}", ignores, only_directories
    # Git compares the text before the first wildcard by itself: `a**/x` also matches `ax`.
    literal = re.match(r"[^*?\[\\]*", pattern := pattern.removeprefix("/"))
    front = literal[0] if literal else ""
    expression = re.escape(front) + translate(pattern.removeprefix(front), braces=False)
    return expression, ignores, only_directories
