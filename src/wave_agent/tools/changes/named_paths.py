"""Which real paths the patterns of rules name."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from wave_agent.permissions.hard_links import places_of
from wave_agent.rules.rule import Places, Rule, path_expression
from wave_agent.system.real_files import resolve_or_keep

WRITING_TOOLS = frozenset({"edit", "write", "multiedit", "notebookedit"})
FILE_TOOLS = WRITING_TOOLS | {"read"}
"""Tools whose rules name files."""


class NamedPaths:
    """Ready to be asked about every file of a project."""

    def __init__(self, rules: Iterable[Rule], places: Places, tools: frozenset[str] = FILE_TOOLS) -> None:
        """Only rules for these tools that have a pattern. The project and the home directory may be links."""
        self._rules = [rule for rule in rules if rule.tool in tools and rule.pattern is not None]
        real = replace(places, project=resolve_or_keep(places.project), home=resolve_or_keep(places.home))
        forms = dict.fromkeys((places, real))
        self.places: tuple[str, ...] = tuple(dict.fromkeys(at for form in forms for at in places_of(self._rules, form)))
        """Real paths of directories and files: everything that is named is in one of them."""
        self._each = [(rule, _expression(rule, forms)) for rule in self._rules]
        together = "|".join(f"(?:{expression.pattern})" for _, expression in self._each)
        self._any = re.compile(together, re.DOTALL) if together else None

    def __bool__(self) -> bool:
        return self._any is not None

    def contain(self, path: str) -> bool:
        return self._any is not None and self._any.fullmatch(path) is not None

    def rule_for(self, path: str) -> Rule | None:
        """The first rule that names the path."""
        return next((rule for rule, expression in self._each if expression.fullmatch(path)), None)


def _expression(rule: Rule, forms: Iterable[Places]) -> re.Pattern[str]:
    patterns = [pattern for pattern in (rule.pattern, rule.also) if pattern is not None]
    return re.compile("|".join(path_expression(one, form) for one in patterns for form in forms), re.DOTALL)
