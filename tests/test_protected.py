"""The agent cannot rewrite its own guards without being asked about."""

import json
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, Allow, Deny, PermissionRequest
from wave_agent.hooks import allow
from wave_agent.hooks.config import load_hooks, parse_settings
from wave_agent.hooks.definitions import Layer
from wave_agent.permissions import PermissionMode
from wave_agent.protected import protected_paths
from wave_agent.testing import Reply, ScriptedModel, call

COMMANDS = [
    "./guard.sh",
    "python3 $CLAUDE_PROJECT_DIR/hooks/check.py --fast",
    "'./sp ace.sh' x",
    "echo hello",
    "unclosed 'quote.sh",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def paths(project: Path) -> Any:
    settings = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": command} for command in COMMANDS]}]}})
    hooks = load_hooks([parse_settings(settings, Layer.PROJECT, "s")]).hooks
    with_args = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "python3", "args": ["in args.py"]}]}]}})
    (project / "in args.py").touch()
    hooks += load_hooks([parse_settings(with_args, Layer.PROJECT, "s")]).hooks
    return protected_paths(str(project), project.parent / "state", hooks, project.parent / "user")


@pytest.mark.parametrize(
    "name",
    [
        ".wave/settings.json", ".wave/settings.local.json", ".claude/settings.json", ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/deep/er", "guard.sh", "hooks/check.py", "sp ace.sh", "in args.py", "../state/settings.json",
        "../state/trust.json", "../user/.bashrc", "../user/.config/fish/config.fish", "a/../.wave/settings.json",
    ],
)  # fmt: skip
def test_these_are_protected_whether_they_exist_or_not(project: Path, name: str):
    assert paths(project).find(str(project / name)) is not None


@pytest.mark.parametrize(
    "name", [".wave/notes.md", ".wave/commands/x.md", "src/a.py", ".git/info/exclude", ".git/hooks", "hello"]
)
def test_only_these_are(project: Path, name: str):
    assert paths(project).find(str(project / name)) is None


def test_a_link_to_one_is_one(project: Path):
    (project / "innocent.txt").symlink_to(".wave/settings.json")
    (project / "linked").symlink_to(".git")
    (project / ".git" / "hooks").mkdir(parents=True)
    assert paths(project).find(str(project / "innocent.txt")) is not None
    assert paths(project).find(str(project / "linked" / "hooks" / "pre-push")) is not None


@pytest.mark.parametrize("mode", [mode for mode in PermissionMode if mode is not PermissionMode.PLAN])
async def test_a_write_to_one_asks_in_every_mode_whatever_rules_and_hooks_allow(project: Path, mode: PermissionMode):
    asked: list[PermissionRequest] = []

    def approve(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Deny("no")

    model = ScriptedModel([Reply(tool_calls=[call("Write", file_path=".wave/settings.json", content="{}")]), "ok"])
    async with await Agent.create(
        workdir=project,
        model_client=model,
        permission_mode=mode.value,
        can_use_tool=approve,
        hooks={"PreToolUse": [lambda _: allow("trust me")]},
        settings={"permissions": {"allow": ["Write"]}},
    ) as agent:
        await agent.send_message("go")
    assert not (project / ".wave" / "settings.json").exists()
    if mode is PermissionMode.DONT_ASK:
        assert asked == []
    else:
        assert "protected path" in asked[0].reason


async def test_what_is_not_protected_is_written_as_before(project: Path):
    model = ScriptedModel([Reply(tool_calls=[call("Write", file_path=".wave/notes.md", content="hi")]), "ok"])
    async with await Agent.create(workdir=project, model_client=model, permission_mode="acceptEdits") as agent:
        await agent.send_message("go")
    assert (project / ".wave" / "notes.md").read_text() == "hi"
