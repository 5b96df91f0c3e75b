"""Trust in a project's hooks: what it is bound to, where it is kept, and when it is looked at again."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, NoticeBlock, SettingsError, UntrustedHooksError
from wave_agent.rules.rule import parse_rule
from wave_agent.settings.layers import merge_settings
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings, project_settings
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project, branch_of
from wave_agent.testing import Reply, ScriptedModel, call

GUARD = "#!/bin/sh\ncat >> guard.log\nexit 0\n"


class Checkout:
    """A project with a guard, and the user's own directory."""

    def __init__(self, directory: Path) -> None:
        self.home, self.project = directory / "home", directory / "project"
        (self.project / ".wave" / "hooks").mkdir(parents=True)
        self.script = self.project / ".wave" / "hooks" / "guard.sh"
        self.script.write_text(GUARD)
        self.script.chmod(0o755)
        self.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [self.guard()]}]}})

    def guard(self, **more: Any) -> dict[str, Any]:
        return {"command": "./.wave/hooks/guard.sh", **more}

    def settings(self, content: Any, name: str = "settings.json") -> None:
        (self.project / ".wave" / name).write_text(json.dumps(content))

    def gather(self, **choice: Any) -> Gathered:
        return gather_settings(self.home, Project.at(str(self.project)), SourceChoice(**choice))

    def trust(self) -> None:
        sources = project_settings(self.home, Project.at(str(self.project)))
        found = candidates(sources, str(self.project), file_digest)
        TrustStore(self.home).trust(str(self.project), record_of(sources, str(self.project), found))

    def alarms(self) -> tuple[str, ...]:
        with pytest.raises(UntrustedHooksError) as told:
            self.gather()
        return told.value.alarms

    def doubts(self) -> str:
        with pytest.raises(UntrustedHooksError) as told:
            self.gather()
        return "\n".join(told.value.hooks)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    return Checkout(tmp_path)


# -------------------------------------------------------------------------------------------------- what it is bound to


def test_what_is_trusted_starts_without_a_question(checkout: Checkout) -> None:
    assert "not trusted yet" in checkout.doubts()
    checkout.trust()
    assert len(merge_settings(checkout.gather().sources).hooks.hooks) == 1


def test_reordering_moving_and_formatting_keep_it(checkout: Checkout) -> None:
    other = {"matcher": "Write", "hooks": [{"command": "true", "timeout": 5}, {"command": "false"}]}
    checkout.settings({"hooks": {"PreToolUse": [other, {"matcher": "Bash", "hooks": [checkout.guard()]}]}})
    checkout.trust()
    turned = {"hooks": [{"command": "false"}, {"timeout": 5, "command": "true"}], "matcher": "Write"}
    checkout.settings({"//": "moved", "hooks": {"PreToolUse": [turned]}})
    checkout.settings(
        {"hooks": {"PreToolUse": [{"hooks": [checkout.guard()], "matcher": "Bash"}]}}, "settings.local.json"
    )
    assert len(merge_settings(checkout.gather().sources).hooks.hooks) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"command": "./.wave/hooks/guard.sh; curl evil"},
        {"timeout": 1},
        {"onFailure": "continue"},
        {"mode": "shadow"},
        {"async": True},
        {"if": "Bash(git:*)"},
        {"args": []},
        {"name": "x"},
    ],
    ids=str,
)
def test_any_change_of_a_definition_asks_again(checkout: Checkout, change: dict[str, Any]) -> None:
    checkout.trust()
    checkout.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [checkout.guard(**change)]}]}})
    assert "new or changed" in checkout.doubts()


@pytest.mark.parametrize(
    ("event", "group"),
    [("PreToolUse", {"matcher": "Write"}), ("PostToolUse", {"matcher": "Bash"}), ("PreToolUse", {"sequential": True})],
)
def test_so_does_another_event_or_group(checkout: Checkout, event: str, group: dict[str, Any]) -> None:
    checkout.trust()
    checkout.settings({"hooks": {event: [{**group, "hooks": [checkout.guard()]}]}})
    assert "new or changed" in checkout.doubts()


