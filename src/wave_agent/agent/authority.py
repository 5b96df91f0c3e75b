"""What decides whether a call may run, besides hooks and the user."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import Places, Rule


class Authority(Struct, kw_only=True):
    """The permissions of a session. Mode and rules may change at any time; a change applies from the next call."""

    mode: PermissionMode
    rules: Rules
    places: Places
    """Where the patterns of rules start."""
    directories: tuple[str, ...]
    """Those considered inside the project, as real paths."""
    protected: ProtectedPaths
    border: Callable[[str], str | None] = lambda _: None
    """Says why a path must not be written, whatever has been permitted."""

    def allow(self, rule: Rule) -> None:
        """From now on, calls that match the rule run without the question the mode would ask."""
        self.rules = replace(self.rules, allow=(*self.rules.allow, rule))
