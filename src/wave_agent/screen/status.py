"""The status line: model, mode, window, cost, directory, session. If narrow, the least important parts are dropped."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from wave_agent.permissions.decision import PermissionMode
from wave_agent.screen.cost import shown, tokens
from wave_agent.screen.plain import plain
from wave_agent.text import one_line

BETWEEN = " · "
MODEL = 5
"""How important the model is; before it is dropped, it is shortened."""
SHORTEST_MODEL = 8
MODE_STYLES: Mapping[str, str] = {
    PermissionMode.DEFAULT: "$muted",
    PermissionMode.ACCEPT_EDITS: "bold $text-accent",
    PermissionMode.PLAN: "bold $text-primary",
    PermissionMode.DONT_ASK: "bold $text-warning",
    PermissionMode.BYPASS: "bold $text-error",
}


class StatusFacts(Struct, frozen=True, kw_only=True):
    """What the status line shows."""

    model: str | None = None
    """None if not known yet."""
    mode: str = ""
    used: int | None = None
    window: int | None = None
    dollars: float | None = None
    cached: float = 0
    """The share of the tokens sent that the server had in its cache."""
    directory: str = ""
    branch: str = ""
    session: str = ""
    no_hooks: bool = False
    hooks_left_out: bool = False


class _Part(NamedTuple):
    text: str
    style: str
    importance: int
    """The lowest is dropped first."""


def _parts(facts: StatusFacts) -> list[_Part]:
    place = f"{facts.directory} ({facts.branch})" if facts.branch else facts.directory
    parts = [
        _Part("NO HOOKS" if facts.no_hooks else "", "bold $text-error", 7),
        _Part("PROJECT HOOKS OFF" if facts.hooks_left_out else "", "bold $text-warning", 7),
        _Part("" if facts.model is None else one_line(facts.model, 40) or "no model", "bold", MODEL),
        _Part(facts.mode, MODE_STYLES.get(facts.mode, ""), 6),
        _Part(_window(facts), "$muted", 4),
        _Part("" if facts.dollars is None else shown(facts.dollars), "$muted", 3),
        _Part(f"{facts.cached:.0%} cached" if facts.cached >= 0.005 else "", "$muted", 2),
        _Part(one_line(place, 100), "$muted", 2),
        _Part(f"session {facts.session[:8]}" if facts.session else "", "$muted", 1),
    ]
    return [part for part in parts if part.text]


def _window(facts: StatusFacts) -> str:
    if facts.used is None:
        return ""
    if facts.window is None:
        return f"{tokens(facts.used)} tokens"
    return f"{facts.used / facts.window:.0%} of {tokens(facts.window)}"


def line(facts: StatusFacts, width: int) -> Content:
    parts = _parts(facts)
    while len(parts) > 1 and (over := _width(parts) - width) > 0:
        least = min(parts, key=lambda part: part.importance)
        if least.importance == MODEL and len(least.text) - over >= SHORTEST_MODEL:
            shorter = one_line(least.text, len(least.text) - over)
            parts[parts.index(least)] = least._replace(text=shorter)
        else:
            parts.remove(least)
    return Content(BETWEEN).join(plain(part.text, part.style) for part in parts)


def _width(parts: Sequence[_Part]) -> int:
    return sum(cell_len(part.text) for part in parts) + len(BETWEEN) * (len(parts) - 1)


class StatusLine(Static):
    def __init__(self) -> None:
        super().__init__(markup=False)
        self._facts = StatusFacts()

    @property
    def facts(self) -> StatusFacts:
        return self._facts

    def tell(self, facts: StatusFacts) -> None:
        if facts != self._facts:
            self._facts = facts
            self.on_resize()

    def on_resize(self) -> None:
        self.update(line(self._facts, self.content_size.width))


def short_directory(path: str, limit: int = 40) -> str:
    """With `~` for the home directory, and only the end of a long path."""
    home = str(Path.home())
    shown = f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path
    return shown if len(shown) <= limit else f"…{shown[1 - limit :]}"
