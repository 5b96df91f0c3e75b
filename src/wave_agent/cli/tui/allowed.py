"""What the user has allowed for good, project by project: `WAVE_HOME/allowed.json`, out of the project's own reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

from wave_agent.cli.tui.state_file import read_object, write_object
from wave_agent.rules import RuleError, parse_rule

Remember: TypeAlias = Callable[[str], None]
"""Keeps a rule that allows, for this project. Raises `OSError`."""


class AllowedRules:
    def __init__(self, home: Path, project: str) -> None:
        self._file = home / "allowed.json"
        self._project = project

    def rules(self) -> list[str]:
        """Those that can be read; one that cannot allows nothing."""
        listed: Any = read_object(self._file).get(self._project)
        return [rule for rule in cast(list[Any], listed) if _is_rule(rule)] if isinstance(listed, list) else []

    def remember(self, rule: str) -> None:
        every = read_object(self._file)
        every[self._project] = list(dict.fromkeys([*self.rules(), rule]))
        write_object(self._file, every)


def _is_rule(rule: object) -> bool:
    try:
        return isinstance(rule, str) and bool(parse_rule(rule))
    except RuleError:
        return False
