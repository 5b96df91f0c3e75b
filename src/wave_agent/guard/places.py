"""Where hosts have their settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Place(Struct, frozen=True):
    """The settings file of a host for hooks, of a user or a project."""

    user: str
    """Below the host's directory for the user."""
    project: str | None
    """Below the project; None: this host has no hooks for a project."""
    directory: str
    """The host's directory for the user, below the home directory."""
    variable: str = ""
    """The variable that names another directory."""
    others: tuple[str, ...] = ()
    """More files that can switch hooks off: below a project, or with `~/`."""


PLACES: Mapping[str, Place] = {
    "claude": Place(
        "settings.json", ".claude/settings.json", ".claude", "CLAUDE_CONFIG_DIR", (".claude/settings.local.json",)
    ),
    "codex": Place(
        "hooks.json", ".codex/hooks.json", ".codex", "CODEX_HOME", (".codex/config.toml", "~/.codex/config.toml")
    ),
    "gemini": Place("settings.json", ".gemini/settings.json", ".gemini"),
    "qwen": Place("settings.json", ".qwen/settings.json", ".qwen"),
    "kimi": Place("config.toml", None, ".kimi", "KIMI_SHARE_DIR"),
    "vibe": Place("hooks.toml", ".vibe/hooks.toml", ".vibe", "VIBE_HOME", ("~/.vibe/config.toml",)),
    "cursor": Place("hooks.json", ".cursor/hooks.json", ".cursor"),
    "copilot": Place("hooks/wave-guard.json", ".github/hooks/wave-guard.json", ".copilot"),
    "opencode": Place("plugin/wave-guard.js", ".opencode/plugin/wave-guard.js", ".config/opencode"),
}


def user_file(host: str, environment: Mapping[str, str]) -> Path:
    """The host's settings file for all of the user's projects."""
    place = PLACES[host]
    named = environment.get(place.variable) if place.variable else None
    return Path(named or Path.home() / place.directory).absolute() / place.user


def project_file(host: str, project: str) -> Path | None:
    """The host's settings file in this project; None if it has none."""
    found = PLACES[host].project
    return None if found is None else Path(project) / found


def host_files(project: str, environment: Mapping[str, str], *, only: str | None = None) -> list[str]:
    """Every file in which hosts, or one of them, look for hooks."""
    found: list[str] = []
    for host, place in PLACES.items():
        if only in (None, host):
            files = (user_file(host, environment), project_file(host, project))
            found += [str(file) for file in files if file is not None]
            found += [os.path.join(project, os.path.expanduser(other)) for other in place.others]
    return found
