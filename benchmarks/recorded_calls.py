"""Many recorded sessions, made from a real one: `python -m benchmarks.recorded_calls DIRECTORY CALLS`.

A session is recorded by the agent itself, with real tools and a scripted model. Its copies have ids of their own, and
their commands differ, so that nothing that is remembered about one helps with another.
"""

import asyncio
import json
import sys
import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

CALLS = 50
"""Of one session."""
_NUMBER = "7654321"
"""Replaced in each copy."""
_COMMANDS = (
    f"git status --short | head -{_NUMBER}",
    f"grep -rn 'def test_{_NUMBER}' src tests | sort",
    f"python3 -c 'print({_NUMBER})' > out.txt && cat out.txt",
    f"ls -la src/{_NUMBER} 2>/dev/null || echo none",
    f"for i in 1 2 3; do echo $i {_NUMBER}; done",
)


@cache
def record() -> bytes:
    """The transcript of a session with 50 calls: commands, and reading, writing, editing and searching files."""

    async def session(project: str) -> str:
        replies: list[Reply | str] = []
        for at in range(CALLS // 10):
            calls = [call("Bash", command=command) for command in _COMMANDS]
            calls += [call("Write", file_path=f"src/{at}.py", content=f"x = {_NUMBER}\n" * 20)]
            calls += [call("Read", file_path=f"src/{at}.py")]
            calls += [call("Edit", file_path=f"src/{at}.py", old_string=f"x = {_NUMBER}\n" * 20, new_string="y = 1\n")]
            calls += [call("Grep", pattern="y = "), call("Glob", pattern="**/*.py")]
            replies += [Reply(tool_calls=[one]) for one in calls]
        agent = await Agent.create(
            workdir=project,
            model_client=ScriptedModel([*replies, "Done."]),
            setting_sources=[],
            permission_mode="bypassPermissions",
        )
        async with agent:
            await agent.send_message("Tidy up.")
        return agent.transcript_path

    with TemporaryDirectory() as directory:
        return Path(asyncio.run(session(directory))).read_bytes()


def write_sessions(directory: Path, calls: int) -> int:
    """Sessions with this many calls in total; returns their number."""
    text = record().decode()
    recorded = json.loads(text.partition("\n")[0])["session_id"]
    directory.mkdir(parents=True, exist_ok=True)
    count = max(1, calls // CALLS)
    for number in range(count):
        name = str(uuid.UUID(int=number))
        folder = directory / f"{number // 1000:04}"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.jsonl").write_text(text.replace(_NUMBER, f"{number:07}").replace(recorded, name))
    return count


if __name__ == "__main__":
    print(f"{write_sessions(Path(sys.argv[1]), int(sys.argv[2])):,} sessions")
