"""`--trust-ref`: trust exactly what a git ref holds."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent import SettingsError, UntrustedHooksError
from wave_agent.settings.layers import merge_settings
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings
from wave_agent.system.project import Project as Place

SETTINGS: dict[str, Any] = {
    "env": {"A": "b"},
    "hooks": {"UserPromptSubmit": [{"hooks": [{"command": "./hooks/guard.sh"}]}]},
}


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


class Repository:
    """A repository whose main branch holds a guard; its project may be a directory in it."""

    def __init__(self, root: Path, inside: str) -> None:
        self.root, self.project, self.home = root / "repository", root / "repository" / inside, root / "home"
        (self.project / ".wave").mkdir(parents=True)
        (self.project / "hooks").mkdir()
        self.script = self.project / "hooks" / "guard.sh"
        self.script.write_text("#!/bin/sh\necho from main\n")
        self.script.chmod(0o755)
        self.settings(SETTINGS)
        git(self.root, "init", "-q")
        self.commit()
        git(self.root, "update-ref", "refs/remotes/origin/main", "HEAD")
        git(self.root, "checkout", "-q", "-b", "theirs")

    def settings(self, content: Any) -> None:
        (self.project / ".wave" / "settings.json").write_text(json.dumps(content))

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "a change")

    def gather(self, ref: str = "origin/main") -> Gathered:
        return gather_settings(self.home, Place.at(str(self.project)), SourceChoice(trust_ref=ref))


@pytest.fixture(params=["", "packages/one"], ids=["root", "subdirectory"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    return Repository(tmp_path, request.param)


def test_what_the_ref_holds_runs_and_nothing_is_stored(repository: Repository) -> None:
    settings = merge_settings(repository.gather().sources)
    assert (len(settings.hooks.hooks), settings.env) == (1, {"A": "b"})
    assert not repository.home.exists()


def test_hooks_for_other_agents_are_missed_only_where_they_count(repository: Repository) -> None:
    (repository.project / ".claude").mkdir()
    entry = {"type": "command", "command": "true"}
    foreign = {"hooks": {"Stop": [{"hooks": [entry]}]}, "permissions": {"deny": ["Bash(rm:*)"]}}
    (repository.project / ".claude" / "settings.json").write_text(json.dumps(foreign))
    repository.commit()
    git(repository.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert len(merge_settings(repository.gather().sources).hooks.hooks) == 1
    repository.settings({**SETTINGS, "compat": {"claude": True}})
    repository.commit()
    git(repository.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert len(merge_settings(repository.gather().sources).hooks.hooks) == 2
    repository.settings(SETTINGS)
    with pytest.raises(SettingsError, match=r"disabled here:\n  Stop: true\n  the rule deny Bash\(rm:\*\)"):
        repository.gather()


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("attack", ["script", "definition", "another hook", "run bit"])
def test_what_a_branch_changes_does_not(repository: Repository, attack: str, committed: bool) -> None:
    if attack == "script":
        repository.script.write_text("#!/bin/sh\ncurl evil\n")
    elif attack == "run bit":
        repository.script.chmod(0o644)
    elif attack == "definition":
        hook = {"command": "./hooks/guard.sh; curl evil"}
        repository.settings({**SETTINGS, "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    else:
        (repository.project / ".wave" / "settings.local.json").write_text(
            '{"hooks": {"Stop": [{"hooks": [{"command": "curl evil"}]}]}}'
        )
    if committed:
        repository.commit()
    with pytest.raises(UntrustedHooksError) as told:
        repository.gather()
    assert len(told.value.hooks) == 1


@pytest.mark.parametrize("attack", ["switched off", "removed", "no settings"])
def test_a_guard_that_a_branch_takes_away_stops_the_start(repository: Repository, attack: str) -> None:
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": "./hooks/guard.sh", "enabled": False}]}]}
    if attack == "no settings":
        (repository.project / ".wave" / "settings.json").unlink()
    else:
        repository.settings({**SETTINGS, "hooks": hooks if attack == "switched off" else {}})
    repository.commit()
    with pytest.raises(SettingsError, match=r"removed or disabled here:\n  UserPromptSubmit: \./hooks/guard\.sh"):
        repository.gather()


def test_a_replaced_object_of_the_clone_does_not_count(repository: Repository) -> None:
    repository.script.write_text("#!/bin/sh\ncurl evil\n")
    repository.commit()
    git(repository.root, "replace", "refs/remotes/origin/main", "HEAD")
    with pytest.raises(UntrustedHooksError):
        repository.gather()


def test_other_settings_that_differ_are_ignored_with_a_notice(repository: Repository) -> None:
    repository.settings({**SETTINGS, "env": {"A": "evil"}})
    gathered = repository.gather()
    assert merge_settings(gathered.sources).env == {}
    assert "not trusted, so ignored: env" in gathered.notices[0]


@pytest.mark.parametrize("ref", ["nowhere", "--help", "", "-", "main:hooks"])
def test_a_ref_that_there_is_not_stops_the_start(repository: Repository, ref: str) -> None:
    with pytest.raises(SettingsError, match="--trust-ref"):
        repository.gather(ref)


def test_a_tag_cannot_pass_itself_off_as_the_branch(repository: Repository) -> None:
    repository.script.write_text("#!/bin/sh\ncurl evil\n")
    repository.commit()
    git(repository.root, "tag", "origin/main")
    with pytest.raises(SettingsError, match="ambiguous"):
        repository.gather()
    with pytest.raises(UntrustedHooksError):
        repository.gather("refs/remotes/origin/main")


def test_without_a_repository_it_says_so(tmp_path: Path) -> None:
    (tmp_path / ".wave").mkdir()
    (tmp_path / ".wave" / "settings.json").write_text(json.dumps(SETTINGS))
    with pytest.raises(SettingsError, match="not a git repository"):
        gather_settings(tmp_path / "home", Place.at(str(tmp_path)), SourceChoice(trust_ref="main"))


def test_broken_settings_at_the_ref_are_told_with_the_ref(repository: Repository) -> None:
    (repository.project / ".wave" / "settings.json").write_text("{,")
    repository.commit()
    git(repository.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    repository.settings(SETTINGS)
    with pytest.raises(SettingsError, match="At origin/main: "):
        repository.gather()


def test_on_the_command_line(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repository = Repository(tmp_path / "in", "")
    project.directory = repository.project
    with serving("Fine.", "Never.") as server:
        done = project.wave("-p", "hi", "--trust-ref", "origin/main", server=server)
        assert (done.returncode, done.stdout) == (0, "Fine.\n")
        assert "from main" in json.dumps(server.requests[0].body)
        repository.script.write_text("#!/bin/sh\ntouch evil.txt\n")
        refused = project.wave("-p", "hi", "--trust-ref", "origin/main", server=server)
    assert (refused.returncode, len(server.requests)) == (1, 1)
    assert "differs from origin/main: hooks/guard.sh" in refused.stderr
    assert not (repository.project / "evil.txt").exists()
