"""A hook with `rollout` is enforced in a share of all sessions, and only watched in the others."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.project import WAVE, Project, serving
from tests.rows import rows
from wave_agent import Agent
from wave_agent.hooks.definitions import Layer, Mode
from wave_agent.hooks.rollout import in_session, share_of
from wave_agent.settings.hook_entries import load_hooks, parse_settings
from wave_agent.testing import Reply, ScriptedModel, call

GUARD = "echo no pushing >&2; exit 2"


def settings_with(**more: object) -> dict[str, object]:
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": GUARD, "name": "guard", **more}]}]}}


def loaded(**more: object):
    return load_hooks([parse_settings(json.dumps(settings_with(**more)), Layer.USER, "settings.json")])


# --------------------------------------------------------------------------------------------------- which sessions


def test_a_tenth_is_about_a_tenth():
    enforced = [name for name in map(str, range(10_000)) if share_of(name) < 0.1]
    assert 900 < len(enforced) < 1100


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_adds_sessions_and_takes_none_away(session: str, one: float, other: float):
    (smaller,), (larger,) = (loaded(rollout=share).hooks for share in sorted((one, other)))
    if in_session(smaller, share_of(session)).mode is Mode.ENFORCE:
        assert in_session(larger, share_of(session)).mode is Mode.ENFORCE


@given(st.text())
def test_all_and_none_are_exact(session: str):
    (nowhere,), (everywhere,), (usual,) = (loaded(**more).hooks for more in ({"rollout": 0}, {"rollout": 1}, {}))
    share = share_of(session)
    assert in_session(nowhere, share).mode is Mode.SHADOW
    assert in_session(everywhere, share) is everywhere
    assert in_session(usual, share) is usual


# -------------------------------------------------------------------------------------------------------- settings


@rows(
    ("more", "message"),
    [
        ({"rollout": "0.1"}, "must be a share of sessions, a number from 0 to 1, not a string"),
        ({"rollout": True}, "must be a share of sessions, a number from 0 to 1, not "),
        ({"rollout": 10}, "must be a share of sessions from 0 to 1, not 10"),
        ({"rollout": -0.1}, "must be a share of sessions from 0 to 1, not -0.1"),
        ({"rollout": 0.1, "async": True}, '"async" hooks are never enforced'),
    ],
)
def test_a_share_that_cannot_be_read_disables_the_hook(more: dict[str, object], message: str):
    found = loaded(**more)
    assert found.hooks == ()
    assert [(issue.broken, message in issue.message) for issue in found.issues] == [(True, True)]


def test_a_share_beside_shadow_is_reported():
    found = loaded(rollout=0.5, mode="shadow")
    assert ["has no effect" in issue.message for issue in found.issues] == [True]
    assert in_session(found.hooks[0], 0.0).mode is Mode.SHADOW


# -------------------------------------------------------------------------------------------------------- sessions


@pytest.mark.parametrize(("share", "ran", "mode"), [(0, True, "shadow"), (1, False, "enforce")])
async def test_outside_its_share_a_hook_is_journalled_and_changes_nothing(
    tmp_path: Path, share: int, ran: bool, mode: str
):
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command="touch ran")]), "Done."])
    async with await Agent.create(
        workdir=tmp_path,
        model_client=model,
        settings=settings_with(rollout=share),
        setting_sources=[],
        permission_mode="bypassPermissions",
    ) as agent:
        result = await agent.send_message("Go.")
    assert ("no pushing" in str(model.requests[-1].messages)) is not ran
    assert (tmp_path / "ran").exists() is ran
    assert [(run.name, run.mode, run.outcome) for run in result.hooks] == [("guard", mode, "deny")]


_LUCKY = '$(printenv WAVE_PARENT | sed \'s/"share":[^,]*/"share":1/\')'


@pytest.mark.parametrize(
    ("rollout", "inner_agent", "ran"),
    [
        (0, "wave -p inner", True),
        (0.999999, "wave -p inner", False),
        (0.999999, f'WAVE_PARENT="{_LUCKY}" wave -p inner', False),
        (0.999999, "env -u WAVE_PARENT wave -p inner", False),
    ],
)
def test_an_agent_started_by_an_agent_has_its_share_and_not_another_draw(
    rollout: float, inner_agent: str, ran: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In a session of its own, it could be outside the share, or inside while the outer one is not."""
    monkeypatch.setenv("PATH", f"{Path(WAVE).parent}:{os.environ['PATH']}")
    project = Project(tmp_path)
    guard = {"command": 'case $(cat) in *"touch ran"*) echo no >&2; exit 2;; esac', "rollout": rollout}
    settings = project.directory / ".wave" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}}))
    outer = Reply(tool_calls=[call("Bash", command=inner_agent)])
    inner = Reply(tool_calls=[call("Bash", command="touch ran")])
    with serving(outer, inner, "Inner.", "Outer.") as server:
        done = project.wave("-p", "outer", "--allowed-tools", "Bash", "--trust", server=server)
    assert [request.body["messages"][1]["content"] for request in server.requests].count("inner") == 2
    assert done.returncode == 0, done.stderr
    assert (project.directory / "ran").exists() is ran
