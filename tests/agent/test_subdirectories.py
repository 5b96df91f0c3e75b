"""Settings in several directories of one project: what counts, what is trusted, and what cannot be loosened."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from wave_agent import SettingsError, UntrustedHooksError
from wave_agent.agent.foundation import lay_foundation
from wave_agent.agent.options import Options, locate_project
from wave_agent.hooks.definitions import Layer
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings, locate, project_settings
from wave_agent.settings.trust import TrustStore, candidates, file_digest, record_of


class Tree:
    """A repository, and an agent that is started in `a/b` of it."""

    def __init__(self, directory: Path) -> None:
        self.root, self.home, self.claude = directory / "repo", directory / "home", directory / "claude"
        self.start = self.root / "a" / "b"
        self.start.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def write(self, directory: Path, content: dict[str, Any], name: str = ".wave/settings.json") -> None:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(json.dumps(content))

    def locate(self, start: Path | None = None, **choice: Any) -> str:
        return locate(str(start or self.start), self.home, SourceChoice(claude_home=self.claude, **choice)).directory

    def gather(self, start: Path | None = None, **choice: Any) -> Gathered:
        chosen = SourceChoice(claude_home=self.claude, **choice)
        return gather_settings(self.home, locate(str(start or self.start), self.home, chosen), chosen)

    def merged(self, **choice: Any) -> Settings:
        return merge_settings(self.gather(**choice).sources)

    def trust(self, start: Path) -> None:
        place = locate(str(start), self.home)
        sources = project_settings(self.home, place)
        found = candidates(sources, place.directory, file_digest)
        TrustStore(self.home).trust(place.directory, record_of(sources, place.directory, found), place.inner)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def stop(command: str) -> dict[str, Any]:
    return {"hooks": {"Stop": [command]}}


# -------------------------------------------------------------------------------------------------- which project it is


def test_settings_of_all_directories_add_up_from_the_outside_in_each_with_its_local_ones(tree: Tree) -> None:
    for directory in (tree.root, tree.root / "a", tree.start):
        tree.write(directory, stop(f"echo {directory.name}"))
        tree.write(directory, stop(f"echo {directory.name} local"), ".wave/settings.local.json")
    names = [hook.command for hook in tree.merged(trust=True).hooks.hooks]
    assert names == [f"echo {name}{local}" for name in ("repo", "a", "b") for local in ("", " local")]


def test_settings_for_other_agents_make_a_project_only_if_they_count(tree: Tree) -> None:
    tree.write(tree.root, stop("echo theirs"), ".claude/settings.json")
    tree.write(tree.start, stop("echo own"))
    assert tree.locate() == str(tree.start)
    assert tree.locate(overlays=[{"compat": {"claude": True}}]) == str(tree.root)
    tree.write(tree.home, {"compat": {"claude": True}}, "settings.json")
    assert tree.locate() == str(tree.root)
    commands = [hook.command for hook in tree.merged(trust=True).hooks.hooks]
    assert commands == ["echo theirs", "echo own"]
    assert tree.locate(setting_sources=["project"]) == str(tree.start)


def test_a_project_can_say_so_itself_once_it_is_trusted(tree: Tree) -> None:
    tree.write(tree.root, stop("echo theirs"), ".claude/settings.json")
    tree.write(tree.start, {"compat": {"claude": True}})
    assert tree.locate() == str(tree.start)
    assert tree.locate(trust=True) == str(tree.root)
    place = locate(str(tree.start), tree.home, SourceChoice(trust=True))
    sources = project_settings(tree.home, place)
    record = record_of(sources, place.directory, candidates(sources, place.directory, file_digest))
    TrustStore(tree.home).trust(place.directory, record, place.inner)
    assert tree.locate() == str(tree.root)


def test_what_is_the_users_is_no_projects(tree: Tree) -> None:
    tree.write(tree.root, stop("echo mine"))
    tree.home = tree.root / ".wave"
    assert tree.locate() == str(tree.root)  # by its repository
    assert [source.layer for source in tree.gather().sources] == [Layer.USER]
    tree.write(tree.root, stop("echo mine"), ".claude/settings.json")
    tree.claude = tree.root / ".claude"
    tree.write(tree.start, {"compat": {"claude": True}})
    assert tree.locate(trust=True) == str(tree.start)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_settings_that_cannot_be_looked_at_stop_the_start(tree: Tree) -> None:
    (tree.root / ".wave").mkdir(mode=0)
    with pytest.raises(SettingsError, match="cannot be read"):
        tree.gather()


def test_a_link_leads_to_the_project_it_points_into(tree: Tree, tmp_path: Path) -> None:
    tree.write(tree.root, stop("echo own"))
    (tmp_path / "link").symlink_to(tree.start)
    project, _ = locate_project(tmp_path / "link", {"WAVE_HOME": str(tree.home)})
    assert (project.directory, project.start) == (str(tree.root), str(tree.start))


# ---------------------------------------------------------------------------------------------------------- tightening


def inner(content: object, directory: str = "a") -> Settings:
    """What holds where an outer directory has nothing to say but `outer`."""
    return merge_settings([
        parse_settings(json.dumps(OUTER), Layer.PROJECT, "outer.json"),
        replace(parse_settings(json.dumps(content), Layer.PROJECT, "inner.json"), inner=directory),
    ])  # fmt: skip


OUTER = {
    "model": "outer",
    "strictHooks": True,
    "compat": {"claude": True},
    "sandbox": {"network": True},
    "httpHooks": {"hosts": ["a"], "env": ["A"]},
    "permissions": {"defaultMode": "default", "additionalDirectories": ["/srv"], "allow": ["Bash(ls)"]},
}
LOOSE = {
    "strictHooks": False,
    "compat": {"claude": False},
    "permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["/"], "allow": ["Bash"]},
}
TIGHT = {
    "model": "inner",
    "maxStopBlocks": 1,
    "strictHooks": True,
    "sandbox": {"network": False},
    "httpHooks": {"hosts": ["b"], "env": ["B"]},
    "permissions": {"defaultMode": "plan", "deny": ["Read(x/y)", "Bash(rm:*)"], "ask": ["Edit(//etc/**)"], "allow": []},
}


def test_an_inner_directory_loosens_nothing_and_is_told() -> None:
    found = inner(LOOSE)
    assert (found.strict_hooks, found.compat_claude, found.default_mode) == (True, True, PermissionMode.DEFAULT)
    assert found.additional_directories == ("/srv",)
    assert [rule.text for rule in found.rules.allow] == ["Bash(ls)"]
    places = {".".join(map(str, issue.path)) for issue in found.issues}
    assert places == {
        "strictHooks",
        "compat.claude",
        "permissions.defaultMode",
        "permissions.additionalDirectories",
        "permissions.allow",
    }
    assert all("can only tighten" in issue.message and not issue.broken for issue in found.issues)
    network = merge_settings([replace(parse_settings('{"sandbox": {"network": true}}', Layer.LOCAL, "x"), inner="a")])
    assert network.sandbox_network is False


def test_an_inner_directory_can_shorten_the_list_of_hosts() -> None:
    def hosts(outer: str, within: str) -> object:
        first = parse_settings(f'{{"sandbox": {{"network": {outer}}}}}', Layer.PROJECT, "outer.json")
        second = parse_settings(f'{{"sandbox": {{"network": {within}}}}}', Layer.PROJECT, "inner.json")
        return merge_settings([first, replace(second, inner="a")]).sandbox_network

    assert hosts("true", '["a.example"]') == ("a.example",)
    assert hosts('["*.example"]', '["a.example", "b.test"]') == ("a.example",)
    assert hosts('["a.example"]', "true") == ("a.example",)


def test_an_inner_directory_wins_where_it_does_not_loosen() -> None:
    found = inner(TIGHT)
    assert (found.model, found.max_stop_blocks, found.default_mode) == ("inner", 1, PermissionMode.PLAN)
    assert found.sandbox_network is False
    assert (found.http_hosts, found.http_env) == (("a", "b"), ("A", "B"))
    assert [rule.spelt for rule in found.rules.deny] == [("Read(x/y)", "Read(a/x/y)"), ("Bash(rm:*)",)]
    assert [rule.spelt for rule in found.rules.ask] == [("Edit(//etc/**)",)]
    assert found.issues == ()


# --------------------------------------------------------------------------------------------------------------- trust


def test_trust_is_kept_directory_by_directory(tree: Tree) -> None:
    tree.write(tree.root, stop("echo outer"))
    tree.trust(tree.root)
    assert tree.gather(tree.root).notices == ()
    tree.write(tree.start, {**stop("echo inner"), "model": "inner"})
    with pytest.raises(UntrustedHooksError) as told:
        tree.gather()
    assert len(told.value.hooks) == 1
    tree.trust(tree.start)
    assert tree.merged().model == "inner"
    tree.trust(tree.root)  # what is trusted below stays, and is not missed here
    assert tree.gather(tree.root).notices == ()
    assert tree.merged().model == "inner"
    other = tree.root / "c"
    tree.write(other, stop("echo inner"))
    with pytest.raises(UntrustedHooksError):  # the same hook elsewhere is another one
        tree.gather(other)
    tree.write(tree.start, {})
    with pytest.raises(UntrustedHooksError) as told:
        tree.gather()
    assert told.value.alarms == ("removed or disabled: Stop: echo inner",)
    assert tree.gather(tree.root).notices == ()


def test_a_ref_is_asked_for_the_settings_of_every_directory(tree: Tree) -> None:
    tree.write(tree.root, stop("echo outer"))
    tree.write(tree.root / "a", stop("echo inner"))
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for arguments in (("add", "."), ("commit", "-qm", "first")):
        subprocess.run(["git", *name, *arguments], cwd=tree.root, check=True)
    assert len(tree.merged(trust_ref="HEAD").hooks.hooks) == 2
    tree.write(tree.start, stop("echo new"))
    with pytest.raises(UntrustedHooksError) as told:
        tree.gather(trust_ref="HEAD")
    assert "echo new" in "".join(told.value.hooks)
    tree.write(tree.start, {})
    tree.write(tree.root / "a", {})
    with pytest.raises(SettingsError, match="removed or disabled here"):
        tree.gather(trust_ref="HEAD")


# ------------------------------------------------------------------------------------------ hooks and agents further in


@pytest.mark.parametrize("command", ["./guard.sh", "bash guard.sh --fast", '"$CLAUDE_PROJECT_DIR"/guard.sh'])
def test_a_hook_that_would_not_be_found_stops_the_start(tree: Tree, command: str) -> None:
    tree.write(tree.start, stop(command))
    (tree.start / "guard.sh").write_text("exit 0\n")
    options, environment = Options(workdir=tree.start, trust=True), {"WAVE_HOME": str(tree.home)}
    assert lay_foundation(options, environment).project == str(tree.start)
    tree.write(tree.root, {})
    with pytest.raises(SettingsError, match=r"names guard\.sh, which is not in .*; write a/b/guard\.sh"):
        lay_foundation(options, environment)
    tree.write(tree.start, stop("a/b/guard.sh"))
    assert lay_foundation(options, environment).project == str(tree.root)


def test_an_agent_further_in_has_what_the_user_trusts_there(tree: Tree) -> None:
    tree.write(tree.root, stop("echo outer"))
    tree.write(tree.start, stop("echo inner"))
    environment = {"WAVE_HOME": str(tree.home)}
    outer = lay_foundation(Options(workdir=tree.root, trust=True), environment)
    assert outer.handed_down is not None
    below = {**environment, **outer.handed_down.variable()}
    with pytest.raises(UntrustedHooksError) as told:
        lay_foundation(Options(workdir=tree.start), below)
    assert ["echo inner" in hook for hook in told.value.hooks] == [True]
    tree.trust(tree.start)
    found = lay_foundation(Options(workdir=tree.start), below)
    assert [hook.command for hook in found.settings.hooks.hooks] == ["echo outer", "echo inner"]


def test_an_agent_in_an_added_directory_gets_no_more_of_its_project(tree: Tree, tmp_path: Path) -> None:
    environment = {"WAVE_HOME": str(tree.home)}
    added = {"permissions": {"additionalDirectories": [str(tree.start)]}}
    (tmp_path / "other").mkdir()
    outer = lay_foundation(Options(workdir=tmp_path / "other", overlays=[added]), environment)
    assert outer.handed_down is not None
    inside = lay_foundation(Options(workdir=tree.start), {**environment, **outer.handed_down.variable()})
    assert (inside.project, inside.directories) == (str(tree.root), (str(tree.start),))


def test_an_agent_two_levels_below_cannot_step_out_of_what_holds_above_it(tree: Tree) -> None:
    tree.write(tree.root, {"permissions": {"deny": ["Bash(curl:*)"]}})
    tree.write(tree.root / "a", {"permissions": {"deny": ["Bash(wget:*)"]}})
    environment = {"WAVE_HOME": str(tree.home)}
    first = lay_foundation(Options(workdir=tree.root / "a"), environment)
    assert first.directories == (str(tree.root),)
    tree.write(tree.start, {"permissions": {"deny": ["Bash(nc:*)"]}})
    assert first.handed_down is not None
    below = {**environment, **first.handed_down.variable()}
    second = lay_foundation(Options(workdir=tree.start), below)
    assert second.directories == (str(tree.root / "a"),)
    assert second.handed_down is not None
    assert second.handed_down.directories == (str(tree.start),)
    for outside in (tree.root, tree.root / "a"):
        with pytest.raises(SettingsError, match="may not work in"):
            lay_foundation(Options(workdir=outside), {**environment, **second.handed_down.variable()})
