"""Every command once, in this process: what it prints and its exit status. The other files start real programs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.project import serving
from wave_agent.cli.main import run, wave
from wave_agent.system.ancestry import OTHER_AGENTS
from wave_agent.testing import RecordingModelServer, Reply, call

Command = Callable[..., tuple[int, str]]

GUARD = """#!/bin/sh
case $(cat) in *"rm -rf"*) echo "rm -rf is not allowed here" >&2; exit 2 ;; esac
"""
SETTINGS = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"name": "guard", "command": "./guard.sh"}]}]}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a guard that is not trusted yet."""
    for name in ("CI", "WAVE_BASE_URL", "WAVE_MODEL", "WAVE_API_KEY", "OPENAI_API_KEY", *OTHER_AGENTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    place = tmp_path / "project"
    (place / ".wave").mkdir(parents=True)
    (place / ".wave" / "settings.json").write_text(json.dumps(SETTINGS))
    (place / "guard.sh").write_text(GUARD)
    (place / "guard.sh").chmod(0o755)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def command(project: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `wave` with these arguments; returns its exit status and what it printed: on stdout, else on stderr."""

    def run_here(*arguments: str) -> tuple[int, str]:
        status = run(wave, arguments)
        printed = capsys.readouterr()
        return status, printed.out or printed.err

    return run_here


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingModelServer]:
    calls = [call("Bash", command="rm -rf build"), call("Bash", command="echo hello")]
    with serving(Reply(tool_calls=calls), "All done.", "Again.") as serving_model:
        monkeypatch.setenv("WAVE_BASE_URL", serving_model.base_url)
        monkeypatch.setenv("WAVE_MODEL", "test")
        yield serving_model


def test_hooks_are_listed_explained_tested_and_checked(command: Command) -> None:
    status, printed = command("hooks", "list")
    assert (status, "guard" in printed, "not trusted" in printed) == (0, True, True)
    status, printed = command("hooks", "list", "--json")
    assert [hook["name"] for hook in json.loads(printed)["hooks"]] == ["guard"]

    dangerous = ("--input", '{"command": "rm -rf /"}')
    status, printed = command("hooks", "explain", "PreToolUse", "Bash", *dangerous)
    assert (status, "guard" in printed) == (0, True)
    status, printed = command("hooks", "explain", "PreToolUse", "Read", "--json")
    assert (status, [one["hook"]["name"] for one in json.loads(printed)["not_run"]]) == (0, ["guard"])

    status, printed = command("hooks", "test", "PreToolUse", "--tool", "Bash", *dangerous, "--trust")
    assert (status, "rm -rf is not allowed here" in printed) == (0, True)
    status, printed = command(
        "hooks", "test", "PreToolUse", "--tool", "Bash", *dangerous, "--trust", "--expect", "allow", "--json"
    )
    (difference,) = json.loads(printed)["differences"]
    assert (status, difference["expected"], difference["actual"]) == (1, "allow", "block")
    assert command("hooks", "test", "PreToolUze")[0] == 2

    status, printed = command("hooks", "lint")
    assert (status, "if guard fails, the action it guards goes ahead" in printed) == (0, True)


def test_trust_is_listed_given_and_revoked(command: Command) -> None:
    assert command("hooks", "trust", "--list")[0] == 1
    status, printed = command("hooks", "trust", "--yes")
    assert (status, "guard" in printed) == (0, True)
    assert command("hooks", "trust", "--list", "--json")[0] == 0
    assert command("hooks", "trust", "--revoke")[0] == 0
    assert command("hooks", "trust", "--list")[0] == 1


def test_a_hook_is_made_from_nothing_and_from_a_recipe(command: Command, project: Path) -> None:
    status, printed = command("hooks", "new", "mine", "--event", "PreToolUse", "--lang", "bash", "--dry-run")
    assert (status, ".wave/hooks/mine" in printed) == (0, True)
    assert not (project / ".wave" / "hooks").exists()
    assert command("hooks", "new", "mine", "--event", "PreToolUse", "--lang", "python", "--yes")[0] == 0
    assert command("hooks", "new", "safe", "--recipe", "git-guard", "--yes")[0] == 0
    hooks = json.loads((project / ".wave" / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert len(hooks) == 3
    status, printed = command("hooks", "recipes")
    assert (status, "git-guard" in printed) == (0, True)
    status, printed = command("hooks", "recipes", "git-guard")
    assert (status, "PreToolUse" in printed) == (0, True)


def test_hooks_for_other_agents_are_copied(command: Command, project: Path) -> None:
    (project / ".claude").mkdir()
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(theirs))
    status, printed = command("hooks", "import", "--dry-run")
    assert (status, "Stop" in printed) == (0, True)
    assert command("hooks", "import", "--yes")[0] == 0
    assert "Stop" in json.loads((project / ".wave" / "settings.json").read_text())["hooks"]


@pytest.mark.parametrize("what", [("settings",), ("input", "PreToolUse"), ("output", "Stop")])
def test_schemas_are_json(command: Command, what: tuple[str, ...]) -> None:
    status, printed = command("hooks", "schema", *what)
    assert status == 0
    assert json.loads(printed)["$schema"]


def test_a_prompt_leaves_a_session_that_is_shown_verified_traced_counted_and_replayed(
    command: Command, project: Path, server: RecordingModelServer
) -> None:
    refused, printed = command("-p", "Tidy up.")
    assert (refused, "not trusted" in printed) == (1, True)
    status, printed = command("-p", "Tidy up.", "--trust", "--output-format", "json", "--permission-mode", "plan")
    assert status == 0
    result = json.loads(printed)
    assert (result["status"], result["result"]) == ("completed", "All done.")
    status, printed = command("-p", "And again.", "-c", "--trust", "--output-format", "stream-json")
    assert (status, json.loads(printed.splitlines()[-1])["result"]) == (0, "Again.")

    found = result["session_id"]
    status, printed = command("sessions", "--json")
    assert (status, found in printed) == (0, True)
    for arguments in (("show",), ("export",), ("verify",)):
        assert command("sessions", *arguments, found[:8])[0] == 0
    status, printed = command("hooks", "trace")
    assert (status, "guard on PreToolUse → deny" in printed) == (0, True), printed
    assert command("hooks", "trace", "--html", "page.html")[0] == 0
    assert "<html" in (project / "page.html").read_text()
    status, printed = command("hooks", "stats", "--json")
    assert (status, "guard" in printed) == (0, True)
    status, printed = command("hooks", "backtest", "--trust", "--jobs", "1", "--json")
    replayed = json.loads(printed)
    assert (status, replayed["judged"], replayed["findings"]) == (0, 2, [])
    assert command("sessions", "delete", found[:8], "--yes")[0] == 0


def test_the_doctor_asks_the_model(command: Command, server: RecordingModelServer) -> None:
    status, printed = command("doctor", "--json")
    assert {check["check"] for check in json.loads(printed)} >= {"home", "settings"}, printed
    assert status == 0


def test_setup_writes_a_model_and_models_lists_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_LOCAL_PORTS", "")
    status, printed = command("models")
    assert (status, "wave setup" in printed) == (1, True)
    listed = {"GET /v1/models": {"data": [{"id": "test"}, {"id": "other"}]}}
    with serving(Reply(tool_calls=[call("ping", word="hello")]), elsewhere=listed) as here:
        chosen = ("--base-url", here.base_url, "--model", "test")
        assert command("setup", *chosen)[0] == 2
        status, printed = command("setup", *chosen, "--yes")
        assert (status, "called the tool" in printed) == (0, True)
        settings = json.loads((tmp_path / "state" / "settings.json").read_text())
        assert settings == {"baseUrl": here.base_url, "model": "test"}
        status, printed = command("models")
        assert (status, "*  test" in printed, "other" in printed) == (0, True, True)
        status, printed = command("models", "--json")
        assert [one["name"] for one in json.loads(printed)["models"]] == ["test", "other"]


def test_wrong_usage_is_status_2(command: Command) -> None:
    assert command("-p", "x", "-c", "-r", "1")[0] == 2
    assert command("hook")[0] == 2
    assert command("hooks", "explain", "PreToolUze")[0] == 2
    assert command("--cwd", "nowhere", "-p", "x")[0] == 2
    assert command()[0] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(command: Command, shell: str) -> None:
    status, printed = command("completion", shell)
    assert (status, "wave" in printed) == (0, True)
