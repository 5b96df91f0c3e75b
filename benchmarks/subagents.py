"""The cost of subagents: the same calls, made by four of them and by one agent; and the memory that each holds."""

import asyncio
import gc
import os
import time
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Claim, spread_of
from wave_agent import Agent
from wave_agent.models.base import Delta, ModelRequest, Text, ToolCall
from wave_agent.testing import call

ROUNDS = 20
SUBAGENTS, CALLS = 4, 10


def claims() -> list[Claim]:
    inside, alone, memory = asyncio.run(measured(ROUNDS))
    ratios = [one / other for one, other in zip(inside, alone, strict=True)]
    return [
        Claim(
            name=f"{SUBAGENTS} subagents with {CALLS} Bash calls each, in relation to the same calls of one agent",
            value=median(ratios),
            unit="×",
            limit=1.2,
            spread=spread_of(ratios),
        ),
        Claim(name="memory of a running subagent", value=memory, unit="MB", limit=10),
    ]


WANTED = {"task": CALLS, "alone": SUBAGENTS * CALLS, "inside": 0}
"""Bash calls, by the first word of a prompt."""


def _word(message: Mapping[str, Any]) -> str:
    return str(message["content"]).partition(" ")[0]


class Working:
    """A model that makes the calls of each conversation, one in each answer."""

    def __init__(self) -> None:
        self.waiting = 0
        self.all_wait = asyncio.Event()
        self.gate: asyncio.Event | None = None
        """If there is one, subagents wait for it before their last answer."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        at = max(at for at, one in enumerate(request.messages) if one["role"] == "user" and _word(one) in WANTED)
        prompt, made = _word(request.messages[at]), sum(one["role"] == "tool" for one in request.messages[at:])
        for delta in self._answer(prompt, made):
            yield delta
        if prompt == "task" and made == CALLS and self.gate is not None:
            self.waiting += 1
            if self.waiting == SUBAGENTS:
                self.all_wait.set()
            await self.gate.wait()

    def _answer(self, prompt: str, made: int) -> list[Text | ToolCall]:
        if prompt == "inside" and not made:
            facts = {"description": "t", "subagent_type": "general-purpose"}
            return [call("Task", prompt=f"task {number}", **facts) for number in range(SUBAGENTS)]
        return [call("Bash", command=f"true {made}")] if made < WANTED[prompt] else [Text("Done.")]

    async def close(self) -> None:
        pass


async def measured(rounds: int) -> tuple[list[float], list[float], float]:
    """Milliseconds with subagents and without, measured alternately; megabytes of one subagent."""
    inside: list[float] = []
    alone: list[float] = []
    model = Working()
    with TemporaryDirectory() as project:
        os.environ["WAVE_HOME"] = f"{project}/home"
        async with await Agent.create(
            workdir=project, model_client=model, permission_mode="bypassPermissions", setting_sources=[]
        ) as agent:
            for number in range(rounds + 1):
                for prompt, times in (("inside", inside), ("alone", alone)):
                    started = time.perf_counter()
                    result = await agent.send_message(prompt)
                    assert result.status == "completed", result
                    if number:
                        times.append((time.perf_counter() - started) * 1000)
        return inside, alone, await memory_of(project)


async def memory_of(project: str) -> float:
    model = Working()
    async with await Agent.create(
        workdir=project, model_client=model, permission_mode="bypassPermissions", setting_sources=[]
    ) as agent:
        await agent.send_message("inside")  # everything is loaded
        model.gate = asyncio.Event()
        gc.collect()
        tracemalloc.start()
        running = asyncio.create_task(agent.send_message("inside"))
        await model.all_wait.wait()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] / SUBAGENTS / 1e6
        tracemalloc.stop()
        model.gate.set()
        await running
    return held
