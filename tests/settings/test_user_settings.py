"""The user's settings file: one key changes, and everything else is as it was, byte for byte."""

import os
import stat
from pathlib import Path

import pytest

from wave_agent.errors import SettingsError
from wave_agent.settings.user_settings import read_user_settings

CHOICE = {"baseUrl": "http://127.0.0.1:1/v1", "model": "m", "api": None}


def test_a_new_file_is_the_users_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = read_user_settings(home)
    before = os.umask(0)
    try:
        settings.write(settings.text_with(CHOICE))
    finally:
        os.umask(before)
    file = home / "settings.json"
    assert file.read_text() == '{\n  "baseUrl": "http://127.0.0.1:1/v1",\n  "model": "m"\n}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_everything_else_stays_as_it_was(tmp_path: Path) -> None:
    text = '\ufeff{\r\n\t"//": "mine",\r\n\t"model":   "old",\r\n\t"api": "anthropic",\r\n\t"env": {"A":"1"}\r\n}\r\n'
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text(text, newline="")
    dotfiles.chmod(0o644)
    (tmp_path / "settings.json").symlink_to(dotfiles)
    settings = read_user_settings(tmp_path)
    settings.write(settings.text_with(CHOICE))
    expected = text.replace('"old"', '"m"').replace('\r\n\t"api": "anthropic",', "")
    expected = expected.replace('"1"}', '"1"},\r\n\t"baseUrl": "http://127.0.0.1:1/v1"')
    assert dotfiles.read_bytes().decode() == expected
    assert (tmp_path / "settings.json").is_symlink()
    assert stat.S_IMODE(dotfiles.stat().st_mode) == 0o644


def test_the_same_choice_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"model": "m",   "baseUrl":"http://127.0.0.1:1/v1"}')
    settings = read_user_settings(tmp_path)
    assert settings.text_with(CHOICE) == settings.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n  "model": "x",,\n}', "settings.json:2:16"),
        (b'{"model": "x", "model": "y"}', 'duplicate key "model"'),
        (b"[]", "settings.json"),
        (b'{"model": "\xff"}', "not UTF-8"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        read_user_settings(tmp_path)
    assert said in str(refused.value)
    assert file.read_bytes() == content


def test_a_change_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    settings = read_user_settings(tmp_path)
    (tmp_path / "settings.json").write_text('{"strictHooks": true}')
    with pytest.raises(SettingsError, match="changed in the meantime"):
        settings.write(settings.text_with(CHOICE))
    assert (tmp_path / "settings.json").read_text() == '{"strictHooks": true}'


def test_a_home_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = read_user_settings(tmp_path / "file" / "home")
    with pytest.raises(SettingsError, match="cannot be written"):
        settings.write(settings.text_with(CHOICE))
