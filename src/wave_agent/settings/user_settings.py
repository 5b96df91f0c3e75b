"""Changes to the user's own settings file that keep its other content and its form."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import put, remove
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.settings.schema_file import with_schema
from wave_agent.system.private_files import make_private, unwritten, write_private
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.files import FileRefusedError, replace

_BOM = "\ufeff"


class UserSettings(Struct, frozen=True):
    """The user's settings file as it was when it was read."""

    file: Path
    text: str
    """Empty if there is no such file."""
    values: Mapping[str, Any] = {}

    def text_with(self, changes: Mapping[str, Any]) -> str:
        """The text with these top-level keys set; None removes one. Everything else stays as it is, but a changed file
        refers to the schema beside it."""
        if self._edited(self.text, changes) == self.text:
            return self.text
        return self._edited(with_schema(self.text, self.file), changes)

    def _edited(self, text: str, changes: Mapping[str, Any]) -> str:
        for key, value in changes.items():
            if value is not None and self.values.get(key) != value:
                text = put(text, key, value)
            elif value is None and key in self.values:
                text = remove(text, (key,))
        return text

    def write(self, text: str) -> None:
        """Replaces the file in one step. Raises `SettingsError` if it cannot be written, or was changed meanwhile."""
        if read_user_settings(self.file.parent).text != self.text:
            raise SettingsError(
                f"{self.file} was changed in the meantime, so it was not written: run wave setup again."
            )
        try:
            if os.path.lexists(self.file):
                replace(str(self.file), text.encode())
            else:
                make_private(self.file.parent)
                write_private(self.file, text.encode())
        except FileRefusedError as refusal:
            raise SettingsError(str(refusal)) from None
        except OSError as error:
            raise SettingsError(unwritten(self.file, error)) from None


def read_user_settings(home: Path) -> UserSettings:
    """Raises `SettingsError`, with line and column, if the file is not valid: nothing in it may be lost."""
    file = home / "settings.json"
    try:
        text = (read_project_file(str(file), "/", LARGEST_FILE) or b"").decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: not valid JSON: not UTF-8 ({error.reason} at byte {error.start})") from None
    if not text.strip(f"{_BOM} \t\r\n"):
        return UserSettings(file, text)
    return UserSettings(file, text, parse_settings(text, Layer.USER, str(file)).document.value)
