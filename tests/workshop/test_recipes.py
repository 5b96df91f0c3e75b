"""The recipes: each script, in each of its languages, passes the cases that it ships with, and does what it says."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases import check, play
from tests.rows import rows
from wave_agent.hooks.events import EVENTS, HookEvent, OnFailure
from wave_agent.hooks.verdicts import Outcome
from wave_agent.recipes import LANGUAGES, Recipe, load_recipe, recipe_names, settings_group
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks

RECIPES = [load_recipe(name) for name in recipe_names()]
SCRIPTS = [(recipe, language) for recipe in RECIPES for language in recipe.scripts]
CASES = [(recipe, language, case) for recipe, language in SCRIPTS for case in recipe.cases["cases"]]
PROGRAMS = {"bash": "jq", "python": "python3", "node": "node"}


class Kitchen:
    """A project in which recipes are tried."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        (self.project / ".wave" / "hooks").mkdir(parents=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}

    def groups(self, recipe: Recipe, language: str) -> dict[str, Any]:
        if shutil.which(PROGRAMS[language]) is None:
            pytest.skip(f"{PROGRAMS[language]} is not installed")
        script = self.project / ".wave" / "hooks" / f"hook.{LANGUAGES[language]}"
        script.write_text(recipe.scripts[language])
        script.chmod(0o755)
        command = str(script.relative_to(self.project))
        return {recipe.event: [settings_group(recipe.entry, command)]}

    async def play(self, recipe: Recipe, language: str, **case: Any) -> Outcome:
        groups = self.groups(recipe, language)
        return await play({"event": recipe.event, **case}, groups, self.project, self.environment)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=self.project, capture_output=True, text=True, check=True
        ).stdout.strip()


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


def languages_of(name: str) -> list[Any]:
    recipe = load_recipe(name)
    return [pytest.param(recipe, language, id=language) for language in recipe.scripts]


@pytest.mark.parametrize(
    ("recipe", "language", "case"),
    [
        pytest.param(recipe, language, case, id=f"{recipe.name}.{LANGUAGES[language]}: {case['name']}")
        for recipe, language, case in CASES
    ],
)
async def test_every_script_passes_the_cases_of_its_recipe(
    kitchen: Kitchen, recipe: Recipe, language: str, case: dict[str, Any]
) -> None:
    groups = kitchen.groups(recipe, language)
    check(case, await play(case, groups, kitchen.project, kitchen.environment))


def test_there_are_recipes_for_what_people_use_hooks_for() -> None:
    assert len(RECIPES) >= 15
    assert {language for recipe in RECIPES for language in recipe.scripts} == set(LANGUAGES)


