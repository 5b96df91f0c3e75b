"""Hooks that ask a model: `prompt` and `agent`. Who asks is passed in.

Loaded only if the settings contain such a hook.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from wave_agent.errors import WaveError
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind, Opinion
from wave_agent.hooks.questions import PolicyQuestion, quoted_event

CountTokens = Callable[[str, int], None]
"""(model, tokens): called for each request, whether or not it leads to an answer."""


class Thinker(Protocol):
    """Asks models."""

    async def think(self, question: PolicyQuestion, used: CountTokens) -> Opinion:
        """Raises a `WaveError` if there is no answer. No hooks fire, whatever is done to find one. Cancelling ends the
        request."""
        ...

    async def close(self) -> None: ...


class NoThinker:
    """For runs without a model."""

    def __init__(self, why: str = "no model is asked here") -> None:
        self._why = why

    async def think(self, question: PolicyQuestion, used: CountTokens) -> Opinion:
        raise WaveError(self._why)

    async def close(self) -> None:
        pass


class ThinkingRunner:
    """Runs hooks of the kinds `prompt` and `agent`."""

    def __init__(self, thinker: Thinker) -> None:
        self._thinker = thinker

    async def close(self) -> None:
        await self._thinker.close()

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises only `CancelledError`."""
        started = time.monotonic()
        asked, tokens = "", 0
        opinion, error, timed_out = None, None, False

        def used(model: str, more: int) -> None:
            nonlocal asked, tokens
            asked, tokens = model, tokens + more

        try:
            async with asyncio.timeout(job.timeout):
                opinion = await self._thinker.think(_question(job), used)
        except TimeoutError:
            timed_out = True
        except WaveError as failure:
            error = str(failure)
        except Exception as failure:  # the embedding program's own model may raise anything
            error = f"{type(failure).__name__}: {failure}"
        return HookExecutionResult(
            exit_code=None if opinion is None else 0,
            opinion=opinion,
            error=error,
            by_model=error is not None,
            timed_out=timed_out,
            model=asked,
            tokens=tokens,
            duration=(time.monotonic() - started) * 1000,
        )


def _question(job: HookJob) -> PolicyQuestion:
    return PolicyQuestion(
        policy=job.command,
        event=quoted_event(job.stdin),
        model=job.model,
        layer=job.layer,
        reads=job.kind is HookKind.AGENT,
    )
