"""Every exception this package raises for its users.

WaveError                   anything a message can explain; the command line prints it without a traceback
├── SettingsError           the settings cannot be used: starting with them would lose a guard
│   └── MissingPathError    a directory or file that was named does not exist; on the command line, wrong usage
├── UntrustedHooksError     the project has hooks that are not trusted yet, or trusted ones are missing; lists them
├── ModelError              the model did not answer, with the server's own message
├── SandboxError            `--sandbox` was requested but is not available here
├── SessionError            a session cannot be found, read or written
├── ExportError             an export cannot be written or read, a question about it is invalid, or an extra is missing
├── ArgumentError           an argument of `Agent.create` is invalid; also a `TypeError`
├── InsideTurnError         an agent's own tool or hook called a method that waits for the current turn to end
└── AgentClosedError        the agent was used after `close()`
"""

from collections.abc import Mapping, Sequence


class WaveError(Exception):
    """An error the user can act on. The message says what happened, where, and what to do."""


class SettingsError(WaveError):
    """Starting with these settings would lose a guard."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        """`problems` are the findings that prevent the start, one line each, with file and location."""
        super().__init__("\n".join([message, *(f"  {problem}" for problem in problems)]))
        self.problems = tuple(problems)


class MissingPathError(SettingsError):
    """A path the user named does not exist."""


class UntrustedHooksError(WaveError):
    """The project's settings contain hooks that are not trusted, or trusted guards are missing: hooks are neither run
    nor skipped silently."""

    def __init__(
        self,
        hooks: Sequence[str],
        alarms: Sequence[str] = (),
        *,
        ref: str | None = None,
        options: Sequence[str] = ("--trust", "--no-project-hooks"),
    ) -> None:
        """`hooks` describes each untrusted hook: event, what it runs, where it is defined. `alarms` says which trusted
        hooks are missing, and why existing trust is in doubt. `ref`: trusted is what this git ref has. `options` are
        those of the command that can help here."""
        lines: list[str] = []
        if hooks:
            lines += ["This project has hooks that are not trusted:", *(f"  {hook}" for hook in hooks)]
        if alarms:
            lines += ["What you trusted in this project has changed:", *(f"  {alarm}" for alarm in alarms)]
        super().__init__("\n".join((*lines, *_choices(options, ref, is_alarm=bool(alarms)))))
        self.hooks = tuple(hooks)
        self.alarms = tuple(alarms)
        self.ref = ref

    def offering(self, *options: str) -> "UntrustedHooksError":
        """The same for a command that has only these options."""
        return UntrustedHooksError(self.hooks, self.alarms, ref=self.ref, options=options)


def _choices(options: Sequence[str], ref: str | None, *, is_alarm: bool) -> tuple[str, ...]:
    """What can be done about untrusted hooks."""
    if ref is not None:
        if "--no-project-hooks" not in options:
            return (f"Only what is at {ref} is trusted: restore it, or merge the change first.",)
        return (
            f"Only what is at {ref} is trusted: restore it, merge the change first, or run without the project's "
            "hooks: --no-project-hooks",
        )
    if not options:
        if is_alarm:
            return (
                "Restore what is missing, or review it and run this in a terminal, to trust it as it is now: "
                "wave hooks trust",
            )
        return ("Review them, then run this in a terminal, to trust them as they are now: wave hooks trust",)
    return (
        "Restore what is missing, or review and then choose:" if is_alarm else "Review them, then choose:",
        "  wave hooks trust      to trust them as they are now" + (" (shows what is missing)" if is_alarm else ""),
        *(_OPTIONS[name] for name in options),
    )


_OPTIONS: Mapping[str, str] = {
    "--trust": "  --trust               to trust them for this run only (in Python: trust=True)",
    "--no-project-hooks": "  --no-project-hooks    to run without them",
}
"""What else can be done about hooks that are not trusted, where a command has the option."""


FAILURE_KINDS: Mapping[str, frozenset[int]] = {
    "authentication_failed": frozenset({401, 403, 407}),
    "billing_error": frozenset({402}),
    "rate_limit": frozenset({429}),
    "invalid_request": frozenset({400, 404, 405, 413, 422}),
    "server_error": frozenset(range(500, 600)),
    "unknown": frozenset(),
}
"""A one-word name for each kind of model failure, by HTTP status."""


class ModelError(WaveError):
    """The model did not answer."""

    def __init__(self, message: str, *, status: int | None = None, unfinished: bool = False) -> None:
        """`status` is the HTTP status, if there was one. `unfinished`: the answer had begun, and only its rest was
        lost, to a failure that may pass."""
        super().__init__(message)
        self.status = status
        self.unfinished = unfinished

    @property
    def kind(self) -> str:
        """One of `FAILURE_KINDS`."""
        return next((kind for kind, statuses in FAILURE_KINDS.items() if self.status in statuses), "unknown")


class ExportError(WaveError):
    """Something about many sessions cannot be written, read or asked."""


class SessionError(WaveError):
    """A session cannot be found, read or written."""


class SandboxError(WaveError):
    """Commands cannot be sandboxed on this machine. Nothing was run unsandboxed instead."""


class AgentClosedError(WaveError):
    """The agent was used after `close()`."""


class ArgumentError(WaveError, TypeError):
    """An argument is invalid. The message names it and says what it should be."""


class InsideTurnError(WaveError):
    """An agent's own tool, hook, approver or model called something that has to wait for the current turn to end."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was called by code that this agent runs in its turn (a tool, a hook, can_use_tool or a model "
            "client). It would wait for that turn, which waits for this code. Return first, or use another agent."
        )