@rows("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_is_complete(recipe: Recipe) -> None:
    assert recipe.title
    assert recipe.summary.endswith(".")
    config = load_hooks([hooks_in_code({recipe.event: [settings_group(recipe.entry, "./x")]})])
    assert config.issues == ()
    names = [case["name"] for case in recipe.cases["cases"]]
    assert len(set(names)) == len(names)
    expected = {json.dumps(case["expect"]) for case in recipe.cases["cases"]}
    blocks = any("block" in one for one in expected)
    if EVENTS[HookEvent(recipe.event)].function_on_failure is OnFailure.BLOCK and blocks:
        assert config.hooks[0].on_failure is OnFailure.BLOCK, "a guard that fails must not let things through"


@rows(
    ("recipe", "language"),
    [pytest.param(*one, id=f"{one[0].name}.{LANGUAGES[one[1]]}") for one in SCRIPTS],
)
def test_a_script_is_short_says_what_it_is_for_and_names_its_interpreter(recipe: Recipe, language: str) -> None:
    lines = recipe.scripts[language].splitlines()
    # Isolated: Bash from BASH_ENV and functions of the environment, Python from modules that lie next to the script.
    interpreter = {"bash": "-S bash -p", "python": "-S python3 -I", "node": "node"}[language]
    assert lines[0] == f"#!/usr/bin/env {interpreter}"
    assert lines[1].startswith(("# ", '"""', "// "))
    assert 10 <= len(lines) <= 66
    assert all(len(line) <= 130 for line in lines)


GUARDS = [one for one in SCRIPTS if any("block" in json.dumps(case["expect"]) for case in one[0].cases["cases"])]


@pytest.mark.parametrize(
    ("recipe", "language"), [pytest.param(*one, id=f"{one[0].name}.{LANGUAGES[one[1]]}") for one in GUARDS]
)
@pytest.mark.parametrize("stdin", ["", "{", "[]", "null", '{"tool_input": null}'])
def test_a_guard_that_cannot_read_the_event_lets_nothing_through(
    kitchen: Kitchen, recipe: Recipe, language: str, stdin: str
) -> None:
    kitchen.groups(recipe, language)
    script = kitchen.project / ".wave" / "hooks" / f"hook.{LANGUAGES[language]}"
    ran = subprocess.run([script], input=stdin, capture_output=True, text=True, cwd=kitchen.project, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.strip()


@pytest.mark.parametrize(
    "recipe", [recipe for recipe, language in GUARDS if language == "bash"], ids=lambda recipe: recipe.name
)
def test_without_jq_a_guard_blocks_and_says_what_it_needs(kitchen: Kitchen, recipe: Recipe, tmp_path: Path) -> None:
    kitchen.groups(recipe, "bash")
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("bash", "cat", "env"):
        (bare / name).symlink_to(str(shutil.which(name)))
    ran = subprocess.run(
        [kitchen.project / ".wave/hooks/hook.sh"],
        input='{"tool_input": {"command": "ls"}}',
        env={"PATH": str(bare)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "needs jq" in ran.stderr) == (2, True)


# ------------------------------------------------------------------------------------- what a case without files cannot


@pytest.mark.parametrize(("recipe", "language"), languages_of("session-context"))
async def test_a_session_is_told_branch_changes_commits_and_notes(
    kitchen: Kitchen, recipe: Recipe, language: str
) -> None:
    kitchen.git("init", "-q", "-b", "topic")
    (kitchen.project / ".wave" / "context.md").write_text("We indent by four.")
    kitchen.git("add", ".")
    kitchen.git("commit", "-q", "-m", "Begin the work")
    (kitchen.project / "new file.txt").write_text("")
    (said,) = (await kitchen.play(recipe, language, payload={"source": "startup"})).contexts
    for part in ("The branch is topic.", "new file.txt", "Begin the work", "We indent by four."):
        assert part in said.text


@pytest.mark.parametrize(("recipe", "language"), languages_of("prompt-context"))
async def test_a_note_comes_with_a_prompt_that_has_its_word(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    notes = kitchen.project / ".wave" / "notes"
    notes.mkdir()
    (notes / "deploy.md").write_text("Never on a Friday.")
    (notes / "database.md").write_text("Ask Kim.")
    (said,) = (await kitchen.play(recipe, language, prompt="How do I Deploy this?")).contexts
    assert ("Never on a Friday." in said.text, "Ask Kim." in said.text) == (True, False)


@pytest.mark.parametrize(("recipe", "language"), languages_of("check-after-edit"))
@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a b.py", "x =\n", "block"),
        ("a.py", "x = 1\n", "none"),
        ("a.sh", "if true; then\n", "block"),
        ("a.sh", "#!/bin/bash\necho hello\n", "none"),
        ("a.json", "{,}", "block"),
        ("a.json", "{}\n", "none"),
    ],
)
async def test_the_model_is_told_what_is_wrong_with_the_file(
    kitchen: Kitchen, recipe: Recipe, language: str, name: str, content: str, word: str
) -> None:
    file = kitchen.project / name
    file.write_text(content)
    outcome = await kitchen.play(recipe, language, tool="Write", input={"file_path": str(file)})
    check({"expect": {"outcome": word, "reason": str(file) if word == "block" else ""}}, outcome)


@pytest.mark.parametrize(("recipe", "language"), languages_of("format-after-edit"))
async def test_a_file_is_formatted_and_the_model_told(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    programs = kitchen.project.parent / "programs"
    programs.mkdir()
    (programs / "gofmt").write_text('#!/bin/sh\necho formatted > "$2"\n')
    (programs / "gofmt").chmod(0o755)
    kitchen.environment["PATH"] = f"{programs}:{kitchen.environment['PATH']}"
    file = kitchen.project / "a b.go"
    file.write_text("x")
    outcome = await kitchen.play(recipe, language, tool="Write", input={"file_path": str(file)})
    check({"expect": {"outcome": "context", "context": "read it again"}}, outcome)
    assert file.read_text() == "formatted\n"
    again = await kitchen.play(recipe, language, tool="Write", input={"file_path": str(file)})
    check({"expect": "none"}, again)


@pytest.mark.parametrize(("recipe", "language"), languages_of("audit-log"))
async def test_each_call_is_a_line_without_contents(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    await kitchen.play(recipe, language, tool="Bash", input={"command": "ls -l"})
    await kitchen.play(recipe, language, tool="Write", input={"file_path": "/x/a.py", "content": "secret"})
    log = kitchen.project / ".wave" / "audit.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["tool"], line["on"], line["success"], line["session"]) for line in lines] == [
        ("Bash", "ls -l", True, "s-1"),
        ("Write", "/x/a.py", True, "s-1"),
    ]
    assert "secret" not in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("recipe", "language"), languages_of("notify"))
async def test_a_notification_has_the_first_line_as_one_argument(
    kitchen: Kitchen, recipe: Recipe, language: str
) -> None:
    programs = kitchen.project.parent / "programs"
    programs.mkdir()
    shown = kitchen.project.parent / "shown"
    (programs / "notify-send").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{shown}'\n")
    (programs / "notify-send").chmod(0o755)
    kitchen.environment["PATH"] = f"{programs}:{kitchen.environment['PATH']}"
    await kitchen.play(recipe, language, payload={"last_assistant_message": 'It\'s "done" $(x)\nmore'})
    assert shown.read_text().splitlines() == ["--", "project", 'It\'s "done" $(x)']


@pytest.mark.parametrize(("recipe", "language"), languages_of("save-before-compaction"))
async def test_the_transcript_is_copied_for_the_user_alone(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    (kitchen.project / "transcript.jsonl").write_text("{}\n")
    await kitchen.play(recipe, language, payload={"trigger": "auto"})
    (copy,) = (kitchen.project / ".wave" / "transcripts").iterdir()
    assert (copy.read_text(), copy.stat().st_mode & 0o077) == ("{}\n", 0)


async def test_a_checkpoint_keeps_all_files_and_touches_neither_branch_nor_index(kitchen: Kitchen) -> None:
    recipe = load_recipe("checkpoint")
    kitchen.git("init", "-q", "-b", "main")
    (kitchen.project / "a").write_text("1")
    kitchen.git("add", "a")
    kitchen.git("commit", "-q", "-m", "a")
    (kitchen.project / "a").write_text("2")
    (kitchen.project / "b").write_text("new")
    before = (kitchen.git("rev-parse", "HEAD"), kitchen.git("status", "--short", "--", "a", "b"))
    await kitchen.play(recipe, "bash", payload={})
    assert (kitchen.git("rev-parse", "HEAD"), kitchen.git("status", "--short", "--", "a", "b")) == before
    assert kitchen.git("show", "refs/wave/checkpoints:a") == "2"
    assert kitchen.git("show", "refs/wave/checkpoints:b") == "new"
    kept = kitchen.git("rev-parse", "refs/wave/checkpoints")
    await kitchen.play(recipe, "bash", payload={})
    assert kitchen.git("rev-parse", "refs/wave/checkpoints") == kept, "nothing has changed, so there is nothing to keep"
    (kitchen.project / "a").write_text("3")
    await kitchen.play(recipe, "bash", payload={})
    assert kitchen.git("rev-parse", "refs/wave/checkpoints~1") == kept


@pytest.mark.parametrize(("recipe", "language"), languages_of("tests-on-stop"))
async def test_failing_tests_keep_the_agent_working_once(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    own = kitchen.project / ".wave" / "test-command"
    own.write_text("echo three of four; exit 1\n")
    outcome = await kitchen.play(recipe, language, payload={"stop_hook_active": False})
    check({"expect": {"outcome": "block", "reason": "three of four"}}, outcome)
    again = await kitchen.play(recipe, language, payload={"stop_hook_active": True, "stop_block_count": 1})
    check({"expect": "none"}, again)
    own.write_text("true\n")
    check({"expect": "none"}, await kitchen.play(recipe, language, payload={}))


@pytest.mark.parametrize(("recipe", "language"), languages_of("until-done"))
async def test_open_boxes_keep_the_agent_working_up_to_a_limit(kitchen: Kitchen, recipe: Recipe, language: str) -> None:
    todo = kitchen.project / ".wave" / "todo.md"
    todo.write_text("- [x] one\n- [ ] two\n- [ ] three\n")
    first = await kitchen.play(recipe, language, payload={})
    check({"expect": {"outcome": "block", "reason": "2 left in .wave/todo.md. Next: two"}}, first)
    fifth = await kitchen.play(recipe, language, payload={"stop_hook_active": True, "stop_block_count": 4})
    check({"expect": "block"}, fifth)
    sixth = await kitchen.play(recipe, language, payload={"stop_hook_active": True, "stop_block_count": 5})
    check({"expect": "none"}, sixth)
    todo.write_text("- [x] one\n")
    check({"expect": "none"}, await kitchen.play(recipe, language, payload={}))


def test_a_name_that_is_no_recipe_is_none() -> None:
    with pytest.raises(KeyError):
        load_recipe("../recipes")
