"""Managed settings: always read, from files that nobody else can write, and not to be loosened from below."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from tests.rows import rows
from wave_agent import Agent, SettingsError
from wave_agent.agent.foundation import lay_foundation, mode_for
from wave_agent.agent.model_choice import ModelWishes, model_for, model_name_for
from wave_agent.agent.options import Options
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import OnFailure
from wave_agent.models.base import ModelRequest
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.settings.places import read_managed
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.project import Project as Place
from wave_agent.testing import Reply, ScriptedModel, call
from wave_agent.testing.model_server import RecordingModelServer


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "settings.json"


def gather(tmp_path: Path, managed: Path, added: Path | None = None, **choice: Any) -> Settings:
    (tmp_path / "project").mkdir(exist_ok=True)
    chosen = SourceChoice(managed_file=managed, added_managed=str(added) if added else None, **choice)
    return merge_settings(gather_settings(tmp_path / "home", Place.at(str(tmp_path / "project")), chosen).sources)


# ------------------------------------------------------------------------------------------------------------ the files


@pytest.mark.parametrize("layers", [None, [], ["user"]])
def test_it_is_read_whatever_layers_are_named(tmp_path: Path, managed: Path, layers: list[str] | None) -> None:
    write(managed, {"permissions": {"deny": ["Bash(rm:*)"]}})
    assert [rule.text for rule in gather(tmp_path, managed, setting_sources=layers).rules.deny] == ["Bash(rm:*)"]


def test_a_variable_adds_a_file_and_never_replaces_the_systems(tmp_path: Path, managed: Path) -> None:
    write(managed, {"model": "system", "permissions": {"deny": ["Bash(rm:*)"]}})
    added = write(
        tmp_path / "added.json", {"model": "added", "permissions": {"deny": ["Bash(dd:*)"]}, "env": {"A": "1"}}
    )
    settings = gather(tmp_path, managed, added)
    assert (settings.model, settings.env) == ("system", {"A": "1"})
    assert {rule.text for rule in settings.rules.deny} == {"Bash(rm:*)", "Bash(dd:*)"}


def test_an_added_file_that_is_not_there_stops_the_start(tmp_path: Path, managed: Path) -> None:
    with pytest.raises(SettingsError, match="WAVE_MANAGED_SETTINGS"):
        gather(tmp_path, managed, tmp_path / "nowhere.json")


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
@pytest.mark.parametrize("which", ["file", "directory"])
def test_a_file_that_others_can_write_stops_the_start(tmp_path: Path, managed: Path, which: str, mode: int) -> None:
    write(managed, {})
    (managed if which == "file" else managed.parent).chmod(mode | 0o111)
    with pytest.raises(SettingsError, match="is writable by other users"):
        gather(tmp_path, managed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_stops_the_start(tmp_path: Path, managed: Path) -> None:
    os.chown(write(managed, {}), 65534, 65534)
    with pytest.raises(SettingsError, match="is owned by user 65534"):
        gather(tmp_path, managed)


def test_so_do_a_link_and_a_directory_further_up_that_others_can_change(tmp_path: Path, managed: Path) -> None:
    real = write(tmp_path / "sound" / "real.json", {})
    link = tmp_path / "open" / "deep" / "link.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    assert len(read_managed(link, None)) == 1
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(SettingsError, match="is writable by other users"):
        read_managed(link, None)


@pytest.mark.parametrize("kind", ["fifo", "endless", "large"])
def test_what_is_no_file_of_settings_is_told_at_once(tmp_path: Path, managed: Path, kind: str) -> None:
    project = tmp_path / "project" / ".wave"
    project.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(project / "settings.json")
    elif kind == "endless":
        (project / "settings.json").symlink_to("/dev/zero")
    else:
        (project / "settings.json").write_text(" " * (5 << 20))
    with pytest.raises(
        SettingsError, match=r"settings\.json (is not a regular file|leads out of the project|is larger than 4 MiB)"
    ):
        gather(tmp_path, managed)


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path, managed: Path) -> None:
    real = write(tmp_path / "elsewhere" / "real.json", {})
    managed.parent.mkdir()
    managed.symlink_to(real)
    assert len(read_managed(managed, None)) == 1
    real.parent.chmod(0o777)
    with pytest.raises(SettingsError, match="is writable by other users"):
        read_managed(managed, None)


@pytest.mark.parametrize("content", ["{,", "[]", '{"hooks": 5}', '{"hooks": {"PreToolUse": [{"hooks": [{}]}]}}'])
def test_what_is_broken_in_it_stops_the_start(tmp_path: Path, managed: Path, content: str) -> None:
    write(managed, {}).write_text(content)
    with pytest.raises(SettingsError, match=r"settings\.json"):
        gather(tmp_path, managed).require_usable()


# ---------------------------------------------------------------------------------------------------------- from below


def test_its_hooks_block_when_they_fail(tmp_path: Path, managed: Path) -> None:
    write(managed, {"hooks": {"PreToolUse": [{"hooks": [{"command": "true"}]}]}})
    assert [hook.on_failure for hook in gather(tmp_path, managed).hooks.hooks] == [OnFailure.BLOCK]


def test_nothing_below_overrides_or_switches_off(tmp_path: Path, managed: Path) -> None:
    hook = {"command": "./guard.sh", "name": "guard"}
    write(managed, {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]},
        "permissions": {"deny": ["Bash(rm:*)"], "ask": ["Write"], "defaultMode": "default"},
        "env": {"A": "managed"}, "strictHooks": True, "maxStopBlocks": 3, "model": "m", "baseUrl": "http://m/v1",
    })  # fmt: skip
    below = {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{**hook, "enabled": False, "mode": "shadow"}]}]},
        "permissions": {"allow": ["Bash", "Write"], "defaultMode": "bypassPermissions"},
        "env": {"A": "below"}, "strictHooks": False, "maxStopBlocks": 0, "allowManagedHooksOnly": False, "model": "x",
        "baseUrl": "http://evil/v1",
    }  # fmt: skip
    write(tmp_path / "home" / "settings.json", below)
    write(tmp_path / "project" / ".wave" / "settings.json", below)
    settings = gather(tmp_path, managed, overlays=[below], trust=True)
    first = settings.hooks.hooks[0]
    assert (first.layer, first.enabled, first.mode) == (Layer.MANAGED, True, "enforce")
    assert (settings.env, settings.strict_hooks, settings.max_stop_blocks) == ({"A": "managed"}, True, 3)
    assert (settings.default_mode, settings.model, settings.base_url) == ("default", "m", "http://m/v1")
    assert {rule.text for rule in (*settings.rules.deny, *settings.rules.ask)} == {"Bash(rm:*)", "Write"}


@rows("asked", list(PermissionMode))
@rows("limit", list(PermissionMode))
def test_a_flag_cannot_loosen_the_mode(asked: PermissionMode, limit: PermissionMode) -> None:
    settings = Settings(default_mode=limit, managed=frozenset({"default_mode"}))
    mode, told = mode_for(asked.value, settings)
    assert mode is (asked if asked in NOT_LOOSER[limit] else limit)
    assert bool(told) == (mode is not asked)


async def test_flags_and_environment_cannot_choose_another_endpoint() -> None:
    environment = {"WAVE_BASE_URL": "http://127.0.0.1:2/v1", "WAVE_MODEL": "y"}
    async with RecordingModelServer(["fine"]) as server:
        settings = Settings(model="m", base_url=server.base_url, managed=frozenset({"model", "base_url"}))
        model = model_for(ModelWishes(base_url="http://127.0.0.1:1/v1"), settings, environment)
        name = model_name_for("x", settings, environment)
        async for _ in model.stream(ModelRequest(model=name, messages=[{"role": "user", "content": "hi"}])):
            pass
        await model.close()
    assert server.requests[0].body["model"] == "m"


def test_managed_hooks_only_means_no_others_and_no_question(tmp_path: Path, managed: Path) -> None:
    def named(name: str) -> dict[str, Any]:
        return {"PreToolUse": [{"hooks": [{"command": "true", "name": name}]}]}

    write(managed, {"allowManagedHooksOnly": True, "hooks": named("managed")})
    write(tmp_path / "home" / "settings.json", {"hooks": named("user")})
    write(tmp_path / "project" / ".wave" / "settings.json", {"hooks": named("project")})
    settings = gather(tmp_path, managed, overlays=[{"hooks": named("flag")}], hooks=named("code"))
    assert [hook.name for hook in settings.hooks.hooks] == ["managed"]


def test_the_projects_hooks_can_be_left_out_and_the_managed_ones_stay(tmp_path: Path, managed: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"command": "true"}]}]}
    write(managed, {"hooks": hooks})
    write(tmp_path / "project" / ".wave" / "settings.json", {"hooks": hooks})
    assert [hook.layer for hook in gather(tmp_path, managed, project_hooks=False).hooks.hooks] == [Layer.MANAGED]


# -------------------------------------------------------------------------------------------------------- a whole agent


async def test_a_managed_guard_that_cannot_start_denies(tmp_path: Path, managed: Path) -> None:
    write(managed, {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "/no/such/guard"}]}]}})
    (tmp_path / "project").mkdir()
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command="touch made.txt")]), "Done."])
    options = Options(
        workdir=tmp_path / "project",
        model_client=model,
        managed_file=managed,
        permission_mode="bypassPermissions",
        setting_sources=[],
        trust=True,
    )
    async with Agent.from_options(options) as agent:
        await agent.send_message("go")
    assert not (tmp_path / "project" / "made.txt").exists()
    assert [run.outcome for run in agent.hook_runs] == ["failure"]


def test_on_the_command_line(tmp_path: Path) -> None:
    project = Project(tmp_path)
    file = write(tmp_path / "managed.json", {
        "permissions": {"deny": ["Bash(touch:*)"], "defaultMode": "acceptEdits"},
    })  # fmt: skip
    with serving(Reply(tool_calls=[call("Bash", command="touch made.txt")]), "Done.") as server:
        done = project.wave(
            *("-p", "go", "--permission-mode", "bypassPermissions", "--allowed-tools", "Bash"),
            server=server,
            WAVE_MANAGED_SETTINGS=str(file),
        )
    assert done.returncode == 0
    assert "Not run: denied by the permission rule Bash(touch:*)" in json.dumps(server.requests[1].body)
    assert not (project.directory / "made.txt").exists()
    assert "The permission mode is acceptEdits, not bypassPermissions: limited by managed settings." in done.stderr
    file.chmod(0o666)
    refused = project.wave("-p", "go", WAVE_MANAGED_SETTINGS=str(file))
    assert (refused.returncode, "is writable by other users" in refused.stderr) == (1, True)


async def test_a_live_agent_keeps_the_model_and_the_mode_that_are_managed(tmp_path: Path, managed: Path) -> None:
    write(managed, {"model": "m", "permissions": {"defaultMode": "acceptEdits"}})
    (tmp_path / "project").mkdir()
    model = ScriptedModel(["Hello."])
    options = Options(workdir=tmp_path / "project", managed_file=managed, setting_sources=[], model_client=model)
    async with Agent.from_options(options) as agent:
        agent.model_name = "other"
        agent.permission_mode = "bypassPermissions"
        await agent.send_message("Hi.")
    assert (model.requests[0].model, agent.model_name, agent.permission_mode) == ("m", "m", "acceptEdits")
    assert "The model stays m, not other: set by managed settings." in str(agent.messages)


def test_a_foundation_says_what_managed_settings_took_away(tmp_path: Path, managed: Path) -> None:
    write(managed, {"permissions": {"defaultMode": "plan"}})
    (tmp_path / "project").mkdir()
    options = Options(workdir=tmp_path / "project", managed_file=managed, permission_mode="default")
    foundation = lay_foundation(options, {"WAVE_HOME": str(tmp_path / "home")})
    assert (foundation.mode, len(foundation.notices)) == ("plan", 1)


# ------------------------------------------------------------------------------------------------------------- drop-ins


def drop_in(managed: Path, name: str, content: Any) -> Path:
    return write(managed.parent / "settings.d" / name, content)


def test_drop_ins_are_read_by_name_after_the_file_and_their_values_win(tmp_path: Path, managed: Path) -> None:
    write(managed, {"model": "file", "env": {"A": "file"}, "permissions": {"deny": ["Bash(rm:*)"]}})
    drop_in(managed, "20-late.json", {"model": "late", "permissions": {"deny": ["Bash(dd:*)"]}})
    drop_in(managed, "10-early.json", {"model": "early", "env": {"A": "early"}})
    settings = gather(tmp_path, managed)
    assert (settings.model, settings.env) == ("late", {"A": "early"})
    assert [rule.text for rule in settings.rules.deny] == ["Bash(rm:*)", "Bash(dd:*)"]


def test_drop_ins_need_no_file_beside_them(tmp_path: Path, managed: Path) -> None:
    drop_in(managed, "guard.json", {"hooks": {"PreToolUse": ["./guard.sh"]}})
    hooks = gather(tmp_path, managed).hooks.hooks
    assert [(hook.layer, hook.on_failure) for hook in hooks] == [(Layer.MANAGED, OnFailure.BLOCK)]


def test_other_files_among_the_drop_ins_are_not_settings(tmp_path: Path, managed: Path) -> None:
    for name in (".hidden.json", "guard.json~", "guard.json.dpkg-old", "README"):
        drop_in(managed, name, {"model": "wrong"})
    assert gather(tmp_path, managed).model is None


@pytest.mark.parametrize("content", ["{", '{"hooks": {"PreToolUse": [{"hooks": [{"command": 5}]}]}}'])
def test_a_broken_drop_in_stops_the_start(tmp_path: Path, managed: Path, content: str) -> None:
    drop_in(managed, "guard.json", {}).write_text(content)
    with pytest.raises(SettingsError, match=r"settings\.d/guard\.json"):
        gather(tmp_path, managed).require_usable()


@pytest.mark.parametrize("kind", ["file", "link", "writable"])
def test_drop_ins_that_cannot_be_relied_on_stop_the_start(tmp_path: Path, managed: Path, kind: str) -> None:
    directory = managed.parent / "settings.d"
    managed.parent.mkdir()
    if kind == "file":
        directory.write_text("")
    elif kind == "link":
        directory.symlink_to(tmp_path / "nowhere")
    else:
        drop_in(managed, "guard.json", {})
        directory.chmod(0o777)
    with pytest.raises(SettingsError, match=r"settings\.d"):
        gather(tmp_path, managed)


async def test_the_agent_may_not_add_a_drop_in(tmp_path: Path, managed: Path) -> None:
    write(managed, {})
    target = managed.parent / "settings.d" / "zz.json"
    model = ScriptedModel([Reply(tool_calls=[call("Write", file_path=str(target), content="{}")]), "Done."])
    options = Options(workdir=tmp_path, managed_file=managed, model_client=model, permission_mode="bypassPermissions")
    async with Agent.from_options(options) as agent:
        await agent.send_message("Go.")
    assert "settings.d/zz.json" in model.requests[-1].messages[-1]["content"]
    assert not target.exists()
