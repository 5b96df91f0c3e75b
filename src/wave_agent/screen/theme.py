"""Themes by name, and the default for a terminal."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from textual.theme import Theme

from wave_agent.screen.state_file import read_object, write_object

DARK = Theme(
    name="wave-dark",
    primary="#5fafd7",
    secondary="#8787d7",
    accent="#5fd7c3",
    warning="#d7af5f",
    error="#e06c75",
    success="#87c38a",
    foreground="#d8dee9",
    background="#15191f",
    surface="#1b2028",
    panel="#242b35",
    dark=True,
    variables={"muted": "#8a94a6"},
)
LIGHT = Theme(
    name="wave-light",
    primary="#1f6fa8",
    secondary="#5f5faf",
    accent="#00796b",
    warning="#8a5a00",
    error="#b3261e",
    success="#2e7d32",
    foreground="#24292f",
    background="#fbfbf9",
    surface="#f2f2ee",
    panel="#e7e7e1",
    dark=False,
    variables={"muted": "#6a737d"},
)
THEMES: Mapping[str, str] = {
    "dark": DARK.name,
    "light": LIGHT.name,
    "terminal": "ansi-dark",
    "terminal-light": "ansi-light",
}
"""The last two use the terminal's own colours."""


VARIABLES = {"muted": "ansi_bright_black"}
"""Variables the styles use beyond the library's, for themes that do not define them."""


class Preference:
    """The theme last chosen by the user, stored in `WAVE_HOME/screen.json`."""

    def __init__(self, home: Path) -> None:
        self._file = home / "screen.json"

    def theme(self, environment: Mapping[str, str]) -> str:
        chosen: object = read_object(self._file).get("theme")
        return chosen if isinstance(chosen, str) and chosen in THEMES else guessed(environment)

    def keep(self, theme: str) -> None:
        with suppress(OSError):  # then it applies to this run only
            write_object(self._file, {**read_object(self._file), "theme": theme})


def guessed(environment: Mapping[str, str]) -> str:
    """Some terminals set COLORFGBG to their background colour: 7 and 15 are white."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"
