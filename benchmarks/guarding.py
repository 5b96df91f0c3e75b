"""What one event of another agent takes in `wave guard`, as the host sees it: the whole installed line."""

import compileall
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import wave_agent
from benchmarks.measure import ENVIRONMENT, Claim, in_floors, in_turns
from benchmarks.starting import BARE, WAVE
from wave_agent.cli.guard.options import program_for
from wave_agent.guard.lines import guard_line
from wave_agent.system.ancestry import OTHER_AGENTS

HOST, EVENT = "claude", "PreToolUse"
LONG = 50
"""Earlier calls of the session, of 8 KB each: a transcript longer than what is read of it."""


def claims() -> list[Claim]:
    compileall.compile_dir(Path(wave_agent.__file__).parent, quiet=1)
    with TemporaryDirectory() as directory:
        host = Host(Path(directory))
        cold = [host.first() for _ in range(7)]
        with host.resident():
            for _ in range(LONG):
                host.ask(host.line, "echo " + "x" * 8000)
            bare, ours, shared = in_turns(
                lambda: subprocess.run([sys.executable, "-c", "pass"], env=host.environment, check=True),
                lambda: host.ask(host.line),
                lambda: host.ask(host.shared_line),
                rounds=40,
            )
        host.environment["WAVE_GUARD_RESIDENT"] = "off"
        alone, beside = in_turns(
            lambda: host.ask(host.line),
            lambda: subprocess.run([sys.executable, "-c", "pass"], env=host.environment, check=True),
            rounds=10,
        )
    return [
        in_floors("one event in wave guard, resident, no hooks", ours, bare, 2.5, floor_name=BARE),
        _figure("the same through a project's line (wave on PATH)", shared, bare),
        _figure("the same without the resident guard", alone, beside),
        _figure("the first event, which starts the resident guard", cold, beside),
    ]


def _figure(name: str, samples: list[float], floors: list[float]) -> Claim:
    return Claim(name=name, value=median(samples), unit="ms", limit=None, floor_name=BARE, floor=median(floors))


class Host:
    """Runs lines as a host does, in a project without hooks."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        (self.project / ".wave").mkdir(parents=True)
        self._directory = directory
        self._homes = 0
        self.line = guard_line(HOST, EVENT, program_for(for_user=True))
        self.shared_line = guard_line(HOST, EVENT)
        kept = {name: value for name, value in ENVIRONMENT.items() if name not in OTHER_AGENTS}
        self.environment = {
            **{name: value for name, value in kept.items() if not name.startswith(("WAVE", "CLAUDE"))},
            "PATH": os.pathsep.join([str(Path(WAVE).parent), os.environ["PATH"]]),
        }

    def ask(self, line: str, command: str = "ls") -> None:
        call = {"session_id": "s", "cwd": str(self.project), "tool_name": "Bash", "tool_input": {"command": command}}
        subprocess.run(
            ["sh", "-c", line],
            input=json.dumps(call).encode(),
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            check=True,
        )

    def resident(self) -> "Resident":
        """With a resident guard; before, there is none."""
        self._homes += 1
        self.environment["WAVE_HOME"] = str(self._directory / f"home-{self._homes}")
        return Resident(self)

    def first(self) -> float:
        """Milliseconds of the first event of a user."""
        started = time.perf_counter()
        with self.resident() as resident:
            return resident.started - started * 1000


class Resident:
    """The resident guard, from its first event to its end."""

    started = 0.0
    """When the first event was answered, in milliseconds."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._guard = Path(host.environment["WAVE_HOME"]) / "guard"

    def __enter__(self) -> "Resident":
        self._host.ask(self._host.line)
        self.started = time.perf_counter() * 1000
        while not (self._guard / "socket").exists():
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(int((self._guard / "lock").read_text()), signal.SIGTERM)
        with (self._guard / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it has ended
