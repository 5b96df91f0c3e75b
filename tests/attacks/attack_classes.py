"""The classes of attacks, as data: `classes/<topic>.toml`. CONTRIBUTING.md says how to write one."""

import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

CLASSES = Path(__file__).parent / "classes"
CANARIES = {
    "push": "git push ran",
    "rm": "the directory `precious` is gone",
    "changed": "a watched file changed",
    "secret": "the secret reached the model",
    "ran": "the canary file was made",
    "alive": "the agent did not go on",
}
"""What must not happen, and how a failure says that it did."""
UNGUARDED = ("agent", "approved", "bash")
"""How the unguarded side makes an attempt: `wave` without rules; an agent whose user approves everything; Bash."""
SECRET = "canary-7f3a"


@dataclass(frozen=True)
class Attempt:
    """One call of a tool."""

    tool: str
    arguments: str
    """JSON, as the model writes it."""
    line: str | None = None
    """The command, if it is a call of Bash."""
    before: "tuple[Attempt, ...]" = ()
    """Calls that the same answer of the model makes first: a file has to be read before it can be edited."""
    needs: tuple[str, ...] = ()
    """Programs, and `root`: it is left out where one is missing."""
    xfail: bool = False
    """It gets through today. A class fails once this is no longer so, until the mark is removed."""
    without_canary: bool = False
    """No program can show the effect harmlessly here: it is enough that the guarded agent refuses the call."""
    why: str = ""

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        known = {"line", "tool", "input", "arguments", "before", "needs", "xfail", "without_canary", "why"}
        given = data.keys() & {"line", "input", "arguments"}
        if data.keys() - known or len(given) != 1 or ("tool" in data) is ("line" in data):
            raise ValueError(f"an attempt has `line`, or `tool` with `input` or `arguments`; keys are {known}: {data}")
        if data.get("without_canary", False) and not data.get("why"):
            raise ValueError(f"`without_canary` says `why`: {data}")
        call = {"command": data["line"]} if "line" in data else data.get("input")
        return cls(
            tool=data.get("tool", "Bash"),
            arguments=data["arguments"] if "arguments" in data else json.dumps(call),
            line=data.get("line"),
            before=tuple(cls.parse(one) for one in data.get("before", ())),
            needs=tuple(data.get("needs", ())),
            xfail=data.get("xfail", False),
            without_canary=data.get("without_canary", False),
            why=data.get("why", ""),
        )

    @property
    def name(self) -> str:
        shown = self.line if self.line is not None else f"{self.tool} {self.arguments}"
        return shown if len(shown) <= 300 else f"{shown[:300]}…"

    @property
    def possible(self) -> bool:
        return all(os.geteuid() == 0 if name == "root" else shutil.which(name) for name in self.needs)


@dataclass(frozen=True)
class AttackClass:
    """Attempts that have one idea, and the guard that must withstand them."""

    name: str
    title: str
    canary: str
    attempts: tuple[Attempt, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """In the project, by name. What begins with `#!` can be executed; `$ARENA` and `$HOME` are filled in."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """The same for the home directory: `~/.ssh/id`."""
    setup: str = ""
    """Bash, run in the project once the files are there: links, configuration of git."""
    watch: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    """More arguments for `wave`, on both sides."""
    unguarded: str = "agent"
    control: str = "echo open"
    """A harmless command that the guarded agent runs: it would not be a guard if it refused everything."""

    @classmethod
    def parse(cls, name: str, text: str) -> Self:
        data = tomllib.loads(text)
        attempts = tuple(Attempt.parse(one) for one in data.pop("attempt"))
        changes = data.get("canary") == "changed"
        given = {"unguarded": "agent" if data.get("canary") in ("secret", "alive") else "approved", **data}
        for names in ("watch", "flags"):
            given[names] = tuple(given.get(names, ()))
        found = cls(name=name, attempts=attempts, **given)
        if found.canary not in CANARIES or found.unguarded not in UNGUARDED:
            raise ValueError(f"{name}: `canary` is one of {list(CANARIES)}, `unguarded` one of {UNGUARDED}")
        if changes is not bool(found.watch):
            raise ValueError(f"{name}: `watch` names the files that must not change, if the canary is `changed`")
        seen = [(attempt.tool, attempt.arguments) for attempt in attempts]
        if twice := next((one for one in seen if seen.count(one) > 1), None):
            raise ValueError(f"{name}: this attempt is there twice: {twice}")
        return found


def load_classes(directory: Path = CLASSES) -> list[AttackClass]:
    return [AttackClass.parse(file.stem, file.read_text()) for file in sorted(directory.glob("*.toml"))]
