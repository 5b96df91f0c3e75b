"""The cost of replaying recorded calls, with a shell hook and with a Python hook that stays warm; and of preparing a
project with 100,000 files for it.

A call with a shell hook is compared with starting that shell. What a core can do with a warm hook is CPU time, of all
processes together: a busy machine changes that little. The start of the command is not counted: the cost of calls is
that of a long run less that of a short one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from benchmarks.measure import Claim
from benchmarks.recorded_calls import write_sessions

START_CALLS, SHELL_CALLS, WARM_CALLS = 500, 1000, 5000
FILES = 100_000
HOOK = 'case $(cat) in *"rm -rf"*) exit 2;; esac'
FUNCTION = """\
def check(call):
    if "rm -rf" in call["tool_input"].get("command", ""):
        return {"decision": "block", "reason": "no"}
"""
SHELL_LIMIT, WARM_LIMIT, FILES_LIMIT = 1.2, 1500, 1000
WAVE = [
    *(sys.executable, "-c", "import sys; from wave_agent.cli.main import main; sys.exit(main())"),
    *("hooks", "backtest", "--json"),
]
HOOKS = ("shell", "warm")


def settings_for(directory: Path, hook: str) -> Path:
    """Settings with one guard, in a shell or in a process that stays."""
    (directory / "guard.py").write_text(FUNCTION)
    entries = {"shell": {"command": HOOK}, "warm": {"type": "python", "target": f"{directory / 'guard.py'}:check"}}
    file = directory / f"{hook}.json"
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"name": "guard", **entries[hook]}]}]}}))
    return file


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float

    def less(self, other: "Spent") -> "Spent":
        return Spent(self.wall - other.wall, self.cpu - other.cpu)


def now() -> Spent:
    return Spent(perf_counter(), sum(os.times()[:4]))


def spawn_as_often(payload: bytes) -> Spent:
    before = now()
    for _ in range(SHELL_CALLS):
        subprocess.run(["bash", "-c", HOOK], input=payload, capture_output=True, start_new_session=True, check=False)
    return now().less(before)


def replay(directory: Path, hook: str, calls: int) -> Spent:
    """The whole command, with one process that replays."""
    old = directory / f"{calls}"
    if not old.exists():
        write_sessions(old, calls)
    (directory / "project").mkdir(exist_ok=True)
    command = [*WAVE, "--jobs", "1", "--from", str(old), "--settings", str(settings_for(directory, hook))]
    environment = {**os.environ, "WAVE_HOME": str(directory / "home")}
    before = now()
    done = subprocess.run(command, cwd=directory / "project", env=environment, capture_output=True, check=True)
    spent = now().less(before)
    assert json.loads(done.stdout)["judged"] == calls
    return spent


def added(directory: Path, hook: str, calls: int) -> Spent:
    """What so many more calls cost."""
    return replay(directory, hook, START_CALLS + calls).less(replay(directory, hook, START_CALLS))


def in_a_large_project(directory: Path) -> float:
    """The whole command in a project with many files, with one call to replay."""
    for number in range(FILES // 100):
        folder = directory / "project" / f"{number // 100}" / f"{number}"
        folder.mkdir(parents=True)
        for name in range(100):
            (folder / f"{name}.py").write_text("x = 1\n")
    (directory / "old").mkdir()
    use = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}
    (directory / "old" / "a.jsonl").write_text(json.dumps({"type": "assistant", "message": {"content": [use]}}))
    command = [*WAVE, "--from", str(directory / "old"), "--settings", str(settings_for(directory, "shell"))]
    environment = {**os.environ, "WAVE_HOME": str(directory / "home")}
    taken: list[float] = []
    for _ in range(3):
        started = perf_counter()
        subprocess.run(command, cwd=directory / "project", env=environment, capture_output=True, check=True)
        taken.append(perf_counter() - started)
    return median(taken)


def claims() -> list[Claim]:
    with TemporaryDirectory() as name:
        directory = Path(name)
        floors, shells = [], []
        for _ in range(2):
            floors.append(spawn_as_often(b'{"tool_name":"Bash","tool_input":{"command":"ls"}}'))
            shells.append(added(directory, "shell", SHELL_CALLS))
        warm = WARM_CALLS / added(directory, "warm", WARM_CALLS).cpu
    with TemporaryDirectory() as name:
        large = in_a_large_project(Path(name))
    floor, shell = (min(spent.wall for spent in found) / SHELL_CALLS * 1e6 for found in (floors, shells))
    return [
        Claim(
            name="replaying one recorded call with a shell hook",
            value=shell,
            unit="µs",
            limit=SHELL_LIMIT * floor,
            floor_name="a raw spawn",
            floor=floor,
            factor=SHELL_LIMIT,
        ),
        Claim(
            name="recorded calls replayed per core, with a warm hook",
            value=warm,
            unit="/s",
            limit=WARM_LIMIT,
            at_least=True,
        ),
        Claim(
            name="replaying one call in a project of 100,000 files", value=large * 1000, unit="ms", limit=FILES_LIMIT
        ),
    ]
