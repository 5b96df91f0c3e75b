"""Hooks written for other agents: which files count, who may say so, and what of them counts."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, NoticeBlock, SettingsError, UntrustedHooksError
from wave_agent.agent.foundation import lay_foundation
from wave_agent.agent.options import Options
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.settings.other_agents import as_foreign
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings, project_settings
from wave_agent.settings.trust import TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project
from wave_agent.testing import Reply, ScriptedModel, call

ON = {"compat": {"claude": True}}
OFF = {"compat": {"claude": False}}


def hooks(command: str, event: str = "PreToolUse") -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}}


class Checkout:
    """A project, the user's own directory, and the one for other agents."""

    def __init__(self, directory: Path) -> None:
        self.home, self.project, self.claude = directory / "home", directory / "project", directory / "claude"
        self.project.mkdir()

    def write(self, name: str, content: Any) -> Path:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def gather(self, **choice: Any) -> Gathered:
        return gather_settings(
            self.home, Project.at(str(self.project)), SourceChoice(claude_home=self.claude, **choice)
        )

    def settings(self, **choice: Any) -> Settings:
        return merge_settings(self.gather(**choice).sources)

    def commands(self, **choice: Any) -> list[str]:
        return [hook.command for hook in self.settings(**choice).hooks.hooks]

    def trust(self) -> None:
        sources = project_settings(self.home, Project.at(str(self.project)))
        found = candidates(sources, str(self.project), file_digest)
        TrustStore(self.home).trust(str(self.project), record_of(sources, str(self.project), found))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Checkout(tmp_path)


# ---------------------------------------------------------------------------------------------------- which files count


def test_every_file_counts_in_the_order_of_the_layers(checkout: Checkout) -> None:
    checkout.write(".claude/settings.local.json", hooks("local"))
    checkout.write(".claude/settings.json", hooks("project"))
    checkout.write(".codex/hooks.json", hooks("codex"))
    checkout.write("../claude/settings.json", hooks("user"))
    checkout.write(".wave/settings.json", hooks("own"))
    assert checkout.commands(overlays=[ON], trust=True) == ["user", "own", "project", "codex", "local"]
    assert checkout.commands(overlays=[ON], trust=True, setting_sources=["user"]) == ["user"]
    assert checkout.commands(overlays=[ON], project_hooks=False) == ["user"]


@pytest.mark.parametrize("overlay", [{}, OFF])
def test_without_the_setting_none_of_them_counts(checkout: Checkout, overlay: Any) -> None:
    checkout.write(".claude/settings.json", {**hooks("project"), "permissions": {"deny": ["Bash"]}})
    checkout.write("../claude/settings.json", hooks("user"))
    settings = checkout.settings(overlays=[overlay])
    assert (settings.hooks.hooks, settings.rules.deny) == ((), ())


