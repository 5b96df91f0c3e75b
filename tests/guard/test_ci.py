"""The recipes of docs/ci.md, run as CI would run them, and what a pull request can do about the guards."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE
from tests.guard.judging import Arena, wait_until
from wave_agent.formats.yaml_json import parse_yaml
from wave_agent.guard import client
from wave_agent.guard.answers import HostReply
from wave_agent.guard.run import Asked, answer_event

RECIPES = Path(__file__).parents[2] / "docs" / "ci.md"
PAYLOADS = Path(__file__).parent / "payloads"
SETTINGS: dict[str, Any] = {
    "permissions": {"deny": ["Bash(touch pushed:*)"]},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "./guards/check.sh", "name": "check"}]}]},
}
CHECK = "#!/bin/sh\nif grep -q 'touch deployed'; then echo 'no deployments' >&2; exit 2; fi\n"
COMMANDS = ("touch harmless", "touch deployed", "touch pushed")
HOST = '''"""Does what the host does with its project's hooks, for commands that a model might want to run."""
import json, os, subprocess, sys
settings = json.load(open({settings!r}))
groups = settings["hooks"]["PreToolUse"] if {trusts} and not settings.get("disableAllHooks") else []
for command in {commands!r}:
    event = {{**{payload!r}, "cwd": os.getcwd(), "tool_input": {{"command": command}}}}
    lines = [entry["command"] for group in groups for entry in group["hooks"]]
    environment = {{**os.environ, "CLAUDE_PROJECT_DIR": os.getcwd()}}
    asked = [subprocess.run(["sh", "-c", line], input=json.dumps(event), text=True, env=environment) for line in lines]
    if not any(one.returncode == 2 for one in asked):
        subprocess.run(["sh", "-c", command])
