"""What it costs to know which files a command changed, in a project of 100,000 files, 2,000 of which rules protect."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim, spread_of

FILES, IN_A_DIRECTORY = 100_000, 20
ROUNDS = 30
RULES = ("Edit(package-0/**)", "Edit(package-1/**)")


def claims() -> list[Claim]:
    memory = "/dev/shm"  # 100,000 files on a disk take minutes to create, which is not what is measured
    with TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as directory:
        project = Path(directory).resolve() / "project"
        make(project)
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.changes", str(project), f"{directory}/private"],
            stdout=subprocess.PIPE,
            check=True,
        )
    figures = json.loads(told.stdout)
    return [
        Claim(
            name="noticing a change among 100,000 files, both looks",
            value=median(figures["looks"]),
            unit="ms",
            limit=5,
            floor_name="stat of every file",
            floor=median(figures["scans"]),
            spread=spread_of(figures["looks"]),
        ),
        Claim(name="memory to watch 100,000 files", value=figures["memory"], unit="MB", limit=50),
        Claim(name="starting to watch 100,000 files", value=figures["armed"], unit="s", limit=None),
    ]


def make(project: Path) -> None:
    for number in range(0, FILES, IN_A_DIRECTORY):
        directory = f"{project}/package-{number // 1000}/part-{number}"
        os.makedirs(directory)
        for at in range(IN_A_DIRECTORY):
            file = os.open(f"{directory}/module_{at}.py", os.O_WRONLY | os.O_CREAT)
            os.write(file, b"value = %d\n" % (number + at))
            os.close(file)


async def measure(project: str, private: str) -> dict[str, object]:
    """In a process of its own, whose memory nothing else has grown."""
    from benchmarks.growth import resident
    from wave_agent.agent.file_watch import FileWatch, WatchedPlaces
    from wave_agent.messages import MessageManager
    from wave_agent.rules.rule import Places, parse_rule
    from wave_agent.tools.changes import FileChanges

    before, started = resident(), time.perf_counter()
    watch = FileWatch(
        WatchedPlaces(project=project, own=(), contents=Path(private), displaced=Path(private, "displaced")),
        [parse_rule(rule) for rule in RULES],
        Places(project, private),
        os.environ,
        changes=FileChanges(),
        messages=MessageManager([], lambda _: None),
        record=lambda _: None,
        is_busy=lambda: False,
    )
    await watch.before()
    armed = time.perf_counter() - started
    file = Path(project, "package-9", "part-9000", "module_0.py")
    looks, scans = list[float](), list[float]()
    for number in range(ROUNDS):
        started = time.perf_counter()
        await watch.before()
        first = time.perf_counter() - started
        new = act(file, Path(project, f"new-{number}", "deep"), number)
        started = time.perf_counter()
        found = await watch.after("call_1", "Bash")
        looks.append((first + time.perf_counter() - started) * 1000)
        assert found.paths == (str(new), str(file)), found
        if number % 10 == 0:
            scans.append(scan(project))
    return {"looks": looks, "scans": scans, "memory": resident() - before, "armed": armed}


def act(file: Path, directory: Path, number: int) -> Path:
    """Changes a file, and creates one in a new directory."""
    file.write_text(f"value = {number}\n")
    directory.mkdir(parents=True)
    (directory / "file").write_text("new")
    return directory / "file"


def scan(project: str) -> float:
    """Milliseconds to look at every file."""
    started = time.perf_counter()
    pending = [project]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(*sys.argv[1:]))))
