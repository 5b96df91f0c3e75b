"""`disableAllHooks`: nobody can disable a guard that is not theirs."""

import json
from pathlib import Path
from typing import Any

import pytest

from wave_agent.errors import UntrustedHooksError
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.disabled_hooks import DisabledHooks
from wave_agent.settings.hook_entries import SettingsSource, load_hooks, parse_settings
from wave_agent.settings.other_agents import as_foreign
from wave_agent.settings.sources import SourceChoice, gather_settings, project_settings
from wave_agent.settings.trust import TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project

LAYERS = {layer.value: layer for layer in Layer}


def source(layer: str, *, disables: Any = None, name: str = "") -> SettingsSource:
    hooks = {"Stop": [{"hooks": [{"command": "true", "name": name or layer}]}]}
    settings = {"hooks": hooks, **({} if disables is None else {"disableAllHooks": disables})}
    return parse_settings(json.dumps(settings), LAYERS[layer], f"{name or layer}.json")


def left(*sources: SettingsSource) -> set[str]:
    return {hook.name for hook in load_hooks(DisabledHooks(sources).take(sources)).hooks}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("managed", set[str]()),
        ("user", {"managed", "code", "flag"}),
        ("project", {"managed", "code", "user", "local", "flag", "inner"}),
        ("local", {"managed", "code", "user", "project", "flag", "inner"}),
        ("flag", {"managed", "code", "user", "project", "local", "inner"}),
    ],
)
def test_each_layer_disables_what_is_its_own(by: str, expected: set[str]) -> None:
    layers = [source(layer, disables=True if layer == by else None) for layer in LAYERS]
    assert left(*layers, source("project", name="inner")) == expected


def test_settings_for_another_agent_disable_only_themselves() -> None:
    theirs = as_foreign(source("user", disables=True, name="theirs"))
    assert left(theirs, source("user"), source("project")) == {"user", "project"}


@pytest.mark.parametrize("value", [False, "true", 1, None])
def test_anything_but_true_disables_nothing(value: Any) -> None:
    assert left(source("user", disables=value)) == {"user"}


def test_what_is_disabled_is_named_with_the_file_that_says_so() -> None:
    off = DisabledHooks([source("user", disables=True), source("project")])
    off.take([source("user", disables=True), source("project")])
    (notice,) = off.notices
    assert notice.startswith(
        "disableAllHooks in user.json: these hooks do not run in this session: user (Stop), project"
    )
    assert [hook.name for hook in off.hooks] == ["user", "project"]


def gathered(tmp_path: Path, project: dict[str, Any], user: dict[str, Any] | None = None, **choice: Any) -> Any:
    home, directory = tmp_path / "home", tmp_path / "project"
    for place in (home, directory / ".wave"):
        place.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text(json.dumps(user or {}))
    (directory / ".wave" / "settings.json").write_text(json.dumps(project))
    return gather_settings(home, Project.at(str(directory)), SourceChoice(managed_file=tmp_path / "none", **choice))


GUARD = {"Stop": [{"hooks": [{"command": "true", "name": "guard"}]}]}


def test_a_guard_that_its_file_disables_after_it_was_trusted_is_missed(tmp_path: Path) -> None:
    gathered(tmp_path, {"hooks": GUARD}, trust=True)
    directory = str(tmp_path / "project")
    (trusted,) = [parse_settings(json.dumps({"hooks": GUARD}), Layer.PROJECT, f"{directory}/.wave/settings.json")]
    found = candidates([trusted], directory, file_digest)
    TrustStore(tmp_path / "home").trust(directory, record_of([trusted], directory, found))
    with pytest.raises(UntrustedHooksError, match="removed or disabled"):
        gathered(tmp_path, {"hooks": GUARD, "disableAllHooks": True})


def test_the_users_own_settings_disable_a_projects_hooks_without_asking_for_trust_in_them(tmp_path: Path) -> None:
    found = gathered(tmp_path, {"hooks": GUARD}, {"disableAllHooks": True, "hooks": GUARD})
    assert found.settings.hooks.hooks == ()
    assert found.hooks_disabled
    assert len(found.silenced) == 2
    assert any("disableAllHooks" in notice for notice in found.notices)


def test_a_project_that_disables_its_hooks_can_be_trusted_like_that(tmp_path: Path) -> None:
    disabled = {"hooks": GUARD, "disableAllHooks": True}
    gathered(tmp_path, disabled)
    place = Project.at(str(tmp_path / "project"))
    sources = project_settings(tmp_path / "home", place)
    found = candidates(sources, place.directory, file_digest)
    TrustStore(tmp_path / "home").trust(place.directory, record_of(sources, place.directory, found))
    again = gathered(tmp_path, disabled)
    assert again.settings.hooks.hooks == ()
    assert [hook.name for hook in again.silenced] == ["guard"]
    assert not again.hooks_disabled
