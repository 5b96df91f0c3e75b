"""`--no-hooks`: the way out for somebody whose own guard has locked them out. For a person at a terminal alone."""

import os
from collections.abc import Iterable, Mapping

from wave_agent.errors import SettingsError
from wave_agent.hooks.config import SettingsSource, load_hooks
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.settings import without_hooks
from wave_agent.text import reveal

OTHER_AGENTS: Mapping[str, str] = {"CLAUDECODE": "Claude Code", "GEMINI_CLI": "Gemini CLI"}
"""Variables by which agents mark the commands that they run."""
_STDIN, _STDERR = 0, 2


def require_person(environment: Mapping[str, str], *, below_agent: bool) -> None:
    """Raises `SettingsError` unless somebody sits at the terminal that this program was started from."""
    agent = next((name for variable, name in OTHER_AGENTS.items() if environment.get(variable)), None)
    if below_agent or agent is not None:
        raise SettingsError(
            f"--no-hooks is for a person, and {agent or 'another agent'} has started this program: not started."
        )
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        raise SettingsError("--no-hooks is for a person, and CI is set in the environment: not started.")
    if not all(map(_is_attended, (_STDIN, _STDERR))):
        raise SettingsError(
            "--no-hooks needs a person: run it in the foreground of a terminal, with standard input and standard "
            "error on it. Standard output may go elsewhere."
        )


def _is_attended(descriptor: int) -> bool:
    """It is the controlling terminal of this process, which runs in its foreground: keys that are typed reach it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # closed, no terminal, or not the one that controls this process
        return False


def silence(sources: Iterable[SettingsSource]) -> tuple[list[SettingsSource], tuple[HookDefinition, ...]]:
    """The settings with managed hooks alone, and the hooks that then do not run."""
    found = list(sources)
    silenced = load_hooks(source for source in found if source.layer is not Layer.MANAGED).hooks
    return [source if source.layer is Layer.MANAGED else without_hooks(source) for source in found], silenced


def notice_of(silenced: Iterable[HookDefinition]) -> str:
    """What the user is told, and the transcript keeps."""
    names = ", ".join(reveal(f"{hook.name} ({hook.event})") for hook in silenced) or "there are none"
    return f"--no-hooks: hooks do not run in this session, unless they are managed: {names}. Rules still apply."
