"""What `wave hooks schema --install` writes, so that an editor completes and checks settings files."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import append
from wave_agent.formats.strict_json import StrictJSONError, parse_document
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.settings.schema_file import NAME, SETTINGS, referring
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.files import FileRefusedError, replace
from wave_agent.workshop.schemas import settings_schema

VSCODE = ".vscode/settings.json"
SCHEMAS = "json.schemas"
ASSOCIATION = {"fileMatch": [f"/.wave/{name}" for name in SETTINGS], "url": f"./.wave/{NAME}"}
"""In VS Code's settings, for files that do not name the schema themselves."""


class EditedFile(Struct, frozen=True):
    file: Path
    before: str
    """Empty if it does not exist yet."""
    after: str


class SchemaPlan(Struct, frozen=True):
    changes: tuple[EditedFile, ...]
    """The schema first, if it is not there yet or another version's."""
    by_hand: str = ""
    """What the user has to add to VS Code's settings, which have comments or cannot be read."""


def plan_schema(directory: Path, project: Path | None) -> SchemaPlan:
    """For the settings in `directory`: `.wave` in the project, or without one, the user's own.

    Raises `SettingsError` if a file is in the way or a settings file is not valid.
    """
    schema = directory / NAME
    before = _read(schema)
    if before and not _is_ours(before):
        raise SettingsError(f"{schema} is not the schema of Wave's settings, and is not overwritten: move it away.")
    changes = [EditedFile(schema, before, f"{json.dumps(settings_schema(), indent=2)}\n")]
    changes += [_changed(directory / name, referring) for name in SETTINGS if (directory / name).exists()]
    by_hand = ""
    if project is not None and (project / VSCODE).parent.is_dir():
        try:
            changes.append(_changed(project / VSCODE, _associated))
        except SettingsError:
            by_hand = json.dumps({SCHEMAS: [ASSOCIATION]}, indent=2)
    return SchemaPlan(tuple(one for one in changes if one.after != one.before), by_hand)


def write_changes(changes: tuple[EditedFile, ...]) -> None:
    """Raises `SettingsError` if a file cannot be written, or was changed since it was read."""
    for change in changes:
        if _read(change.file) != change.before:
            raise SettingsError(f"{change.file} was changed in the meantime, so it was not written: run this again.")
        try:
            os.makedirs(change.file.parent, exist_ok=True)
            replace(str(change.file), change.after.encode())
        except FileRefusedError as refusal:
            raise SettingsError(str(refusal)) from None
        except OSError as error:
            raise SettingsError(f"{change.file} cannot be written: {error.strerror}") from None


def _changed(file: Path, edit: Callable[[str], str]) -> EditedFile:
    before = _read(file)
    try:
        return EditedFile(file, before, edit(before))
    except StrictJSONError as error:
        raise SettingsError(f"{file}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None
    except TypeError as error:
        raise SettingsError(f"{file}: the schema cannot be added: {error}") from None


def _associated(text: str) -> str:
    known = any(ASSOCIATION["url"] == url for url in _urls(text)) if text.strip() else False
    return text if known else append(text, (SCHEMAS,), ASSOCIATION)


def _urls(text: str) -> Iterator[Any]:
    """The schemas that VS Code's settings name."""
    document: Any = parse_document(text).value
    listed: Any = cast(Mapping[str, Any], document).get(SCHEMAS) if isinstance(document, Mapping) else None
    for entry in cast(list[Any], listed) if isinstance(listed, list) else ():
        yield cast(Mapping[str, Any], entry).get("url") if isinstance(entry, Mapping) else None


def _is_ours(text: str) -> bool:
    try:
        found: Any = parse_document(text).value
    except StrictJSONError:
        return False
    return isinstance(found, Mapping) and cast(Mapping[str, Any], found).get("title") == settings_schema()["title"]


def _read(file: Path) -> str:
    try:
        return (read_project_file(str(file), "/", LARGEST_FILE) or b"").decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: it is not UTF-8") from None
