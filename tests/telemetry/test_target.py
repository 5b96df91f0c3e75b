"""Where telemetry goes, by the variables and the settings."""

from typing import Any

from tests.rows import rows
from wave_agent.telemetry.target import Found, Signal, Telemetry, TelemetryTarget, find_target

OTLP = "OTEL_EXPORTER_OTLP"
USUAL = {f"{OTLP}_ENDPOINT": "http://one:4318"}
MANAGED = Telemetry(endpoint="https://fleet.example/otel/", is_managed=True)


def found(environment: dict[str, str], settings: Telemetry | None = None) -> Found:
    return find_target(environment, settings or Telemetry(), version="1.0")


def urls(target: TelemetryTarget | None) -> tuple[str | None, str | None]:
    if target is None:
        return None, None
    return target.traces and target.traces.url, target.metrics and target.metrics.url


BOTH = ("http://one:4318/v1/traces", "http://one:4318/v1/metrics")
LOCAL = ("http://localhost:4318/v1/traces", "http://localhost:4318/v1/metrics")
OFF = (None, None)


@rows(
    "environment, expected",
    [
        ({}, OFF),
        ({"OTEL_SERVICE_NAME": "x", f"{OTLP}_HEADERS": "a=b"}, OFF),
        (USUAL, BOTH),
        ({f"{OTLP}_ENDPOINT": " http://one:4318/ "}, BOTH),
        ({f"{OTLP}_ENDPOINT": "  "}, OFF),
        ({**USUAL, "OTEL_SDK_DISABLED": "TRUE"}, OFF),
        ({**USUAL, "OTEL_SDK_DISABLED": "false"}, BOTH),
        ({**USUAL, "OTEL_TRACES_EXPORTER": "none"}, (None, BOTH[1])),
        ({**USUAL, "OTEL_METRICS_EXPORTER": "none"}, (BOTH[0], None)),
        ({**USUAL, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, OFF),
        ({**USUAL, "OTEL_TRACES_EXPORTER": "console, otlp"}, BOTH),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, (LOCAL[0], None)),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, (None, LOCAL[1])),
        ({f"{OTLP}_TRACES_ENDPOINT": "https://t/x"}, ("https://t/x", None)),
        ({**USUAL, f"{OTLP}_METRICS_ENDPOINT": "https://m/"}, (BOTH[0], "https://m/")),
        ({**USUAL, f"{OTLP}_PROTOCOL": "http/protobuf"}, BOTH),
        ({**USUAL, f"{OTLP}_TRACES_PROTOCOL": "grpc"}, (None, BOTH[1])),
    ],
)
def test_variables_say_where_each_signal_goes(environment: dict[str, str], expected: Any) -> None:
    assert urls(found(environment).target) == expected