open("finished", "w").close()
'''


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(directory: Path, message: str) -> None:
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", message)


class Checkout:
    """A clone in which a pull request is checked out. The guards are on the base branch."""

    def __init__(self, arena: Arena, change: Callable[[Path], object]) -> None:
        self.arena = arena
        self.directory = arena.project.parent / "checkout"
        written = arena.project
        git(written, "init", "-q")
        commit(written, "before there were guards")
        (written / ".wave" / "settings.json").write_text(json.dumps(SETTINGS))
        (written / "guards").mkdir()
        (written / "guards" / "check.sh").write_text(CHECK)
        (written / "guards" / "check.sh").chmod(0o755)
        commit(written, "guards")
        git(written, "checkout", "-q", "-b", "theirs")
        change(written)
        commit(written, "the pull request")
        subprocess.run(
            ["git", "clone", "-q", "--no-local", "-b", "theirs", str(written), str(self.directory)], check=True
        )

    def made(self) -> set[str]:
        """What the agent's commands have made."""
        names = {"harmless", "deployed", "pushed", "owned", "finished"}
        return names & {file.name for file in self.directory.iterdir()}

    def run(self, steps: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(steps)],
            cwd=self.directory,
            env={**self.arena.environment, "CI": "true", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def guard(self, command: list[str], payload: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=payload,
            cwd=self.directory,
            env=self.arena.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def write_program(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


def github(recipe: Mapping[str, Any]) -> list[str]:
    (job,) = recipe["jobs"].values()
    (checkout,) = (step for step in job["steps"] if "uses" in step)
    assert checkout["with"]["fetch-depth"] == 0, "the base branch has to be there"
    return [step["run"] for step in job["steps"] if "run" in step]


def gitlab(recipe: Mapping[str, Any]) -> list[str]:
    (job,) = recipe.values()
    return [*job["before_script"], *job["script"]]


def recipe(name: str) -> Mapping[str, Any]:
    section = RECIPES.read_text().partition(f"## {name}")[2]
    return parse_yaml(section.partition("```yaml\n")[2].partition("```\n")[0]).value


class Runner:
    """A CI system: its variables, the programs of its image, and its recipe."""

    def __init__(self, system: str, host: str, settings: str, directory: Path) -> None:
        self.steps = (github if system == "GitHub Actions" else gitlab)(recipe(system))
        self.settings = settings
        programs = directory / "programs"
        programs.mkdir()
        for name in ("apt-get", "pipx", "npm"):
            write_program(programs, name, "#!/bin/sh\n")
        recorded = json.loads((PAYLOADS / f"{host}.json").read_text())
        payload = next(one["payload"] for one in recorded if one["event"] == "PreToolUse")
        # Codex runs hooks of a project only with this flag.
        trusts = "'--dangerously-bypass-hook-trust' in sys.argv" if host == "codex" else "True"
        program = programs / f"{host}.py"
        program.write_text(HOST.format(settings=settings, trusts=trusts, commands=COMMANDS, payload=payload))
        # Not in the first line of the program: an interpreter whose path has a blank cannot be named there.
        write_program(programs, host, f'#!/bin/sh\n{shlex.join(["exec", sys.executable, str(program)])} "$@"\n')
        self.environment = {
            "PATH": os.pathsep.join([str(programs), str(Path(WAVE).parent), os.environ["PATH"]]),
            "HOME": str(directory),
            "GITHUB_BASE_REF": "main",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        }


SYSTEMS = [("GitHub Actions", "claude", ".claude/settings.json"), ("GitLab CI", "codex", ".codex/hooks.json")]


@pytest.fixture(params=SYSTEMS, ids=[one[0] for one in SYSTEMS])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    system, host, settings = request.param
    return Runner(system, host, settings, tmp_path)


def test_the_agent_is_guarded_by_the_base_branch_whatever_its_own_settings_say(arena: Arena, runner: Runner) -> None:
    def turn_hooks_off(project: Path) -> None:
        file = project / runner.settings
        file.parent.mkdir()
        own = [{"hooks": [{"type": "command", "command": "touch owned"}]}]
        file.write_text(json.dumps({"disableAllHooks": True, "hooks": {"PreToolUse": own}}))
        (file.parent / "settings.local.json").write_text('{"disableAllHooks": true}')
        (file.parent / "config.toml").write_text("[features]\nhooks = false\n")

    checkout = Checkout(arena, turn_hooks_off)
    done = checkout.run(runner.steps, **runner.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.made() == {"harmless", "finished"}, done.stderr
    assert "no deployments" in done.stderr
    assert "rule Bash(touch pushed:*)" in done.stderr


def test_the_agent_does_not_run_if_the_pull_request_changes_a_guard(arena: Arena, runner: Runner) -> None:
    checkout = Checkout(arena, lambda project: (project / "guards" / "check.sh").write_text("#!/bin/sh\n"))
    done = checkout.run(runner.steps, **runner.environment)
    assert done.returncode != 0
    assert "every call is denied" in done.stdout
    assert checkout.made() == set()


# ------------------------------------------------------------------------------------------------- without the doctor


def without_guards(project: Path) -> None:
    git(project, "rm", "-q", "-r", ".wave")


def without_rules(project: Path) -> None:
    (project / ".wave" / "settings.json").write_text(json.dumps({"hooks": SETTINGS["hooks"]}))


def disabled(project: Path) -> None:
    entry = {"command": "./guards/check.sh", "name": "check", "enabled": False}
    changed = {**SETTINGS, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}
    (project / ".wave" / "settings.json").write_text(json.dumps(changed))


def added_hook(project: Path) -> None:
    allows = {"command": 'echo \'{"decision": "approve"}\''}
    changed = {**SETTINGS, "hooks": {"PreToolUse": [*SETTINGS["hooks"]["PreToolUse"], {"hooks": [allows]}]}}
    (project / ".wave" / "settings.json").write_text(json.dumps(changed))


def local_settings(project: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"command": "touch owned"}]}]}
    (project / ".wave" / "settings.local.json").write_text(json.dumps({"hooks": hooks}))


def weaker_script(project: Path) -> None:
    (project / "guards" / "check.sh").write_text("#!/bin/sh\n")


def not_executable(project: Path) -> None:
    (project / "guards" / "check.sh").chmod(0o644)


def from_before(project: Path) -> None:
    git(project, "reset", "-q", "--hard", "main~1")


def broken_settings(project: Path) -> None:
    (project / ".wave" / "settings.json").write_text("{,")


CHANGES = [
    *(without_guards, without_rules, disabled, added_hook, local_settings),
    *(weaker_script, not_executable, from_before, broken_settings),
]


def judge(checkout: Checkout, command: str, ref: str | None) -> HostReply:
    arena = checkout.arena
    asked = Asked(
        host="claude",
        name="PreToolUse",
        directory=str(checkout.directory),
        environment=arena.environment,
        trust_ref=ref,
    )
    replies: list[HostReply] = []
    call = {**arena.call(command), "cwd": str(checkout.directory)}
    answer_event(asked, json.dumps(call).encode(), replies.append)
    return replies[0]


@pytest.mark.parametrize("change", CHANGES)
def test_a_pull_request_that_loosens_a_guard_gets_nothing_past_it(
    arena: Arena, change: Callable[[Path], object]
) -> None:
    checkout = Checkout(arena, change)
    for command in COMMANDS:
        assert judge(checkout, command, "origin/main").status == 2, command
    assert checkout.made() == set()


def test_with_a_ref_a_deny_says_that_the_ref_decides(arena: Arena) -> None:
    said = judge(Checkout(arena, weaker_script), "git push", "origin/main").stderr
    assert "Only what is at origin/main is trusted: restore it, or merge the change first." in said
    assert "wave hooks trust" not in said, "what the user trusts does not count with --trust-ref"


def test_a_pull_request_may_add_a_rule_that_restricts(arena: Arena) -> None:
    def stricter(project: Path) -> None:
        rules = {"deny": [*SETTINGS["permissions"]["deny"], "Bash(curl:*)"], "allow": ["Bash(touch deployed)"]}
        (project / ".wave" / "settings.json").write_text(json.dumps({**SETTINGS, "permissions": rules}))

    checkout = Checkout(arena, stricter)
    found = [judge(checkout, command, "origin/main").status for command in (*COMMANDS, "curl x")]
    assert found == [0, 2, 2, 2]


def test_a_flag_reaches_the_resident_guard_however_it_is_written(arena: Arena) -> None:
    checkout = Checkout(arena, from_before)
    payload = json.dumps({**arena.call("touch pushed"), "cwd": str(checkout.directory)})

    def ask(*flags: str) -> int:
        return checkout.guard(
            [WAVE, "guard", "run", "claude", "PreToolUse", "--timeout", "60", *flags], payload
        ).returncode

    assert ask() == 0, "there are no guards in this branch, and the user has trusted none"
    wait_until(lambda: arena.resident() is not None)
    assert ask("--trust-ref", "origin/main") == 2
    assert ask("--trust-ref=origin/main") == 2
    assert ask("--trust-ref") == 2
    assert ask("--trust-reference", "origin/main") == 2
    assert ask("--trust-ref", "") == 2


def test_a_ref_that_is_not_there_denies(arena: Arena) -> None:
    checkout = Checkout(arena, lambda _: None)
    denied = judge(checkout, "touch harmless", "origin/other")
    assert (denied.status, "origin/other" in denied.stderr) == (2, True)


def test_nothing_is_installed_for_a_ref_that_is_not_there(arena: Arena) -> None:
    checkout = Checkout(arena, lambda _: None)
    environment = {"PATH": f"{Path(WAVE).parent}{os.pathsep}{os.environ['PATH']}"}
    for ref in ("origin/other", "$UNSET"):
        done = checkout.run([f'wave guard install claude --project --trust-ref "{ref}" --yes'], **environment)
        assert done.returncode == 1
        assert "--trust-ref" in done.stderr
    assert not (checkout.directory / ".claude").exists()


def test_the_installed_line_trusts_a_commit_and_not_what_the_ref_becomes(arena: Arena) -> None:
    checkout = Checkout(arena, lambda project: (project / "readme").write_text("new"))
    environment = {"PATH": f"{Path(WAVE).parent}{os.pathsep}{os.environ['PATH']}"}
    installed = "wave guard install claude --project --trust-ref origin/main --yes"
    assert checkout.run([installed], **environment).returncode == 0
    settings = json.loads((checkout.directory / ".claude" / "settings.json").read_text())
    line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert f"--trust-ref {git(checkout.directory, 'rev-parse', 'origin/main')}" in line
    assert str(client.__file__) in line
    weaker_script(checkout.directory)
    commit(checkout.directory, "by the agent")
    git(checkout.directory, "update-ref", "refs/remotes/origin/main", "HEAD")
    payload = json.dumps({**arena.call("touch deployed"), "cwd": str(checkout.directory)})
    for _ in range(2):  # by itself, then by the resident guard
        done = checkout.guard(["sh", "-c", line], payload)
        assert (done.returncode, done.stdout) == (2, "")
        assert "check.sh" in done.stderr
        wait_until(lambda: arena.resident() is not None)
