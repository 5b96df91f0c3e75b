"""What `@hook` adds to a hook script, compared with a script that reads the JSON itself."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.measure import Claim

EVENT = json.dumps({"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}).encode()
WITH_HOOK = """\
from wave_agent.hooks import deny, hook


@hook
def guard(call):
    if "rm -rf" in call.input["command"]:
        return deny("rm -rf is not allowed here")


if __name__ == "__main__":
    guard.main()
"""
BARE = """\
import json
import sys

call = json.load(sys.stdin)
if "rm -rf" in call["tool_input"]["command"]:
    print(json.dumps({"decision": "block", "reason": "rm -rf is not allowed here"}))
"""


def run(script: Path) -> float:
    started = perf_counter()
    subprocess.run([sys.executable, script], input=EVENT, capture_output=True, check=True)
    return (perf_counter() - started) * 1e6


def claims() -> list[Claim]:
    """The two run alternately, so that a busy moment of the machine affects both."""
    with TemporaryDirectory() as directory:
        scripts = [Path(directory) / name for name in ("bare.py", "guard.py")]
        for script, text in zip(scripts, (BARE, WITH_HOOK), strict=True):
            script.write_text(text)
            run(script)
        rounds = [[run(script) for script in scripts] for _ in range(40)]
    floor, spent = (median(times) for times in zip(*rounds, strict=True))
    return [
        Claim(
            name="one @hook script, from start to exit",
            value=spent,
            unit="µs",
            limit=1.5 * floor,
            floor_name="a bare script",
            floor=floor,
            factor=1.5,
        )
    ]