def test_a_file_that_is_broken_and_does_not_count_harms_nobody(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", "{,")
    assert checkout.commands() == []
    with pytest.raises(SettingsError, match=r"\.claude/settings\.json:1:2: not valid JSON"):
        checkout.gather(overlays=[ON], trust=True)


@pytest.mark.parametrize(("link", "target"), [(".claude", ".wave"), (".wave", ".claude")])
def test_one_file_under_two_names_counts_once(checkout: Checkout, link: str, target: str) -> None:
    checkout.write(f"{target}/settings.json", hooks("./guard"))
    (checkout.project / link).symlink_to(target)
    (hook,) = checkout.settings(overlays=[ON], trust=True).hooks.hooks
    assert (hook.dialect, hook.gets_arguments) == ("wave", True)


def test_in_the_home_directory_the_users_own_file_needs_no_trust(checkout: Checkout) -> None:
    checkout.claude = checkout.project / ".claude"
    checkout.write(".claude/settings.json", hooks("mine"))
    assert checkout.commands(overlays=[ON]) == ["mine"]


def test_a_bare_path_in_a_foreign_file_gets_no_arguments(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("./guard.sh"))
    checkout.write(".wave/settings.json", hooks("./guard.sh"))
    found = checkout.settings(overlays=[ON], trust=True).hooks.hooks
    assert [(hook.dialect, hook.gets_arguments) for hook in found] == [("wave", True), ("claude", False)]


# ------------------------------------------------------------------------------------------------- what of them counts


def test_only_hooks_rules_and_variables_of_a_foreign_file_count(checkout: Checkout) -> None:
    checkout.write(
        ".claude/settings.json",
        {
            "model": "opus",
            "env": {"A": "1"},
            "statusLine": {"type": "command", "command": "x"},
            "strictHooks": True,
            "permissions": {
                "defaultMode": "bypassPermissions",
                "additionalDirectories": ["/"],
                "deny": ["Read(.env)", "WebFetch(domain:x.org)", "WebFetch(https://z.org/*)"],
                "ask": ["Bash(git push:*)"],
                "allow": ["Bash(ls:*)", "WebFetch(domain:y.org)", "WebFetch(https://z.org/*)"],
            },
        },
    )
    settings = checkout.settings(overlays=[ON], trust=True)
    assert settings.issues == ()
    assert (settings.model, settings.strict_hooks, settings.default_mode.value) == (None, False, "default")
    assert settings.additional_directories == ()
    assert [rule.text for rule in settings.rules.deny] == ["Read(.env)", "WebFetch(domain:x.org)", "WebFetch"]
    assert [rule.text for rule in settings.rules.ask] == ["Bash(git push:*)"]
    assert [rule.text for rule in settings.rules.allow] == ["Bash(ls:*)", "WebFetch(domain:y.org)"]
    assert settings.env == {"A": "1"}


def test_rules_that_are_no_list_are_told_as_broken(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", {"permissions": {"deny": "Bash"}})
    with pytest.raises(SettingsError, match="must be a list of rules"):
        checkout.settings(overlays=[ON], trust=True).require_usable()


def test_untrusted_it_can_only_restrict(checkout: Checkout) -> None:
    rules = {"deny": ["Read(.env)"], "allow": ["Bash(ls:*)"]}
    checkout.write(".claude/settings.json", {"env": {"A": "1"}, "permissions": rules})
    gathered = checkout.gather(overlays=[ON])
    settings = merge_settings(gathered.sources)
    assert ([rule.text for rule in settings.rules.deny], settings.rules.allow, settings.env) == (["Read(.env)"], (), {})
    assert "not trusted, so ignored: env, permissions.allow" in gathered.notices[0]


def test_a_restriction_that_cannot_be_read_still_stops_the_start(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", {"permissions": {"deny": ["Read(a/../b)"]}})
    with pytest.raises(SettingsError, match=r"Read\(a/\.\./b\)"):
        checkout.settings(overlays=[ON], trust=True).require_usable()


def test_the_line_of_a_hook_is_told_also_in_a_bare_map() -> None:
    text = '{\n "description": "x",\n "Stop": [\n  {"hooks": [{"command": 5}]}\n ]\n}'
    source = as_foreign(parse_settings(text, Layer.PROJECT, "hooks.json"))
    (issue,) = merge_settings([source]).issues
    assert str(issue) == 'hooks.json:4: hooks.Stop[0].hooks[0]: needs a "command"'


@pytest.mark.parametrize("strict", [False, True])
def test_an_event_that_only_other_agents_have_is_told_and_stops_nothing(checkout: Checkout, strict: bool) -> None:
    checkout.write(".claude/settings.json", hooks("true", "WorktreeCreate"))
    settings = checkout.settings(overlays=[{**ON, "strictHooks": strict}], trust=True)
    settings.require_usable()
    assert "hooks.WorktreeCreate: never happens here" in str(settings.issues[0])


@pytest.mark.parametrize(
    ("matcher", "told"),
    [
        ("MultiEdit|NotebookEdit|Task|WebFetch|WebSearch|Agent|Skill|LS|ExitPlanMode|TodoRead|KillBash", []),
        ("mcp__files", ['matches no tool; write "mcp__files__.*" for all tools of this MCP server']),
        ("mcp__files__read", []),
        ("Bsh", ['no built-in tool is called "Bsh" (did you mean "Bash"?)']),
    ],
)
def test_tools_of_other_agents_are_no_misspelling(checkout: Checkout, matcher: str, told: list[str]) -> None:
    groups = [{"matcher": matcher, "hooks": [{"command": "true"}]}]
    checkout.write(".claude/settings.json", {"hooks": {"PreToolUse": groups}})
    assert [issue.message for issue in checkout.settings(overlays=[ON], trust=True).issues] == told


def test_a_misspelt_event_is_a_broken_entry_there_too(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("true", "PreToolUes"))
    (issue,) = checkout.settings(overlays=[ON], trust=True).issues
    assert (issue.broken, 'did you mean "PreToolUse"' in issue.message) == (True, True)


# -------------------------------------------------------------------------------------------------------------- trust


def test_foreign_hooks_of_a_project_need_trust_like_its_own(checkout: Checkout) -> None:
    script = checkout.write(".claude/hooks/guard.sh", "exit 0")
    checkout.write(".claude/settings.json", hooks('bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'))
    checkout.write("../home/settings.json", ON)
    with pytest.raises(UntrustedHooksError, match=r"guard\.sh.*not trusted yet"):
        checkout.gather()
    checkout.trust()
    assert len(checkout.commands()) == 1
    script.write_text("curl evil")
    with pytest.raises(UntrustedHooksError, match=r"changed since it was trusted: \.claude/hooks/guard\.sh"):
        checkout.gather()


def test_a_project_can_switch_it_on_once_it_is_trusted(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("true"))
    checkout.write(".wave/settings.json", ON)
    gathered = checkout.gather()
    assert merge_settings(gathered.sources).hooks.hooks == ()
    assert "not trusted, so ignored: compat" in gathered.notices[0]
    assert checkout.commands(trust=True) == ["true"]
    checkout.trust()
    assert checkout.commands() == ["true"]


def test_a_function_that_decides_is_asked_for_foreign_hooks_too(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("true"))
    checkout.write(".wave/settings.json", ON)
    asked: list[str] = []

    def decide(found: Any) -> bool:
        asked.extend(hook.command for hook in found)
        return True

    assert checkout.commands(trust=decide) == ["true"]
    assert asked == ["true"]


def test_the_user_has_the_last_word_over_a_trusted_project(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("true"))
    checkout.write(".wave/settings.json", ON)
    assert checkout.commands(trust=True, overlays=[OFF]) == []


def test_trust_in_a_git_ref_covers_foreign_hooks(checkout: Checkout) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    checkout.write(".claude/settings.json", hooks("true"))
    checkout.write(".codex/hooks.json", "{broken at the ref")
    name = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*name, "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=checkout.project, check=True)
    (checkout.project / ".codex" / "hooks.json").unlink()
    assert checkout.commands(overlays=[ON], trust_ref="main") == ["true"]
    checkout.write(".claude/settings.json", hooks("curl evil"))
    with pytest.raises(UntrustedHooksError, match="curl evil"):
        checkout.gather(overlays=[ON], trust_ref="main")


def test_managed_settings_alone_keep_foreign_hooks_out(checkout: Checkout) -> None:
    managed = checkout.write("../etc/settings.json", {"allowManagedHooksOnly": True, **ON})
    checkout.write(".claude/settings.json", hooks("true"))
    assert checkout.commands(managed_file=managed) == []


# ----------------------------------------------------------------------------------------------------- being told of it


def test_hooks_that_nobody_has_decided_about_are_named(checkout: Checkout) -> None:
    checkout.write(".claude/settings.json", hooks("./guard.sh"))
    checkout.write("../claude/settings.json", hooks("user"))
    (told,) = checkout.gather().unused
    assert told.startswith("PreToolUse: ./guard.sh (")
    assert checkout.gather(overlays=[OFF]).unused == ()
    assert checkout.gather(project_hooks=False).unused == ()
    assert checkout.gather(overlays=[ON], trust=True).unused == ()


def test_it_is_remembered_and_outlives_trust(checkout: Checkout) -> None:
    store, project = TrustStore(checkout.home), str(checkout.project)
    assert [store.remember_notice(project), store.remember_notice(project)] == [True, False]
    assert json.loads(store.file.read_text())["projects"][project] == {"told": True}
    checkout.trust()
    assert not store.remember_notice(project)
    store.revoke(project)
    assert store.remember_notice(project)


# ------------------------------------------------------------------------------------------------------------- plugins


def plugin(directory: Path, content: Any) -> str:
    (directory / "hooks").mkdir(parents=True)
    (directory / "hooks" / "hooks.json").write_text(json.dumps(content))
    return str(directory)


def test_a_plugin_that_the_user_names_counts_without_any_setting(checkout: Checkout, tmp_path: Path) -> None:
    command = '${CLAUDE_PLUGIN_ROOT}/a.sh "$CLAUDE_PLUGIN_ROOT"'
    root = plugin(tmp_path / "plugin", {**hooks(command), "permissions": {"deny": ["Bash"]}, "env": {"A": "1"}})
    settings = checkout.settings(plugins=[root])
    (hook,) = settings.hooks.hooks
    assert hook.command == f'{root}/a.sh "$CLAUDE_PLUGIN_ROOT"'
    assert (hook.layer, hook.plugin_root, hook.dialect) == (Layer.FLAG, root, "claude")
    assert (settings.rules.deny, settings.env) == ((), {})


def test_a_path_that_means_something_to_a_shell_is_left_to_the_shell(checkout: Checkout, tmp_path: Path) -> None:
    with_args = {"command": "${CLAUDE_PLUGIN_ROOT}/a.sh", "args": ["${CLAUDE_PLUGIN_ROOT}/x"]}
    content = {"Stop": [{"hooks": [{"command": '"${CLAUDE_PLUGIN_ROOT}/a.sh"'}, with_args]}]}
    root = plugin(tmp_path / "my $(plugin)", content)
    in_shell, without = checkout.settings(plugins=[root]).hooks.hooks
    assert in_shell.command == '"${CLAUDE_PLUGIN_ROOT}/a.sh"'
    assert (without.command, without.args) == (f"{root}/a.sh", (f"{root}/x",))


def test_a_plugin_without_hooks_is_told_and_one_that_is_not_there_stops_the_start(
    checkout: Checkout, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert "has no hooks/hooks.json" in checkout.gather(plugins=[str(tmp_path / "empty")]).notices[0]
    with pytest.raises(SettingsError, match="Plugin directory not found:"):
        checkout.gather(plugins=[str(tmp_path / "gone")])


# -------------------------------------------------------------------------------------------------------- in a session


async def notices(agent: Agent) -> str:
    return "\n".join(
        block.content for message in agent.messages for block in message.blocks if isinstance(block, NoticeBlock)
    )


async def test_a_change_of_a_foreign_file_is_told_and_does_not_count(checkout: Checkout) -> None:
    file = checkout.write(".claude/settings.json", hooks("true"))
    async with await Agent.create(
        workdir=checkout.project, settings=ON, trust=True, model_client=ScriptedModel(["One.", "Two."])
    ) as agent:
        await agent.send_message("hi")
        file.write_text(json.dumps(hooks("false")))
        await agent.send_message("hi")
        assert f"{file} has changed" in await notices(agent)


def test_an_agent_below_another_keeps_its_plugins_and_gets_no_others(checkout: Checkout, tmp_path: Path) -> None:
    above = plugin(tmp_path / "above", hooks("guard"))
    own = plugin(tmp_path / "own", hooks("mine"))
    environment = {"WAVE_HOME": str(checkout.home), "CLAUDE_CONFIG_DIR": str(checkout.claude)}
    outer = lay_foundation(Options(workdir=checkout.project, plugins=[above]), environment)
    assert outer.handed_down is not None
    below = {**environment, **outer.handed_down.variable(), "CLAUDE_CONFIG_DIR": "/elsewhere"}
    inner = lay_foundation(Options(workdir=checkout.project, plugins=[own]), below)
    assert [hook.command for hook in inner.settings.hooks.hooks] == ["guard"]
    assert "Ignored: plugins." in inner.notices[0]
    assert inner.handed_down is not None
    assert inner.handed_down.claude_home == str(checkout.claude)


async def test_a_write_to_a_foreign_settings_file_asks_in_every_mode(checkout: Checkout) -> None:
    user = checkout.write("../claude/settings.json", hooks("true"))
    model = ScriptedModel([Reply(tool_calls=[call("Write", file_path=os.path.realpath(user), content="{}")]), "Done."])
    async with await Agent.create(
        workdir=checkout.project, settings=ON, permission_mode="bypassPermissions", model_client=model
    ) as agent:
        await agent.send_message("hi")
    assert json.loads(user.read_text()) != {}
