"""Start-up times: `wave -p` up to its first request, `--help`, `--version`, and the bare import."""

import compileall
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import wave_agent
from benchmarks.measure import ENVIRONMENT, Claim, in_floors, in_turns
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
BARE = "python3 -c pass"
START = 9
"""The interpreter, asyncio, msgspec and what they import take about 6 of it."""


def quiet(*command: str, env: Mapping[str, str] = ENVIRONMENT, cwd: str = ".") -> None:
    subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


def claims() -> list[Claim]:
    compileall.compile_dir(Path(wave_agent.__file__).parent, quiet=1)
    bare, light, usage, version = in_turns(
        lambda: quiet(sys.executable, "-c", "pass"),
        lambda: quiet(sys.executable, "-c", "import wave_agent"),
        lambda: quiet(WAVE, "--help"),
        lambda: quiet(WAVE, "--version"),
        rounds=20,
    )
    first, beside = first_requests(20)
    return [
        in_floors("import wave_agent", light, bare, 3, floor_name=BARE),
        in_floors("wave --help", usage, bare, 4, floor_name=BARE),
        in_floors("wave --version", version, bare, 4, floor_name=BARE),
        in_floors("wave -p, start to first request", first, beside, START, floor_name=BARE),
    ]


def first_requests(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the start of the process to the arrival of its request, and those of a bare interpreter."""
    arrived: list[float] = []

    def answer(_: RecordedRequest) -> str:
        arrived.append(time.perf_counter())
        return "Hello."

    first: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory() as home, RecordingModelServer.in_thread([answer] * (rounds + 1)) as server:
        more = {"WAVE_HOME": home, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any", "WAVE_API_KEY": "key"}
        quiet(WAVE, "-p", "Hi", env={**ENVIRONMENT, **more}, cwd=home)
        for _ in range(rounds):
            started = time.perf_counter()
            quiet(WAVE, "-p", "Hi", env={**ENVIRONMENT, **more}, cwd=home)
            first.append((arrived[-1] - started) * 1000)
            started = time.perf_counter()
            quiet(sys.executable, "-c", "pass")
            bare.append((time.perf_counter() - started) * 1000)
    return first, bare
