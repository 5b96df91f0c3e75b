"""Stored keys: private, bound to one server, never shown, never read by a tool."""

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.agent.foundation import lacks_model, lay_foundation
from wave_agent.agent.model_choice import ModelWishes, endpoint_for
from wave_agent.agent.options import Options
from wave_agent.errors import SettingsError
from wave_agent.models.nearby import origin_of
from wave_agent.settings.layers import Settings
from wave_agent.settings.stored_keys import (
    StoredKey,
    forget_key,
    key_problem,
    put_into_keyring,
    store_key,
    stored_key,
    stored_origins,
)
from wave_agent.testing import Reply, ScriptedModel, call

URL = "https://api.example.com/v1"
KEY = "sk-0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("WAVE_API_KEY", "OPENAI_API_KEY", "WAVE_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "deep" / "home"
    monkeypatch.setenv("WAVE_HOME", str(directory))
    return directory


def kept(home: Path, key: str | None = KEY, url: str = URL) -> Path:
    return store_key(home, origin_of(url), key)


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_the_file_is_the_users_alone_whatever_the_umask(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        file = kept(home)
        kept(home, "sk-other", "http://127.0.0.1:8000/v1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home, home.parent)] == [0o700, 0o700]
    assert [one.name for one in home.iterdir()] == ["keys.json"]
    assert (stored_key(home, URL), stored_key(home, "http://127.0.0.1:8000/v1")) == (KEY, "sk-other")


def test_replacing_the_file_does_not_write_through_a_link(home: Path, tmp_path: Path) -> None:
    file = kept(home)
    other = tmp_path / "other"
    other.write_text("untouched")
    file.unlink()
    file.symlink_to(other)
    other.chmod(0o600)
    with pytest.raises(SettingsError, match="damaged"):
        kept(home)
    assert other.read_text() == "untouched"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "https://api.example.com:8443/v1",
        "https://api.example.com.evil.example/v1",
        "https://api.example.com@evil.example/v1",
        "https://evil.example/https://api.example.com/v1",
        "https://sub.api.example.com/v1",
        "not a URL",
        "",
    ],
)
def test_a_key_goes_nowhere_but_to_its_own_server(home: Path, url: str) -> None:
    kept(home)
    assert stored_key(home, url) is None


@pytest.mark.parametrize("url", [URL, "https://API.EXAMPLE.COM:443/other/path"])
def test_its_own_server_is_one_origin(home: Path, url: str) -> None:
    kept(home)
    assert stored_key(home, url) == KEY


def test_flag_and_environment_take_precedence(home: Path) -> None:
    kept(home)
    settings, places = Settings(base_url=URL), {"WAVE_HOME": str(home)}

    def key(api_key: str | None = None, **environment: str) -> str | None:
        endpoint = endpoint_for(ModelWishes(api_key=api_key), settings, {**places, **environment})
        assert endpoint is not None
        return endpoint.key

    assert key() == KEY
    assert key(OPENAI_API_KEY="of-another-host") == KEY
    assert key(WAVE_API_KEY="env") == "env"
    assert key("flag", WAVE_API_KEY="env") == "flag"
    elsewhere = endpoint_for(ModelWishes(base_url="https://evil.example/v1"), settings, places)
    assert elsewhere is not None
    assert elsewhere.key is None


def test_a_file_that_others_can_read_is_not_used(home: Path) -> None:
    file = kept(home)
    file.chmod(0o640)
    with pytest.raises(SettingsError, match=r"can be read by other users.*chmod 600"):
        stored_key(home, URL)
    file.chmod(0o622)
    with pytest.raises(SettingsError, match="writable by other users"):
        stored_key(home, URL)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        f'{{"version": 1, "keys": {{"{URL}": "{KEY}"}}}}',
        f'{{"version": 1, "keys": {{"a": {{"key": "{KEY}"',
        '{"version": 1, "keys": {"a": {"key": 5}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused_without_quoting_it(home: Path, content: str) -> None:
    file = kept(home)
    file.write_text(content)
    for use in (lambda: stored_key(home, URL), lambda: kept(home)):
        with pytest.raises(SettingsError) as refused:
            use()
        assert str(refused.value) == f"{file} is damaged: delete it, and run wave setup again."
    assert file.read_text() == content