@pytest.mark.parametrize("attack", ["edit", "replace", "remove", "link", "append", "run bit", "fifo", "endless"])
def test_an_edited_script_asks_again(checkout: Checkout, attack: str) -> None:
    checkout.trust()
    times = checkout.script.stat()
    match attack:
        case "edit":
            checkout.script.write_text(GUARD.replace("exit 0", "exit 1"))
        case "replace":
            other = checkout.project / "other.sh"
            other.write_text("#!/bin/sh\n")
            os.replace(other, checkout.script)
        case "remove":
            checkout.script.unlink()
        case "link":
            other = checkout.project / "other.sh"
            other.write_text("#!/bin/sh\n")
            checkout.script.unlink()
            checkout.script.symlink_to(other)
        case "run bit":
            checkout.script.chmod(0o644)
        case "fifo":
            checkout.script.unlink()
            os.mkfifo(checkout.script)
        case "endless":
            checkout.script.unlink()
            checkout.script.symlink_to("/dev/zero")
        case _:
            with checkout.script.open("a") as file:
                file.write("curl evil\n")
    if checkout.script.is_file():
        os.utime(checkout.script, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ".wave/hooks/guard.sh" in checkout.doubts()
    assert "changed since it was trusted" in checkout.doubts()


def test_a_file_that_was_not_there_and_appears_asks_again(checkout: Checkout) -> None:
    checkout.settings({"hooks": {"Stop": [{"hooks": [{"command": "test ! -x ./late.sh || ./late.sh"}]}]}})
    checkout.trust()
    checkout.gather()
    (checkout.project / "late.sh").write_text("curl evil")
    assert "late.sh" in checkout.doubts()


GONE = "removed or disabled: PreToolUse: ./.wave/hooks/guard.sh"


def test_a_trusted_hook_that_is_gone_stops_the_start_until_somebody_agrees(checkout: Checkout) -> None:
    checkout.trust()
    checkout.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [checkout.guard(enabled=False)]}]}})
    assert checkout.alarms() == (GONE,)
    (checkout.project / ".wave" / "settings.json").unlink()
    assert checkout.alarms() == (GONE,)
    assert checkout.gather(project_hooks=False).notices == ()
    assert checkout.gather(setting_sources=[]).notices == ()
    agreed = checkout.gather(trust=True).notices
    assert agreed == (f"Trusted for this run only, though not as you left it: {GONE}",)
    assert checkout.alarms() == (GONE,)
    checkout.trust()
    assert checkout.gather().notices == ()


def test_so_does_a_rule_that_restricts(checkout: Checkout) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [checkout.guard()]}]}
    checkout.settings({"hooks": hooks, "permissions": {"deny": ["Bash(rm:*)"], "ask": ["Write", "Edit"]}})
    checkout.trust()
    checkout.settings({"hooks": hooks, "permissions": {"deny": ["Write"]}})
    checkout.settings({"permissions": {"ask": ["Edit"]}}, "settings.local.json")  # moved, and made stricter: both hold
    assert checkout.alarms() == ("removed or disabled: the rule deny Bash(rm:*)",)


@pytest.mark.parametrize("permissions", [5, {"deny": 5}, {"deny": [5, None]}])
def test_rules_that_cannot_be_read_are_not_remembered(checkout: Checkout, permissions: Any) -> None:
    checkout.settings({"permissions": permissions})
    checkout.trust()
    assert TrustStore(checkout.home).read(str(checkout.project)).rules == {}


def test_a_function_that_takes_hooks_alone_cannot_agree_to_what_is_gone(checkout: Checkout) -> None:
    checkout.trust()
    (checkout.project / ".wave" / "settings.json").unlink()
    with pytest.raises(UntrustedHooksError) as told:
        checkout.gather(trust=lambda hooks: True)  # noqa: ARG005
    assert (told.value.hooks, told.value.alarms) == ((), (GONE,))
    asked: list[Any] = []

    def look(hooks: Any, alarms: Any) -> bool:
        asked.append((list(hooks), list(alarms)))
        return len(asked) > 1

    with pytest.raises(UntrustedHooksError, match="What you trusted in this project has changed"):
        checkout.gather(trust=look)
    assert checkout.gather(trust=look).notices == ()
    assert asked == [([], [GONE])] * 2


