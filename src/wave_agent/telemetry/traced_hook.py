"""One run of a hook, as a span and metrics."""

from collections.abc import Callable
from typing import Any

from wave_agent.events import HookRun
from wave_agent.telemetry.spans import Measurement, TraceSpan
from wave_agent.telemetry.vocabulary import HOOK_DURATION, HOOK_FAILURES


class TracedHook:
    def __init__(self, span: TraceSpan, measure: Callable[[Measurement], None]) -> None:
        self._span = span
        self._measure = measure

    @property
    def traceparent(self) -> str:
        """For the service or the process that the hook is."""
        return self._span.position.traceparent

    def end(self, run: HookRun) -> None:
        """The run is in the journal."""
        known = {"wave.hook.event": run.event, "wave.hook.name": run.name, "wave.hook.layer": run.layer}
        seconds = run.duration_ms / 1000
        about: dict[str, Any] = {
            **known,
            "wave.hook.outcome": run.outcome,
            "wave.hook.mode": run.mode,
            "wave.hook.look": run.look,
            "wave.hook.let_through": run.let_through,
            "wave.hook.rewrote": run.rewrote,
            "wave.hook.async": run.is_async,
            "wave.hook.duration": seconds,
        }
        if run.failure:
            about["wave.hook.failure"] = run.failure
        if run.tokens:
            about["wave.hook.tokens"] = run.tokens
        self._span.end(run.failure or "", **about)
        self._measure(Measurement(HOOK_DURATION, seconds, {**known, "wave.hook.outcome": run.outcome}))
        if run.failure:
            failed = {**known, "wave.hook.failure": run.failure, "wave.hook.let_through": run.let_through}
            self._measure(Measurement(HOOK_FAILURES, 1, failed))
