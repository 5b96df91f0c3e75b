"""`wave hooks lint`, `recipes` and `new`, as real processes."""

import json
import os
import pty
import resource
import subprocess
from pathlib import Path

import pytest

from tests.cases import check, play
from tests.cli.project import WAVE, Project
from wave_agent.hooks.events import EVENTS
from wave_agent.recipes import LANGUAGES, load_recipe, recipe_names


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# ----------------------------------------------------------------------------------------------------------------- lint


def broken(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"hooks": [{"command": "$CLAUDE_PROJECT_DIR/x.sh", "timeout": 3000}]}]}})
    (project.directory / "x.sh").write_text("#!/bin/sh\ncat >/dev/null\n")


def test_lint_tells_place_code_reason_and_fix(project: Project) -> None:
    broken(project)
    done = project.wave("hooks", "lint")
    assert done.returncode == 1
    assert ".wave/settings.json:1: W101 warning: $CLAUDE_PROJECT_DIR is not quoted" in done.stdout
    assert "W103" in done.stdout
    assert "W105" in done.stdout
    assert "3 fixable with --fix" in done.stdout


def test_lint_repairs_shows_a_diff_and_is_content_the_second_time(project: Project) -> None:
    broken(project)
    done = project.wave("hooks", "lint", "--fix")
    assert done.returncode == 0
    assert "\n+" in done.stdout
    assert "chmod +x" in done.stdout
    assert "2 files checked: 1 advice." in done.stdout, "not trusted yet"
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    again = project.wave("hooks", "lint")
    assert (again.returncode, again.stdout) == (0, "2 files checked: no findings.\n")


def test_lint_for_programs(project: Project) -> None:
    broken(project)
    done = project.wave("hooks", "lint", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [one["code"] for one in report["findings"]] == ["W101", "W103", "W105", "W117"]
    assert set(report["findings"][0]) == {"code", "level", "file", "line", "reason", "fix", "fixable"}
    fixed = json.loads(project.wave("hooks", "lint", "--json", "--fix").stdout)
    assert ([one["code"] for one in fixed["findings"]], bool(fixed["fixed"])) == (["W117"], True)


def test_advice_alone_fails_no_check(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"hooks": [{"command": "echo no >&2; exit 2"}]}]}})
    done = project.wave("hooks", "lint")
    assert (done.returncode, "W112 advice" in done.stdout) == (0, True)


def test_without_hooks_lint_says_so(project: Project) -> None:
    done = project.wave("hooks", "lint")
    assert (done.returncode, "have no hooks" in done.stdout) == (0, True)
    assert json.loads(project.wave("hooks", "lint", "--json").stdout)["findings"] == []


def test_a_path_that_is_not_there_is_a_usage_error(project: Project) -> None:
    assert project.wave("hooks", "lint", "gone.json").returncode == 2


# -------------------------------------------------------------------------------------------------------------- recipes


def test_recipes_are_listed_and_shown(project: Project) -> None:
    listed = project.wave("hooks", "recipes")
    assert listed.returncode == 0
    for name in recipe_names():
        assert f"\n{name} " in f"\n{listed.stdout}"
    shown = project.wave("hooks", "recipes", "git-guard", "--lang", "python").stdout
    assert load_recipe("git-guard").scripts["python"] in shown
    assert '"onFailure": "block"' in shown


def test_recipes_for_programs(project: Project) -> None:
    listed = json.loads(project.wave("hooks", "recipes", "--json").stdout)["recipes"]
    assert [one["name"] for one in listed] == recipe_names()
    one = json.loads(project.wave("hooks", "recipes", "until-done", "--json").stdout)
    assert one["scripts"] == load_recipe("until-done").scripts


