"""Makefiles: the shell text that making a target runs.

Not make: it follows rules, prerequisites and simple variables, and says when there is more to it than that.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

_ASSIGNMENT = lazy_regex(r"(?:override |export )?\s*([\w.-]+)\s*(::?:?|\?|\+|!)?=\s*(.*)", re.DOTALL)
_RULE = lazy_regex(r"([^\t:=#][^:=#]*?)\s*(::?)(?!=)\s*([^;#]*)(?:;(.*))?", re.DOTALL)
_REFERENCE = lazy_regex(r"\$(?:\$|\(([\w.-]+)\)|\{([\w.-]+)\}|([@<^+*]))")
_CONTINUED = lazy_regex(r"\\\n[ \t]*")
_DIRECTIVE = lazy_regex(
    r"\s*(?:-?include|sinclude|ifeq|ifneq|ifdef|ifndef|else|endif|define|endef|load|vpath|undefine)\b"
)
_COMMENT = lazy_regex(r"(?<!\\)#.*")
_DEEPEST = 20
_MOST_RULES = 500
_UNKNOWN = "$UNKNOWN_TO_THE_READER"
"""In a recipe: a shell variable without a value, so that the command is not complete."""


class Recipes(Struct, frozen=True):
    """The shell lines of the targets that are made, in order."""

    lines: tuple[str, ...] = ()
    complete: bool = True


class _Rule(Struct):
    prerequisites: list[str]
    recipe: list[str]


def read_makefile(text: str, goals: Sequence[str], given: Mapping[str, str], exists: Callable[[str], bool]) -> Recipes:
    """What making these goals runs, or the first target without any. `exists` says whether a prerequisite without a
    rule is a file."""
    makefile = _Makefile(text, given)
    wanted = list(goals) or makefile.first
    lines: dict[str, None] = {}
    done: dict[str, None] = {}
    waiting = wanted[::-1]
    while waiting:
        target = waiting.pop()
        if target in done:
            continue
        done[target] = None
        rule = makefile.rules.get(target)
        if rule is None or len(done) > _MOST_RULES:
            makefile.complete &= exists(target) and not makefile.patterns
            continue
        waiting += reversed(rule.prerequisites)
        lines |= dict.fromkeys(makefile.recipe(target, rule))
    return Recipes(tuple(lines), makefile.complete and bool(wanted))


class _Makefile:
    def __init__(self, text: str, given: Mapping[str, str]) -> None:
        self.complete = True
        self.patterns = False
        self.rules: dict[str, _Rule] = {}
        self.first: list[str] = []
        self._given = given
        self._values: dict[str, str] = {"MAKE": "make", "SHELL": "/bin/sh", "RM": "rm -f", **given}
        current: list[_Rule] = []
        for line in _CONTINUED.sub(" ", text).split("\n"):
            if line.startswith("\t"):
                for rule in current:
                    rule.recipe.append(line[1:])
                continue
            plain = _COMMENT.sub("", line).rstrip()
            if plain.strip():
                current = self._line(plain)

    def _line(self, line: str) -> list[_Rule]:
        if _DIRECTIVE.match(line):
            self.complete = False
            return []
        if assignment := _ASSIGNMENT.fullmatch(line):
            self._assign(assignment[1], assignment[2] or "", assignment[3])
            return []
        found = _RULE.fullmatch(line)
        if found is None:
            self.complete = False
            return []
        return self._rule(found)

    def _assign(self, name: str, how: str, value: str) -> None:
        self.complete &= how != "!" and name not in ("SHELL", ".SHELLFLAGS", "MAKEFLAGS", "PATH")
        if name in self._given or (how == "?" and name in self._values):
            return
        before = f"{self._values.get(name, '')} " if how == "+" else ""
        self._values[name] = before + value

    def _rule(self, found: re.Match[str]) -> list[_Rule]:
        targets = self._expanded(found[1], {}).split()
        prerequisites = [one for one in self._expanded(found[3], {}).split() if one != "|"]
        self.patterns |= any("%" in target or target.startswith(".SUFFIXES") for target in targets)
        self.complete &= not any("=" in one or "$" in one for one in (*targets, *prerequisites))
        rules: list[_Rule] = []
        for target in targets:
            rule = self.rules.setdefault(target, _Rule([], []))
            rule.prerequisites += prerequisites if target != ".PHONY" else []
            rules.append(rule)
            if not self.first and not target.startswith(".") and "%" not in target:
                self.first = [target]
        for rule in rules if found[4] else ():
            rule.recipe.append(found[4].strip())
        return rules

    def recipe(self, target: str, rule: _Rule) -> list[str]:
        own = {
            "@": target,
            "<": " ".join(rule.prerequisites[:1]),
            "^": " ".join(dict.fromkeys(rule.prerequisites)),
            "+": " ".join(rule.prerequisites),
            "*": _UNKNOWN,
        }
        return [self._expanded(line.lstrip("@-+ \t"), own) for line in rule.recipe]

    def _expanded(self, text: str, own: Mapping[str, str], depth: int = 0) -> str:
        """Variables replaced by their values. Functions, and what is not defined, become an unknown word."""
        if "$" not in text:
            return text
        if depth > _DEEPEST:
            self.complete = False
            return ""

        def value(found: re.Match[str]) -> str:
            if found[0] == "$$":
                return "$"
            name = found[1] or found[2] or found[3]
            known = own.get(name, self._values.get(name))
            return _UNKNOWN if known is None else self._expanded(known, own, depth + 1) if known != _UNKNOWN else known

        expanded = _REFERENCE.sub(value, text)
        if re.search(r"\$[({][\w.-]+[ ,:]", expanded) and re.search(r"\$[({]", _REFERENCE.sub("", text)):
            self.complete = False
        return expanded
