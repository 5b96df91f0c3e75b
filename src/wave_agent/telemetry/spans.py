"""A span while it is open, and who gets it in the end."""

from collections.abc import Mapping
from time import time_ns
from typing import Any, Protocol

from msgspec import Struct

from wave_agent.telemetry.propagation import Position
from wave_agent.telemetry.vocabulary import MetricRow, SpanRow


class TraceSpan:
    """One piece of work. Nothing is sent before it has ended."""

    def __init__(self, row: SpanRow, attributes: Mapping[str, Any], parent: Position | None, sink: "Sink") -> None:
        self.row = row
        self.name = f"{row.name} {attributes.get(row.about, '')}".strip()
        self.attributes = dict(attributes)
        self.content: dict[str, Any] = {}
        """Attributes that must be masked before they are sent."""
        self.parent = parent
        self.error = ""
        """What went wrong, in one word."""
        self.started = time_ns()
        self.ended = 0
        self._sink = sink
        self.position = sink.open(self)

    def end(self, error: str = "", **attributes: Any) -> None:
        """Ends it, unless it has ended."""
        if self.ended:
            return
        self.ended = time_ns()
        self.error = error
        self.attributes |= attributes
        if error:
            self.attributes["error.type"] = error
        self._sink.close(self)

    @property
    def seconds_so_far(self) -> float:
        return ((self.ended or time_ns()) - self.started) / 1e9


class Measurement(Struct, frozen=True):
    """One value of a metric."""

    metric: MetricRow
    value: float
    attributes: Mapping[str, Any]


class Sink(Protocol):
    """Takes what a session reports. No method waits, except `leave`."""

    def open(self, span: TraceSpan) -> Position:
        """The position of a span that begins now."""
        ...

    def close(self, span: TraceSpan) -> None:
        """The span has ended."""
        ...

    def measure(self, measurement: Measurement) -> None: ...

    def begin(self) -> None:
        """The first request is on its way: there is time to load what sends it all."""
        ...

    def take_problem(self) -> str:
        """Why telemetry is not sent, once; otherwise empty."""
        ...

    def leave(self, seconds: float) -> None:
        """Nothing more comes from this session. Waits until everything is sent, at most this long."""
        ...
