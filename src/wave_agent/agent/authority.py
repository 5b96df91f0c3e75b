"""What decides whether a call may run, besides hooks and the user."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wave_agent.hooks.verdicts import Outcome
from wave_agent.permissions.decision import JudgedCall, Permission, PermissionMode, Rules, decide, stricter
from wave_agent.rules.rule import Places, Rule

if TYPE_CHECKING:
    from wave_agent.permissions.protected_paths import ProtectedPaths


class Authority:
    """The permissions of a session. Mode and rules may change at any time; a change applies from the next call."""

    def __init__(
        self,
        *,
        mode: PermissionMode,
        rules: Rules,
        places: Places,
        directories: tuple[str, ...],
        find_protected: "Callable[[], ProtectedPaths]",
        border: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """`places` is where the patterns of rules start. `directories` are those considered inside the project, as
        real paths. `find_protected` finds the protected paths, once, before the first call is judged. `border` says
        why a path must not be written, whatever has been permitted."""
        self._mode = mode
        self._rules = rules
        self.places = places
        self.directories = directories
        self.border = border
        self._find_protected = find_protected
        self._protected: ProtectedPaths | None = None

        self._granted: tuple[Rule, ...] = ()
        """Allow rules that hold until the turn ends."""

    @property
    def mode(self) -> PermissionMode:
        return self._mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        self._mode = mode

    @property
    def rules(self) -> Rules:
        return _with_allowed(self._rules, self._granted)

    @property
    def protected(self) -> "ProtectedPaths":
        """The files through which the agent could rewrite its own guards."""
        if self._protected is None:
            self._protected = self._find_protected()
        return self._protected

    def allow(self, rule: Rule) -> None:
        """From now on, calls that match the rule run without the question the mode would ask."""
        self._rules = _with_allowed(self._rules, (rule,))

    def grant(self, rules: Sequence[Rule]) -> None:
        """The same for these rules, until the turn ends."""
        self._granted = (*self._granted, *rules)

    def end_turn(self) -> None:
        """Withdraws what was granted for the turn."""
        self._granted = ()

    def decide(self, subject: JudgedCall, hooks: Outcome) -> Permission:
        """Whether this call may run, after hooks have judged it."""
        return decide(subject, self.mode, self.rules, hooks, self.places)


class SubagentAuthority(Authority):
    """The permissions of a subagent: those of the agent above at this moment, and its own mode as a further limit."""

    def __init__(self, above: Authority, mode: PermissionMode | None) -> None:
        """`mode`: None if its definition has none."""
        super().__init__(
            mode=above.mode if mode is None else mode,
            rules=above.rules,
            places=above.places,
            directories=above.directories,
            find_protected=lambda: above.protected,
            border=above.border,
        )
        self._above = above
        self._own = mode

    @property
    def mode(self) -> PermissionMode:
        """The one to show. If neither mode is stricter than the other, both limit every call."""
        return self._above.mode if self._own is None else stricter(self._above.mode, self._own)

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        self._own = mode

    @property
    def rules(self) -> Rules:
        """Those above, and what was granted here: that never reaches the agent above."""
        return _with_allowed(self._above.rules, self._granted)

    def allow(self, rule: Rule) -> None:
        self._above.allow(rule)

    def decide(self, subject: JudgedCall, hooks: Outcome) -> Permission:
        """By both modes; the stricter answer."""
        modes = dict.fromkeys((self._above.mode, self._own or self._above.mode))
        found = [decide(subject, mode, self.rules, hooks, self.places) for mode in modes]
        return max(found, key=lambda permission: _STRICTNESS.index(permission.answer))


_STRICTNESS = ("allow", "ask", "deny")


def _with_allowed(rules: Rules, more: Sequence[Rule]) -> Rules:
    return replace(rules, allow=(*rules.allow, *more)) if more else rules
