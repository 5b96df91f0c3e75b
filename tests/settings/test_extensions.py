"""Agents, skills and commands: where they are found, which one wins, and that a project's need trust."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from wave_agent import Agent, NoticeBlock
from wave_agent.settings import extension_files
from wave_agent.settings.extensions import Extensions, trusted_record
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.sources import SourceChoice, gather_settings, project_extensions, project_settings
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project
from wave_agent.testing import ScriptedModel


class Place:
    """A project in a repository, the agent's directory and the user's own."""

    def __init__(self, root: Path) -> None:
        self.home, self.project, self.claude = root / "state", root / "project", root / "user" / ".claude"
        for directory in (self.home, self.project):
            directory.mkdir()
        self.where = Project.at(str(self.project))

    def write(self, path: Path, text: str = "Do it.") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def skill(self, base: Path, name: str = "review", text: str = "Look closely.") -> Path:
        return self.write(base / "skills" / name / "SKILL.md", f"---\ndescription: reviews\n---\n{text}")

    def compat(self) -> None:
        self.write(self.home / "settings.json", json.dumps({"compat": {"claude": True}}))

    def load(self, **choice: Any) -> Extensions:
        found = gather_settings(self.home, self.where, SourceChoice(claude_home=self.claude, **choice)).extensions
        return found or Extensions()

    def trust(self) -> None:
        sources = project_settings(self.home, self.where)
        texts = trusted_record(project_extensions(self.home, self.where), str(self.project))
        found = candidates(sources, str(self.project), file_digest)
        record = record_of(sources, str(self.project), found, extensions=texts)
        TrustStore(self.home).trust(str(self.project), record, self.where.inner)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


def names(found: Extensions) -> dict[str, list[str]]:
    return {kind.value: sorted(found.of(kind)) for kind in ExtensionKind if found.of(kind)}


# ------------------------------------------------------------------------------------------------------------- finding


def test_the_users_own_need_no_trust(place: Place) -> None:
    place.skill(place.home)
    place.write(place.home / "commands" / "git" / "fix.md")
    place.write(place.home / "agents" / "a.md", "---\nname: tester\ndescription: tests\n---\nTest.")
    found = place.load()
    assert names(found) == {"agents": ["tester"], "skills": ["review"], "commands": ["fix"]}
    assert found.notices == ()
    assert found.of(ExtensionKind.SKILLS)["review"].body == "Look closely."


def test_without_any_nothing_is_loaded(place: Place) -> None:
    assert gather_settings(place.home, place.where, SourceChoice(claude_home=place.claude)).extensions is None


def test_those_of_another_agent_are_used_exactly_when_its_hooks_are(place: Place) -> None:
    place.skill(place.claude, "theirs")
    place.write(place.project / ".claude" / "commands" / "deep" / "go.md")
    assert place.load(trust=True).files == ()
    place.compat()
    assert names(place.load(trust=True)) == {"skills": ["theirs"], "commands": ["go"]}


def test_each_directory_down_to_the_start_may_have_some_and_the_innermost_wins(place: Place) -> None:
    place.write(place.project / ".wave" / "commands" / "go.md", "outer")
    place.write(place.project / "a" / "b" / ".wave" / "commands" / "go.md", "inner")
    place.write(place.project / "a" / ".wave" / "commands" / "other.md", "middle")
    place.where = Project(str(place.project), str(place.project / "a" / "b"), str(place.project))
    found = place.load(trust=True)
    assert {name: one.body for name, one in found.of(ExtensionKind.COMMANDS).items()} == {
        "go": "inner",
        "other": "middle",
    }
    assert [one.file.body for one in found.shadowed] == ["outer"]
    place.trust()
    assert len(place.load().files) == 2


def test_the_users_own_win_over_the_projects(place: Place) -> None:
    place.compat()
    place.write(place.project / ".wave" / "commands" / "go.md", "the project's")
    place.write(place.claude / "commands" / "go.md", "the user's, for another agent")
    assert place.load(trust=True).of(ExtensionKind.COMMANDS)["go"].body == "the user's, for another agent"
    place.write(place.home / "commands" / "go.md", "the user's")
    found = place.load(trust=True)
    assert found.of(ExtensionKind.COMMANDS)["go"].body == "the user's"
    assert [(one.file.layer, one.by.body) for one in found.shadowed] == [
        ("user", "the user's"),
        ("project", "the user's"),
    ]


def test_a_project_cannot_offer_a_second_agent_under_the_users_name_in_another_case(place: Place) -> None:
    agent = "---\nname: {}\ndescription: {}\n---\nWork."
    place.write(place.home / "agents" / "mine.md", agent.format("reviewer", "mine"))
    place.write(place.project / ".wave" / "agents" / "theirs.md", agent.format("Reviewer", "theirs"))
    found = place.load(trust=True)
    assert [one.description for one in found.of(ExtensionKind.AGENTS).values()] == ["mine"]
    assert [one.file.name for one in found.shadowed] == ["Reviewer"]


def test_the_users_directory_is_not_mistaken_for_the_projects(place: Place) -> None:
    place.compat()
    place.skill(place.claude)
    place.where = Project.at(str(place.claude.parent))
    assert [one.layer for one in place.load().files] == ["user"]


def test_layers_that_are_not_read_bring_none(place: Place) -> None:
    place.skill(place.home)
    place.write(place.project / ".wave" / "commands" / "go.md")
    assert names(place.load(trust=True, setting_sources=["project"])) == {"commands": ["go"]}
    assert names(place.load(trust=True, project_hooks=False)) == {"skills": ["review"]}
    assert place.load(setting_sources=["managed"]).files == ()


# ------------------------------------------------------------------------------------------------------------ problems


@rows(
    "name, text, why",
    [
        ("commands/a.md", "---\nx: [\n---\nDo it.", "has an invalid front matter, line 2: "),
        ("commands/b c.md", "Do it.", "needs a name of 1 to 64 letters, digits, hyphens and underscores"),
        ("commands/empty.md", "---\ndescription: x\n---\n", "has no text"),
        ("skills/Big/SKILL.md", "Do it.", "needs a name of 1 to 64 lower-case letters, digits and hyphens"),
        ("agents/a.md", "---\nname: a b\n---\nDo it.", "needs a name of 1 to 64 letters"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_a_reason(tmp_path: Path, name: str, text: str, why: str) -> None:
    place = Place(Path(os.path.realpath(tmp_path)) / "")
    place.write(place.home / name, text)
    found = place.load()
    assert found.files == ()
    assert found.unused[0].why.startswith(why)
    assert f"{place.home / name.removesuffix('/SKILL.md')} is not used: it {why}" in found.notices[0]
    (place.home / name).unlink()
    place.project.rmdir()
    subprocess.run(["rm", "-r", place.home], check=True)


def test_bytes_devices_and_huge_files_are_left_out(place: Place) -> None:
    commands = place.home / "commands"
    place.write(commands / "huge.md", "x" * (extension_files.LARGEST + 1))
    (commands / "bytes.md").write_bytes(b"\xff")
    os.mkfifo(commands / "pipe.md")
    (commands / "gone.md").symlink_to("nowhere")
    found = place.load()
    assert {os.path.basename(one.path): one.why for one in found.unused} == {
        "huge.md": "is larger than 256 KiB",
        "bytes.md": "is not UTF-8 (invalid start byte at byte 0)",
        "pipe.md": "is not a regular file",
        "gone.md": "cannot be read: it is a dangling link",
    }


def test_nothing_outside_the_project_is_read_through_it(place: Place) -> None:
    secret = place.write(place.home / "secret.md", "secret")
    (place.project / ".wave" / "commands").mkdir(parents=True)
    (place.project / ".wave" / "commands" / "x.md").symlink_to(secret)
    (place.project / ".wave" / "skills").symlink_to(place.home)
    skill = place.skill(place.project / ".wave" / "more").parent
    (place.project / ".wave" / "agents").mkdir()
    (skill / "data").symlink_to(secret)
    (skill.parent.parent / "skills").rename(place.project / ".wave" / "kept")
    found = place.load(trust=True)
    assert found.files == ()
    assert [one.why.partition(",")[0] for one in found.unused] == ["leads out of the project"] * 2
    (place.project / ".wave" / "skills").unlink()
    (place.project / ".wave" / "kept").rename(place.project / ".wave" / "skills")
    assert "has a link data to something outside its directory" in place.load(trust=True).notices[0]


def test_wrong_values_are_reported_and_the_restricting_one_is_assumed(place: Place) -> None:
    place.write(
        place.home / "skills" / "review" / "SKILL.md",
        f"---\nname: other\ndescription: {'x' * 2000}\ndisable-model-invocation: nope\nmodel: 3\ncolor: red\n---\nDo.",
    )
    found = place.load()
    (skill,) = found.files
    assert skill.name == "review"
    assert len(skill.description) == 1024
    assert skill.flag("disable-model-invocation", default=False)
    assert skill.front.get("color") == "red"
    assert "model" not in skill.front
    assert [notice.partition(": ")[2] for notice in found.notices] == [
        "the description is longer than 1,024 characters; the rest is cut",
        "model must be a string, not a number",
        "disable-model-invocation must be true or false, not a string",
        'the skill is called review, as its directory is, not "other"',
    ]


# --------------------------------------------------------------------------------------------------------------- trust


async def test_untrusted_ones_are_left_out_with_one_notice_and_the_session_starts(place: Place) -> None:
    place.skill(place.project / ".wave")
    place.write(place.project / ".wave" / "commands" / "go.md")
    agent = await Agent.create(workdir=place.project, model_client=ScriptedModel(["Hello."]))
    async with agent:
        assert (await agent.send_message("Hi.")).text == "Hello."
        notices = [one.content for message in agent.messages for one in message.blocks if isinstance(one, NoticeBlock)]
    assert notices == [
        "Not used until you trust them: .wave/skills/review (not trusted yet), .wave/commands/go.md (not trusted yet). "
        "Review them with wave hooks trust; they are used in a new session."
    ]


def test_trust_is_bound_to_every_file_of_a_skill(place: Place) -> None:
    skill = place.skill(place.project / ".wave").parent
    script = place.write(skill / "scripts" / "run.sh", "echo 1")
    place.trust()
    assert names(place.load()) == {"skills": ["review"]}
    script.write_text("echo 2")
    assert [one.why for one in place.load().unused] == ["changed since it was trusted"]
    script.write_text("echo 1")
    script.chmod(0o755)
    assert place.load().files == ()
    script.chmod(0o644)
    assert place.load().files != ()
    new = place.write(skill / "more.md")
    assert place.load().files == ()
    new.unlink()
    (used,) = place.load().files
    assert not used.has_changed
    script.unlink()
    assert used.has_changed
    assert place.load().files == ()


def test_a_skill_with_too_many_files_cannot_be_trusted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    skill = place.skill(place.project / ".wave").parent
    for number in range(extension_files.MOST_FILES + 1):
        (skill / str(number)).touch()
    assert [one.why for one in place.load(trust=True).unused] == ["has more than 1,000 files"]


def test_trust_in_hooks_alone_and_older_records_say_nothing_about_them(place: Place) -> None:
    place.write(place.project / ".wave" / "settings.json", json.dumps({"env": {"A": "b"}}))
    sources = project_settings(place.home, place.where)
    TrustStore(place.home).trust(str(place.project), record_of(sources, str(place.project), ()))
    stored = json.loads((place.home / "trust.json").read_text())
    assert "extensions" not in stored["projects"][str(place.project)]
    place.write(place.project / ".wave" / "commands" / "go.md")
    assert place.load().files == ()
    place.trust()
    assert names(place.load()) == {"commands": ["go"]}


def test_a_record_from_an_agent_above_takes_the_place_of_the_store(place: Place) -> None:
    place.write(place.project / ".wave" / "commands" / "go.md")
    trusted = place.load(trust=True)
    assert names(place.load(record=Record(extensions=trusted.record))) == {"commands": ["go"]}
    assert place.load(record=Record()).files == ()


def test_a_function_is_asked_about_them_only_if_it_takes_three_arguments(place: Place) -> None:
    place.write(place.project / ".wave" / "commands" / "go.md")
    asked: list[Any] = []

    def about_all(hooks: Any, alarms: Any, extensions: Any) -> bool:
        asked.append((hooks, alarms, extensions))
        return True

    assert names(place.load(trust=about_all)) == {"commands": ["go"]}
    assert asked == [([], [], [".wave/commands/go.md: not trusted yet"])]
    assert place.load(trust=lambda _hooks, _alarms: True).files == ()  # pyright: ignore[reportUnknownLambdaType]
    assert place.load(trust=lambda _hooks, _alarms, _extensions: False).files == ()  # pyright: ignore[reportUnknownLambdaType]


def test_a_ref_trusts_what_it_holds(place: Place) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=place.project, check=True, capture_output=True)

    skill = place.skill(place.project / ".wave").parent
    script = place.write(skill / "run.sh", "echo 1")
    command = place.write(place.project / ".wave" / "commands" / "go.md")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "x")
    place.write(place.project / ".wave" / "commands" / "new.md")
    found = place.load(trust_ref="HEAD")
    assert names(found) == {"skills": ["review"], "commands": ["go"]}
    assert found.notices == ("Not used, because they are not the same at HEAD: .wave/commands/new.md.",)
    command.write_text("Do something else.")
    script.unlink()
    assert place.load(trust_ref="HEAD").files == ()


def test_trust_is_given_per_branch(place: Place) -> None:
    (place.project / ".git").mkdir()
    head = place.write(place.project / ".git" / "HEAD", "ref: refs/heads/one\n")
    command = place.write(place.project / ".wave" / "commands" / "go.md")
    place.trust()
    head.write_text("ref: refs/heads/two\n")
    command.write_text("Another.")
    place.trust()
    assert names(place.load()) == {"commands": ["go"]}
    head.write_text("ref: refs/heads/one\n")
    assert place.load().files == ()