@rows(
    "environment, words",
    [
        (
            {**USUAL, f"{OTLP}_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported, only http/protobuf",
        ),
        ({**USUAL, f"{OTLP}_TRACES_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not supported, only otlp and none"),
        ({f"{OTLP}_ENDPOINT": "localhost:4318"}, '"localhost:4318/v1/traces" is not a URL'),
        ({f"{OTLP}_ENDPOINT": "http://[::1"}, "is not a URL"),
        ({**USUAL, "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({}, ""),
    ],
)
def test_what_cannot_be_done_is_said(environment: dict[str, str], words: str) -> None:
    problem = found(environment).problem
    assert words in problem
    assert bool(words) == bool(problem)


def test_the_users_endpoint_counts_if_the_environment_names_none() -> None:
    mine = Telemetry(endpoint="http://mine:1")
    assert urls(found({}, mine).target) == ("http://mine:1/v1/traces", "http://mine:1/v1/metrics")
    assert urls(found(USUAL, mine).target) == BOTH
    assert urls(found({"OTEL_SDK_DISABLED": "true"}, mine).target) == OFF
    assert urls(found({"OTEL_METRICS_EXPORTER": "none"}, mine).target) == ("http://mine:1/v1/traces", None)


@rows(
    "environment",
    [
        {},
        USUAL,
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        {f"{OTLP}_TRACES_ENDPOINT": "http://evil", f"{OTLP}_METRICS_ENDPOINT": "http://evil"},
        {f"{OTLP}_PROTOCOL": "grpc"},
        {"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_SCHEDULE_DELAY": "9e9", "OTEL_METRIC_EXPORT_INTERVAL": "9e9"},
    ],
)
def test_no_variable_redirects_a_managed_endpoint_or_switches_it_off(environment: dict[str, str]) -> None:
    target = found(environment, MANAGED).target
    assert urls(target) == ("https://fleet.example/otel/v1/traces", "https://fleet.example/otel/v1/metrics")
    assert target is not None
    assert (target.is_managed, target.queue, target.delay, target.interval) == (True, 2048, 5.0, 60.0)


def test_managed_settings_can_switch_telemetry_off() -> None:
    assert found(USUAL, Telemetry(endpoint="", is_managed=True)) == Found()


@rows(
    "environment, expected",
    [
        ({f"{OTLP}_HEADERS": "api-key=k%20ey, X=2,broken,=3"}, (("api-key", "k ey"), ("x", "2"))),
        ({f"{OTLP}_HEADERS": "a=1", f"{OTLP}_TRACES_HEADERS": "b=2"}, (("b", "2"),)),
    ],
)
def test_headers_are_those_of_the_signal(environment: dict[str, str], expected: Any) -> None:
    target = found({**USUAL, **environment}).target
    assert target is not None
    assert target.traces == Signal(BOTH[0], expected)


@rows(
    "environment, expected",
    [
        ({}, (("key", "1"),)),
        ({f"{OTLP}_ENDPOINT": "https://fleet.example"}, (("key", "1"),)),
        ({f"{OTLP}_ENDPOINT": "https://fleet.example:443/x"}, (("key", "1"),)),
        ({f"{OTLP}_ENDPOINT": "https://other.example"}, ()),
        ({f"{OTLP}_TRACES_ENDPOINT": "http://[broken"}, ()),
    ],
)
def test_a_key_for_another_server_is_not_sent_to_the_managed_one(environment: dict[str, str], expected: Any) -> None:
    target = found({f"{OTLP}_HEADERS": "key=1,Host=other.example", **environment}, MANAGED).target
    assert target is not None
    assert target.traces is not None
    assert target.traces.headers == expected


def test_the_resource_is_named_by_the_variables() -> None:
    def resource(**environment: str) -> dict[str, str]:
        target = found({**USUAL, **environment}).target
        assert target is not None
        return dict(target.resource)

    assert resource() == {"service.name": "wave-agent", "service.version": "1.0"}
    given = "deployment.environment=ci,service.name=b,team=a%2Cb"
    assert resource(OTEL_RESOURCE_ATTRIBUTES=given)["service.name"] == "b"
    assert resource(OTEL_RESOURCE_ATTRIBUTES=given, OTEL_SERVICE_NAME="c") == {
        "service.version": "1.0",
        "deployment.environment": "ci",
        "service.name": "c",
        "team": "a,b",
    }


@rows(
    "name, value, expected",
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10", (10, 5.0, 60.0)),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "999999999", (65536, 5.0, 60.0)),
        ("OTEL_BSP_SCHEDULE_DELAY", "100", (2048, 0.1, 60.0)),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000", (2048, 5.0, 1.0)),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon", (2048, 5.0, 60.0)),
        ("OTEL_METRIC_EXPORT_INTERVAL", "-1", (2048, 5.0, 60.0)),
        ("OTEL_METRIC_EXPORT_INTERVAL", "nan", (2048, 5.0, 60.0)),
    ],
)
def test_a_number_that_makes_no_sense_is_ignored(name: str, value: str, expected: Any) -> None:
    target = found({**USUAL, name: value}).target
    assert target is not None
    assert (target.queue, target.delay, target.interval) == expected


def test_people_see_the_urls_once_each() -> None:
    target = found({f"{OTLP}_TRACES_ENDPOINT": "http://a/x", f"{OTLP}_METRICS_ENDPOINT": "http://a/x"}).target
    assert target is not None
    assert target.shown == "http://a/x"
