"""Files by which the agent could rewrite its own guards: a write to one of them asks in every mode."""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition

PROJECT_FILES = (
    *(".wave/settings.json", ".wave/settings.local.json", ".claude/settings.json", ".claude/settings.local.json"),
    *(".codex/hooks.json", ".git/config"),
)
PROJECT_DIRECTORIES = (".git/hooks",)
STATE_FILES = ("settings.json", "trust.json")
START_UP_FILES = (
    *(
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
    ),
    *(".config/fish/config.fish", ".gitconfig", ".config/git/config"),
)
_PROJECT_VARIABLES = ("$WAVE_PROJECT_DIR", "${WAVE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}")


class ProtectedPaths(Struct, frozen=True):
    """The files, and the directories with all that is in them. Each as it is written and as links resolve it."""

    files: frozenset[str]
    directories: tuple[str, ...]

    def find(self, path: str) -> str | None:
        """The path, if writing to it is a matter for the user."""
        for form in (os.path.normpath(path), os.path.realpath(path)):
            if form in self.files or any(form.startswith(f"{directory}/") for directory in self.directories):
                return path
        return None


def protected_paths(
    project: str, state: Path, hooks: Iterable[HookDefinition], home: Path | None = None
) -> ProtectedPaths:
    """What is protected in this project, whether it exists yet or not. `state` is the agent's own directory."""
    files = [os.path.join(project, name) for name in PROJECT_FILES]
    files += [str(state / name) for name in STATE_FILES]
    files += [str((home or Path.home()) / name) for name in START_UP_FILES]
    files += [script for hook in hooks for script in _scripts(hook, project)]
    directories = [os.path.join(project, name) for name in PROJECT_DIRECTORIES]
    return ProtectedPaths(
        frozenset(form for file in files for form in (os.path.normpath(file), os.path.realpath(file))),
        tuple(dict.fromkeys(form for one in directories for form in (os.path.normpath(one), os.path.realpath(one)))),
    )


def _scripts(hook: HookDefinition, project: str) -> list[str]:
    """The files that a hook's command names, as far as one can tell: those there are, and what looks like a path."""
    try:
        words = [hook.command, *hook.args] if hook.args is not None else shlex.split(hook.command)
    except ValueError:
        words = hook.command.split()
    found: list[str] = []
    for word in words:
        for variable in _PROJECT_VARIABLES:
            word = word.replace(variable, project)  # noqa: PLW2901 - one variable after another
        path = os.path.join(project, os.path.expanduser(word))
        if "\0" not in path and ("/" in word or os.path.isfile(path)) and not os.path.isdir(path):
            found.append(path)
    return found
