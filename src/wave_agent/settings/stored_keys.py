"""Keys that `wave setup` stored: in a file that only the user can read, or in the system's keyring.

Each key is bound to the origin (scheme, host and port) that it was stored for, and is never sent anywhere else.
"""

import os
import re
import stat
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.rules.rule import parse_rule
from wave_agent.settings.layers import Settings
from wave_agent.settings.places import require_sound_owner
from wave_agent.system.private_files import STORED_KEYS, STORED_LOGINS, make_private, write_private

_SERVICE = "wave-agent"
"""The name of the entries in the system's keyring."""
_LONGEST_KEY = 16 << 10
_LARGEST_FILE = 1 << 20


class StoredKey(Struct, frozen=True, omit_defaults=True):
    """A key, or where it is."""

    key: str = ""
    keyring: bool = False
    """The key is in the system's keyring."""

    def __repr__(self) -> str:
        return f"StoredKey(keyring={self.keyring})"


class _StoredKeys(Struct, kw_only=True):
    version: int = 1
    keys: dict[str, StoredKey] = {}
    """By origin."""


def key_problem(key: str) -> str:
    """Why this cannot be an API key; empty if it can."""
    if not key:
        return "The key is empty."
    if not (key.isascii() and key.isprintable()) or " " in key:
        return "The key contains spaces or characters that no key has: copy it again."
    return "The key is too long to be one." if len(key) > _LONGEST_KEY else ""


def stored_key(home: Path, url: str) -> str | None:
    """The key stored for the server at this URL. Raises `SettingsError` if there is one that must not be used."""
    file = home / STORED_KEYS
    if not os.path.exists(file):  # the usual case, and before anything is imported for it
        return None
    origin = _origin(url)
    found = _load(file).keys.get(origin) if origin else None
    if found is None:
        return None
    return _from_keyring(origin) if found.keyring else found.key


def _origin(url: str) -> str:
    from wave_agent.models.nearby import origin_of  # lazy: loads what parses URLs, and few have stored keys

    return origin_of(url)


def hiding_keys(settings: Settings, home: Path) -> Settings:
    """The settings with more rules if there are stored keys or logins: no tool may read them."""
    files = [str(home / name) for name in (STORED_KEYS, STORED_LOGINS) if os.path.exists(home / name)]
    places = dict.fromkeys(place for file in files for place in (file, os.path.realpath(file)))
    hidden = [parse_rule(f"Read(/{_literal(place)})") for place in places]
    rules = settings.rules
    return replace(settings, rules=replace(rules, deny=(*rules.deny, *hidden)))


def _literal(path: str) -> str:
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def put_into_keyring(origin: str, key: str) -> bool:
    """Stores the key in the system's keyring. False if there is none that works: then the private file takes the key.

    May wait for the user to unlock it.
    """
    keyring = _usable_keyring()
    try:
        if keyring is not None:
            keyring.set_password(_SERVICE, origin, key)
    except Exception:  # locked, refused or broken
        return False
    return keyring is not None


def store_key(home: Path, origin: str, key: str | None) -> Path:
    """Notes the key for this origin, or with None that it is in the system's keyring. Returns the file.

    Raises `SettingsError`; the file is then unchanged.
    """
    file = home / STORED_KEYS
    kept = _load(file) if os.path.exists(file) else _StoredKeys()
    kept.keys[origin] = StoredKey(keyring=True) if key is None else StoredKey(key)
    _write(file, kept, "The key is not stored.")
    return file


def stored_origins(home: Path) -> tuple[str, ...]:
    """The servers for which a key is stored. Raises `SettingsError`."""
    file = home / STORED_KEYS
    return tuple(_load(file).keys) if os.path.exists(file) else ()


def forget_key(home: Path, origin: str) -> str:
    """Removes the key that is stored for this origin, and returns where it was. Raises `KeyError` if there is none, and
    `SettingsError` if it is still there."""
    file = home / STORED_KEYS
    kept = _load(file) if os.path.exists(file) else _StoredKeys()
    found = kept.keys.pop(origin)
    if found.keyring:
        _delete_from_keyring(origin)
    if kept.keys:
        _write(file, kept, "The key is still stored.")
    else:
        try:
            file.unlink()
        except OSError as error:
            raise SettingsError(f"{file} cannot be removed: {error.strerror}. The key is still stored.") from None
    return "the system's keyring" if found.keyring else str(file)


def _write(file: Path, kept: _StoredKeys, otherwise: str) -> None:
    try:
        make_private(file.parent)
        write_private(file, msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}. {otherwise}") from None


def _delete_from_keyring(origin: str) -> None:
    keyring = _keyring()
    if keyring is None:
        raise SettingsError(
            f"The key for {origin} is in the system's keyring, but the keyring package is not installed. Install it, "
            f"or remove the entry {_SERVICE} there yourself."
        )
    try:
        if keyring.get_password(_SERVICE, origin) is not None:  # it may have been removed there
            keyring.delete_password(_SERVICE, origin)
    except Exception as error:
        raise SettingsError(f"The system's keyring cannot be changed ({type(error).__name__}): unlock it.") from None


def _load(file: Path) -> _StoredKeys:
    try:
        with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as opened:
            require_sound_owner(opened.fileno(), file, levels=1)
            facts = os.fstat(opened.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise SettingsError(f"{file} is not a regular file, so its keys are not used.")
            if facts.st_mode & 0o077:
                raise SettingsError(
                    f"{file} can be read by other users, so its keys are not used: chmod 600 {file}, and consider "
                    "replacing the keys."
                )
            content = opened.read(_LARGEST_FILE)
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from None
    try:
        found = msgspec.json.decode(content, type=_StoredKeys)
    except (msgspec.DecodeError, RecursionError):  # the error's text may quote a key
        raise SettingsError(f"{file} is damaged: delete it, and run wave setup again.") from None
    if found.version != 1:
        raise SettingsError(f"{file} was written by a newer version of wave, so its keys are not used.")
    return found


def _usable_keyring() -> Any:
    """The `keyring` package, if it is installed and found a place to store keys."""
    keyring = _keyring()
    try:
        return keyring if keyring is not None and keyring.get_keyring().priority > 0 else None
    except Exception:  # a plug-in of the package failed
        return None


def _keyring() -> ModuleType | Any | None:
    from importlib import import_module  # lazy, like the package: it takes longer to import than the agent

    try:
        return import_module("keyring")
    except Exception:  # not installed, or broken
        return None


def _from_keyring(origin: str) -> str:
    keyring = _keyring()
    if keyring is None:
        raise SettingsError(
            f"The key for {origin} is in the system's keyring, but the keyring package is not installed. Install it, "
            "or run wave setup again."
        )
    try:
        key = keyring.get_password(_SERVICE, origin)
    except Exception as error:
        raise SettingsError(f"The system's keyring cannot be read ({type(error).__name__}): unlock it.") from None
    if not isinstance(key, str) or key_problem(key):
        raise SettingsError(f"The key for {origin} is no longer in the system's keyring: run wave setup again.")
    return key
