"""Hooks that ask a model: `prompt` and `agent`. Who asks is passed in.

Loaded only if the settings contain such a hook.
"""

import asyncio
import time
from typing import Protocol

from wave_agent.errors import WaveError
from wave_agent.events import InnerCall
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind, Opinion
from wave_agent.hooks.opinions import OBJECTION
from wave_agent.hooks.questions import PolicyQuestion, quoted_event, transcripts_in


class ThoughtNotes:
    """What asking a model took, whether or not it led to an answer."""

    def __init__(self) -> None:
        self.model = ""
        self.tokens = 0
        self.calls: tuple[InnerCall, ...] = ()
        self.objects = False
        """Some answer was an objection, though not a valid one."""

    def used(self, model: str, tokens: int) -> None:
        """For each request."""
        self.model, self.tokens = model, self.tokens + tokens

    def called(self, *calls: InnerCall) -> None:
        """What the model read."""
        self.calls = (*self.calls, *calls)


class SpentError(WaveError):
    """The session may spend no more."""


class Thinker(Protocol):
    """Asks models."""

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        """Raises a `WaveError` if there is no answer, `SpentError` if none can be paid. No hooks fire, whatever is
        done to find one. Cancelling ends the request."""
        ...

    async def close(self) -> None: ...


class NoThinker:
    """For runs without a model."""

    def __init__(self, why: str = "no model is asked here") -> None:
        self._why = why

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
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
        notes = ThoughtNotes()
        opinion, error, timed_out, is_spent = None, None, False, False

        try:
            async with asyncio.timeout(job.timeout):
                opinion = await self._thinker.think(_question(job), notes)
        except TimeoutError:
            timed_out = True
        except WaveError as failure:
            error, is_spent = str(failure), isinstance(failure, SpentError)
        except Exception as failure:  # the embedding program's own model may raise anything
            error = f"{type(failure).__name__}: {failure}"
        if notes.objects and (opinion is None or opinion.ok):
            # Whatever came of asking for a reason: an objection is never lost.
            opinion, error, timed_out = OBJECTION, None, False
        return HookExecutionResult(
            exit_code=None if opinion is None else 0,
            opinion=opinion,
            error=error,
            by_model=error is not None,
            is_spent=is_spent,
            timed_out=timed_out,
            model=notes.model,
            tokens=notes.tokens,
            calls=notes.calls,
            duration=(time.monotonic() - started) * 1000,
        )


def _question(job: HookJob) -> PolicyQuestion:
    return PolicyQuestion(
        policy=job.command,
        event=quoted_event(job.stdin, job.task()),
        transcripts=transcripts_in(job.stdin),
        model=job.model,
        layer=job.layer,
        reads=job.kind is HookKind.AGENT,
    )