def test_settings_that_are_gone_do_not_make_another_project_of_a_directory(checkout: Checkout) -> None:
    from wave_agent.agent.options import locate_project

    (checkout.project.parent / ".git").mkdir()
    (checkout.project.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    checkout.trust()
    shutil.rmtree(checkout.project / ".wave")
    inside = checkout.project / "deep"
    inside.mkdir()
    found, home = locate_project(inside, {"WAVE_HOME": str(checkout.home)})
    assert found.directory == str(checkout.project)
    with pytest.raises(UntrustedHooksError) as told:
        gather_settings(home, found)
    assert told.value.alarms == (GONE,)


def test_nor_do_settings_of_a_directory_above_it(checkout: Checkout) -> None:
    from wave_agent.agent.options import locate_project

    above = checkout.project.parent
    (above / ".git").mkdir()
    (above / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    checkout.trust()
    shutil.rmtree(checkout.project / ".wave")
    (above / ".wave").mkdir()
    (above / ".wave" / "settings.json").write_text("{}")
    found, home = locate_project(checkout.project, {"WAVE_HOME": str(checkout.home)})
    assert found.directory == str(above)
    with pytest.raises(UntrustedHooksError) as told:
        gather_settings(home, found)
    assert told.value.alarms == (GONE,)
    store = TrustStore(home)
    store.trust(found.directory, Record(), found.inner)
    assert gather_settings(home, found).notices == ()


# ------------------------------------------------------------------------------------------------------------- branches


def on_branch(checkout: Checkout, head: str) -> None:
    (checkout.project / ".git").mkdir(exist_ok=True)
    (checkout.project / ".git" / "HEAD").write_text(head)


MAIN, OLD, NEW, COMMIT = "ref: refs/heads/main\n", "ref: refs/heads/old\n", "ref: refs/heads/new\n", "0123abcd" * 5


def test_what_was_confirmed_on_a_branch_holds_there_and_nowhere_else(checkout: Checkout) -> None:
    content = (checkout.project / ".wave" / "settings.json").read_text()
    on_branch(checkout, MAIN)
    checkout.trust()
    on_branch(checkout, OLD)
    checkout.settings({})
    assert checkout.alarms() == (GONE,)
    checkout.trust()
    for _ in range(2):
        assert checkout.gather().notices == ()
        on_branch(checkout, MAIN)
        assert checkout.alarms() == (GONE,)
        (checkout.project / ".wave" / "settings.json").write_text(content)
        assert checkout.gather().notices == ()
        on_branch(checkout, OLD)
        assert "new or changed" in checkout.doubts() or "not trusted yet" in checkout.doubts()
        checkout.settings({})


@pytest.mark.parametrize("head", [NEW, COMMIT, "", "ref: ../../x"])
def test_a_branch_that_nobody_knows_is_compared_with_the_one_that_was_used_last(checkout: Checkout, head: str) -> None:
    on_branch(checkout, MAIN)
    checkout.trust()
    content = (checkout.project / ".wave" / "settings.json").read_text()
    on_branch(checkout, OLD)
    checkout.settings({})
    checkout.trust()
    store = TrustStore(checkout.home)
    on_branch(checkout, head)
    assert checkout.gather().notices == ()  # used last was `old`, which has no guard
    on_branch(checkout, MAIN)
    (checkout.project / ".wave" / "settings.json").write_text(content)
    assert store.use(str(checkout.project)).hooks
    on_branch(checkout, head)
    assert checkout.gather().notices == ()
    checkout.settings({})
    assert checkout.alarms() == (GONE,)


def test_a_head_that_nobody_can_read_is_no_branch(checkout: Checkout) -> None:
    on_branch(checkout, MAIN)
    assert branch_of(str(checkout.project / ".wave")) == "main"
    (checkout.project / ".git" / "HEAD").unlink()
    os.mkfifo(checkout.project / ".git" / "HEAD")
    assert branch_of(str(checkout.project)) == ""
    (checkout.project / ".git" / "HEAD").unlink()
    (checkout.project / ".git" / "HEAD").symlink_to("nowhere")
    assert branch_of(str(checkout.project)) == ""


def test_as_many_branches_as_are_needed_are_remembered_and_no_more(checkout: Checkout) -> None:
    for number in range(105):
        on_branch(checkout, f"ref: refs/heads/b{number}")
        checkout.trust()
    kept = list(TrustStore(checkout.home).read(str(checkout.project)).branches)
    assert kept == [f"b{number}" for number in range(5, 105)]


# ---------------------------------------------------------------------------------------------- trust that is in doubt


def test_trust_in_doubt_has_to_be_confirmed_and_its_rules_do_not_count_meanwhile(checkout: Checkout) -> None:
    store, project = TrustStore(checkout.home), str(checkout.project)
    checkout.trust()
    before = store.use(project)
    assert store.look_back(project, before, "") == ""
    store.remember_rule(project, "Bash")
    assert store.look_back(project, before, "") == "trust in this project was changed while a session ran unattended"
    assert len(checkout.alarms()) == 1
    assert merge_settings(checkout.gather(project_hooks=False).sources).rules.allow == ()
    assert merge_settings(checkout.gather(trust=True).sources).rules.allow == (parse_rule("Bash"),)
    checkout.trust()
    assert merge_settings(checkout.gather().sources).rules.allow == (parse_rule("Bash"),)


@pytest.mark.parametrize(
    ("command", "appears"),
    [
        ("python3 -m guard", "guard/__init__.py"),
        ("python3 -m json.tool", "json/__init__.py"),
        ("if [ -f extra.sh ]; then bash extra.sh; fi", "extra.sh"),
        ("cd hooks && ./g.sh", "hooks/g.sh"),
        ("make check", "Makefile"),
    ],
)
def test_what_would_come_first_if_it_were_there_asks_again_when_it_is(
    checkout: Checkout, command: str, appears: str
) -> None:
    checkout.settings({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}})
    checkout.trust()
    checkout.gather()
    (checkout.project / appears).parent.mkdir(exist_ok=True)
    (checkout.project / appears).write_text("evil")
    assert appears in checkout.doubts()


def test_a_file_of_the_repository_around_the_project_counts_too(checkout: Checkout) -> None:
    (checkout.project.parent / ".git").mkdir()
    shared = checkout.project.parent / "shared.sh"
    shared.write_text("exit 0")
    checkout.settings({"hooks": {"Stop": [{"hooks": [{"command": "bash ../shared.sh"}]}]}})
    checkout.trust()
    checkout.gather()
    shared.write_text("curl evil")
    assert "../shared.sh" in checkout.doubts()


def test_a_removed_hook_and_one_switched_off_need_no_trust(checkout: Checkout) -> None:
    checkout.settings({"hooks": {"Stop": [{"hooks": [checkout.guard(enabled=False)]}]}})
    assert checkout.gather().notices == ()
    checkout.settings({"hooks": {"Stop": [{"hooks": [checkout.guard(enabled=True)]}]}})
    assert "guard.sh" in checkout.doubts()


def test_a_copy_of_the_project_elsewhere_is_not_trusted(checkout: Checkout, tmp_path: Path) -> None:
    checkout.trust()
    copy = tmp_path / "copy"
    shutil.copytree(checkout.project, copy)
    (copy / ".git").write_text(f"gitdir: {checkout.project}/.git/worktrees/copy\n")
    with pytest.raises(UntrustedHooksError):
        gather_settings(checkout.home, Project.at(str(copy)))


def test_a_link_to_the_project_is_the_project(checkout: Checkout, tmp_path: Path) -> None:
    checkout.trust()
    (tmp_path / "link").symlink_to(checkout.project)
    from wave_agent.agent.options import locate_project

    project, home = locate_project(tmp_path / "link", {"WAVE_HOME": str(checkout.home)})
    assert len(gather_settings(home, project).sources) == 1


# ------------------------------------------------------------------------------------------------------- other settings


def test_other_settings_of_a_trusted_project_count_until_they_change(checkout: Checkout) -> None:
    rest: dict[str, Any] = {"env": {"A": "b"}, "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Bash(rm:*)"]}}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [checkout.guard()]}]}
    checkout.settings({"hooks": hooks, **rest})
    checkout.trust()
    assert merge_settings(checkout.gather().sources).env == {"A": "b"}
    rest["env"]["LD_PRELOAD"] = "./evil.so"
    rest["permissions"]["deny"].append("Bash(dd:*)")
    checkout.settings({"hooks": hooks, **rest})
    gathered = checkout.gather()
    settings = merge_settings(gathered.sources)
    assert (settings.env, settings.rules.allow, len(settings.hooks.hooks)) == ({}, (), 1)
    assert [rule.text for rule in settings.rules.deny] == ["Bash(rm:*)", "Bash(dd:*)"]
    assert [notice.split(": ", 1)[1] for notice in gathered.notices] == [
        "not trusted, so ignored: env, permissions.allow (wave hooks trust)"
    ]


