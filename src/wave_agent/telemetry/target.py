"""Where telemetry goes: what the `OTEL_*` variables and the settings say about it. Pure."""

import math
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

DEFAULT_ENDPOINT = "http://localhost:4318"
"""Used if the environment only asks for the exporter `otlp`."""
DEFAULT_SERVICE = "wave-agent"
PROTOCOL = "http/protobuf"
_BASE = "OTEL_EXPORTER_OTLP"
_QUEUE, _DELAY, _INTERVAL = 2048, 5.0, 60.0
_LARGEST_QUEUE = 65_536


class Telemetry(Struct, frozen=True, kw_only=True):
    """What the settings say."""

    endpoint: str = ""
    is_managed: bool = False
    """Managed settings set the endpoint."""


class Signal(Struct, frozen=True):
    """Where one kind of telemetry goes."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()


class TelemetryTarget(Struct, frozen=True, kw_only=True):
    """Where telemetry goes, and how."""

    traces: Signal | None = None
    metrics: Signal | None = None
    resource: tuple[tuple[str, str], ...] = ()
    """What is said about this program with everything it sends."""
    is_managed: bool = False
    """The environment can neither redirect it nor switch it off."""
    queue: int = _QUEUE
    """Spans and measurements that may wait; more are dropped, and counted."""
    delay: float = _DELAY
    """Seconds between two deliveries of spans."""
    interval: float = _INTERVAL
    """Seconds between two deliveries of metrics."""

    @property
    def shown(self) -> str:
        """The URLs, for people."""
        return " and ".join(dict.fromkeys(signal.url for signal in (self.traces, self.metrics) if signal))


class Found(Struct, frozen=True):
    """`target` None: telemetry is off. `problem` says why, if something asks for it that cannot be done."""

    target: TelemetryTarget | None = None
    problem: str = ""


def find_target(environment: Mapping[str, str], settings: Telemetry, *, version: str) -> Found:
    """A managed endpoint, else what the environment says, else the user's endpoint."""
    env = {name: value.strip() for name, value in environment.items() if value.strip()}
    resource = _resource(env, version)
    if settings.is_managed:
        if not settings.endpoint:  # managed settings switch it off
            return Found()
        headers = {name: _managed_headers(env, settings.endpoint, name) for name in ("TRACES", "METRICS")}
        return Found(
            TelemetryTarget(
                traces=Signal(_join(settings.endpoint, "traces"), headers["TRACES"]),
                metrics=Signal(_join(settings.endpoint, "metrics"), headers["METRICS"]),
                resource=resource,
                is_managed=True,
            )
        )
    if is_disabled(env):
        return Found()
    traces, no_traces = _signal(env, settings.endpoint, "TRACES")
    metrics, no_metrics = _signal(env, settings.endpoint, "METRICS")
    if traces is None and metrics is None:
        return Found(problem=no_traces or no_metrics)
    return Found(
        TelemetryTarget(
            traces=traces,
            metrics=metrics,
            resource=resource,
            queue=max(1, min(int(_number(env, "OTEL_BSP_MAX_QUEUE_SIZE", _QUEUE)), _LARGEST_QUEUE)),
            delay=_number(env, "OTEL_BSP_SCHEDULE_DELAY", _DELAY * 1000) / 1000,
            interval=_number(env, "OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL * 1000) / 1000,
        ),
        no_traces or no_metrics,
    )


def is_disabled(environment: Mapping[str, str]) -> bool:
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _signal(env: Mapping[str, str], endpoint: str, name: str) -> tuple[Signal | None, str]:
    """Where this signal goes, or why it goes nowhere although something asks for it."""
    own, common = env.get(f"{_BASE}_{name}_ENDPOINT"), env.get(f"{_BASE}_ENDPOINT") or endpoint
    exporters = _exporters(env, name)
    if "none" in exporters:
        return None, ""
    if exporters and "otlp" not in exporters:
        return None, f"OTEL_{name}_EXPORTER={','.join(exporters)} is not supported, only otlp and none"
    url = own or (_join(common, name.lower()) if common else "")
    if not url and exporters:
        url = _join(DEFAULT_ENDPOINT, name.lower())
    if not url:
        return None, ""
    protocol = env.get(f"{_BASE}_{name}_PROTOCOL") or env.get(f"{_BASE}_PROTOCOL") or PROTOCOL
    if protocol != PROTOCOL:
        variable = f"{_BASE}_{name}_PROTOCOL" if f"{_BASE}_{name}_PROTOCOL" in env else f"{_BASE}_PROTOCOL"
        return None, f"{variable}={protocol} is not supported, only {PROTOCOL} (usually on port 4318)"
    if not is_endpoint(url):
        return None, f'"{url}" is not a URL; expected something like {DEFAULT_ENDPOINT}'
    return Signal(url, _headers(env, name)), ""


def is_endpoint(url: str) -> bool:
    """Whether telemetry can be sent to this URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _exporters(env: Mapping[str, str], name: str) -> list[str]:
    return [one for part in env.get(f"OTEL_{name}_EXPORTER", "").split(",") if (one := part.strip().lower())]


def _join(endpoint: str, path: str) -> str:
    return f"{endpoint.rstrip('/')}/v1/{path}"


def _headers(env: Mapping[str, str], name: str) -> tuple[tuple[str, str], ...]:
    text = env.get(f"{_BASE}_{name}_HEADERS") or env.get(f"{_BASE}_HEADERS", "")
    return tuple((name.lower(), value) for name, value in _pairs(text))


def _managed_headers(env: Mapping[str, str], endpoint: str, name: str) -> tuple[tuple[str, str], ...]:
    """Keys for another server are not sent to this one, and none of them says which host is meant."""
    meant = env.get(f"{_BASE}_{name}_ENDPOINT") or env.get(f"{_BASE}_ENDPOINT")
    if meant and _origin(meant) != _origin(endpoint):
        return ()
    return tuple((name, value) for name, value in _headers(env, name) if name != "host")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None, None


def _resource(env: Mapping[str, str], version: str) -> tuple[tuple[str, str], ...]:
    given = dict(_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", "")))
    name = env.get("OTEL_SERVICE_NAME") or given.get("service.name") or DEFAULT_SERVICE
    return tuple({"service.version": version, **given, "service.name": name}.items())


def _pairs(text: str) -> list[tuple[str, str]]:
    """`a=1,b=2`, with values that may be percent-encoded. What is not a pair is skipped, as the SDK does."""
    pairs = (part.partition("=") for part in text.split(","))
    return [(unquote(key.strip()), unquote(value.strip())) for key, equals, value in pairs if key.strip() and equals]


def _number(env: Mapping[str, str], name: str, usual: float) -> float:
    try:
        number = float(env.get(name, usual))
    except ValueError:
        return usual
    return number if math.isfinite(number) and number > 0 else usual
