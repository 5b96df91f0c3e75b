"""A guard that is wrong too often gets switched off: commands of an ordinary day run, forbidden ones do not."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.messages import NOT_RUN
from wave_agent.testing import Reply, ScriptedModel, call
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells

COMMANDS = tomllib.loads((Path(__file__).parent / "ordinary_commands.toml").read_text())["command"]
MOST_WRONG = 0.02
GUARDS = {
    "permissions": {"deny": ["Bash(git push:*)", "Bash(rm -rf:*)"]},
    "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"command": ".wave/hooks/guard.sh"}]}]},
}

PATH_RULES = {"permissions": {"deny": ["Read(.env)", "Edit(vendor/**)", "Net(evil.example)"]}}


class Noting(Bash):
    """Bash, as the agent judges it, that runs nothing."""

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(content=RAN)


RAN = "ran"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a guard in it, everything committed."""
    for name in ("HOME", "WAVE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    (tmp_path / "HOME" / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    project = tmp_path / "project"
    files = {
        ".wave/settings.json": json.dumps(GUARDS),
        ".wave/hooks/guard.sh": "#!/bin/sh\nexit 0\n",
        "Makefile": "test:\n\ttrue\n",
        "package.json": "{}",
        "src/app.py": "",
        "docs/release.md": "# Release\n",
        "scripts/test.sh": "#!/bin/sh\n",
        "list.txt": "a\nb\n",
    }
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    for directory in ("build", "dist", "site", "tests"):
        (project / directory).mkdir()
    script = "git init -q && git add -A && git commit -qm 'As it was'"
    subprocess.run(["sh", "-ec", script], cwd=project, check=True)
    return project


@pytest.fixture
def with_paths(project: Path) -> Path:
    """The same with rules about paths and hosts, and files that they name."""
    files = {".wave/settings.json": json.dumps(PATH_RULES), ".env": "X=1", ".gitignore": ".env", "vendor/lib/x.c": ""}
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    subprocess.run(["sh", "-ec", "git add -A && git commit -qm 'With rules'"], cwd=project, check=True)
    return project


async def refusals(project: Path, lines: list[str]) -> dict[str, str]:
    """Which of them an agent that nobody watches refuses, and what it says."""
    made = [call("Bash", command=line) for line in lines]
    replies = [Reply(tool_calls=made[at : at + 40]) for at in range(0, len(made), 40)]
    model = ScriptedModel([*replies, "Done."])
    async with await Agent.create(
        workdir=project, model_client=model, tools=[Noting(Shells())], permission_mode="bypassPermissions", trust=True
    ) as agent:
        await agent.send_message("Go.")
    said = {one["tool_call_id"]: one["content"] for one in model.requests[-1].messages if one["role"] == "tool"}
    results = {line: said[each.id] for line, each in zip(lines, made, strict=True)}
    assert not [result for result in results.values() if not result.startswith((RAN, NOT_RUN))]
    return {line: result for line, result in results.items() if result != RAN}


async def test_at_most_two_in_a_hundred_are_refused_wrongly_and_none_that_is_forbidden_runs(project: Path):
    refused = await refusals(project, [command["line"] for command in COMMANDS])
    ordinary = [one["line"] for one in COMMANDS if "stop" not in one and "either" not in one]
    missed = [one["line"] for one in COMMANDS if "stop" in one and one["line"] not in refused]
    wrong = [line for line in ordinary if line in refused]
    shown = "\n".join(f"{line!r}\n    {refused[line]}" for line in wrong)
    print(f"{len(wrong)} of {len(ordinary)} refused wrongly\n{shown}")
    assert not missed, "these are forbidden and would run"
    assert len(wrong) <= MOST_WRONG * len(ordinary), f"{len(wrong)} of {len(ordinary)} refused wrongly:\n{shown}"


async def test_rules_about_paths_and_hosts_refuse_at_most_two_in_a_hundred_wrongly(with_paths: Path):
    rules = PATH_RULES["permissions"]["deny"]
    refused = await refusals(with_paths, [one["line"] for one in COMMANDS])
    denied = {line: why for line, why in refused.items() if any(f"rule {rule}" in why for rule in rules)}
    ordinary = [one["line"] for one in COMMANDS if "stop" not in one and "either" not in one and "touches" not in one]
    missed = [one["line"] for one in COMMANDS if "touches" in one and one["line"] not in denied]
    wrong = [line for line in ordinary if line in denied]
    shown = "\n".join(f"{line!r}\n    {denied[line]}" for line in wrong)
    print(f"{len(wrong)} of {len(ordinary)} refused wrongly\n{shown}")
    assert not missed, "these do what a rule denies, and would run"
    assert len(wrong) <= MOST_WRONG * len(ordinary), f"{len(wrong)} of {len(ordinary)} refused wrongly:\n{shown}"


def test_the_list_is_long_and_comes_from_many_projects():
    taken = [one["from"].split()[0] for one in COMMANDS if "from" in one]
    assert len(taken) >= 300
    assert len(set(taken)) >= 20
    assert sum("either" in one for one in COMMANDS) <= 0.03 * len(COMMANDS)
    assert sum("stop" in one for one in COMMANDS) >= 30
    assert len({one["line"] for one in COMMANDS}) == len(COMMANDS)
