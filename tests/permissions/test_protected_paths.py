"""The agent cannot rewrite its own guards without being asked about."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wave_agent
from wave_agent import Agent, Allow, Deny, PermissionRequest
from wave_agent.hooks import allow
from wave_agent.hooks.definitions import Layer
from wave_agent.permissions.decision import PermissionMode
from wave_agent.permissions.protected_paths import ProtectedPaths, protected_paths
from wave_agent.settings.hook_entries import load_hooks, parse_settings
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
        "../state/trust.json", "../state/mcp.json", "../state/mcp-tokens.json", "../state/mcp-cache/python/a/b.pyc",
        "../user/.bashrc", "../user/.config/fish/config.fish", "a/../.wave/settings.json",
        ".wave/hooks/new.sh", ".claude/hooks/new.sh", "../state/hooks/x.sh", "hooks/beside.py", "../user/.jq",
        "../user/.config/git/attributes", "../user/.local/lib/python3.9/site-packages/usercustomize.py",
        "../user/.local/lib/python3.13/site-packages/a.pth",
        ".wave/commands/x.md", ".claude/skills/new/SKILL.md", ".wave/agents/x.md", "../state/skills/x/SKILL.md",
    ],
)  # fmt: skip
def test_these_are_protected_whether_they_exist_or_not(project: Path, name: str):
    assert paths(project).find(str(project / name)) is not None


@pytest.mark.parametrize(
    "name",
    [".wave/notes.md", "commands/x.md", "src/a.py", ".git/info/exclude", ".git/hooks", "hello", "new.sh"],
)
def test_only_these_are(project: Path, name: str):
    assert paths(project).find(str(project / name)) is None


def with_hooks(project: Path, *commands: str) -> ProtectedPaths:
    hooks = [{"command": command} for command in commands]
    settings = parse_settings(json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}), Layer.PROJECT, "s")
    return protected_paths(
        str(project), project.parent / "state", load_hooks([settings]).hooks, project.parent / "user"
    )


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("tools/guard.sh", "tools/lib.sh", True),
        ("bash tools/guard.sh", "tools/lib.sh", True),
        ("./guard.sh", "lib.sh", False),
        ("pytest tests/test_x.py", "tests/test_y.py", False),
        ("pytest tests/run.sh", "tests/test_y.py", True),
        ("npx eslint src/a.js", "node_modules/.bin/eslint", True),
        ("npx eslint src/a.js", "src/b.js", False),
        ("uv run check", ".venv/bin/check", True),
        ("uv run check", ".venv/lib/x.py", False),
        ("/usr/bin/env", "../../../usr/bin/x", False),
        ("../user/guard.sh", "../user/x", False),
        ("../guards/guard.sh", "../guards/x", True),
    ],
)
def test_a_directory_that_a_hook_is_run_from_is_protected(project: Path, command: str, name: str, *, expected: bool):
    (project / "tests").mkdir()
    (project / "tests" / "run.sh").touch(0o755)
    assert (with_hooks(project, command).find(str(project / name)) is not None) is expected


def test_so_is_that_of_a_python_function(project: Path):
    hook = {"type": "python", "target": "guards/one.py:check"}
    settings = parse_settings(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}), Layer.PROJECT, "s")
    found = protected_paths(str(project), project / "state", load_hooks([settings]).hooks, project / "user")
    assert found.find(str(project / "guards" / "two.py")) is not None


def test_directories_of_the_project_on_path_are_protected_where_there_are_hooks(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{project}/.venv/bin::/usr/bin")
    assert with_hooks(project, "jq .").find(str(project / ".venv/bin/jq")) is not None
    assert with_hooks(project).find(str(project / ".venv/bin/jq")) is None


def test_the_program_itself_is_protected_unless_it_is_what_the_project_is_about(project: Path):
    package = Path(wave_agent.__file__).parent
    assert with_hooks(project).find(str(package / "rules.py")) is not None
    inside = protected_paths(str(package.parent.parent), project / "state", [], project / "user")
    assert inside.find(str(package / "rules.py")) is None


def test_where_it_is_installed_all_that_lies_beside_it_is_protected(project: Path):
    """An installation into the project's own environment is no source that is worked on."""
    site = project / ".venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (site / "wave_agent").symlink_to(Path(wave_agent.__file__).parent)
    script = (
        "import sys; from pathlib import Path\n"
        "from wave_agent.permissions.protected_paths import ProtectedPaths, protected_paths\n"
        "found = protected_paths(sys.argv[1], Path('/state'), [], Path('/user'))\n"
        "print(found.find(sys.argv[2]) is not None, found.find(sys.argv[1] + '/a.py') is not None)"
    )
    command = [sys.executable, "-c", script, str(project), str(site / "a.pth")]
    done = subprocess.run(command, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


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
