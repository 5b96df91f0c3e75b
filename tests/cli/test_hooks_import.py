"""`wave hooks import`, and the notice that leads there, as real processes."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving

GUARD = {"matcher": "Bash", "hooks": [{"type": "command", "command": "bash .claude/guard.sh", "timeout": 5}]}
COPIED = {**GUARD, "hooks": [{**GUARD["hooks"][0], "dialect": "claude"}]}
"""The same in our own settings: it goes on to mean what it meant."""
THEIRS: dict[str, Any] = {
    "model": "another",
    "env": {"A": "1"},
    "permissions": {"deny": ["Read(.env)"], "allow": ["Bash(ls:*)"]},
    "hooks": {"PreToolUse": [GUARD]},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def write(project: Project, name: str, content: Any) -> Path:
    file = project.directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return file


def own(project: Project, name: str = "settings.json") -> Any:
    return json.loads((project.directory / ".wave" / name).read_text())


def test_a_dry_run_shows_the_change_and_writes_nothing(project: Project) -> None:
    write(project, ".claude/settings.json", THEIRS)
    done = project.wave("hooks", "import", "--dry-run")
    assert done.returncode == 0
    assert "add       PreToolUse: bash .claude/guard.sh" in done.stdout
    assert "+++ b/.wave/settings.json" in done.stdout
    for told in (
        "settings.json: model: a setting of another agent",
        "permissions.allow: it loosens",
        "settings.json: env: ",
    ):
        assert told in done.stdout
    assert not (project.directory / ".wave").exists()


def test_it_copies_hooks_and_restrictions_once(project: Project) -> None:
    write(project, ".claude/settings.json", THEIRS)
    write(project, ".codex/hooks.json", {"Stop": [{"hooks": [{"command": "true"}]}]})
    assert project.wave("hooks", "import", "--yes").returncode == 0
    expected = {
        "permissions": {"deny": ["Read(.env)"]},
        "hooks": {"PreToolUse": [COPIED], "Stop": [{"hooks": [{"command": "true", "dialect": "claude"}]}]},
    }
    assert own(project) == expected
    again = project.wave("hooks", "import", "--yes")
    assert (again.returncode, "already present" in again.stdout, "There is nothing to copy." in again.stdout) == (
        *(0, True, True),
    )
    assert own(project) == expected


def test_a_hook_that_was_switched_off_is_not_brought_back(project: Project) -> None:
    write(project, ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD]}})
    off = {**GUARD, "hooks": [{**GUARD["hooks"][0], "enabled": False}]}
    project.settings({"hooks": {"PreToolUse": [off]}})
    assert "There is nothing to copy." in project.wave("hooks", "import", "--yes").stdout


def test_what_is_there_stays_character_for_character(project: Project) -> None:
    mine = '{\n   "model": "x",   "hooks": {"Stop": [ {"command":"make test"} ]},\n   "maxStopBlocks": 3\n}\n'
    write(project, ".wave/settings.json", mine)
    write(project, ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD]}})
    assert project.wave("hooks", "import", "--yes").returncode == 0
    text = (project.directory / ".wave" / "settings.json").read_text()
    kept = ('{\n   "model": "x",   "hooks": {"Stop": [ {"command":"make test"} ]', '   "maxStopBlocks": 3\n}\n')
    assert (text.startswith(kept[0]), text.endswith(kept[1])) == (True, True)
    assert own(project)["hooks"]["PreToolUse"] == [COPIED]


def test_a_copy_is_of_the_dialect_that_it_was_written_in(project: Project) -> None:
    script = write(project, "a.sh", '#!/bin/sh\necho "$#" >> log; echo \'{"decision": "approve"}\'; exit 2\n')
    script.chmod(0o755)
    hooks = {"Stop": ["./a.sh"], "PreToolUse": [{"hooks": [{"command": "./a.sh"}]}]}
    write(project, ".claude/settings.json", {"hooks": hooks})
    assert project.wave("hooks", "import", "--yes").returncode == 0
    copy = {"command": "./a.sh", "dialect": "claude"}
    assert own(project)["hooks"] == {"Stop": [copy], "PreToolUse": [{"hooks": [copy]}]}
    flags = ("--tool", "Bash", "--trust", "--expect", "block")  # exit 2 rules, as at home
    assert project.wave("hooks", "test", "PreToolUse", *flags).returncode == 0
    assert (project.directory / "log").read_text() == "0\n"
    assert project.wave("hooks", "test", "PreToolUse", *flags, "--dialect", "wave").returncode == 1
    assert (project.directory / "log").read_text() == "0\n2\n"


def test_broken_entries_and_events_of_others_are_left_out_with_the_reason(project: Project) -> None:
    hooks = {
        "PreToolUse": [
            {"matcher": "(", "hooks": [{"command": "x"}]},
            {"hooks": [{"type": "prompt", "prompt": "Be kind."}, {"command": "y"}]},
        ],
        "WorktreeCreate": [{"hooks": [{"command": "z"}]}],
    }
    write(project, ".claude/settings.json", {"hooks": hooks})
    done = project.wave("hooks", "import", "--yes")
    assert done.stdout.count("skipped") == 2
    assert "hooks.WorktreeCreate: never happens here" in done.stdout
    copies = [{"type": "prompt", "prompt": "Be kind.", "dialect": "claude"}, {"command": "y", "dialect": "claude"}]
    assert own(project)["hooks"] == {"PreToolUse": [{"hooks": copies}]}


def test_from_a_plugin_its_directory_is_written_into_the_commands(project: Project, tmp_path: Path) -> None:
    hooks = {"Stop": [{"hooks": [{"command": "${CLAUDE_PLUGIN_ROOT}/a.sh x"}]}]}
    write(project, "../plugin/hooks/hooks.json", {"hooks": hooks})
    done = project.wave("hooks", "import", "--yes", "--from", str(tmp_path / "plugin"))
    assert "CLAUDE_PLUGIN_ROOT and CLAUDE_PLUGIN_DATA are no longer set for it" in done.stdout
    assert own(project)["hooks"]["Stop"][0]["hooks"][0]["command"] == f"{tmp_path}/plugin/a.sh x"


def test_a_local_file_goes_into_the_local_settings(project: Project) -> None:
    write(project, ".claude/settings.json", {"hooks": {}})
    write(project, ".claude/settings.local.json", {"hooks": {"PreToolUse": [GUARD]}})
    assert "it is personal" in project.wave("hooks", "import", "--dry-run").stdout
    assert project.wave("hooks", "import", "--yes", "--from", ".claude/settings.local.json").returncode == 0
    assert own(project, "settings.local.json") == {"hooks": {"PreToolUse": [COPIED]}}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [((), 2), (("--yes", "--dry-run"), 2), (("--from", "gone"), 2), (("--yes", "--from", ".wave"), 1), (("x",), 2)],
)
def test_what_cannot_be_done_has_its_exit_status(project: Project, arguments: tuple[str, ...], status: int) -> None:
    write(project, ".claude/settings.json", THEIRS)
    (project.directory / ".wave").mkdir()
    assert project.wave("hooks", "import", *arguments).returncode == status
    assert not (project.directory / ".wave" / "settings.json").exists()


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        ("{,", "not valid JSON"),
        ('{"hooks": []}', "hooks must be an object"),
        ('{"hooks": {"PreToolUse": 5}}', "a list"),
    ],
)
def test_settings_that_cannot_take_it_are_told_and_left_alone(project: Project, mine: str, told: str) -> None:
    write(project, ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD]}})
    file = write(project, ".wave/settings.json", mine)
    done = project.wave("hooks", "import", "--yes")
    assert (done.returncode, told in done.stderr, file.read_text()) == (1, True, mine)


def test_a_place_that_cannot_be_written_is_told(project: Project) -> None:
    write(project, ".claude/settings.json", {**THEIRS, "permissions": "odd"})
    write(project, ".wave", "a file")
    done = project.wave("hooks", "import", "--yes")
    assert (done.returncode, "a part of its path is a file" in done.stderr, "Traceback" in done.stderr) == (
        *(1, True, False),
    )


def test_files_of_other_programs_in_the_project_are_not_taken_for_hooks(project: Project) -> None:
    write(project, "settings.json", THEIRS)
    write(project, "hooks/hooks.json", {"Stop": [{"command": "true"}]})
    done = project.wave("hooks", "import", "--dry-run")
    assert (done.returncode, "has no hooks for other agents" in done.stdout) == (1, True)


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1)])
def test_in_a_terminal_the_user_decides(project: Project, typed: str, status: int) -> None:
    write(project, ".claude/settings.json", THEIRS)
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [WAVE, "hooks", "import"],
        cwd=project.directory,
        env=project.environment(None),
        stdin=inner,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.close(inner)
    os.write(outer, typed.encode())
    process.communicate(timeout=60)
    os.close(outer)
    assert process.returncode == status
    assert (project.directory / ".wave" / "settings.json").exists() == (status == 0)


def test_what_was_copied_runs_once_it_is_trusted(project: Project) -> None:
    write(project, ".claude/guard.sh", "echo no >&2; exit 2")
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": "bash .claude/guard.sh"}]}]}
    write(project, ".claude/settings.json", {"hooks": hooks})
    project.wave("hooks", "import", "--yes")
    project.wave("hooks", "trust", "--yes")
    with serving("Never.") as server:
        assert project.wave("-p", "hi", server=server).returncode == 3


# ------------------------------------------------------------------------------------------------------- in a session


def test_the_user_is_told_once_of_hooks_that_do_not_run(project: Project) -> None:
    write(project, ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD]}})
    with serving("One.", "Two.") as server:
        first = project.wave("-p", "hi", server=server)
        second = project.wave("-p", "hi", server=server)
    assert (first.stdout, second.stdout, second.stderr) == ("One.\n", "Two.\n", "")
    for told in ("PreToolUse: bash .claude/guard.sh", '{"compat": {"claude": true}}', "wave hooks import"):
        assert told in first.stderr


def test_switched_off_nothing_is_told(project: Project) -> None:
    write(project, ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD]}})
    write(project, "../home/settings.json", {"compat": {"claude": False}})
    with serving("One.") as server:
        assert project.wave("-p", "hi", server=server).stderr == ""


def test_switched_on_they_need_trust_and_then_run(project: Project) -> None:
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": "echo seen > ran"}]}]}
    write(project, ".claude/settings.json", {"hooks": hooks})
    write(project, "../home/settings.json", {"compat": {"claude": True}})
    with serving("One.") as server:
        refused = project.wave("-p", "hi", server=server)
        assert (refused.returncode, "echo seen > ran" in refused.stderr) == (1, True)
        assert "NOT TRUSTED  UserPromptSubmit: echo seen > ran" in project.wave("hooks", "trust", "--yes").stdout
        assert project.wave("-p", "hi", server=server).returncode == 0
    assert (project.directory / "ran").read_text() == "seen\n"


def test_a_plugin_on_the_command_line(project: Project, tmp_path: Path) -> None:
    write(
        project, "../plugin/hooks/hooks.json", {"Stop": [{"hooks": [{"command": 'echo "$CLAUDE_PLUGIN_ROOT" > root'}]}]}
    )
    with serving("One.") as server:
        assert project.wave("-p", "hi", "--plugin-dir", "../plugin", server=server).returncode == 0
    assert (project.directory / "root").read_text() == f"{tmp_path}/plugin\n"
    assert project.wave("-p", "hi", "--plugin-dir", "gone").returncode == 2
