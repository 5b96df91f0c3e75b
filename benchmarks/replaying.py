"""The cost of replaying 1,000 recorded calls against a shell hook, compared with starting that shell as often."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.measure import Claim

CALLS = 1000
HOOK = 'case $(cat) in *"rm -rf"*) exit 2;; esac'
LIMIT = 1.5


def transcript() -> str:
    calls = (
        {"type": "tool_use", "id": str(at), "name": "Bash", "input": {"command": f"ls {at}"}} for at in range(CALLS)
    )
    return "".join(json.dumps({"type": "assistant", "message": {"content": [call]}}) + "\n" for call in calls)


def spawn_as_often(payload: bytes) -> float:
    started = perf_counter()
    for _ in range(CALLS):
        subprocess.run(["bash", "-c", HOOK], input=payload, capture_output=True, start_new_session=True, check=False)
    return perf_counter() - started


def replay(directory: Path) -> float:
    """The whole command, from start to report."""
    (directory / "project").mkdir()
    (directory / "old").mkdir()
    (directory / "old" / "session.jsonl").write_text(transcript())
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"name": "guard", "command": HOOK}]}]}}
    (directory / "settings.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-c",
        "import sys; from wave_agent.cli.main import main; sys.exit(main())",
        "hooks",
        "backtest",
    ]
    command += ["--from", str(directory / "old"), "--settings", str(directory / "settings.json"), "--json"]
    environment = {**os.environ, "WAVE_HOME": str(directory / "home")}
    started = perf_counter()
    done = subprocess.run(command, cwd=directory / "project", env=environment, capture_output=True, check=True)
    taken = perf_counter() - started
    assert json.loads(done.stdout)["judged"] == CALLS
    return taken


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory:
        floor = spawn_as_often(b'{"tool_name":"Bash","tool_input":{"command":"ls"}}')
        spent = replay(Path(directory))
    each, floor_each = spent / CALLS * 1e6, floor / CALLS * 1e6
    return [
        Claim(
            name="one recorded call replayed, of 1,000",
            value=each,
            unit="µs",
            limit=LIMIT * floor_each,
            floor_name="a raw spawn",
            floor=floor_each,
            factor=LIMIT,
        )
    ]
