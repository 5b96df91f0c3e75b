"""Spans and metrics through the providers that the embedding program has set up with the SDK.

Nothing is set up or replaced here, and nothing is imported that the program has not imported.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Condition
from typing import TYPE_CHECKING, Any, cast

from wave_agent.system.threads import start_in_thread
from wave_agent.telemetry.propagation import NOWHERE, Position
from wave_agent.telemetry.redaction import Redact, Redaction
from wave_agent.telemetry.spans import Measurement, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span as SdkSpan
    from opentelemetry.trace import TracerProvider

    from wave_agent.telemetry.instruments import Instruments

SCOPE = "wave_agent"
_SHORT = 4_000
"""Characters of content that are masked in less than a millisecond."""


def tracer_provider() -> "TracerProvider | None":
    """The program's, if it has set one of the SDK."""
    return _provider("opentelemetry.trace", "get_tracer_provider", "opentelemetry.sdk.trace", "TracerProvider")


def meter_provider() -> "MeterProvider | None":
    return _provider("opentelemetry.metrics", "get_meter_provider", "opentelemetry.sdk.metrics", "MeterProvider")


def _provider(api: str, get: str, sdk: str, kind: str) -> Any:
    modules = sys.modules
    if api not in modules or sdk not in modules:
        return None
    found = getattr(modules[api], get)()
    return found if isinstance(found, getattr(modules[sdk], kind)) else None


class ProgramSink:
    """Implements `Sink`. When and where it is sent is the program's business; if its processors fail, so does only the
    span."""

    def __init__(
        self,
        tracers: "TracerProvider | None",
        meters: "MeterProvider | None",
        redact: Redact,
        *,
        version: str,
    ) -> None:
        self._redaction = Redaction(redact)
        self._tracer = None if tracers is None else tracers.get_tracer(SCOPE, version)
        self._instruments: Instruments | None = None
        if meters is not None:
            from wave_agent.telemetry.instruments import Instruments as Made  # lazy: the program may have no metrics

            self._instruments = Made(meters.get_meter(SCOPE, version), self._redaction)
        self._open: dict[int, SdkSpan] = {}
        self._ending = 0
        """Spans that are being ended in other threads."""
        self._changed = Condition()

    def open(self, span: TraceSpan) -> Position:
        with suppress(Exception):
            return self._start(span)
        return NOWHERE

    def _start(self, span: TraceSpan) -> Position:
        if self._tracer is None:
            return NOWHERE
        from opentelemetry import trace  # lazy, but loaded: the program has set a provider

        context = None  # the span that is current in the program, if there is one
        if span.parent is not None:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if span.parent.sampled else trace.TraceFlags.DEFAULT)
            state = trace.TraceState.from_header([span.parent.state]) if span.parent.state else None
            above = trace.SpanContext(span.parent.trace_id, span.parent.span_id, False, flags, state)
            context = trace.set_span_in_context(trace.NonRecordingSpan(above))
        made = self._open[id(span)] = self._tracer.start_span(
            span.name,
            context=context,
            kind=trace.SpanKind[span.row.kind.name],
            attributes=self._redaction.known(span.attributes),
            start_time=span.started,
        )
        here = made.get_span_context()
        return Position(here.trace_id, here.span_id, here.trace_flags.sampled, here.trace_state.to_header())

    def close(self, span: TraceSpan) -> None:
        made = self._open.pop(id(span), None)
        if made is None:
            return
        if (
            _is_long(span) and made.is_recording()
        ):  # masking that takes longer than an event loop should be kept waiting
            with self._changed:
                self._ending += 1
            with suppress(RuntimeError):  # no more threads
                start_in_thread(lambda: self._end_aside(made, span))
                return
            self._end_aside(made, span)
        else:
            self._try_to_end(made, span)

    def _end_aside(self, made: "SdkSpan", span: TraceSpan) -> None:
        self._try_to_end(made, span)
        with self._changed:
            self._ending -= 1
            self._changed.notify_all()

    def _try_to_end(self, made: "SdkSpan", span: TraceSpan) -> None:
        with suppress(Exception):
            self._end(made, span)

    def _end(self, made: "SdkSpan", span: TraceSpan) -> None:
        from opentelemetry.trace import Status, StatusCode  # lazy: see above

        if made.is_recording():
            made.set_attributes(cast(Any, self._redaction.of_span(span)))
        if span.error:
            made.set_status(Status(StatusCode.ERROR))
        made.end(span.ended)

    def measure(self, measurement: Measurement) -> None:
        if self._instruments is not None:
            with suppress(Exception):
                self._instruments.record(measurement)

    def begin(self) -> None:
        pass

    def take_problem(self) -> str:
        return ""

    def leave(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._ending, seconds)


def _is_long(span: TraceSpan) -> bool:
    left, values = _SHORT, list(span.content.values())
    while values and left >= 0:
        one = values.pop()
        if isinstance(one, str):
            left -= len(one)
        elif isinstance(one, Mapping):
            values += cast(Mapping[str, Any], one).values()
        elif isinstance(one, list | tuple):
            values += cast(Sequence[Any], one)
        left -= 1
    return left < 0
