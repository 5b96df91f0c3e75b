"""Every exception that a user of this package can meet.

WaveError                   anything that a message can explain; the command line prints it without a traceback
├── SettingsError           settings that cannot be used: starting with them would lose a guard
│   └── MissingPathError    a directory or a file that was named is not there: for the command line, wrong usage
├── UntrustedHooksError     the project has hooks that nobody has trusted yet, or trusted ones are gone; it lists them
├── ModelError              the model did not answer, with the server's own message
├── SandboxError            `--sandbox` was asked for, and cannot be had here
├── SessionError            a session cannot be found, read or written
├── ArgumentError           an argument of `Agent.create` that cannot be used; also a `TypeError`
├── InsideTurnError         an agent's own tool or hook asked that agent for something that waits for the turn's end
└── AgentClosedError        the agent was used after `close()`
"""

from collections.abc import Mapping, Sequence


class WaveError(Exception):
    """Something the user can act on. Its text says what happened, where, and what to do."""


class SettingsError(WaveError):
    """Starting with these settings would lose a guard."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        """`problems` are the findings that stop the start, one line each, with file and place."""
        super().__init__("\n".join([message, *(f"  {problem}" for problem in problems)]))
        self.problems = tuple(problems)


class MissingPathError(SettingsError):
    """What the user named is not there."""


class UntrustedHooksError(WaveError):
    """The project's settings hold hooks that nobody has trusted, or guards that somebody had trusted are gone: hooks
    are neither run nor skipped silently."""

    def __init__(self, hooks: Sequence[str], alarms: Sequence[str] = ()) -> None:
        """`hooks` describes each hook that is not trusted: event, what it runs, where it stands. `alarms` says what is
        gone that was trusted, and why trust that was given is in doubt."""
        told: list[str] = []
        if hooks:
            told += ["This project has hooks that are not trusted:", *(f"  {hook}" for hook in hooks)]
        if alarms:
            told += ["What you trusted in this project is not as you left it:", *(f"  {alarm}" for alarm in alarms)]
        look = "Look at them, then choose:" if not alarms else "Bring back what is missing, or look and then choose:"
        choices = (
            "  wave hooks trust      to trust them as they are now" + (" (it shows what is gone)" if alarms else ""),
            "  --trust               to trust them for this run alone (in Python: trust=True)",
            "  --no-project-hooks    to go without them",
        )
        super().__init__("\n".join((*told, look, *choices)))
        self.hooks = tuple(hooks)
        self.alarms = tuple(alarms)


FAILURE_KINDS: Mapping[str, frozenset[int]] = {
    "authentication_failed": frozenset({401, 403, 407}),
    "billing_error": frozenset({402}),
    "rate_limit": frozenset({429}),
    "invalid_request": frozenset({400, 404, 405, 413, 422}),
    "server_error": frozenset(range(500, 600)),
    "unknown": frozenset(),
}
"""What a model's failure is called where a program wants one word for it, by HTTP status."""


class ModelError(WaveError):
    """The model did not answer."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """`status` is the HTTP status, where there was one."""
        super().__init__(message)
        self.status = status

    @property
    def kind(self) -> str:
        """One of `FAILURE_KINDS`."""
        return next((kind for kind, statuses in FAILURE_KINDS.items() if self.status in statuses), "unknown")


class SessionError(WaveError):
    """A session cannot be found, read or written."""


class SandboxError(WaveError):
    """Commands cannot be confined on this machine. Nothing was run unconfined instead."""


class AgentClosedError(WaveError):
    """The agent was used after `close()`."""


class ArgumentError(WaveError, TypeError):
    """An argument cannot be used. The text names it and says what it should be."""


class InsideTurnError(WaveError):
    """An agent's own tool, hook, approver or model wanted what has to wait until the turn it works for is over."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was called by code that this agent runs in its turn (a tool, a hook, can_use_tool or a model "
            "client). It would wait for that turn, which waits for this code. Return first, or use another agent."
        )
