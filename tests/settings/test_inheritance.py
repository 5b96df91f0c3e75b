"""A `wave` that an agent's tool starts: it inherits mode and limits, and no flag loosens them."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from tests.rows import rows
from wave_agent import Agent, SettingsError
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.settings.inheritance import VARIABLE, Inheritance, inherited
from wave_agent.testing import RecordingModelServer, Reply, ScriptedModel, call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PATH", f"{Path(WAVE).parent}:{os.environ['PATH']}")
    return Project(tmp_path)


def nested(project: Project, server: RecordingModelServer, *flags: str) -> str:
    """What a `wave` printed that the agent above, started with these flags, has run."""
    done = project.wave("-p", "outer", "--allowed-tools", "Bash", *flags, server=server)
    assert done.returncode == 0, done.stderr
    outer = [request.body for request in server.requests if request.body["messages"][1]["content"] == "outer"]
    return outer[-1]["messages"][-1]["content"]


def replies(line: str, inner_call: Any) -> list[Any]:
    """The outer agent runs the line, the inner one makes the call."""
    forged = {"mode": "bypassPermissions", "home": "/tmp", "project": "/", "directories": ["/"]}
    line = line.replace("{forged}", json.dumps(forged))
    return [Reply(tool_calls=[call("Bash", command=line)]), Reply(tool_calls=[inner_call]), "Inner.", "Outer."]


@pytest.mark.parametrize(
    "line",
    [
        "wave -p inner --permission-mode bypassPermissions",
        "wave -p inner --permission-mode bypassPermissions --allowed-tools Write --trust",
        "env -u WAVE_PARENT wave -p inner --permission-mode bypassPermissions",
        "(unset WAVE_PARENT; wave -p inner --permission-mode bypassPermissions)",
        "bash -c 'unset WAVE_PARENT; exec wave -p inner --permission-mode acceptEdits; true'; true",
        "WAVE_HOME=/tmp/nowhere wave -p inner --permission-mode bypassPermissions",
        "WAVE_PARENT='{forged}' wave -p inner --permission-mode bypassPermissions",
        "WAVE_PARENT='{forged}' bash -c 'env -u WAVE_PARENT wave -p inner --permission-mode bypassPermissions; true'",
    ],
)
def test_flags_do_not_loosen_the_mode(project: Project, line: str) -> None:
    with serving(*replies(line, call("Write", file_path="evil.txt", content="x"))) as server:
        result = nested(project, server, "--disallowed-tools", "Bash(rm:*)")
    assert "Inner." in result
    assert "whose limits apply" in result or "The permission mode is default" in result
    assert not (project.directory / "evil.txt").exists()
    inner = [request.body for request in server.requests if request.body["messages"][1]["content"] == "inner"]
    assert "nobody can confirm it in this run" in inner[1]["messages"][-1]["content"]


def test_deny_rules_and_settings_files_of_the_agent_above_hold(project: Project, tmp_path: Path) -> None:
    guard = tmp_path / "guard.json"
    log = tmp_path / "guard.log"
    guard.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"command": f"cat >> {log}"}]}]}}))
    line = "wave -p inner --allowed-tools Bash --settings own.json"
    (project.directory / "own.json").write_text('{"permissions": {"allow": ["Bash"]}, "env": {"X": "y"}}')
    with serving(*replies(line, call("Bash", command="touch evil.txt"))) as server:
        result = nested(project, server, "--settings", str(guard), "--disallowed-tools", "Bash(touch:*)")
    assert "Ignored: env, permissions.allow." in result
    inner = [request.body for request in server.requests if request.body["messages"][1]["content"] == "inner"]
    assert "Not run: denied by the permission rule Bash(touch:*)" in inner[1]["messages"][-1]["content"]
    assert not (project.directory / "evil.txt").exists()
    assert log.read_text().count('"PreToolUse"') == 2


def test_it_cannot_work_elsewhere(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    line = f"wave -p inner --cwd {tmp_path}/elsewhere"
    with serving(Reply(tool_calls=[call("Bash", command=line)]), "Outer.") as server:
        result = nested(project, server)
    assert "may not work in" in result
    assert len(server.requests) == 2


def test_the_project_hooks_stay_and_are_trusted_as_above(project: Project) -> None:
    project.settings({"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "cat >> prompts.log"}]}]}})
    line = "wave -p inner --no-project-hooks"
    with serving(Reply(tool_calls=[call("Bash", command=line)]), "Inner.", "Outer.") as server:
        result = nested(project, server, "--trust")
    assert "Ignored: no project hooks." in result
    assert (project.directory / "prompts.log").read_text().count('"prompt":"inner"') == 1


def test_turns_are_limited_as_above(project: Project) -> None:
    line = "wave -p inner --max-turns 9 --output-format json"
    looks = [Reply(tool_calls=[call("Glob", pattern="*")]) for _ in range(2)]
    with serving(Reply(tool_calls=[call("Bash", command=line)]), *looks) as server:
        flags = ("--allowed-tools", "Bash", "--max-turns", "3", "--output-format", "json")
        done = project.wave("-p", "outer", *flags, server=server)
    assert (done.returncode, len(server.requests)) == (4, 3)
    outer = json.loads(done.stdout)
    blocks = [block for message in outer["messages"] for block in message["blocks"] if block["type"] == "tool"]
    result = blocks[0]["result"]
    assert outer["turns"] == 3
    assert '"status": "max_turns"' in result
    assert '"turns": 2' in result


async def test_guards_in_code_cannot_be_handed_down_so_nothing_starts_below(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command=f"{shlex.quote(WAVE)} -p inner")]), "Done."])
    async with await Agent.create(
        workdir=tmp_path,
        model_client=model,
        permission_mode="bypassPermissions",
        hooks={"PreToolUse": [{"hooks": [lambda _: None]}]},
    ) as agent:
        await agent.send_message("go")
    assert "has hooks in code, which cannot be handed down" in model.requests[1].messages[-1]["content"]


# ---------------------------------------------------------------------------------------------------------- the value


def handed(**more: Any) -> Inheritance:
    return Inheritance(mode=PermissionMode.DEFAULT, home="/h", project="/p", directories=("/p", "/q"), **more)


def test_it_travels_whole() -> None:
    sent = handed(
        max_turns=3, max_cost=0.5, overlays=("/a", {"permissions": {"deny": ["Bash"]}}), deny=("x",), strict=True
    )
    assert inherited(sent.variable()) == sent


def test_of_several_agents_above_the_strictest_holds() -> None:
    outer = handed(max_turns=3, max_cost=0.5, deny=("a",), strict=True, share=0.25)
    inner = Inheritance(
        mode=PermissionMode.PLAN,
        home="/x",
        project="/y",
        directories=("/p/deep", "/z"),
        max_turns=9,
        max_cost=9,
        deny=("b",),
        share=0.75,
    )
    script = "import os, sys; from wave_agent.settings.inheritance import inherited; print(inherited(os.environ))"
    done = subprocess.run(
        ["sh", "-c", f'{VARIABLE}=$INNER "$0" -c "$1"', sys.executable, script],
        env={**os.environ, **outer.variable(), "INNER": inner.variable()[VARIABLE]},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for wanted in (
        "'plan'",
        "home='/h'",
        "project='/p'",
        "('/p/deep',)",
        "max_turns=3",
        "max_cost=0.5",
        "('a', 'b')",
        "strict=True",
        "share=0.25",
    ):
        assert wanted in done.stdout


@pytest.mark.parametrize("text", ["", " ", "{", "5", '{"mode": "yolo"}', '{"mode": "plan"}'])
def test_what_cannot_be_read_loosens_nothing(text: str) -> None:
    if not text:
        assert inherited({VARIABLE: text}) is None
        return
    with pytest.raises(SettingsError, match=VARIABLE):
        inherited({VARIABLE: text})


def test_what_is_too_large_to_hand_down_stops_the_start_below() -> None:
    large = handed(overlays=({"env": {"A": "x" * 100_000}},))
    text = large.variable()[VARIABLE]
    assert len(text) < 1000
    found = inherited({VARIABLE: text})
    assert found is not None
    with pytest.raises(SettingsError, match="too large"):
        found.require_complete()


@rows("asked", list(PermissionMode))
@rows("above", list(PermissionMode))
def test_the_mode_is_never_looser(asked: PermissionMode, above: PermissionMode) -> None:
    found = Inheritance(mode=above, home="", project="", directories=()).restricted_mode(asked)
    assert found in NOT_LOOSER[above]
    assert found in (asked, above)


@pytest.mark.parametrize(
    ("asked", "above", "limit"), [(None, None, None), (3, None, 3), (None, 4, 4), (3, 4, 3), (9, 4, 4)]
)
def test_the_smaller_limit_holds(asked: int | None, above: int | None, limit: int | None) -> None:
    assert handed(max_turns=above).restricted_turns(asked) == limit
    assert handed(max_cost=above).restricted_cost(asked) == limit


@pytest.mark.parametrize(
    ("project", "inside"), [("/p", True), ("/p/x", True), ("/q/y", True), ("/px", False), ("/", False)]
)
def test_inside_means_below_one_of_the_directories(project: str, inside: bool) -> None:
    if inside:
        handed().require_inside(project)
    else:
        with pytest.raises(SettingsError, match="may not work in"):
            handed().require_inside(project)