def test_more_restrictions_need_no_new_trust(checkout: Checkout) -> None:
    checkout.settings({"env": {"A": "b"}, "permissions": {"deny": []}})
    checkout.trust()
    checkout.settings({"env": {"A": "b"}, "permissions": {"deny": ["Bash"], "ask": ["Write"]}})
    gathered = checkout.gather()
    assert gathered.notices == ()
    assert merge_settings(gathered.sources).env == {"A": "b"}


@pytest.mark.parametrize("trusted", ["stored", "this run"])
def test_no_project_raises_the_mode_to_bypass(checkout: Checkout, trusted: str) -> None:
    checkout.settings({"env": {"A": "b"}, "permissions": {"defaultMode": "bypassPermissions"}})
    checkout.trust()
    gathered = checkout.gather(trust=trusted == "this run")
    settings = merge_settings(gathered.sources)
    assert (settings.default_mode, settings.env) == ("default", {"A": "b"})
    assert "bypassPermissions" in gathered.notices[0]


def test_a_trusted_project_may_set_another_mode(checkout: Checkout) -> None:
    checkout.settings({"permissions": {"defaultMode": "acceptEdits"}})
    assert merge_settings(checkout.gather().sources).default_mode == "default"
    checkout.trust()
    assert merge_settings(checkout.gather().sources).default_mode == "acceptEdits"


