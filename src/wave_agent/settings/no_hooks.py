"""`--no-hooks`: the way out for a user locked out by their own guard. Only for a person at a terminal."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.settings.hook_entries import SettingsSource, load_hooks
from wave_agent.settings.layers import without_hooks
from wave_agent.system.ancestry import agent_above
from wave_agent.system.presence import at_terminal, began_in_session
from wave_agent.text import reveal

_STDIN, _STDERR = 0, 2


def require_person(environment: Mapping[str, str]) -> None:
    """Raises `SettingsError` unless a person is at the terminal that started this program."""
    if agent := agent_above(environment):
        raise SettingsError(f"--no-hooks is for a person, but {agent} started this program: not started.")
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        raise SettingsError("--no-hooks is for a person, but CI is set in the environment: not started.")
    if not at_terminal(_STDIN, _STDERR):
        raise SettingsError(
            "--no-hooks needs a person: run it in the foreground of a terminal, with stdin and stderr attached to it. "
            "stdout may be redirected."
        )


def require_own_terminal(home: Path, project: str) -> None:
    """Raises `SettingsError` if a session of this project may have opened the terminal."""
    if began_in_session(home, project):
        raise SettingsError(
            "--no-hooks is for a person, but this terminal was opened while a session of this project ran unattended: "
            "not started. Open a new terminal."
        )


def silence(sources: Iterable[SettingsSource]) -> tuple[list[SettingsSource], tuple[HookDefinition, ...]]:
    """The settings with only managed hooks, and the hooks that are disabled."""
    found = list(sources)
    silenced = load_hooks(source for source in found if source.layer is not Layer.MANAGED).hooks
    return [source if source.layer is Layer.MANAGED else without_hooks(source) for source in found], silenced


def notice_of(silenced: Iterable[HookDefinition]) -> str:
    """The notice for the user and the transcript."""
    names = ", ".join(reveal(f"{hook.name} ({hook.event})") for hook in silenced) or "there are none"
    return f"--no-hooks: hooks do not run in this session, except managed ones: {names}. Rules still apply."
