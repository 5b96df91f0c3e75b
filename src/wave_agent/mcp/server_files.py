"""The files in which servers are configured, and edits that keep everything else in them as it is."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import put_at, remove
from wave_agent.formats.strict_json import StrictJSONError, parse_document, type_name
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.settings.schema_file import with_schema
from wave_agent.system.private_files import make_private, write_private
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.files import FileRefusedError, replace

SERVERS = "mcpServers"


class Scope(StrEnum):
    """Whom a configured server is for."""

    USER = "user"
    """The user, in all projects."""
    PROJECT = "project"
    """Everyone who works on the project."""
    LOCAL = "local"
    """The user, in this project."""


def scope_file(scope: Scope, home: Path, project: str) -> Path:
    if scope is Scope.USER:
        return home / "settings.json"
    return Path(project) / (".mcp.json" if scope is Scope.PROJECT else ".wave/settings.local.json")


class ServerFile(Struct, frozen=True, kw_only=True):
    """A file with servers, as it was when it was read."""

    scope: Scope
    file: Path
    text: str = ""
    """Empty if there is no such file."""
    servers: Mapping[str, Any] = {}
    """Entries as they are written, variables included."""
    lines: Mapping[str, int] = {}

    def text_with(self, name: str, entry: Mapping[str, Any]) -> str:
        text = self.text if self.scope is Scope.PROJECT else with_schema(self.text, self.file)
        return put_at(text, (SERVERS, name), entry)

    def text_without(self, name: str) -> str:
        return remove(self.text, (SERVERS, name))

    def write(self, text: str) -> None:
        """Replaces the file in one step. Raises `SettingsError` if it cannot be written, or was changed meanwhile."""
        if _read(self.file) != self.text:
            raise SettingsError(f"{self.file} was changed in the meantime, so it was not written: try again.")
        try:
            if self.scope is Scope.PROJECT or os.path.lexists(self.file):
                replace(str(self.file), text.encode())
            else:  # the user's own files may contain keys
                if self.scope is Scope.USER:
                    make_private(self.file.parent)
                self.file.parent.mkdir(exist_ok=True)
                write_private(self.file, text.encode())
        except FileRefusedError as refusal:
            raise SettingsError(str(refusal)) from None
        except OSError as error:
            raise SettingsError(f"{self.file} cannot be written: {error.strerror}") from None


def read_server_file(scope: Scope, home: Path, project: str) -> ServerFile:
    """Raises `SettingsError`, with line and column, if the file is not valid: nothing in it may be lost."""
    file = scope_file(scope, home, project)
    text = _read(file)
    if not text.strip("\ufeff \t\r\n"):
        return ServerFile(scope=scope, file=file, text=text)
    try:
        document = parse_document(text)
    except StrictJSONError as error:
        raise SettingsError(f"{file}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None
    top: Any = document.value
    if not isinstance(top, dict):
        raise SettingsError(f"{file}:1: must be a JSON object, not {type_name(top)}.")
    found: Any = cast(dict[str, Any], top).get(SERVERS, {})
    if not isinstance(found, dict):
        line = document.line((SERVERS,))
        raise SettingsError(f'{file}:{line}: "{SERVERS}" must be an object with a server for each name.')
    servers = cast(dict[str, Any], found)
    lines = {name: document.line((SERVERS, name)) or 1 for name in servers}
    return ServerFile(scope=scope, file=file, text=text, servers=servers, lines=lines)


def _read(file: Path) -> str:
    try:
        return (read_project_file(str(file), "/", LARGEST_FILE) or b"").decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: not valid JSON: not UTF-8 ({error.reason} at byte {error.start})") from None
