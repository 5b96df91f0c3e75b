"""What the model is told before anything else."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from wave_agent import Agent
from wave_agent.agent.instructions import NAMES
from wave_agent.agent.surroundings import ProjectSurroundings
from wave_agent.agent.system_prompt import PromptFacts, change_words, mode_in, mode_words, session_words, system_prompt
from wave_agent.permissions.decision import PermissionMode
from wave_agent.rules.rule import Rule, parse_rule
from wave_agent.testing import ScriptedModel

SESSION = PromptFacts(project_dir="/srv/shop", shell="/usr/bin/bash")
NOWHERE = ProjectSurroundings()


def prompt(session: PromptFacts = SESSION, around: ProjectSurroundings = NOWHERE) -> str:
    return system_prompt(session, PermissionMode.DEFAULT, around, today=lambda: date(2031, 2, 3)).text


def facts(**around: Any) -> list[str]:
    return prompt(around=ProjectSurroundings(**around)).split("\n\n")[2].splitlines()


def test_the_facts_are_those_of_this_session() -> None:
    around = {"branch": "main", "changed": 3, "names": ("src/", "README.md"), "more": "12 more"}
    assert facts(**around) == [
        "Project directory: /srv/shop",
        "Git branch: main, 3 changed files",
        "Top level: src/, README.md, and 12 more",
        "System: Linux, shell bash",
        "Date: 2031-02-03",
    ]


def test_what_is_not_known_is_left_out() -> None:
    assert [fact.split(":")[0] for fact in facts()] == ["Project directory", "System", "Date"]
    assert "Git branch: main" in facts(branch="main")
    assert "Git branch: main, no changes" in facts(branch="main", changed=0)
    assert "Git branch: main, 1 changed file" in facts(branch="main", changed=1)


def test_another_working_directory_is_named() -> None:
    session = PromptFacts(project_dir="/srv/shop", working_dir="/srv/shop/api", shell="/bin/sh")
    assert "Working directory: /srv/shop/api\nSystem: Linux, shell sh" in prompt(session)


def test_no_mark_of_hooks_is_shown_that_a_model_could_imitate() -> None:
    assert "<" not in prompt()


@rows("mode", PermissionMode)
@rows("interactive", [True, False, None])
@rows("asks", [True, False])
def test_every_mode_is_explained_and_a_change_can_be_read_again(
    mode: PermissionMode, interactive: bool | None, asks: bool
) -> None:
    session = PromptFacts(project_dir="/work", shell="sh", interactive=interactive, asks=asks)
    told = session_words(session, mode)
    assert f"Permission mode: {mode}. " in told
    assert ("not interactive" in told, "is interactive" in told) == (interactive is False, interactive is True)
    changed = mode_words(session, mode, changed=True)
    assert changed.startswith(f"The permission mode is now {mode}. ")
    assert "{" not in changed
    assert mode_in(changed) is mode


def test_only_a_change_of_mode_is_read_as_one() -> None:
    assert mode_in(mode_words(SESSION, PermissionMode.PLAN)) is None
    assert mode_in("The permission mode is now yolo. Anything goes.") is None


RULES = tuple(map(parse_rule, ("Edit", "Bash(make:*)", "Read(//srv/**)", "Edit", "mcp__git")))


def test_plan_mode_lists_no_rule_for_what_it_refuses() -> None:
    session = PromptFacts(project_dir="/work", shell="sh", allowed=RULES)
    plan, default = [session_words(session, mode) for mode in (PermissionMode.PLAN, PermissionMode.DEFAULT)]
    assert plan.endswith("\nRules that allow more: Read(//srv/**).")
    assert default.endswith("\nRules that allow more: Edit, Bash(make:*), Read(//srv/**), mcp__git.")
    edits = PromptFacts(project_dir="/work", shell="sh", allowed=RULES[:1])
    assert "Rules" not in session_words(edits, PermissionMode.PLAN)


@rows(
    "allowed, before, mode, told",
    [
        (RULES, PermissionMode.PLAN, PermissionMode.DEFAULT, f"{', '.join(dict.fromkeys(one.text for one in RULES))}."),
        (RULES, PermissionMode.DEFAULT, PermissionMode.PLAN, "Read(//srv/**)."),
        (RULES, PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, ""),
        (RULES[2:3], PermissionMode.DEFAULT, PermissionMode.PLAN, ""),
        ((), PermissionMode.PLAN, PermissionMode.DEFAULT, ""),
    ],
)
def test_a_change_of_mode_says_which_rules_allow_more_now(
    allowed: tuple[Rule, ...], before: PermissionMode, mode: PermissionMode, told: str
) -> None:
    words = change_words(PromptFacts(project_dir="/work", shell="sh", allowed=allowed), mode, before)
    assert words.partition("\nRules that allow more: ")[2] == told
    assert mode_in(words) is mode


def test_a_change_to_plan_mode_takes_back_rules_of_which_none_holds() -> None:
    session = PromptFacts(project_dir="/work", shell="sh", allowed=RULES[:2])
    words = change_words(session, PermissionMode.PLAN, PermissionMode.DEFAULT)
    assert words.endswith("\nRules that allow more do not change that.")


async def test_the_rules_follow_the_mode_and_the_system_prompt_stays(tmp_path: Path) -> None:
    model = ScriptedModel(["A plan.", "Done."])
    settings = {"permissions": {"allow": ["Edit"]}}
    options: dict[str, Any] = {"setting_sources": [], "settings": settings, "permission_mode": "plan"}
    async with await Agent.create(workdir=tmp_path, model_client=model, **options) as agent:
        await agent.send_message("Plan it.")
        agent.permission_mode = "default"
        await agent.send_message("Do it.")
    first, second = [request.messages for request in model.requests]
    assert "Rules that allow more" not in first[0]["content"]
    assert second[0] == first[0]
    assert second[-1]["content"].endswith("\nRules that allow more: Edit.")


def test_a_plan_is_for_whoever_can_accept_it() -> None:
    def then(interactive: bool | None) -> str:
        session = PromptFacts(project_dir="/work", shell="sh", interactive=interactive)
        return mode_words(session, PermissionMode.PLAN).rpartition("check it.")[2].strip()

    assert then(True) == "The user may accept it; you then carry it out."
    assert then(False) == "The plan is the result of this run."
    assert then(None) == ""


# ---------------------------------------------------------------------------------------------------- through the agent


async def system_of(project: Path, **options: Any) -> str | None:
    model = ScriptedModel(["Hello."])
    async with await Agent.create(workdir=project, model_client=model, setting_sources=[], **options) as agent:
        await agent.send_message("Hi.")
    first = model.requests[0].messages[0]
    return first["content"] if first["role"] == "system" else None


@pytest.mark.parametrize("name", NAMES)
async def test_what_the_project_says_about_itself_follows(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Use tabs.\n\xff\n")
    system = await system_of(tmp_path)
    assert system is not None
    assert system.endswith(f"Instructions of this project ({name}):\n\nUse tabs.\n\ufffd")


async def test_a_system_prompt_of_the_callers_own_takes_the_place_of_ours_but_plan_mode_is_told(tmp_path: Path) -> None:
    assert await system_of(tmp_path, system_prompt="Be brief.") == "Be brief."
    assert await system_of(tmp_path, system_prompt="") is None
    planning = await system_of(tmp_path, system_prompt="Be brief.", permission_mode="plan")
    assert planning is not None
    assert planning.startswith("Be brief.\n\nPermission mode: plan. Only reading")
