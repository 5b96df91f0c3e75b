"""What a type checker finds in a program that uses the SDK, before it is run."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
from wave_agent import Agent, Result, run
from wave_agent.hooks.events import HookEventName
from wave_agent.permissions.decision import PermissionMode
from wave_agent.testing import run_hook


async def right(agent: Agent, result: Result) -> None:
    hooks = {"PreToolUse": [print]}
    await Agent.create(permission_mode="plan", setting_sources=["user"], hooks=hooks)
    agent.permission_mode = PermissionMode.PLAN
    agent.permission_mode = agent.permission_mode
    run("Hi.", permission_mode="acceptEdits", max_turns=3)
    answer: Result = await agent.send_message("Hi.")
    async for event in agent.stream("Hi."):
        print(event, answer)
    shorter: bool = await agent.compact()
    print(shorter, result.status == "completed")


async def wrong(agent: Agent, result: Result) -> None:
    await Agent.create(permission_mode="yolo")  # WRONG
    await Agent.create(setting_sources=["usr"])  # WRONG
    await Agent.create(max_turns="3")  # WRONG
    await Agent.create(can_use_tool=5)  # WRONG
    agent.permission_mode = "yolo"  # WRONG
    run("Hi.", permission_mode="yolo")  # WRONG
    run("Hi.", permision_mode="plan")  # WRONG
    run_hook(print, event="PreTolUse")  # WRONG
    if result.status == "complete":  # WRONG
        pass
    hooks: dict[HookEventName, object] = {"PreTolUse": []}  # WRONG
    await Agent.create(hooks=hooks)
"""


def test_a_wrong_word_is_found_by_the_type_checker(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {"include": ["program.py"], "typeCheckingMode": "strict", "reportUnnecessaryComparison": "error"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    found = json.loads(ran.stdout)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] for one in found if one["severity"] == "error"}
    assert lines == {number for number, line in enumerate(PROGRAM.splitlines()) if "# WRONG" in line}, found