# ---------------------------------------------------------------------------------------------------------- at each run


async def guarded(checkout: Checkout, meanwhile: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    """Two calls of Bash, and something that happens between them."""
    replies = [
        Reply(tool_calls=[call("Bash", command="echo one > one.txt")]),
        Reply(tool_calls=[call("Bash", command="echo two > two.txt")]),
        "Done.",
    ]
    model = ScriptedModel(replies)

    def hear(event: Any) -> None:
        if type(event).__name__ == "ToolFinished" and not (checkout.project / "between").exists():
            (checkout.project / "between").touch()
            meanwhile()

    async with await Agent.create(
        workdir=checkout.project,
        model_client=model,
        permission_mode="bypassPermissions",
        callbacks={"on_event": hear},
        **options,
    ) as agent:
        await agent.send_message("go")
    return agent, model


@pytest.mark.parametrize("options", [{}, {"trust": True}], ids=["stored", "this run"])
async def test_a_script_that_changes_in_a_session_does_not_run_and_what_it_guards_is_denied(
    checkout: Checkout, options: dict[str, Any]
) -> None:
    checkout.trust()
    evil = "#!/bin/sh\ntouch evil.txt\nexit 0\n"
    agent, model = await guarded(checkout, lambda: checkout.script.write_text(evil), **options)
    told = model.requests[2].messages[-1]["content"]
    assert "Hook guard.sh did not run: .wave/hooks/guard.sh has changed since it was trusted" in told
    assert len((checkout.project / "guard.log").read_text().splitlines() or [""]) == 1
    assert (checkout.project / "one.txt").exists()
    assert not (checkout.project / "two.txt").exists()
    assert not (checkout.project / "evil.txt").exists()
    assert [(run.outcome, run.failure, run.let_through) for run in agent.hook_runs] == [
        ("none", None, False),
        ("failure", "spawn", False),
    ]


async def test_trust_that_is_given_anew_meanwhile_does_not_count_in_this_session(checkout: Checkout) -> None:
    checkout.trust()

    def agree() -> None:
        checkout.script.write_text(GUARD + "# better, says whoever did this\n")
        checkout.trust()

    agent, model = await guarded(checkout, agree)
    assert "guard.sh has changed since it was trusted" in model.requests[2].messages[-1]["content"]
    assert not (checkout.project / "two.txt").exists()
    assert [run.outcome for run in agent.hook_runs] == ["none", "failure"]
    assert checkout.alarms() == (
        "trust in this project was changed while a session ran unattended: please confirm again",
    )


async def test_what_a_person_accepts_in_the_session_counts_as_it_was_then(checkout: Checkout) -> None:
    checkout.trust()
    seen: list[Any] = []
    async with await Agent.create(
        workdir=checkout.project, model_client=ScriptedModel([]), permission_mode="bypassPermissions"
    ) as agent:
        trust, (hook,) = agent.project_trust, agent.settings.hooks.hooks
        assert trust.changes() == {}
        checkout.script.write_text(GUARD + "# better\n")
        seen.append(trust.changes())
        checkout.script.write_text("#!/bin/sh\nexit 0\n")  # while the person is looking
        trust.accept(seen[0])
        assert "has changed" in (trust.problem(hook) or "")
        checkout.script.write_text(GUARD + "# better\n")
        assert trust.problem(hook) is None
    assert list(seen[0]) == [".wave/hooks/guard.sh"]


async def test_settings_are_a_snapshot_and_a_change_is_told(checkout: Checkout) -> None:
    checkout.trust()
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command="true")]), "Done.", "Again."])
    async with await Agent.create(
        workdir=checkout.project, model_client=model, permission_mode="bypassPermissions"
    ) as agent:
        checkout.settings({"hooks": {"PreToolUse": [{"hooks": [{"command": "touch evil.txt"}]}]}})
        (checkout.home / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
        await agent.send_message("go")
        await agent.send_message("again")
    assert [run.command for run in agent.hook_runs] == ["./.wave/hooks/guard.sh"]
    assert not (checkout.project / "evil.txt").exists()
    blocks = [block for message in agent.messages for block in message.blocks]
    notices = [block.content for block in blocks if isinstance(block, NoticeBlock)]
    assert len(notices) == 2
    assert "settings.json was created. This session keeps" in notices[0]
    assert "settings.json has changed. This session keeps" in notices[1]


# ------------------------------------------------------------------------------------------------------------ the store


def test_the_store_is_private_and_survives_what_is_not_it(checkout: Checkout) -> None:
    store = TrustStore(checkout.home)
    store.trust("/one", Record(hooks={"a": {"b": "c", "d": None}}))
    store.remember_rule("/one", "Bash(ls:*)")
    store.remember_rule("/one", "Bash(ls:*)")
    store.remember_rule("/two", "Read")
    store.trust("/one", Record(settings={"x": "y"}))
    assert store.read("/one") == Record(settings={"x": "y"}, allow=("Bash(ls:*)",))
    assert store.revoke("/one") is True
    assert store.revoke("/one") is False
    assert store.read("/two").allow == ("Read",)
    assert store.file.stat().st_mode & 0o777 == 0o600
    assert checkout.home.stat().st_mode & 0o777 == 0o700


def test_rules_allowed_for_always_count_in_that_project_alone(checkout: Checkout) -> None:
    checkout.settings({})
    TrustStore(checkout.home).remember_rule(str(checkout.project), "Bash(make test)")
    assert merge_settings(checkout.gather().sources).rules.allow == (parse_rule("Bash(make test)"),)
    assert merge_settings(gather_settings(checkout.home, Project.at(str(checkout.home))).sources).rules.allow == ()
    assert not (checkout.project / ".wave" / "settings.local.json").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"projects": {"/p": 5}}', '{"projects": {"/p": {"hooks": []}}}'])
def test_a_damaged_store_trusts_nothing_and_says_so(checkout: Checkout, content: str) -> None:
    checkout.trust()
    TrustStore(checkout.home).file.write_text(content)
    with pytest.raises(SettingsError, match=r"trust\.json is damaged"):
        checkout.gather()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_store_that_others_can_write_is_not_relied_on(checkout: Checkout, mode: int) -> None:
    checkout.trust()
    TrustStore(checkout.home).file.chmod(mode)
    with pytest.raises(SettingsError, match="chmod go-w"):
        checkout.gather()


def test_a_store_that_cannot_be_written_is_told(checkout: Checkout) -> None:
    checkout.home.write_text("a file in the way")
    with pytest.raises(SettingsError, match="cannot be written"):
        checkout.trust()
