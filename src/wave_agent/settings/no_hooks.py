"""`--no-hooks`: the way out for somebody whose own guard has locked them out. For a person at a terminal alone."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from wave_agent.errors import SettingsError
from wave_agent.hooks.config import SettingsSource, load_hooks
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.settings.layers import without_hooks
from wave_agent.system.ancestry import agent_above
from wave_agent.system.presence import at_terminal, began_in_session
from wave_agent.text import reveal

_STDIN, _STDERR = 0, 2


def require_person(environment: Mapping[str, str]) -> None:
    """Raises `SettingsError` unless somebody sits at the terminal that this program was started from."""
    if agent := agent_above(environment):
        raise SettingsError(f"--no-hooks is for a person, and {agent} has started this program: not started.")
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        raise SettingsError("--no-hooks is for a person, and CI is set in the environment: not started.")
    if not at_terminal(_STDIN, _STDERR):
        raise SettingsError(
            "--no-hooks needs a person: run it in the foreground of a terminal, with standard input and standard "
            "error on it. Standard output may go elsewhere."
        )


def require_own_terminal(home: Path, project: str) -> None:
    """Raises `SettingsError` if the terminal may be one that a session of this project has made."""
    if began_in_session(home, project):
        raise SettingsError(
            "--no-hooks is for a person, and this terminal was opened while a session of this project ran unattended: "
            "not started. Open a new terminal."
        )


def silence(sources: Iterable[SettingsSource]) -> tuple[list[SettingsSource], tuple[HookDefinition, ...]]:
    """The settings with managed hooks alone, and the hooks that then do not run."""
    found = list(sources)
    silenced = load_hooks(source for source in found if source.layer is not Layer.MANAGED).hooks
    return [source if source.layer is Layer.MANAGED else without_hooks(source) for source in found], silenced


def notice_of(silenced: Iterable[HookDefinition]) -> str:
    """What the user is told, and the transcript keeps."""
    names = ", ".join(reveal(f"{hook.name} ({hook.event})") for hook in silenced) or "there are none"
    return f"--no-hooks: hooks do not run in this session, unless they are managed: {names}. Rules still apply."
