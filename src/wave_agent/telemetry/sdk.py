"""Sends with the official SDK. One of two modules that import it; loading takes 150 ms, so a thread does."""

import logging
import os
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, cast

import certifi
import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.version import __version__ as sdk_version
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from urllib3.exceptions import HTTPError

from wave_agent.system.credentials import public_url
from wave_agent.telemetry.instruments import Instruments
from wave_agent.telemetry.propagation import Position
from wave_agent.telemetry.redaction import Redact, Redaction
from wave_agent.telemetry.spans import Measurement, TraceSpan
from wave_agent.telemetry.target import Signal, TelemetryTarget

SCOPE = "wave_agent"
_FRAME = frozenset({"content-type", "content-encoding", "user-agent"})
"""Headers that the exporter sets for a request itself."""
_UNKNOWN = "the receiver did not accept it"
_MANAGED_TIMEOUT = 10.0
_MOST_ANSWER = 64 << 10
"""Bytes of an answer that are read."""
_MOST_TRACES = 10_000
"""Traces of which the sampler's decision is remembered."""


class SdkSender:
    """Implements `Sender`."""

    def __init__(self, target: TelemetryTarget, redact: Redact, *, version: str) -> None:
        _quiet()
        self._redaction = Redaction(redact)
        facts = {
            "telemetry.sdk.language": "python",
            "telemetry.sdk.name": "opentelemetry",
            "telemetry.sdk.version": sdk_version,
        }
        resource = Resource({**facts, **dict(target.resource)})
        self._sessions: list[_Session] = []
        self._exporter = None if target.traces is None else OTLPSpanExporter(**self._options(target, target.traces))
        self._ids = _GivenIds()
        self._ended = _EndedSpans()
        # Without one, the provider reads OTEL_TRACES_SAMPLER, which could switch off what managed settings switch on.
        chosen: dict[str, Any] = {"sampler": ALWAYS_ON} if target.is_managed else {}
        tracers = _Tracers(resource=resource, id_generator=self._ids, shutdown_on_exit=False, **chosen)
        tracers.add_span_processor(self._ended)
        self._sampler = tracers.sampler
        self._tracer = tracers.get_tracer(SCOPE, version)
        self._sampled: dict[int, bool] = {}
        self._meters = None if target.metrics is None else OTLPMetricExporter(**self._options(target, target.metrics))
        if self._meters is not None:
            # The reader's temporality is the exporter's: it reads OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE.
            self._reader = InMemoryMetricReader(
                preferred_temporality=self._meters._preferred_temporality,  # pyright: ignore[reportPrivateUsage]
            )
            provider = _Meters([self._reader], resource=resource, shutdown_on_exit=False)
            self._instruments = Instruments(provider.get_meter(SCOPE, version), self._redaction)

    def _options(self, target: TelemetryTarget, signal: Signal) -> dict[str, Any]:
        """For an exporter. What is missing here it reads from the environment: compression, timeout, certificates."""
        session = _Session(signal, is_managed=target.is_managed)
        self._sessions.append(session)
        options: dict[str, Any] = {"endpoint": signal.url, "session": session}
        if target.is_managed:
            options |= {
                "timeout": _MANAGED_TIMEOUT,
                "compression": Compression.NoCompression,
                "certificate_file": _certificates(),
            }
        return options

    @property
    def trouble(self) -> str:
        return next((one.trouble for one in self._sessions if one.trouble), "")

    def send(self, spans: Sequence[TraceSpan]) -> str:
        if self._exporter is None:
            return ""
        for span in spans:
            self._convert(span)
        batch = self._ended.take()
        if not batch or self._exporter.export(batch) is SpanExportResult.SUCCESS:
            return ""
        return self.trouble or _UNKNOWN

    def measure(self, measurement: Measurement) -> None:
        if self._meters is not None:
            self._instruments.record(measurement)

    def send_metrics(self) -> str:
        if self._meters is None or (data := self._reader.get_metrics_data()) is None:
            return ""
        if cast(Any, self._meters).export(data) is MetricExportResult.SUCCESS:
            return ""
        return self.trouble or _UNKNOWN

    def close(self) -> None:
        exporters: list[Any] = [self._exporter, self._meters]
        for exporter in exporters:
            if exporter is not None:
                exporter.shutdown()

    def _convert(self, span: TraceSpan) -> None:
        self._ids.next = span.position
        sampled = self._is_sampled(span)
        made = self._tracer.start_span(
            span.name,
            context=None if span.parent is None else _below(span.parent, sampled=sampled),
            kind=SpanKind[span.row.kind.name],
            attributes=self._redaction.of_span(span),
            start_time=span.started,
        )
        if span.error:
            made.set_status(Status(StatusCode.ERROR))
        made.end(span.ended)

    def _is_sampled(self, span: TraceSpan) -> bool:
        """The sampler decides once for a trace. Children end first, so it is not asked about the first span, but about
        the trace, and whether the program in which it began wants it."""
        here = span.position
        if here.trace_id not in self._sampled:
            if len(self._sampled) >= _MOST_TRACES:
                self._sampled.clear()
            above = _below(here, sampled=here.sampled) if here.is_joined else None
            result = self._sampler.should_sample(above, here.trace_id, span.name, SpanKind.INTERNAL, {}, ())
            self._sampled[here.trace_id] = result.decision.is_sampled()
        return self._sampled[here.trace_id]


