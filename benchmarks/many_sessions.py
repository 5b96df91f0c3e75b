"""Questions to the journal of a whole company: figures of many sessions, from the index and from Parquet.

`python -m benchmarks.many_sessions HOME [SESSIONS] [DIFFERENT]` makes such a `WAVE_HOME`: a real session of 50 calls,
100,000 times by default. DIFFERENT of them (200 by default) have content of their own, the others are links to these:
17 GB of the same would only measure the disk.
"""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import ENVIRONMENT, Claim
from wave_agent import Agent
from wave_agent.replay.export_place import ExportPlace
from wave_agent.replay.export_rows import TABLES
from wave_agent.sessions.index import latest_session
from wave_agent.testing import Reply, ScriptedModel, call

CALLS = 50
SESSIONS = 6_000
"""Just enough for the index to be used."""
RUNS = 1_000_000
GUARD = "case $(cat) in *'rm -rf'*) echo 'not allowed' >&2; exit 2;; esac"
HOOKS: dict[str, Any] = {
    "PreToolUse": [{"hooks": [{"name": "guard", "command": GUARD}, {"name": "lint", "command": "true"}]}],
    "PostToolUse": [{"hooks": [{"name": "format", "command": "true"}]}],
    "Stop": [{"hooks": [{"name": "notify", "command": "exit 3"}]}],
}
_DURATION = re.compile(rb'"duration_ms":[0-9.]+')


_NOTE_MEMORY = """
import atexit, sys
@atexit.register
def note():  # not `ru_maxrss`, which includes the memory of the process that started this one
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM")).split()[1], file=sys.stderr)
"""


def real_session(home: Path, project: Path) -> Path:
    """The transcript of a session with 50 calls, of which every tenth is denied."""

    async def run() -> Path:
        lines = ("rm -rf build" if at % 10 == 3 else f"echo {at}" for at in range(CALLS))
        replies = [*(Reply(tool_calls=[call("Bash", command=line)]) for line in lines), "Done."]
        os.environ["WAVE_HOME"] = str(home)
        agent = await Agent.create(
            workdir=project, model_client=ScriptedModel(replies), hooks=HOOKS, setting_sources=[],
            permission_mode="bypassPermissions",
        )  # fmt: skip
        async with agent:
            await agent.send_message("Tidy up.")
        return Path(agent.transcript_path)

    before = os.environ.get("WAVE_HOME")
    try:
        return asyncio.run(run())
    finally:
        os.environ.pop("WAVE_HOME")
        os.environ |= {} if before is None else {"WAVE_HOME": before}


def multiply(transcript: Path, sessions: int, different: int) -> None:
    """More sessions beside it: other ids, times and durations."""
    content, own, now = transcript.read_bytes(), transcript.stem.encode(), time.time()
    chance = random.Random(1)
    original = transcript
    for number in range(sessions):
        name = str(uuid.UUID(int=chance.getrandbits(128)))
        path = transcript.with_name(f"{name}.jsonl")
        if number % max(1, sessions // different):
            os.link(original, path)
            continue
        varied = _DURATION.sub(lambda _: b'"duration_ms":%.3f' % chance.lognormvariate(2, 1), content)
        path.write_bytes(varied.replace(own, name.encode()))
        used = now - number / sessions * 30 * 86_400
        os.utime(path, (used, used))
        original = path


def wave(home: Path, project: Path, *words: str) -> tuple[float, float]:
    """Seconds, and the peak memory in MB, of a command."""
    program = "import sys; from wave_agent.cli.main import main; sys.exit(main())"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"{_NOTE_MEMORY}\n{program}", *words],
        cwd=project,
        env={**ENVIRONMENT, "WAVE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - started, int(done.stderr.split()[-1]) / 1024


def parquet(place: Path, runs: int) -> None:
    """An export with this many hook runs, of 30 days and 20 hooks, made by DuckDB itself."""
    import duckdb

    ExportPlace(str(place)).prepare()
    values = {
        "source": "'made'", "session_id": "uuid()::VARCHAR", "run": "i", "event": "'PreToolUse'", "layer": "'project'",
        "started": "TIMESTAMP '2026-01-01' + INTERVAL (i % 2592000) SECOND", "name": "'hook-' || (i % 20)",
        "mode": "'enforce'", "outcome": "CASE WHEN random() < 0.03 THEN 'deny' ELSE 'none' END", "turn": "1",
        "let_through": "false", "rewrote": "false", "look": "1", "is_async": "false", "tokens": "0", "tool": "'Bash'",
        "duration_ms": "exp(2 + random() * 3)", "turn_ms": "5000.0", "user": "'user-' || (i % 500)",
        "repository": "'example.com/acme/app-' || (i % 100)",
    }  # fmt: skip
    columns = ", ".join(
        f'CAST({values.get(column.name, "NULL")} AS {column.type}) AS "{column.name}"' for column in TABLES["hook_runs"]
    )
    target = place / "hook_runs"
    with duckdb.connect() as database:
        rows = f"SELECT {columns}, CAST(DATE '2026-01-01' + (i % 30)::INTEGER AS DATE) AS day FROM range({runs}) t(i)"
        database.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet, PARTITION_BY (day), FILENAME_PATTERN 'made')")


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory:
        home, project, place = Path(directory, "home"), Path(directory, "project"), Path(directory, "export")
        project.mkdir()
        multiply(real_session(home, project), SESSIONS, 20)
        first, _ = wave(home, project, "hooks", "stats")
        again, memory = wave(home, project, "hooks", "stats")
        latest_session(home, str(project))
        started = time.perf_counter()
        latest_session(home, str(project))
        latest = time.perf_counter() - started
        parquet(place, RUNS)
        asked, asked_memory = wave(home, project, "hooks", "stats", "--from", str(place))
    return [
        Claim(name=f"hooks stats over {SESSIONS:,} sessions, all transcripts read", value=first, unit="s", limit=None),
        Claim(name=f"hooks stats over {SESSIONS:,} sessions, from the index", value=again, unit="s", limit=3),
        Claim(name="peak memory of that", value=memory, unit="MB", limit=100),
        Claim(name=f"finding the latest of {SESSIONS:,} sessions", value=latest * 1000, unit="ms", limit=50),
        Claim(name=f"hooks stats over {RUNS:,} hook runs in Parquet", value=asked, unit="s", limit=3),
        Claim(name="peak memory of that", value=asked_memory, unit="MB", limit=250),
    ]


if __name__ == "__main__":
    made, rest = Path(sys.argv[1]), [int(one) for one in sys.argv[2:]]
    (made / "project").mkdir(parents=True)
    multiply(real_session(made / "home", made / "project"), *(rest + [100_000, 200][len(rest) :]))
    print(f"cd {made / 'project'} && WAVE_HOME={made / 'home'} wave hooks stats")
