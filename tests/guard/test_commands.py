"""`wave guard install`, `uninstall`, `status`, `doctor` and `log`."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.judging import Arena
from wave_agent.cli.main import run, wave
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.places import project_file, user_file
from wave_agent.system.ancestry import OTHER_AGENTS

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    for name in (*OTHER_AGENTS, "CLAUDE_CONFIG_DIR", "CODEX_HOME", "KIMI_SHARE_DIR", "VIBE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAVE_HOME", str(arena.home))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    monkeypatch.chdir(arena.project)

    def call(*arguments: str) -> tuple[int, str]:
        status = run(wave, ["guard", *arguments])
        said = capsys.readouterr()
        return status, said.out + said.err

    return call


@pytest.mark.parametrize("host", HOSTS)
def test_install_and_uninstall_leave_everything_as_it_was(command: Command, host: str) -> None:
    file = user_file(host, {})
    assert command("install", host, "--dry-run")[0] == 0
    assert not file.exists()
    status, said = command("install", host, "--yes")
    assert status == 0, said
    assert f"+++ {file}" in said
    assert command("install", host, "--yes") == (0, f"The guard is already installed in {file}.\n")
    status, said = command("status", host)
    assert (status, f"installed   {file} (user)" in said) == (0, True)
    assert all(limit in said for limit in HOSTS[host].limits)
    assert command("uninstall", host, "--yes")[0] == 0
    assert not file.exists()
    assert command("uninstall", host, "--yes")[0] == 1
    assert command("status", host)[0] == 1


def test_a_project_gets_lines_that_work_on_every_machine(command: Command, arena: Arena) -> None:
    assert command("install", "claude", "--project", "--yes")[0] == 0
    file = project_file("claude", str(arena.project))
    assert file is not None
    assert '"command": "wave guard run claude PreToolUse --timeout 90 ||' in file.read_text()
    status, said = command("install", "kimi", "--project", "--yes")
    assert (status, "has no hooks for a project" in said) == (2, True)


def test_nothing_is_written_without_a_yes(command: Command) -> None:
    status, said = command("install", "claude")
    assert (status, "rerun with --yes" in said) == (2, True)
    assert not user_file("claude", {}).exists()


def test_an_agent_cannot_remove_its_guard(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("install", "claude", "--yes")[0] == 0
    monkeypatch.setenv("CLAUDECODE", "1")
    status, said = command("uninstall", "claude", "--yes")
    assert (status, "is for a person" in said) == (1, True)
    assert user_file("claude", {}).exists()


def test_settings_that_are_broken_are_not_touched(command: Command) -> None:
    file = user_file("claude", {})
    file.parent.mkdir()
    file.write_text("{,")
    status, said = command("install", "claude", "--yes")
    assert (status, f"{file} was not changed: it is not JSON" in said) == (1, True)
    assert file.read_text() == "{,"
    status, said = command("status", "claude")
    assert (status, "UNREADABLE" in said) == (1, True)


def test_status_shows_what_overrides_the_guard(command: Command, arena: Arena) -> None:
    command("install", "qwen", "--yes")
    command("install", "claude", "--yes")
    other = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./approve"}]}]}}
    (arena.project / ".qwen").mkdir()
    (arena.project / ".qwen" / "settings.json").write_text(json.dumps(other))
    (arena.project / ".claude").mkdir()
    (arena.project / ".claude" / "settings.local.json").write_text('{"disableAllHooks": true}')
    status, said = command("status")
    assert status == 1
    assert "another hook on PreToolUse (./approve): a later allow of another hook beats the guard's deny" in said
    assert "disableAllHooks is true: all hooks are off" in said
    assert "Not installed: codex, gemini, kimi" in said
    found = {one["host"]: one for one in json.loads(command("status", "--json")[1])}
    assert set(found) == {"qwen", "claude"}
    assert found["claude"]["enforces"]["PreToolUse"][:2] == ["deny", "ask"]


def test_status_sees_what_an_older_version_installed(command: Command) -> None:
    command("install", "claude", "--yes")
    file = user_file("claude", {})
    settings = json.loads(file.read_text())
    del settings["hooks"]["Stop"]
    file.write_text(json.dumps(settings))
    status, said = command("status", "claude")
    assert (status, "Stop missing: run wave guard install claude again" in said) == (1, True)
    assert command("install", "claude", "--yes")[0] == 0
    assert command("status", "claude")[0] == 0


def test_doctor_runs_what_is_installed(command: Command, arena: Arena) -> None:
    assert command("doctor")[0] == 1
    command("install", "claude", "--yes")
    status, said = command("doctor")
    assert status == 0, said
    assert "an event that cannot be read is denied" in said
    assert "a harmless command outside the project is passed in" in said
    (arena.project / ".wave" / "settings.json").write_text("{,")
    status, said = command("doctor", "claude")
    assert (status, "every call is denied" in said) == (1, True)


def test_doctor_lists_untrusted_hooks_on_lines_of_their_own(command: Command, arena: Arena) -> None:
    entry = {"matcher": "Bash", "hooks": [{"command": "true"}]}
    (arena.project / ".wave" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    command("install", "claude", "--yes")
    _, said = command("doctor", "claude")
    first, *more = said.splitlines()
    assert first.endswith("This project has hooks that are not trusted:")
    assert more[0].startswith("           PreToolUse: true (")
    assert more[1].strip().endswith("run this in a terminal, to trust them as they are now: wave hooks trust")
    assert "--trust" not in said, "the guard has no such option"


def test_doctor_sees_that_the_program_is_gone(command: Command) -> None:
    command("install", "kimi", "--yes")
    file = user_file("kimi", {})
    before = file.read_text()
    program = before.split('command = "')[1].split(" -I -S")[0]
    file.write_text(before.replace(program, "/nowhere/python"))
    status, said = command("doctor", "kimi")
    assert (status, "/nowhere/python does not exist, so every call is denied" in said) == (1, True)
    client = before.split("[ -r ")[1].split(" ]")[0]
    file.write_text(before.replace(client, "/nowhere/guard/client.py"))
    status, said = command("doctor", "kimi")
    assert (status, "/nowhere/guard/client.py does not exist, so every call is denied" in said) == (1, True)
    assert command("doctor", "gemini")[0] == 1


def test_the_result_of_a_call_without_an_id_belongs_to_the_call_before(arena: Arena) -> None:
    call = {"session_id": "g", "cwd": str(arena.project), "tool_name": "run_shell_command"}
    for command in ("ls", "pwd"):
        arena.judge("gemini", "BeforeTool", {**call, "tool_input": {"command": command}})
    arena.judge("gemini", "AfterTool", {**call, "tool_input": {"command": "ls"}, "tool_response": {"llmContent": "a"}})
    lines = arena.journal("gemini-g")
    asked = [line["message"]["content"][0]["id"] for line in lines if line["type"] == "assistant"]
    answered = [line["message"]["content"][0]["tool_use_id"] for line in lines if line["type"] == "user"]
    assert len(set(asked)) == 2
    assert answered == asked[:1]


def test_log_shows_what_was_decided(command: Command, arena: Arena) -> None:
    assert "No event of another agent" in command("log")[1]
    arena.rules(deny=["Bash(git push:*)"])
    arena.bash("git push origin")
    arena.bash("ls")
    arena.judge("kimi", "PreToolUse", {**arena.call("git push"), "tool_name": "Shell"})
    shown = command("log")[1].splitlines()
    assert len(shown) == 2
    assert "claude-s1" in shown[0]
    assert "deny      Bash(git push origin) by rule Bash(git push:*)" in shown[0]
    assert len(command("log", "--all")[1].splitlines()) == 3
    assert len(command("log", "-n", "1")[1].splitlines()) == 1
    assert command("log", "--json", "-n", "0") == (0, "")
    found = json.loads(command("log", "--json", "-n", "1")[1])
    assert (found["host"], found["verdict"], found["call"]) == ("kimi", "deny", "Bash(git push)")


def test_log_shows_what_could_not_be_judged(command: Command, arena: Arena) -> None:
    (arena.project / ".wave" / "settings.json").write_text("{,")
    assert arena.bash("ls").status == 2
    assert arena.judge("claude", "Stop", {"session_id": "s1", "cwd": str(arena.project)}).status == 0
    shown = command("log")[1].splitlines()
    assert len(shown) == 1
    assert "deny      Bash(ls) by the guard itself" in shown[0]
    assert "not valid JSON" in json.loads(command("log", "--json")[1])["reason"]
    assert len(command("log", "--all")[1].splitlines()) == 2


def test_log_says_deny_where_a_host_cannot_ask(command: Command, arena: Arena) -> None:
    arena.rules(ask=["Bash(npm publish:*)"])
    arena.bash("npm publish")
    arena.judge("kimi", "PreToolUse", {**arena.call("npm publish"), "tool_name": "Shell"})
    asked, denied = command("log")[1].splitlines()
    assert "ask       Bash(npm publish)" in asked
    assert "deny      Bash(npm publish)" in denied


def test_uninstall_says_where_the_guard_is(command: Command, arena: Arena) -> None:
    command("install", "claude", "--project", "--yes")
    status, said = command("uninstall", "claude", "--yes")
    file = project_file("claude", str(arena.project))
    assert (status, f"It is installed in {file}: wave guard uninstall claude --project" in said) == (1, True)


def test_log_follows_until_it_is_interrupted(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    arena.bash("git push first")
    following = subprocess.Popen(
        [sys.executable, "-m", "wave_agent", "guard", "log", "-f"],
        cwd=arena.project,
        env=arena.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert "git push first" in following.stdout.readline()
    arena.bash("git push second")
    assert "git push second" in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, errors = following.communicate(timeout=30)
    assert (following.returncode, errors.strip()) == (130, "")


def test_sessions_of_hosts_can_be_traced_counted_and_replayed(
    command: Command, arena: Arena, capsys: pytest.CaptureFixture[str]
) -> None:
    arena.hook("PreToolUse", 'grep -q "git push" && exit 2; exit 0', matcher="Bash")
    arena.bash("git push")
    second = {**arena.call("ls"), "tool_use_id": "t2"}
    arena.judge("claude", "PreToolUse", second)
    arena.judge("claude", "PostToolUse", {**second, "tool_response": {"stdout": "x"}})
    assert run(wave, ["hooks", "trace", "claude-s1"]) == 0
    assert "git push" in capsys.readouterr().out
    assert run(wave, ["hooks", "stats", "--json"]) == 0
    assert '"guard"' in capsys.readouterr().out
    assert run(wave, ["hooks", "backtest", "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert (replayed["events"], replayed["judged"], replayed["totals"]["unchanged"]) == (3, 2, 3)
    assert run(wave, ["sessions", "verify", "claude-s1"]) == 0
    capsys.readouterr()
    assert run(wave, ["-c", "-p", "hello"]) == 1, "another agent's session is not this one's to continue"
    assert "There is no session" in capsys.readouterr().err
