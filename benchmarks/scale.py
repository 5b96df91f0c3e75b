"""Backtests of more and more recorded calls: `python -m benchmarks.scale [--hook warm|shell] [CALLS…] [-- OPTIONS]`.

Takes minutes, so it is not part of `make bench`. Options after `--` go to `wave hooks backtest`, for example
`-- --scheduler local --jobs 2`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.recorded_calls import write_sessions
from benchmarks.replaying import HOOKS, WAVE, settings_for

SIZES = (1_000, 10_000, 100_000)
HEAD = "| calls | sessions | MiB | seconds | calls/s | CPU µs per call | largest process MiB |"


def measure(calls: int, hook: str, options: Sequence[str]) -> str:
    """A row of the table."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        sessions = write_sessions(directory / "old", calls)
        size = sum(file.stat().st_size for file in (directory / "old").rglob("*.jsonl"))
        (directory / "project").mkdir()
        arguments = ["--from", str(directory / "old"), "--settings", str(settings_for(directory, hook)), *options]
        environment = {**os.environ, "WAVE_HOME": str(directory / "home")}
        started = perf_counter()
        process = subprocess.Popen(
            [*WAVE, *arguments],
            cwd=directory / "project",
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, process.returncode
    cpu = (used.ru_utime + used.ru_stime) / calls * 1e6
    row = (calls, sessions, size / 2**20, seconds, calls / seconds, cpu, used.ru_maxrss / 2**10)
    return "| " + " | ".join(f"{value:,.1f}" if value < 100 else f"{value:,.0f}" for value in row) + " |"


def main(arguments: list[str]) -> None:
    own, options = arguments, list[str]()
    if "--" in arguments:
        at = arguments.index("--")
        own, options = arguments[:at], arguments[at + 1 :]
    hook = "warm"
    if own[:1] == ["--hook"]:
        hook, own = own[1], own[2:]
    assert hook in HOOKS, f"--hook takes {' or '.join(HOOKS)}"
    print(HEAD, "| ---: " * 7 + "|", sep="\n", flush=True)
    for calls in map(int, own) if own else SIZES:
        print(measure(calls, hook, options), flush=True)


if __name__ == "__main__":
    assert shutil.which("bash")
    main(sys.argv[1:])
