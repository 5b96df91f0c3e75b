"""Hooks in the definitions of a project's subagents: trust in them, and what disables them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.errors import UntrustedHooksError
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.settings.agent_definitions import DefinitionSource, definition_from, hooks_as_settings
from wave_agent.settings.definition_hooks import definition_candidates
from wave_agent.settings.extensions import trusted_record
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.session_agents import SessionAgents, session_agents
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings, project_extensions, project_settings
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project

DEFINITION = """---
name: reviewer
description: Reviews changes
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - command: sh guard.sh
---
You review.
"""


class Place:
    """A project with a subagent whose hook runs a script."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "state", root / "project"
        self.script, self.definition = self.project / "guard.sh", self.project / ".wave/agents/reviewer.md"
        self.definition.parent.mkdir(parents=True)
        self.home.mkdir()
        self.script.write_text("exit 0\n")
        self.definition.write_text(DEFINITION)
        self.where = Project.at(str(self.project))

    def gather(self, **choice: Any) -> Gathered:
        return gather_settings(self.home, self.where, SourceChoice(claude_home=self.home / "none", **choice))

    def agents(self, **choice: Any) -> SessionAgents:
        return session_agents(self.gather(**choice))

    def record(self) -> Record:
        sources, texts = project_settings(self.home, self.where), project_extensions(self.home, self.where)
        name = str(self.project)
        found = (*candidates(sources, name, file_digest), *definition_candidates(texts, name, file_digest))
        return record_of(sources, name, found, extensions=trusted_record(texts, name))

    def trust(self) -> None:
        TrustStore(self.home).trust(str(self.project), self.record(), self.where.inner)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def refusal(place: Place, **choice: Any) -> UntrustedHooksError:
    with pytest.raises(UntrustedHooksError) as caught:
        place.gather(**choice)
    return caught.value


def test_a_hook_of_a_definition_is_bound_to_the_script_it_names(place: Place) -> None:
    place.trust()
    found = place.gather()
    (hook,) = session_agents(found).definitions["reviewer"].hooks
    assert (hook.agent, hook.line) == ("reviewer", 8)
    assert found.trust.problem(hook) is None

    place.script.write_text("exit 1\n")
    assert "guard.sh has changed since it was trusted" in str(found.trust.problem(hook))
    assert found.trust.changes() == {"guard.sh": file_digest(str(place.script))}
    assert "sh guard.sh" in str(refusal(place))
    assert "in the subagent reviewer): changed since it was trusted: guard.sh" in str(refusal(place))

    place.trust()
    assert place.gather().trust.problem(hook) is None


def test_a_new_definition_is_left_out_and_does_not_keep_the_session_from_starting(place: Place) -> None:
    found = place.gather()
    assert found.extensions is not None
    assert found.extensions.of(ExtensionKind.AGENTS) == {}
    assert found.trust.record == {}


def test_a_definition_with_another_text_is_left_out_but_its_guards_must_not_disappear(place: Place) -> None:
    place.trust()
    place.definition.write_text(DEFINITION.replace("You review.", "You review well."))
    assert place.agents().definitions == {}

    place.definition.write_text("---\nname: reviewer\ndescription: Reviews\n---\nYou review.\n")
    alarm = "removed or disabled: PreToolUse: sh guard.sh (in the subagent reviewer)"
    assert alarm in str(refusal(place))
    place.definition.unlink()
    assert alarm in str(refusal(place))


