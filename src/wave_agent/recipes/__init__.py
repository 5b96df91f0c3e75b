"""Hook recipes that ship with the package.

A recipe is a directory with `recipe.json`, its script in one or more languages (`hook.sh`, `hook.py`, `hook.js`) and
`cases.json`, which all of its scripts pass.
"""

from importlib.resources import files
from typing import Any, cast

import msgspec
from msgspec import Struct

LANGUAGES = {"bash": "sh", "python": "py", "node": "js"}
"""Script languages and their file suffixes."""


class _RecipeFile(Struct, frozen=True, forbid_unknown_fields=True):
    """`recipe.json`."""

    title: str
    summary: str
    settings: dict[str, dict[str, Any]]
    """Event → the keys of its settings entry, without the command."""


class Recipe(Struct, frozen=True, kw_only=True):
    """A hook to start from."""

    name: str
    title: str
    summary: str
    event: str
    entry: dict[str, Any]
    """The keys of its settings entry, without the command."""
    scripts: dict[str, str]
    """Language → text."""
    cases: dict[str, Any]

    def script(self, language: str | None) -> tuple[str, str]:
        """The language and the script; by default the first available. Raises `KeyError` for a missing language."""
        chosen = language or next(iter(self.scripts))
        return chosen, self.scripts[chosen]


def recipe_names() -> list[str]:
    return sorted(one.name for one in files(__name__).iterdir() if (one / "recipe.json").is_file())


def load_recipe(name: str) -> Recipe:
    """Raises `KeyError` for an unknown name."""
    if name not in recipe_names():
        raise KeyError(name)
    place = files(__name__) / name
    facts = msgspec.json.decode((place / "recipe.json").read_bytes(), type=_RecipeFile)
    ((event, entry),) = facts.settings.items()
    scripts = {language: place / f"hook.{ending}" for language, ending in LANGUAGES.items()}
    return Recipe(
        name=name,
        title=facts.title,
        summary=facts.summary,
        event=event,
        entry=entry,
        scripts={language: file.read_text("utf-8") for language, file in scripts.items() if file.is_file()},
        cases=cast(dict[str, Any], msgspec.json.decode((place / "cases.json").read_bytes())),
    )


def settings_group(entry: dict[str, Any], command: str) -> dict[str, Any]:
    """The matcher group for a settings file."""
    matcher = {"matcher": entry["matcher"]} if "matcher" in entry else {}
    rest = {key: value for key, value in entry.items() if key != "matcher"}
    return {**matcher, "hooks": [{"type": "command", "command": command, **rest}]}