@pytest.mark.parametrize("arguments", [("git-gaurd",), ("checkpoint", "--lang", "node")])
def test_a_recipe_that_is_not_there_is_a_usage_error(project: Project, arguments: tuple[str, ...]) -> None:
    done = project.wave("hooks", "recipes", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "git-guard" in done.stderr or "bash" in done.stderr


# ------------------------------------------------------------------------------------------------------------------ new


NEW = [
    # Each event in one language, and each language for several events; the other pairs are for `make test-all`.
    pytest.param(event.value, language, marks=[] if (at + other) % len(LANGUAGES) == 0 else pytest.mark.thorough)
    for at, event in enumerate(EVENTS)
    for other, language in enumerate(LANGUAGES)
]


@pytest.mark.parametrize(("event", "language"), NEW)
async def test_a_new_hook_passes_its_cases_and_is_clean(project: Project, event: str, language: str) -> None:
    done = project.wave("hooks", "new", "mine", "--event", event, "--lang", language, "--yes")
    assert done.returncode == 0, done.stderr
    assert "wave hooks test .wave/hooks/mine.cases.json" in done.stdout
    assert "wave hooks trust" in done.stdout
    settings = json.loads((project.directory / ".wave/settings.json").read_text())
    cases = json.loads((project.directory / ".wave/hooks/mine.cases.json").read_text())["cases"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(project.directory)}
    for case in cases:
        check(case, await play(case, settings["hooks"], project.directory, environment))
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    linted = project.wave("hooks", "lint")
    assert (linted.returncode, linted.stdout) == (0, "2 files checked: no findings.\n")


async def test_a_recipe_becomes_a_hook_of_the_project(project: Project) -> None:
    done = project.wave("hooks", "new", "secrets", "--recipe", "protect-secrets", "--lang", "python", "--yes")
    assert done.returncode == 0
    script = project.directory / ".wave/hooks/secrets.py"
    assert script.read_text() == load_recipe("protect-secrets").scripts["python"]
    assert script.stat().st_mode & 0o100
    cases = json.loads((project.directory / ".wave/hooks/secrets.cases.json").read_text())
    assert [case.pop("hook") for case in cases["cases"]] == ["secrets"] * len(cases["cases"])
    assert cases == load_recipe("protect-secrets").cases
    assert project.wave("hooks", "trust", "--yes").returncode == 0


def test_settings_that_are_there_keep_their_form(project: Project) -> None:
    file = project.directory / ".wave" / "settings.json"
    file.parent.mkdir()
    before = '{\n   "//": "kept",\n   "hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}\n}\n'
    file.write_text(before)
    assert project.wave("hooks", "new", "a", "--event", "Stop", "--yes").returncode == 0
    added = ', {"hooks": [{"type": "command", "command": ".wave/hooks/a.sh", "name": "a"}]}'
    assert file.read_text() == before.replace("}]}]}", "}]}" + added + "]}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--recipe", "git-guard"), "it blocks everything until jq is installed. Install it, or use --lang python."),
        (("--recipe", "audit-log"), "it does nothing until jq is installed. Install it, or use --lang python."),
        (("--recipe", "git-guard", "--lang", "python"), ""),
        (("--event", "PreToolUse"), "it blocks everything until jq is installed. Install it, or use --lang python."),
        (("--event", "SessionStart"), ""),
    ],
)
def test_a_script_that_needs_jq_says_so_where_there_is_none(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    done = project.wave("hooks", "new", "a", *arguments, "--dry-run", PATH="/nowhere")
    note = "The script needs jq, which is not on PATH: "
    assert (done.returncode, note in done.stdout, note + said in done.stdout) == (0, bool(said), bool(said))
    jq = project.directory / "jq"
    jq.write_text("#!/bin/sh\n")
    jq.chmod(0o755)
    assert note not in project.wave("hooks", "new", "a", *arguments, "--dry-run", PATH=str(jq.parent)).stdout


def test_nothing_is_overwritten(project: Project) -> None:
    assert project.wave("hooks", "new", "a", "--event", "Stop", "--yes").returncode == 0
    script = project.directory / ".wave/hooks/a.sh"
    script.write_text("mine")
    again = project.wave("hooks", "new", "a", "--event", "Stop", "--yes")
    assert (again.returncode, "already exists" in again.stderr, script.read_text()) == (2, True, "mine")
    settings = json.loads((project.directory / ".wave/settings.json").read_text())
    assert len(settings["hooks"]["Stop"]) == 1


@pytest.mark.parametrize(
    "command",
    [("hooks", "new", "guard", "--recipe", "shell-guard", "--yes"), ("hooks", "lint", "--fix")],
    ids=["new", "lint"],
)
def test_settings_survive_a_full_disk(project: Project, command: tuple[str, ...]) -> None:
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "timeout": 5000}]}
    project.settings({"hooks": {"PreToolUse": [group]}, "env": {"LONG": "x" * 100_000}})
    file = project.directory / ".wave" / "settings.json"
    before = file.read_bytes()

    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    process = project.command(*command, server=None, preexec_fn=fill_the_disk)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"{file} cannot be written: File too large" in err
    assert file.read_bytes() == before
    assert not list(file.parent.glob("hooks/*"))
    assert [one.name for one in file.parent.iterdir() if one.is_file()] == ["settings.json"]


