"""Hooks as people have them, run unchanged by a whole agent.

`hooks/`, `plugins/` and `extensions/` (skills, commands and agents) hold real files in the shapes that are found in the
wild, `cases.json` how they are wired,
what happens, and what has to come of it: the runs in the journal, what model and user get to see, what is on disk.
"""

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, ErrorBlock, NoticeBlock, Result
from wave_agent.agent.options import Options
from wave_agent.settings.places import ExtensionKind
from wave_agent.testing import Reply, ScriptedModel, call

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = json.loads((HERE / "cases.json").read_text())


def test_every_script_has_a_case() -> None:
    wired = json.dumps(CASES)
    assert [file.name for file in (HERE / "hooks").iterdir() if file.name not in wired] == []
    assert len(CASES) >= 50
    assert len({case["id"] for case in CASES}) == len(CASES)


def missing(needs: list[str]) -> list[str]:
    return [program for program in needs if shutil.which(program) is None]


class World:
    """A project with these hooks, a user's directory, and a scripted model."""

    def __init__(self, directory: Path, case: dict[str, Any]) -> None:
        self.case = case
        self.project = directory / "project"
        shutil.copytree(HERE / "hooks", self.project / ".claude" / "hooks")
        if case.get("extensions"):
            shutil.copytree(HERE / "extensions", self.project / ".claude", dirs_exist_ok=True)
        (self.project / "build").mkdir()
        (self.project / "build" / "out.txt").write_text("built\n")
        (self.project / "NOTES.md").write_text("remember the tide\nand the wind\n")
        (self.project / ".env").write_text("TOKEN=1\n")
        settings = {key: case[key] for key in ("hooks", "permissions") if key in case}
        self.write(".claude/settings.json", {"model": "another one", "statusLine": {"type": "command"}, **settings})
        for file, key in ((".claude/settings.local.json", "local"), (".codex/hooks.json", "codex")):
            if key in case:
                self.write(file, case[key])
        if "user" in case:
            self.write("../claude/settings.json", case["user"])
        if "git" in case:
            subprocess.run(["git", "init", "-q", "-b", case["git"]], cwd=self.project, check=True)
        calls = [Reply(tool_calls=[call(name, **tool_input)]) for name, tool_input in case.get("calls", [])]
        self.model = ScriptedModel(itertools.chain(calls, case.get("answers", []), itertools.repeat("Done.")))

    def write(self, name: str, content: Any) -> None:
        file = self.project / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content, indent=2))

    def plugin(self, name: str) -> Path:
        """A copy: the checkout may lie where the path has blanks, and one of these hooks does not quote it."""
        return Path(shutil.copytree(HERE / "plugins" / name, self.project.parent / "plugins" / name))

    async def run(self) -> tuple[Agent, Result]:
        options = Options(
            workdir=self.project,
            model_client=self.model,
            permission_mode=self.case.get("mode", "bypassPermissions"),
            overlays=[{"compat": {"claude": True}, **self.case.get("settings", {})}],
            trust=True,
            plugins=[self.plugin(name) for name in self.case.get("plugins", [])],
        )
        async with Agent.from_options(options) as agent:
            prompts = self.case.get("prompts", ["Go."])
            results = [await agent.send_message(prompt, expand=True) for prompt in prompts]
        return agent, results[-1]

    def seen_by_the_model(self) -> str:
        return "\n".join(
            text for request in self.model.requests[-1:] for message in request.messages for text in _texts(message)
        )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in _texts(one)]


async def test_existing_skills_commands_and_agents_are_all_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent, _ = await World(tmp_path, {"extensions": True}).run()
    assert agent.extensions is not None
    found = {kind.value: sorted(agent.extensions.of(kind)) for kind in ExtensionKind}
    assert found == {
        "agents": ["code-reviewer", "test-runner"],
        "skills": ["deploy", "pdf-tools", "release-notes"],
        "commands": ["commit", "explain", "fix-issue", "rename"],
    }
    assert agent.extensions.of(ExtensionKind.AGENTS)["code-reviewer"].front["tools"] == "Read, Grep, Glob, Bash"
    assert [one.partition(": ")[2] for one in agent.extensions.notices] == [
        'the skill is called release-notes, as its directory is, not "Release Notes"'
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_an_existing_hook_does_what_it_was_written_for(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(case.get("needs", [])):
        pytest.skip(f"{', '.join(lacking)} is not installed")
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    world, expect = World(tmp_path, case), case["expect"]
    agent, result = await world.run()
    runs = sorted(agent.hook_runs, key=lambda run: (run.occasion, run.position, run.look))
    assert [f"{run.event} {run.outcome}" for run in runs if run.look == 1] == expect["runs"], [
        run.reason for run in runs
    ]
    told = "\n".join(
        block.content
        for message in agent.messages
        for block in message.blocks
        if isinstance(block, NoticeBlock | ErrorBlock)
    )
    assert [text for text in expect.get("user", []) if text not in told] == [], told
    assert [text for text in expect.get("user_not", []) if text in told] == []
    assert not (expect.get("quiet") and told), told
    seen = world.seen_by_the_model()
    assert [text for text in expect.get("model", []) if text not in seen] == [], seen
    assert [text for text in expect.get("model_not", []) if text in seen] == []
    assert result.status == expect.get("status", "completed")
    assert len(world.model.requests) == expect.get("requests", len(world.model.requests))
    assert sum(run.let_through for run in runs) == expect.get("failed_open", 0)
    for name, content in expect.get("files", {}).items():
        assert (world.project / name).read_text() == content
    assert [name for name in expect.get("exists", []) if not os.path.exists(world.project / name)] == []
    assert [name for name in expect.get("absent", []) if os.path.exists(world.project / name)] == []