def _below(position: Position, *, sampled: bool) -> Context:
    """The context in which a span begins below this position."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([position.state]) if position.state else None
    above = SpanContext(position.trace_id, position.span_id, position.is_joined, flags, state)
    return set_span_in_context(NonRecordingSpan(above))


class _Tracers(TracerProvider):
    """Is on: whether telemetry is, `target` has decided, and OTEL_SDK_DISABLED cannot overrule managed settings."""

    _disabled = property(lambda _: False, lambda _self, _value: None)


class _Meters(MeterProvider):
    """The same."""

    _disabled = property(lambda _: False, lambda _self, _value: None)


class _GivenIds(IdGenerator):
    """The ids that a span got when it began, before the SDK was there."""

    next = Position(1, 1)

    def generate_span_id(self) -> int:
        return self.next.span_id

    def generate_trace_id(self) -> int:
        return self.next.trace_id


class _EndedSpans(SpanProcessor):
    """Keeps the spans of a batch."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


class _Session(requests.Session):
    """Sends the headers it was given and no others: the exporter adds those in the environment, which may be keys for
    another server."""

    def __init__(self, signal: Signal, *, is_managed: bool) -> None:
        super().__init__()
        self.trust_env = not is_managed  # a proxy could redirect it
        self._given = dict(signal.headers)
        self.trouble = ""
        """Why the last request failed."""

    def request(self, method: Any, url: Any, *arguments: Any, **named: Any) -> requests.Response:
        given: Mapping[str, str] = named.pop("headers", None) or {}
        kept = {name: value for name, value in given.items() if name.lower() in _FRAME}
        where = public_url(str(url))
        # Data goes where the settings say, and of an answer only the beginning is read.
        named |= {"allow_redirects": False, "stream": True}
        try:
            response = super().request(method, url, *arguments, headers={**kept, **self._given}, **named)
            _read_beginning(response)
        except requests.Timeout:
            self.trouble = f"{where} does not answer"
            raise
        except requests.RequestException as error:
            self.trouble = f"{where} cannot be reached ({_reason(error)})"
            raise
        accepted = response.ok and not response.is_redirect
        self.trouble = "" if accepted else f"{where} answered {response.status_code} {response.reason}".strip()
        if response.ok and not accepted:  # the exporter would take it for success
            raise requests.TooManyRedirects(self.trouble)
        return response


def _read_beginning(response: requests.Response) -> None:
    """Instead of all of it, however long it is."""
    with_body: Any = response
    try:
        with_body._content = with_body.raw.read(_MOST_ANSWER, decode_content=True)
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(error) from error
    finally:
        response.close()


def _reason(error: BaseException | None) -> str:
    """The system's words for it, which are at the bottom of a pile of exceptions."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror.lower()
        error = error.__cause__ or error.__context__
    return "no connection"


def _certificates() -> str:
    """The system's, which may include a company's own; no variable changes where they are."""
    paths = ssl.get_default_verify_paths()
    if os.path.isfile(paths.openssl_cafile):
        return paths.openssl_cafile
    has_some = os.path.isdir(paths.openssl_capath) and os.listdir(paths.openssl_capath)
    return paths.openssl_capath if has_some else certifi.where()


def _quiet() -> None:
    """The SDK logs what goes wrong, and `logging` prints it to stderr unless somebody handles it. A program that has
    set up logging still gets it."""
    logger = logging.getLogger("opentelemetry")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