def test_a_newer_file_is_refused(home: Path) -> None:
    file = kept(home)
    file.write_text(json.dumps({"version": 2, "keys": {}}))
    with pytest.raises(SettingsError, match="newer version"):
        stored_key(home, URL)


def test_what_is_not_a_file_is_refused(home: Path) -> None:
    (home / "keys.json").mkdir(parents=True)
    with pytest.raises(SettingsError):
        stored_key(home, URL)
    (home / "keys.json").rmdir()
    os.mkfifo(home / "keys.json", 0o600)
    with pytest.raises(SettingsError, match="not a regular file"):
        stored_key(home, URL)


def test_a_home_that_cannot_be_written_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(SettingsError, match=r"cannot be written.*The key is not stored"):
        kept(tmp_path / "file" / "home")
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("key", ["", "with blank", "line\nbreak", "schlüssel", "\x1b[2J", "k" * 20_000])
def test_what_cannot_be_a_key_is_refused_without_showing_it(key: str) -> None:
    problem = key_problem(key)
    assert problem
    assert not key or key not in problem


def test_a_key_is_not_in_a_representation() -> None:
    assert KEY not in repr(StoredKey(KEY))


# --------------------------------------------------------------------------------------------------------- the keyring

RING = """
import json, os
class Ring:
    priority = float(os.environ.get("RING_PRIORITY", "5"))
def get_keyring(): return Ring()
def _file(): return os.environ["RING_FILE"]
def set_password(service, user, password):
    if os.environ.get("RING_LOCKED"): raise RuntimeError("locked, and the key is " + password)
    with open(_file(), "w") as file: json.dump([service, user, password], file)
def get_password(service, user):
    if os.environ.get("RING_LOCKED"): raise RuntimeError("locked")
    if not os.path.exists(_file()): return None
    with open(_file()) as file: kept = json.load(file)
    return kept[2] if kept[:2] == [service, user] else None
def delete_password(service, user): os.remove(_file())
"""


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The functions of the `keyring` package that are used, with a file behind them."""
    package = tmp_path / "packages"
    package.mkdir()
    (package / "keyring.py").write_text(RING)
    monkeypatch.setenv("RING_FILE", str(tmp_path / "ring.json"))
    monkeypatch.syspath_prepend(str(package))
    sys.modules.pop("keyring", None)
    yield tmp_path / "ring.json"
    sys.modules.pop("keyring", None)


def test_a_key_in_the_keyring_is_in_no_file_of_ours(home: Path, ring: Path) -> None:
    assert put_into_keyring(origin_of(URL), KEY)
    file = kept(home, None)
    assert KEY not in file.read_text()
    assert json.loads(ring.read_text()) == ["wave-agent", "https://api.example.com", KEY]
    assert stored_key(home, URL) == KEY
    assert stored_key(home, "https://evil.example/v1") is None


def test_a_key_is_forgotten_in_the_keyring_too_and_the_others_stay(
    home: Path, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into_keyring(origin_of(URL), KEY)
    kept(home, None)
    kept(home, "sk-other", "http://127.0.0.1:8000/v1")
    with monkeypatch.context() as locked:
        locked.setenv("RING_LOCKED", "1")
        with pytest.raises(SettingsError, match="keyring cannot be changed"):
            forget_key(home, origin_of(URL))
    assert stored_origins(home) == ("https://api.example.com", "http://127.0.0.1:8000")
    assert forget_key(home, origin_of(URL)) == "the system's keyring"
    assert not ring.exists()
    assert stored_origins(home) == ("http://127.0.0.1:8000",)
    with pytest.raises(KeyError):
        forget_key(home, origin_of(URL))


@pytest.mark.parametrize("variable", [{"RING_LOCKED": "1"}, {"RING_PRIORITY": "0"}])
def test_a_keyring_that_does_not_work_leaves_the_key_to_the_file(
    ring: Path, monkeypatch: pytest.MonkeyPatch, variable: dict[str, str]
) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert not put_into_keyring(origin_of(URL), KEY)
    assert not ring.exists()


def test_a_key_that_the_keyring_no_longer_has_is_an_error_that_says_so(
    home: Path, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(home, None)
    with pytest.raises(SettingsError, match="no longer in the system's keyring: run wave setup"):
        stored_key(home, URL)
    monkeypatch.setenv("RING_LOCKED", "1")
    with pytest.raises(SettingsError, match="unlock it"):
        stored_key(home, URL)


def test_without_the_package_the_file_takes_the_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # as if it were not installed
    assert not put_into_keyring(origin_of(URL), KEY)
    kept(home, None)
    with pytest.raises(SettingsError, match="the keyring package is not installed"):
        stored_key(home, URL)


# ------------------------------------------------------------------------------------------------------------ the tools


async def test_no_tool_reads_a_stored_key_and_none_replaces_it(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "a project"
    project.mkdir()
    file = kept(home)
    before = file.read_text()
    attempts = [
        call("Read", file_path=str(file)),
        call("Grep", pattern="sk-", path=str(home), output_mode="content"),
        call("Bash", command=f"cat {file}"),
        call("Bash", command=f"cd {home}; cat *.json"),
        call("Bash", command=f"cp -r {home} copy; cat copy/*"),
        call("Bash", command=f"echo '{{}}' > {file}"),
        call("Write", file_path=str(file), content="{}"),
    ]
    model = ScriptedModel([Reply(tool_calls=attempts), "done"])
    async with await Agent.create(workdir=project, model_client=model, permission_mode="bypassPermissions") as agent:
        await agent.send_message("Show me the keys.")
    results = [one for one in model.requests[-1].messages if one["role"] == "tool"]
    assert len(results) == len(attempts)
    assert KEY not in json.dumps(model.requests[-1].messages)
    assert file.read_text() == before


async def test_a_home_with_odd_characters_or_behind_a_link_is_covered_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "st[a]te *"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "link"))
    kept(tmp_path / "link")
    project = tmp_path / "project"
    project.mkdir()
    attempts = [call("Read", file_path=str(one / "keys.json")) for one in (real, tmp_path / "link")]
    model = ScriptedModel([Reply(tool_calls=attempts), "done"])
    async with await Agent.create(workdir=project, model_client=model, permission_mode="bypassPermissions") as agent:
        await agent.send_message("Show me the keys.")
    assert KEY not in json.dumps(model.requests[-1].messages)


def test_without_stored_keys_there_is_no_rule_for_them(home: Path, tmp_path: Path) -> None:
    options = Options(workdir=tmp_path)
    assert lay_foundation(options, os.environ).settings.rules.deny == ()
    kept(home)
    assert [rule.tool for rule in lay_foundation(options, os.environ).settings.rules.deny] == ["read"]
    (home / "mcp-tokens.json").write_text("{}")
    hidden = [rule.pattern for rule in lay_foundation(options, os.environ).settings.rules.deny]
    assert hidden == [f"/{home}/keys.json", f"/{home}/mcp-tokens.json"]


def test_whether_a_model_is_missing(home: Path, tmp_path: Path) -> None:
    environment = {"WAVE_HOME": str(home), "HOME": str(tmp_path)}
    options = Options(workdir=tmp_path)
    assert lacks_model(options, environment)
    assert not lacks_model(Options(workdir=tmp_path, base_url=URL), environment)
    assert not lacks_model(Options(workdir=tmp_path, model_client=ScriptedModel([])), environment)
    assert not lacks_model(options, {**environment, "WAVE_BASE_URL": URL})
    home.mkdir(parents=True)
    (home / "settings.json").write_text('{"model": "x"}')
    assert lacks_model(options, environment)
    (home / "settings.json").write_text(json.dumps({"baseUrl": URL}))
    assert not lacks_model(options, environment)
    (home / "settings.json").write_text("{,}")
    assert not lacks_model(options, environment)  # the start says what is wrong
