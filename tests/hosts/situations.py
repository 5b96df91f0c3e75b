"""The situations in `situations.toml`: what a host is put into, and what it should do."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.hosts.adapters import Adapter
from tests.hosts.dialects import BEFORE, DIALECTS, REWRITTEN

TABLE = Path(__file__).with_name("situations.toml")
_SAYS = re.compile(r"\bsay (\w+)")


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, in no host's dialect."""

    script: str = ""
    """Bash. `say WORD` prints the host's JSON for a word of `dialects`; `$STDIN` is the file with the event."""
    event: str = BEFORE
    command: str = ""
    """In place of a script: the command line itself."""
    timeout: float | None = None
    """Seconds."""
    blocks_failures: bool = True
    """If it fails, the call is denied, in hosts that have such a setting."""

    @property
    def words(self) -> list[str]:
        return _SAYS.findall(self.script)


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the model makes."""

    shell: str = ""
    read: str = ""
    write: str = ""
    typed: str = ""
    """Into a shell that the call before it, or the same, has started."""
    content: str = "changed"

    @property
    def kind(self) -> str:
        return next(kind for kind in ("shell", "read", "write", "typed") if getattr(self, kind))

    def fields(self, project: Path) -> Mapping[str, str]:
        if self.shell:
            return {"command": self.shell}
        file = {"file_path": str(project / (self.read or self.write))}
        return file if self.read else {**file, "content": self.content}


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a good host does."""

    absent: list[str] = []
    """Files of the project that must not be made."""
    present: list[str] = []
    """Files that must be made."""
    told: list[str] = []
    """Texts that must reach the model."""
    untold: list[str] = []
    """Texts that must not."""
    unchanged: list[str] = []
    """Files of the project that stay as they were; `HOOKS` is the file with the host's hooks."""
    either: str = ""
    """A file that must be made, or a name that must reach the model."""
    most_requests: int | None = None
    least_requests: int | None = None


class Situation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the page."""

    name: str
    about: str
    wants: str
    """What a good host does, in words."""
    expect: Expected
    hooks: list[Hook] = []
    """The guards, alone in the host's own dialect and with `wave guard` in `~/.wave/settings.json`."""
    rules: Mapping[str, Any] = {}
    """With `wave guard`, these settings replace the hooks."""
    calls: tuple[Call, ...] = (Call(shell="touch ran"),)
    files: Mapping[str, str] = {}
    is_gone: bool = False
    """With `wave guard`: the program that was installed is not there any more."""
    patience: float = 60.0
    """Seconds after which the host is ended."""


def load() -> Sequence[Situation]:
    return msgspec.convert(tomllib.loads(TABLE.read_text())["situation"], list[Situation])


def answers(dialect: str, tool_input: Mapping[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return DIALECTS[dialect](tool_input)


def inexpressible(situation: Situation, host: Adapter, *, guarded: bool) -> str:
    """What cannot be written down in this host; empty if everything can."""
    if any(call.typed and not host.typing for call in situation.calls):
        return "no such tool"
    for hook in situation.hooks:
        if hook.event not in host.events:
            return "no such event"
        known = answers(host.name, {"command": REWRITTEN}).get(hook.event, {})
        if not guarded and any(word not in known for word in hook.words):
            return "no such answer"
    return ""