def test_the_same_hook_in_the_settings_does_not_take_the_place_of_a_definitions(place: Place) -> None:
    place.trust()
    place.definition.write_text("---\nname: reviewer\ndescription: Reviews\n---\nYou review.\n")
    entry = {"matcher": "Bash", "hooks": [{"command": "sh guard.sh"}]}
    (place.project / ".wave/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    assert "in the subagent reviewer" in str(refusal(place))


def test_whoever_is_asked_about_a_definition_sees_its_hooks_and_may_decline(place: Place) -> None:
    seen: list[list[str]] = []

    def decide(hooks: list[HookDefinition], alarms: list[str], texts: list[str]) -> bool:
        seen.append([*(f"{hook.agent}: {hook.command}" for hook in hooks), *alarms, *texts])
        return len(seen) > 1

    assert place.agents(trust=decide).definitions == {}
    found = place.gather(trust=decide)
    (hook,) = session_agents(found).definitions["reviewer"].hooks
    assert seen == [["reviewer: sh guard.sh", ".wave/agents/reviewer.md: not trusted yet"]] * 2
    assert list(found.trust.record.values()) == [{"guard.sh": file_digest(str(place.script))}]
    assert found.trust.problem(hook) is None


def test_a_git_ref_binds_the_scripts_of_definitions_too(place: Place) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x", "-C", str(place.project)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    assert [*place.agents(trust_ref="HEAD").definitions] == ["reviewer"]
    place.script.write_text("exit 1\n")
    assert "differs from HEAD: guard.sh" in str(refusal(place, trust_ref="HEAD"))


def test_a_record_that_was_handed_down_covers_them(place: Place) -> None:
    found = place.gather(trust=True)
    assert found.extensions is not None
    record = Record(hooks=found.trust.record, programs=found.trust.programs, extensions=found.extensions.record)
    assert [*place.agents(record=record).definitions] == ["reviewer"]
    place.script.write_text("exit 1\n")
    assert "guard.sh" in str(refusal(place, record=record))


# ------------------------------------------------------------------------------------------------- what disables them

MINE = DEFINITION.replace("reviewer", "mine")
IN_CODE = {"PreToolUse": [{"hooks": [{"command": "true"}]}]}


NOTHING: dict[str, Any] = {}
ALL = {"mine", "reviewer", "code"}


@pytest.mark.parametrize(
    ("user", "managed", "choice", "runs"),
    [
        pytest.param(NOTHING, NOTHING, NOTHING, ALL, id="nothing"),
        pytest.param(NOTHING, NOTHING, {"no_hooks": True}, set[str](), id="--no-hooks"),
        pytest.param({"disableAllHooks": True}, NOTHING, NOTHING, {"code"}, id="disabled by the user"),
        pytest.param(NOTHING, {"disableAllHooks": True}, NOTHING, set[str](), id="disabled by managed settings"),
        pytest.param(NOTHING, {"allowManagedHooksOnly": True}, NOTHING, set[str](), id="managed hooks only"),
        pytest.param({"allowManagedHooksOnly": True}, NOTHING, NOTHING, ALL, id="which a user cannot say"),
    ],
)
def test_hooks_of_definitions_are_disabled_with_those_of_their_layer(
    place: Place, tmp_path: Path, user: Any, managed: Any, choice: Any, runs: set[str]
) -> None:
    (place.home / "agents").mkdir()
    (place.home / "agents/mine.md").write_text(MINE)
    (place.home / "settings.json").write_text(json.dumps(user))
    managed_file = tmp_path / "managed.json"
    managed_file.write_text(json.dumps(managed))
    place.trust()
    gathered = place.gather(managed_file=managed_file, **choice)
    source = DefinitionSource(name="agents: code", layer=Layer.CODE)
    mine = session_agents(gathered).definitions["mine"]
    hooks = tuple(
        one for one in hooks_as_settings("code", IN_CODE, source).hooks.found if isinstance(one, HookDefinition)
    )
    found = session_agents(gathered, {"code": type(mine)(name="code", description="d", hooks=hooks)})

    assert {*found.definitions} == ALL  # the subagents themselves remain
    assert {name for name, one in found.definitions.items() if one.hooks} == runs
    assert {hook.agent for hook in found.silenced} == ALL - runs
    assert any("do not run in this session either" in notice for notice in found.notices) == bool(found.silenced)


def test_a_projects_settings_do_not_disable_the_hooks_of_its_definitions(place: Place) -> None:
    (place.project / ".wave/settings.json").write_text('{"disableAllHooks": true}')
    place.trust()
    assert place.agents().definitions["reviewer"].hooks


# ------------------------------------------------------------------------------------------------------------- reading


def test_stop_and_subagentstop_of_a_definition_both_run_with_their_lines() -> None:
    events: dict[str, Any] = {
        "Stop": [{"hooks": [{"command": "one"}]}],
        "SubagentStop": [{"hooks": [{"command": "two"}]}],
    }
    lines = {("name",): 2, ("hooks", "Stop"): 4, ("hooks", "Stop", 0): 5, ("hooks", "SubagentStop", 0): 9}
    source = DefinitionSource(name="a.md", layer=Layer.PROJECT, lines=lines)
    found = hooks_as_settings("a", events, source).hooks.found
    hooks = [one for one in found if isinstance(one, HookDefinition)]
    assert [(hook.event.value, hook.command, hook.line) for hook in hooks] == [
        ("SubagentStop", "one", 5),
        ("SubagentStop", "two", 9),
    ]


@rows("events", [{"Stop": 1, "SubagentStop": []}, {"Stop": [], "SubagentStop": 1}])
def test_an_invalid_event_is_not_hidden_by_a_valid_one(events: dict[str, Any]) -> None:
    source = DefinitionSource(name="a.md", layer=Layer.PROJECT)
    assert ["must be a list" in str(one) for one in hooks_as_settings("a", events, source).hooks.found] == [True]


def test_a_definition_with_too_many_hooks_is_left_out() -> None:
    events = {"Stop": [{"hooks": [{"command": f"echo {number}"} for number in range(2_001)]}]}
    source = DefinitionSource(name="a.md", layer=Layer.PROJECT)
    definition, problems = definition_from("a", {"description": "d", "hooks": events}, "Work.", source)
    assert definition is None
    assert "a.md: hooks: there are more than 2,000; remove some. The subagent is left out" in map(str, problems)
