"""The situations in which both agents are put, as data: `situations.toml`, and what each entry of it may say."""

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

SITUATIONS = Path(__file__).with_name("situations.toml")

Result = Literal["same", "stricter", "looser", "different"]


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One hook in `.claude/settings.json`, in a group of its own. It has a `script`, an `http` answer or neither."""

    event: str
    script: str | None = None
    """Bash. What comes on stdin is in the file `$STDIN`; how often this hook has run, this time included, in `$RUN`."""
    http: str | None = None
    """The hook is of type `http`, and its server answers with this."""
    name: str = "hook"
    """What `observe` calls it."""
    matcher: str | None = None
    more: dict[str, Any] = {}
    """Other keys of the entry: `timeout`, `if`, `once`, `async`, `type` …"""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    input: dict[str, Any]
    """`$PROJECT` in a text is the project's directory."""


def _touch() -> list[list[Call]]:
    return [[Call("Bash", {"command": "touch ran", "description": "Make a file"})]]


class Situation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project with hooks, a model that makes calls, and what is looked at afterwards."""

    name: str
    """A sentence part, unique."""
    about: str
    """The section of the table."""
    observe: list[str]
    """Facets, see `comparison.py`."""
    hooks: list[Hook] = []
    user_hooks: list[Hook] = []
    """Hooks in the user's own settings, `~/.claude/settings.json`."""
    turns: list[list[Call]] = msgspec.field(default_factory=_touch)
    """The calls of the model's first answer, its second, …; an answer without calls, and any later one, is "Done."."""
    prompt: str = "go"
    mode: str = "bypassPermissions"
    aside: str = "ok"
    """The model's answer to hooks of type `prompt` and `agent`, and to requests without tools of the agent's own."""
    files: dict[str, str] = {}
    start: str = "."
    """Where in the project the agent is started. If it is not at the top, the project is a git repository."""
    settings: dict[str, Any] = {}
    """Other keys of `.claude/settings.json`."""
    raw_hooks: dict[str, Any] | None = None
    """The value of `hooks` in place of one made from the list."""
    result: Result = "same"
    """What the comparison is expected to say."""
    reason: str = ""
    """Why it is not `same`."""
    quick: bool = False
    """Our side of it runs with every `make test`."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    situation: list[Situation]


def load(path: Path = SITUATIONS) -> list[Situation]:
    """All situations. Raises `msgspec.ValidationError` if the file has a key or a value that is not known."""
    return msgspec.convert(tomllib.loads(path.read_text()), _File).situation
