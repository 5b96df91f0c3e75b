"""What the effects of a call add to PreToolUse: the same hook with and without them, measured alternately.

In processor time: nothing here waits, and a busy machine would only add its own delays.
"""

import asyncio
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.measure import Claim, spread_of
from wave_agent.agent.hook_effects import effects_outside
from wave_agent.hooks.authoring import HookCall
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.stage import ToolFacts
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.tools.base import ToolContext
from wave_agent.tools.registry import builtin_tools

ORDINARY = (
    "git status --short && ls src | head -{n}",
    "cat src/main.py | grep -n def | head -{n} > out.txt",
    "mkdir -p build{n} && cp README.md build{n}/",
    "python -m pytest -q tests/test_{n}.py",
    "sed -n '1,{n}p' src/main.py",
    "npm run build -- --level {n}",
)
HEREDOC = "cat > notes{n}.txt <<EOF\n" + "a line with $HOME and some more words in it\n" * 3000 + "EOF"
"""128 KB in which the shell expands a variable in each line."""


async def look(call: HookCall) -> None:
    """A hook that has nothing to say."""


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory, asyncio.Runner() as runner:
        project = Path(os.path.realpath(directory))
        context = ToolContext(project_dir=project, environment=dict(os.environ), outputs=project)
        bash = next(tool for tool in builtin_tools() if tool.name == "Bash")
        known = ToolFacts(effects=effects_outside(bash, context, os.environ["PATH"]))
        session = SessionFacts(session_id="s", transcript_path="/t", project_dir=str(project), home="/home/me")
        hooks = load_hooks([hooks_in_code({"PreToolUse": [look]})]).hooks
        manager = HookManager(hooks, runner=ProcessRunner(), session=session, environment={})
        numbers = count(1)

        def work(tool: ToolFacts, *lines: str) -> Callable[[], None]:
            """Fires the event once for each line. No line is ever the same, so nothing is remembered."""

            async def fire() -> None:
                for line in lines:
                    tool_input = {"command": line.replace("{n}", str(next(numbers)))}
                    facts = {"tool_name": "Bash", "tool_input": tool_input, "tool_use_id": "1"}
                    await manager.run(HookEvent.PRE_TOOL_USE, facts, tool=tool)

            return lambda: runner.run(fire())

        ordinary = _alternately(work(known, *ORDINARY), work(ToolFacts(), *ORDINARY), rounds=60)
        long = _alternately(work(known, HEREDOC), work(ToolFacts(), HEREDOC), rounds=20)
    return [
        _added("effects of an ordinary command, added to PreToolUse", ordinary, len(ORDINARY), 1),
        _added("effects of a 128 KB heredoc, added to PreToolUse", long, 1, 30),
    ]


def _alternately(*works: Callable[[], None], rounds: int) -> list[list[float]]:
    """Milliseconds of processor time of each."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds + 1):
        for work, taken in zip(works, times, strict=True):
            started = process_time()
            work()
            taken.append((process_time() - started) * 1000)
    return [taken[1:] for taken in times]  # without the first, which imports


def _added(name: str, times: list[list[float]], lines: int, limit: float) -> Claim:
    added = [(with_them - without) / lines for with_them, without in zip(*times, strict=True)]
    return Claim(
        name=name,
        value=median(added),
        unit="ms",
        limit=limit,
        floor_name="PreToolUse without effects",
        floor=median(times[1]) / lines,
        spread=spread_of(added),
    )
