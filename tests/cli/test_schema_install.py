"""`wave hooks schema --install`: what it writes for editors, what it asks, and who refers to the schema afterwards."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import pytest

WAVE = Path(sysconfig.get_path("scripts")) / "wave"
HOOKS = {"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}


class Place:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "wave"
        self.settings = self.project / ".wave" / "settings.json"
        self.local = self.project / ".wave" / "settings.local.json"
        self.schema = self.project / ".wave" / "settings.schema.json"
        self.vscode = self.project / ".vscode" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.home.mkdir()

    def wave(self, *words: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WAVE_")}
        environment = {**kept, "WAVE_HOME": str(self.home), "WAVE_LOCAL_PORTS": "", "HOME": str(self.home)}
        return subprocess.run(
            [WAVE, *words], cwd=self.project, env=environment, input="", capture_output=True, text=True, check=False
        )

    def install(self, *words: str) -> str:
        ran = self.wave("hooks", "schema", "--install", "--yes", *words)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout


def read(file: Path) -> Any:
    return json.loads(file.read_text())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_settings_refer_to_a_schema_beside_them_that_checks_them(place: Place) -> None:
    place.settings.write_text(json.dumps(HOOKS, indent=2))
    place.local.write_text('{"model": "m"}')
    place.install()
    assert read(place.settings) == {**HOOKS, "$schema": "./settings.schema.json"}
    assert read(place.local) == {"model": "m", "$schema": "./settings.schema.json"}
    schema = json.loads(place.wave("hooks", "schema").stdout)
    assert read(place.schema) == schema
    for file in (place.settings, place.local):
        assert (file.parent / read(file)["$schema"]).samefile(place.schema)
        jsonschema.Draft202012Validator(schema).validate(read(file))
    assert not place.vscode.exists()


def test_the_rest_of_a_settings_file_keeps_its_bytes(place: Place) -> None:
    place.settings.write_text('{\n\t"//": "ours",\n\t"model":   "m"\n}\n')
    place.install()
    assert (
        place.settings.read_text()
        == '{\n\t"//": "ours",\n\t"model":   "m",\n\t"$schema": "./settings.schema.json"\n}\n'
    )


def test_a_schema_that_the_settings_name_already_stays(place: Place) -> None:
    text = '{"$schema": "https://schemas.example.com/wave.json"}'
    place.settings.write_text(text)
    place.install()
    assert place.settings.read_text() == text


def test_a_dry_run_shows_the_change_and_writes_nothing(place: Place) -> None:
    place.settings.write_text('{"model": "m"}')
    ran = place.wave("hooks", "schema", "--install", "--dry-run")
    assert ran.returncode == 0
    assert "create .wave/settings.schema.json (" in ran.stdout
    assert '+{"model": "m", "$schema": "./settings.schema.json"}' in ran.stdout
    assert place.settings.read_text() == '{"model": "m"}'
    assert not place.schema.exists()


def test_without_a_terminal_nothing_is_written_without_consent(place: Place) -> None:
    ran = place.wave("hooks", "schema", "--install")
    assert ran.returncode == 2
    assert "rerun with --yes" in ran.stderr
    assert not place.schema.exists()


def test_below_an_agent_nothing_is_written(place: Place) -> None:
    ran = subprocess.run(
        [WAVE, "hooks", "schema", "--install", "--yes"],
        **{"cwd": place.project, "env": {**os.environ, "CLAUDECODE": "1", "WAVE_HOME": str(place.home)}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "is for a person" in ran.stderr
    assert not place.schema.exists()


def test_a_second_installation_has_nothing_to_do_and_a_newer_schema_replaces_an_older_one(place: Place) -> None:
    place.install()
    assert "The schema is installed already." in place.install()
    current = place.schema.read_text()
    place.schema.write_text('{"title": "Wave Agent settings"}')
    assert "update .wave/settings.schema.json" in place.install()
    assert place.schema.read_text() == current


def test_a_file_of_somebody_else_in_that_place_is_not_overwritten(place: Place) -> None:
    place.schema.write_text('{"title": "Ours"}')
    ran = place.wave("hooks", "schema", "--install", "--yes")
    assert ran.returncode == 1
    assert "move it away" in ran.stderr
    assert place.schema.read_text() == '{"title": "Ours"}'


def test_settings_that_are_no_json_are_reported_with_their_place(place: Place) -> None:
    place.settings.write_text('{\n  "model": "m",\n}')
    ran = place.wave("hooks", "schema", "--install", "--yes")
    assert ran.returncode == 1
    assert ".wave/settings.json:" in ran.stderr
    assert not place.schema.exists()


def test_vs_code_learns_the_schema_of_files_that_do_not_exist_yet(place: Place) -> None:
    place.vscode.parent.mkdir()
    place.install()
    (entry,) = read(place.vscode)["json.schemas"]
    assert entry["fileMatch"] == ["/.wave/settings.json", "/.wave/settings.local.json"]
    assert (place.project / entry["url"]).samefile(place.schema)
    place.vscode.write_text('{"editor.tabSize": 2, "json.schemas": [{"url": "./other.json"}]}')
    place.install()
    assert read(place.vscode) == {"editor.tabSize": 2, "json.schemas": [{"url": "./other.json"}, entry]}
    assert "The schema is installed already." in place.install()


def test_vs_code_settings_with_comments_are_left_to_the_user(place: Place) -> None:
    place.vscode.parent.mkdir()
    place.vscode.write_text('{\n  // ours\n  "editor.tabSize": 2\n}\n')
    printed = place.install()
    assert place.vscode.read_text() == '{\n  // ours\n  "editor.tabSize": 2\n}\n'
    assert "Add this to it by hand:" in printed
    assert '"url": "./.wave/settings.schema.json"' in printed
    assert place.schema.exists()


def test_ones_own_settings_have_their_schema_in_wave_home(place: Place) -> None:
    (place.home / "settings.json").write_text('{"model": "m"}')
    place.install("--user")
    assert read(place.home / "settings.json")["$schema"] == "./settings.schema.json"
    assert (place.home / "settings.schema.json").is_file()
    assert not place.schema.exists()


@pytest.mark.parametrize("installed", [True, False], ids=["with the schema", "without it"])
def test_new_hooks_and_imported_ones_refer_to_the_schema_if_it_is_there(place: Place, installed: bool) -> None:
    expected = "./settings.schema.json" if installed else None
    if installed:
        place.install()
    assert place.wave("hooks", "new", "mine", "--event", "Stop", "--lang", "bash", "--yes").returncode == 0
    assert read(place.settings).get("$schema") == expected
    assert list(read(place.settings)) == [*(["$schema"] if installed else []), "hooks"]
    place.settings.unlink()
    (place.project / ".claude").mkdir()
    (place.project / ".claude" / "settings.json").write_text(json.dumps(HOOKS))
    assert place.wave("hooks", "import", "--yes").returncode == 0
    assert read(place.settings).get("$schema") == expected


@pytest.mark.parametrize("installed", [True, False], ids=["with the schema", "without it"])
def test_setup_and_a_users_servers_refer_to_the_schema_if_it_is_there(place: Place, installed: bool) -> None:
    expected = "./settings.schema.json" if installed else None
    if installed:
        place.install("--user")
    model = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--no-check", "--yes")
    assert place.wave("setup", *model).returncode == 0
    settings = place.home / "settings.json"
    assert read(settings).get("$schema") == expected
    assert place.wave("setup", *model).stdout.count("There is nothing to change.") == 1
    settings.unlink()
    ran = place.wave("mcp", "add", "--scope", "user", "time", "--", "mcp-server-time")
    assert ran.returncode == 0, ran.stderr
    assert read(settings).get("$schema") == expected


@pytest.mark.parametrize(
    "words",
    [
        ("--install", "--json"),
        ("input", "Stop", "--install"),
        ("--user",),
        ("--dry-run",),
        ("--yes",),
        ("--cwd", "."),
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_a_usage_error(place: Place, words: tuple[str, ...]) -> None:
    ran = place.wave("hooks", "schema", *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--install" in ran.stderr
