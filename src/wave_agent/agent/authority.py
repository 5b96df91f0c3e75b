"""What decides whether a call may run, besides hooks and the user."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.rules.rule import Places, Rule

if TYPE_CHECKING:
    from wave_agent.permissions.protected_paths import ProtectedPaths


class Authority(Struct, kw_only=True):
    """The permissions of a session. Mode and rules may change at any time; a change applies from the next call."""

    mode: PermissionMode
    rules: Rules
    places: Places
    """Where the patterns of rules start."""
    directories: tuple[str, ...]
    """Those considered inside the project, as real paths."""
    find_protected: "Callable[[], ProtectedPaths]"
    """Finds the protected paths, once, before the first call is judged."""
    border: Callable[[str], str | None] = lambda _: None
    """Says why a path must not be written, whatever has been permitted."""

    _protected: "ProtectedPaths | None" = None
    _granted: tuple[Rule, ...] = ()

    @property
    def protected(self) -> "ProtectedPaths":
        """The files through which the agent could rewrite its own guards."""
        if self._protected is None:
            self._protected = self.find_protected()
        return self._protected

    def allow(self, rule: Rule) -> None:
        """From now on, calls that match the rule run without the question the mode would ask."""
        self.rules = replace(self.rules, allow=(*self.rules.allow, rule))

    def grant(self, rules: Sequence[Rule]) -> None:
        """The same for these rules, until the turn ends."""
        self._granted = (*self._granted, *rules)
        for rule in rules:
            self.allow(rule)

    def end_turn(self) -> None:
        """Withdraws what was granted for the turn."""
        granted = {id(rule) for rule in self._granted}
        if granted:
            self._granted = ()
            self.rules = replace(self.rules, allow=tuple(one for one in self.rules.allow if id(one) not in granted))
