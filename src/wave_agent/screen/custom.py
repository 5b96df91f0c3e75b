"""Custom commands, one Markdown file each. `$ARGUMENTS` is replaced by the text after the command."""

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from wave_agent.text import one_line

SIZE_LIMIT = 256 * 1024
"""Maximum file size in bytes."""
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_HEAD = re.compile(r"---\r?\n(.*?)\r?\n---\r?\n?(.*)", re.DOTALL)
_DESCRIPTION = re.compile(r"^description:\s*(.+?)\s*$", re.MULTILINE)


class CustomCommand(Struct, frozen=True):
    name: str
    meaning: str
    body: str
    source: str

    def prompt(self, arguments: str) -> str:
        """The prompt the command expands to."""
        if "$ARGUMENTS" in self.body:
            return self.body.replace("$ARGUMENTS", arguments)
        return f"{self.body}\n\n{arguments}" if arguments else self.body


def directories(home: Path, project: str, *, trusted: bool) -> list[Path]:
    """Directories with commands; a project's are used only once it is trusted."""
    own = home / "commands"
    return [own, project_commands(project)] if trusted else [own]


def project_commands(project: str) -> Path:
    return Path(project) / ".wave" / "commands"


def load_commands(places: Iterable[Path]) -> dict[str, CustomCommand]:
    """Commands by name; with equal names the later directory wins. Unreadable files are skipped."""
    found: dict[str, CustomCommand] = {}
    for place in places:
        for file in _files(place):
            command = _read(file)
            if command is not None:
                found[command.name] = command
    return found


def _files(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.glob("*.md") if path.is_file())
    except OSError:
        return []


def _read(file: Path) -> CustomCommand | None:
    if not _NAME.fullmatch(file.stem):
        return None
    try:
        with file.open("rb") as opened:
            text = opened.read(SIZE_LIMIT).decode("utf-8", "replace")
    except OSError:
        return None
    head = _HEAD.fullmatch(text)
    described = _DESCRIPTION.search(head[1]) if head else None
    body = (head[2] if head else text).strip()
    if not body:
        return None
    meaning = described[1].strip("\"'") if described else body.split("\n", 1)[0].lstrip("# ")
    return CustomCommand(file.stem, one_line(meaning, 80), body, str(file))
