"""A receiver of telemetry on loopback. It parses what it gets with the official schema."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class ReceivedSpan(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: Mapping[str, Any]
    is_error: bool
    started: int
    ended: int


class Receiver:
    """Everything that was sent, in the order of arrival."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.bodies: list[tuple[str, bytes]] = []
        self.headers: list[Mapping[str, str]] = []
        self.gate = threading.Event()
        """Requests wait for it."""
        self.gate.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def raw(self) -> bytes:
        return b"\n".join(body for _, body in self.bodies)

    @property
    def spans(self) -> list[ReceivedSpan]:
        return [
            ReceivedSpan(
                name=span.name,
                kind={1: "INTERNAL", 3: "CLIENT"}[span.kind],
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent_id=span.parent_span_id.hex(),
                attributes={one.key: _value(one.value) for one in span.attributes},
                is_error=span.status.code == 2,
                started=span.start_time_unix_nano,
                ended=span.end_time_unix_nano,
            )
            for request in self._parsed("/v1/traces", ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str, **attributes: Any) -> ReceivedSpan:
        """The only one of that name, and with these attributes; underscores are dots."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        found = [one for one in self.spans if one.name == name and wanted.items() <= dict(one.attributes).items()]
        assert len(found) == 1, (name, [one.name for one in self.spans])
        return found[0]

    @property
    def resource(self) -> dict[str, Any]:
        request = self._parsed("/v1/traces", ExportTraceServiceRequest)[0]
        return {one.key: _value(one.value) for one in request.resource_spans[0].resource.attributes}

    @property
    def points(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """The last state of each metric: attributes and value, which is the sum of a histogram."""
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for request in self._parsed("/v1/metrics", ExportMetricsServiceRequest):
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        found[metric.name] = [_point(point) for point in _points_of(metric)]
        return found

    def _parsed(self, path: str, kind: Any) -> list[Any]:
        requests: list[Any] = []
        for at, body in self.bodies:
            if at == path:
                request = kind()
                request.ParseFromString(body)
                requests.append(request)
        return requests


def _points_of(metric: Any) -> Any:
    return metric.histogram.data_points if metric.WhichOneof("data") == "histogram" else metric.sum.data_points


def _point(point: Any) -> tuple[dict[str, Any], float]:
    attributes = {one.key: _value(one.value) for one in point.attributes}
    if hasattr(point, "bucket_counts"):
        return attributes, point.sum
    return attributes, getattr(point, point.WhichOneof("value"))


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def receiving(status: int = 200, *, location: str = "") -> Iterator[Receiver]:
    receiver = Receiver(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.bodies.append((self.path, body))
            receiver.headers.append(dict(self.headers))
            receiver.gate.wait(60)
            try:
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                if location:
                    self.send_header("Location", location)
                self.end_headers()
            except OSError:  # the program has gone
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
