"""The queue between sessions and the receiver: bounded, shared, and never in the way."""

import threading
from collections.abc import Callable, Sequence
from time import monotonic

from wave_agent.telemetry.pipeline import Pipeline, Sender, shared_pipeline
from wave_agent.telemetry.propagation import NOWHERE
from wave_agent.telemetry.spans import Measurement, TraceSpan
from wave_agent.telemetry.target import Signal, TelemetryTarget
from wave_agent.telemetry.vocabulary import CHAT, SESSIONS

TARGET = TelemetryTarget(traces=Signal("http://t"), metrics=Signal("http://m"), queue=4, delay=0.01)
PATIENCE = 20.0


class Recording:
    """A sender that waits at a gate."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.spans: list[str] = []
        self.measured: list[tuple[str, float]] = []
        self.gate, self.arrived, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.gate.set()

    def send(self, spans: Sequence[TraceSpan]) -> str:
        self.arrived.set()
        self.gate.wait(PATIENCE)
        if self.problem == "raise":
            raise ValueError("a bug")
        self.spans += [span.name for span in spans]
        return self.problem

    def measure(self, measurement: Measurement) -> None:
        self.measured.append((measurement.metric.name, measurement.value))

    def send_metrics(self) -> str:
        return ""

    @property
    def trouble(self) -> str:
        return ""

    def close(self) -> None:
        self.closed.set()


def span(pipeline: Pipeline, name: str = "m") -> None:
    TraceSpan(CHAT, {"gen_ai.request.model": name}, None, pipeline).end()


def loading(sender: Sender) -> Callable[[TelemetryTarget], Sender]:
    return lambda _: sender


def test_what_was_reported_before_the_sdk_was_loaded_is_sent() -> None:
    sender = Recording()
    pipeline = Pipeline(TARGET, loading(sender))
    span(pipeline)
    pipeline.measure(Measurement(SESSIONS, 1, {}))
    assert not sender.arrived.is_set()
    pipeline.begin()
    pipeline.begin()
    pipeline.finish(PATIENCE)
    assert (sender.spans, sender.measured) == (["chat m"], [("wave.sessions", 1)])
    assert sender.closed.is_set()
    assert pipeline.take_problem() == ""


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    sender = Recording()
    pipeline = Pipeline(TARGET, loading(sender))
    for number in range(7):
        span(pipeline, str(number))
    pipeline.measure(Measurement(SESSIONS, 1, {}))
    pipeline.finish(PATIENCE)
    assert sender.spans == ["chat 0", "chat 1", "chat 2", "chat 3"]
    assert sorted(sender.measured) == [("wave.telemetry.dropped", 1), ("wave.telemetry.dropped", 3)]


def test_what_the_receiver_refuses_is_counted_and_reported_once() -> None:
    sender = Recording("it is full")
    pipeline = Pipeline(TARGET, loading(sender))
    span(pipeline)
    pipeline.finish(PATIENCE)
    assert sender.measured == [("wave.telemetry.dropped", 1)]
    assert pipeline.take_problem() == "Telemetry was not sent: it is full"
    assert pipeline.take_problem() == ""


def test_a_receiver_that_hangs_delays_the_end_only_for_the_time_it_is_given() -> None:
    sender = Recording()
    sender.gate.clear()
    pipeline = Pipeline(TARGET, loading(sender))
    span(pipeline)
    pipeline.begin()
    assert sender.arrived.wait(PATIENCE)
    for _ in range(10):
        span(pipeline)  # does not wait either
    started = monotonic()
    pipeline.finish(0.05)
    assert monotonic() - started < PATIENCE / 2
    assert "did not answer within 0.05 s" in pipeline.take_problem()
    assert sender.closed.is_set()
    sender.gate.set()


def test_an_sdk_that_cannot_be_loaded_is_one_problem() -> None:
    def load(_: TelemetryTarget) -> Sender:
        raise ImportError("no protobuf")

    pipeline = Pipeline(TARGET, load)
    span(pipeline)
    pipeline.finish(PATIENCE)
    assert "ImportError: no protobuf" in pipeline.take_problem()
    span(pipeline)
    pipeline.finish(PATIENCE)
    assert pipeline.take_problem() == ""


def test_a_bug_ends_telemetry_and_nothing_else() -> None:
    sender = Recording("raise")
    pipeline = Pipeline(TARGET, loading(sender))
    span(pipeline)
    pipeline.finish(PATIENCE)
    assert pipeline.take_problem() == "Telemetry was not sent: ValueError: a bug"


def test_a_session_that_reports_nothing_starts_no_thread() -> None:
    def load(_: TelemetryTarget) -> Sender:
        raise AssertionError

    pipeline = Pipeline(TARGET, load)
    pipeline.finish(PATIENCE)
    assert pipeline.take_problem() == ""


def test_a_signal_that_is_off_is_not_kept() -> None:
    sender = Recording()
    pipeline = Pipeline(TelemetryTarget(metrics=Signal("http://m")), loading(sender))
    made = TraceSpan(CHAT, {}, None, pipeline)
    made.end()
    assert made.position == NOWHERE
    pipeline.finish(PATIENCE)
    quiet = Pipeline(TelemetryTarget(traces=Signal("http://t")), loading(sender))
    quiet.measure(Measurement(SESSIONS, 1, {}))
    quiet.finish(PATIENCE)
    assert (sender.spans, sender.measured) == ([], [])


def test_sessions_with_the_same_target_share_a_pipeline_and_the_last_one_ends_it() -> None:
    sender = Recording()
    first, second = shared_pipeline(TARGET, loading(sender)), shared_pipeline(TARGET, loading(sender))
    other = shared_pipeline(TelemetryTarget(traces=Signal("http://other")), loading(sender))
    assert first is second is not other
    span(first)
    first.leave(PATIENCE)
    assert not sender.closed.is_set()
    second.leave(PATIENCE)
    assert sender.spans == ["chat m"]
    assert sender.closed.is_set()
    other.leave(PATIENCE)
    third = shared_pipeline(TARGET, loading(sender))
    assert third is not first
    third.leave(PATIENCE)


def test_a_span_ends_once() -> None:
    sender = Recording()
    pipeline = Pipeline(TARGET, loading(sender))
    made = TraceSpan(CHAT, {}, None, pipeline)
    made.end("first")
    made.end("second")
    pipeline.finish(PATIENCE)
    assert (made.error, sender.spans) == ("first", ["chat"])