def test_a_hook_that_cannot_be_written_can_be_made_later(project: Project) -> None:
    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    new = ("hooks", "new", "guard", "--recipe", "shell-guard", "--yes")
    process = project.command(*new, server=None, preexec_fn=fill_the_disk)
    _, err = process.communicate(timeout=60)
    assert err == "wave: .wave/hooks/guard.sh cannot be written: File too large\n"
    assert project.wave(*new).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "--event", "Stop"), "rerun with --yes"),
        (("a",), "--event or --recipe"),
        (("a", "--event", "PreTolUse"), 'did you mean "PreToolUse"'),
        (("../a", "--event", "Stop"), "NAME may contain"),
        (("a", "--recipe", "git-gaurd"), 'did you mean "git-guard"'),
        (("a", "--recipe", "git-guard", "--event", "Stop"), "is for PreToolUse"),
        (("a", "--recipe", "git-guard", "--lang", "node"), "bash, python"),
        (("a", "--event", "Stop", "--matcher", "Bash"), "no value to compare"),
        (("a", "--event", "PreToolUse", "--matcher", "Bash(git*)"), "contains only tool names"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_and_writes_nothing(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    done = project.wave("hooks", "new", *arguments)
    assert (done.returncode, list(project.directory.iterdir())) == (2, [])
    assert said in done.stderr


@pytest.mark.parametrize(
    ("matcher", "fields"),
    [
        ("Write|Edit", {"file_path", "content"}),
        ("Edit", {"file_path", "old_string", "new_string"}),
        ("Bash", {"command"}),
    ],
)
def test_the_cases_of_a_new_hook_call_its_tool_as_a_model_would(
    project: Project, matcher: str, fields: set[str]
) -> None:
    project.wave("hooks", "new", "mine", "--event", "PreToolUse", "--matcher", matcher, "--lang", "python", "--yes")
    file = ".wave/hooks/mine.cases.json"
    cases = json.loads((project.directory / file).read_text())["cases"]
    assert [set(case["payload"]["tool_input"]) for case in cases] == [fields, fields]
    done = project.wave("hooks", "test", file, "--trust")
    assert done.returncode == 0, done.stdout


def test_a_dry_run_shows_and_writes_nothing(project: Project) -> None:
    done = project.wave("hooks", "new", "a", "--event", "PreToolUse", "--matcher", "Write|Edit", "--dry-run")
    assert (done.returncode, list(project.directory.iterdir())) == (0, [])
    assert "+++ .wave/hooks/a.sh" in done.stdout
    assert '"matcher": "Write|Edit"' in done.stdout


@pytest.mark.parametrize("text", ['{"hooks": {,}}', '{"hooks": {"Stop": {}}}'])
def test_settings_that_nothing_can_be_added_to_are_told(project: Project, text: str) -> None:
    file = project.directory / ".wave" / "settings.json"
    file.parent.mkdir()
    file.write_text(text)
    done = project.wave("hooks", "new", "a", "--event", "Stop", "--yes")
    assert (done.returncode, ".wave/settings.json" in done.stderr) == (1, True)
    assert (file.read_text(), list(file.parent.iterdir())) == (text, [file])


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1)])
def test_in_a_terminal_the_user_decides(project: Project, typed: str, status: int) -> None:
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [WAVE, "hooks", "new", "a", "--event", "Stop"],
        cwd=project.directory,
        env=project.environment(None),
        stdin=inner,
        stdout=subprocess.DEVNULL,
    )
    os.close(inner)
    os.write(outer, typed.encode())
    assert process.wait(timeout=60) == status
    os.close(outer)
    assert (project.directory / ".wave/hooks/a.sh").exists() is (status == 0)
