"""What Grep costs in a project of 100,000 files, next to `rg` alone: for a rare word, and for one in every file.
And what a key costs that completes the name of a file there."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim, in_floors, in_turns
from wave_agent.screen.file_index import FileIndex
from wave_agent.tools.base import ToolContext
from wave_agent.tools.grep import Grep, GrepInput

FILES, IN_A_DIRECTORY = 100_000, 50
ROUNDS = 15
LINES = b"some words of a file that is searched\n" * 60


def claims() -> list[Claim]:
    rg = shutil.which("rg")
    if rg is None:
        print("rg is not on PATH: searching is not compared with it")
    memory = "/dev/shm"  # 100,000 files on a disk take minutes to create, which is not what is measured
    with TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as directory:
        project = Path(directory).resolve() / "project"
        make(project)
        completed = completing(project)
        searched = [] if rg is None else searching(project, rg)
    return [*searched, completed]


def searching(project: Path, rg: str) -> list[Claim]:
    rare, often, alone = in_turns(
        lambda: asyncio.run(grep(project, "needle_in_hay")),
        lambda: asyncio.run(grep(project, "searched")),
        lambda: subprocess.run([rg, "-l", "needle_in_hay", str(project)], stdout=subprocess.DEVNULL, check=True),
        rounds=ROUNDS,
    )
    return [
        in_floors("Grep in 100,000 files", rare, alone, 1.3, floor_name="rg"),
        in_floors("the same for a word in every file", often, alone, 0.3, floor_name="rg, a rare word"),
    ]


def completing(project: Path) -> Claim:
    files = FileIndex(str(project))
    files.refresh()
    (slowest,) = in_turns(lambda: files.matching("not-in-any-name", 8), rounds=ROUNDS)
    return Claim(name="a key of an `@` completion, 100,000 files", value=median(slowest), unit="ms", limit=50)


def make(project: Path) -> None:
    for number in range(0, FILES, IN_A_DIRECTORY):
        directory = f"{project}/package-{number // 2000}/part-{number}"
        os.makedirs(directory)
        for at in range(IN_A_DIRECTORY):
            file = os.open(f"{directory}/module_{at}.py", os.O_WRONLY | os.O_CREAT)
            os.write(file, LINES + (b"needle_in_hay\n" if number + at == FILES // 2 else b""))
            os.close(file)


async def grep(project: Path, pattern: str) -> None:
    context = ToolContext(project_dir=project, environment=os.environ, outputs=project.parent)
    await Grep().run(GrepInput(pattern=pattern), context)
