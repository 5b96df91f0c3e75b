"""Where the names in a hook lead, and that another place makes another hook of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.pinned import is_pinned, search_path
from wave_agent.settings.hook_entries import SettingsSource, parse_settings
from wave_agent.settings.trust import (
    ProjectTrust,
    Record,
    TrustCandidate,
    TrustStore,
    candidates,
    file_digest,
    record_of,
)


class Workshop:
    """A project with one guard, and directories to find programs in: one of the system's, one of the project's."""

    def __init__(self, root: Path) -> None:
        self.project, self.system = root / "project", root / "bin"
        self.venv = self.project / ".venv/bin"
        for directory in (self.project / ".wave/hooks", self.system, self.venv):
            directory.mkdir(parents=True)
        for name in ("jq", "bash", "python3", "git"):
            self.program(self.system / name)
        self.command = ".wave/hooks/guard.sh"
        self.script(".wave/hooks/guard.sh", "#!/usr/bin/env bash\n# awk is not used\njq -r .x || exit 2\n")

    def program(self, file: Path, text: str = "#!/bin/sh\n") -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        self.settle()
        return file

    def script(self, name: str, text: str) -> None:
        self.program(self.project / name, text)

    def settle(self) -> None:
        """As if all of it had been there for a while."""
        for file in self.project.parent.rglob("*"):
            os.utime(file, (1e9, 1e9), follow_symlinks=False)

    @property
    def path(self) -> str:
        return f"{self.venv}:{self.system}"

    @property
    def sources(self) -> list[SettingsSource]:
        hook = {"type": "command", "command": self.command}
        text = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
        return [parse_settings(text, Layer.PROJECT, str(self.project / ".wave/settings.json"))]

    def look(self, path: str | None = None) -> TrustCandidate:
        (found,) = candidates(self.sources, str(self.project), file_digest, path=path or self.path)
        return found

    def record(self, before: Record | None = None, path: str | None = None) -> Record:
        return record_of(self.sources, str(self.project), [self.look(path)], before)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_the_programs_of_a_command_and_its_scripts_are_noted_with_their_places(workshop: Workshop) -> None:
    assert workshop.look().programs.found == {
        "bash": str(workshop.system / "bash"),
        "jq": str(workshop.system / "jq"),
    }
    assert workshop.record().why_not(workshop.look()) is None


def test_the_interpreter_behind_options_of_env_is_one(workshop: Workshop) -> None:
    workshop.script(".wave/hooks/guard.sh", "#!/usr/bin/env -S python3 -I\nimport sys\n")
    assert workshop.look().programs.found == {"python3": str(workshop.system / "python3")}


@pytest.mark.parametrize("where", [".venv/bin/jq", "node_modules/.bin/jq"])
def test_a_program_that_comes_before_the_trusted_one_is_a_change(workshop: Workshop, where: str) -> None:
    path = f"{workshop.project / os.path.dirname(where)}:{workshop.system}"
    trusted = workshop.record(path=path)
    workshop.program(workshop.project / where, "#!/bin/sh\nexit 0\n")
    why = trusted.why_not(workshop.look(path))
    assert why is not None
    assert f"jq is now {where} " in why
    assert f"(trusted: {workshop.system / 'jq'})" in why


def test_a_program_that_was_missing_and_appears_is_a_change(workshop: Workshop) -> None:
    (workshop.system / "jq").unlink()
    trusted = workshop.record()
    assert trusted.programs == {"bash": (str(workshop.system / "bash"),)}
    workshop.program(workshop.system / "jq")
    assert "jq is now" in (trusted.why_not(workshop.look()) or "")


def test_a_word_that_becomes_the_name_of_a_program_is_explained(workshop: Workshop) -> None:
    workshop.script(".wave/hooks/guard.sh", "#!/bin/bash\nexit 0 # quotes do not make it safer\n")
    trusted = workshop.record()
    make = workshop.program(workshop.system / "make")
    why = trusted.why_not(workshop.look()) or ""
    assert f"make is now {make} (trusted: not found)" in why
    assert "A word in the hook or its script is now also the name of a program; wave hooks trust confirms it" in why
    make.unlink()
    assert trusted.why_not(workshop.look()) is None
    (workshop.system / "bash").unlink()
    assert "A word in the hook" not in (trusted.why_not(workshop.look()) or "")


def test_a_program_that_is_gone_is_a_change(workshop: Workshop) -> None:
    trusted = workshop.record()
    (workshop.system / "jq").unlink()
    assert "jq is no longer found" in (trusted.why_not(workshop.look()) or "")


def test_a_program_of_the_project_is_bound_by_its_content(workshop: Workshop) -> None:
    jq = workshop.program(workshop.venv / "jq")
    trusted = workshop.record()
    assert trusted.why_not(workshop.look()) is None
    workshop.program(jq, "#!/bin/sh\nexit 0\n")
    assert "jq is now .venv/bin/jq" in (trusted.why_not(workshop.look()) or "")


def test_an_update_outside_of_the_project_is_no_change(workshop: Workshop) -> None:
    new, old = (workshop.program(workshop.system / f"Cellar/{version}/jq") for version in ("1.8", "1.7"))
    (workshop.system / "jq").unlink()
    (workshop.system / "jq").symlink_to(old)
    trusted = workshop.record()
    (workshop.system / "jq").unlink()
    (workshop.system / "jq").symlink_to(new)
    assert trusted.why_not(workshop.look()) is None


def test_a_link_of_the_project_that_leads_elsewhere_is_a_change(workshop: Workshop) -> None:
    (workshop.venv / "jq").symlink_to(workshop.system / "jq")
    trusted = workshop.record()
    (workshop.venv / "jq").unlink()
    (workshop.venv / "jq").symlink_to(workshop.system / "git")
    assert trusted.why_not(workshop.look()) is not None


def test_with_and_without_the_projects_environment_both_can_be_trusted(workshop: Workshop) -> None:
    workshop.program(workshop.venv / "jq")
    store = TrustStore(workshop.project.parent / "home")
    project = str(workshop.project)
    store.trust(project, workshop.record())
    plain = str(workshop.system)
    assert store.read(project).why_not(workshop.look(plain)) is not None
    store.trust(project, workshop.record(store.read(project), plain))
    assert store.read(project).why_not(workshop.look(plain)) is None
    assert store.read(project).why_not(workshop.look()) is None


def test_trust_of_an_older_version_asks_once_and_says_why(workshop: Workshop) -> None:
    store = TrustStore(workshop.project.parent / "home")
    project = str(workshop.project)
    found = workshop.record()
    store.trust(project, Record(hooks=found.hooks, settings=found.settings))
    assert "older version" in (store.read(project).why_not(workshop.look()) or "")
    store.trust(project, workshop.record(store.read(project)))
    assert store.read(project).why_not(workshop.look()) is None


def test_words_in_comments_and_paths_are_no_programs(workshop: Workshop) -> None:
    workshop.program(workshop.system / "awk")
    workshop.program(workshop.system / "hooks")
    assert set(workshop.look().programs.found) == {"bash", "jq"}


# ------------------------------------------------------------------------------------------------------ Python modules


@pytest.mark.parametrize("name", ["json.py", "re.py", "json/__init__.py", "helper.py", "json.so"])
def test_a_module_that_would_take_the_place_of_another_is_a_change(workshop: Workshop, name: str) -> None:
    workshop.command = "python3 .wave/hooks/guard.py"
    workshop.script(".wave/hooks/guard.py", "import json\nfrom helper import judge\n")
    workshop.script(".wave/hooks/notes.py", "")
    trusted = workshop.record()
    assert trusted.why_not(workshop.look()) is None
    workshop.script(f".wave/hooks/{name}", "raise SystemExit\n")
    assert name.split("/", maxsplit=1)[0] in (trusted.why_not(workshop.look()) or "")


def test_a_module_that_the_script_imports_is_bound_by_its_content(workshop: Workshop) -> None:
    workshop.command = "python3 .wave/hooks/guard.py"
    workshop.script(".wave/hooks/guard.py", "import os, helper as h\n")
    workshop.script(".wave/hooks/helper.py", "from deeper import judge\n")
    workshop.script(".wave/hooks/deeper.py", "judge = 1\n")
    trusted = workshop.record()
    workshop.script(".wave/hooks/deeper.py", "judge = 2\n")
    assert ".wave/hooks/deeper.py" in (trusted.why_not(workshop.look()) or "")


@pytest.mark.parametrize(
    ("command", "first", "isolated"),
    [
        (".wave/hooks/guard.py", "#!/usr/bin/env -S python3 -I", True),
        (".wave/hooks/guard.py", "#!/usr/bin/python3 -I", True),
        (".wave/hooks/guard.py", "#!/usr/bin/env python3", False),
        ("python3 -I .wave/hooks/guard.py", "", True),
        ("python3 .wave/hooks/guard.py", "#!/usr/bin/env -S python3 -I", False),
    ],
)
def test_an_isolated_script_loads_nothing_that_lies_next_to_it(
    workshop: Workshop, command: str, first: str, isolated: bool
) -> None:
    workshop.command = command
    workshop.script(".wave/hooks/guard.py", f"{first}\nimport json\n")
    trusted = workshop.record()
    workshop.script(".wave/hooks/json.py", "")
    assert (trusted.why_not(workshop.look()) is None) is isolated


# ---------------------------------------------------------------------------------------------------- within a session


def shadow(workshop: Workshop) -> None:
    (workshop.venv / "jq").write_text("#!/bin/sh\n")
    (workshop.venv / "jq").chmod(0o755)


def remove(workshop: Workshop) -> None:
    (workshop.system / "jq").unlink()


def not_executable(workshop: Workshop) -> None:
    (workshop.system / "jq").chmod(0o644)


@pytest.mark.parametrize("change", [shadow, remove, not_executable])
def test_a_running_session_notices_before_the_next_run(workshop: Workshop, change: Callable[[Workshop], None]) -> None:
    found = workshop.look()
    trust = ProjectTrust([found], project=str(workshop.project), path=workshop.path)
    assert trust.problem(found.hook) is None
    assert trust.problem(found.hook) is None
    change(workshop)
    assert "jq" in (trust.problem(found.hook) or "")
    assert "the program jq" in trust.changes()
    trust.accept(trust.changes())
    assert trust.problem(found.hook) is None


def test_a_second_change_in_the_same_moment_is_noticed(workshop: Workshop) -> None:
    found = workshop.look()
    trust = ProjectTrust([found], project=str(workshop.project), path=workshop.path)
    for text in ("#!/bin/sh\n#1\n", "#!/bin/sh\n#2\n", "#!/bin/sh\n#3\n"):
        (workshop.venv / "jq").write_text(text)
        (workshop.venv / "jq").chmod(0o755)
        assert trust.problem(found.hook) is not None
        trust.accept(trust.changes())
        assert trust.problem(found.hook) is None


# ------------------------------------------------------------------------------------------------------- the variables


def test_relative_directories_are_no_place_for_programs_of_hooks() -> None:
    assert search_path({"PATH": ".:/usr/bin::node_modules/.bin:/bin:"}) == "/usr/bin:/bin"
    assert search_path({"PATH": "."}) == search_path({}) == os.defpath


def test_variables_that_decide_what_runs_are_those_of_the_agent() -> None:
    names = (
        "PATH",
        "BASH_ENV",
        "BASH_FUNC_jq%%",
        "LD_PRELOAD",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "GIT_CONFIG_COUNT",
        "HOME",
    )
    assert all(map(is_pinned, names))
    assert not any(map(is_pinned, ("CI", "LANG", "GIT_AUTHOR_NAME", "PYTHONUNBUFFERED", "MY_PATH", "ENVIRONMENT")))
