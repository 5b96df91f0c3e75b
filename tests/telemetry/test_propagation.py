"""`traceparent`, as other programs write and read it."""

from tests.rows import rows
from wave_agent.telemetry.propagation import NOWHERE, Position, position_in

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_valid_variable_is_the_parent() -> None:
    found = position_in({"TRACEPARENT": f"00-{TRACE}-{SPAN}-01", "TRACESTATE": "vendor=1"})
    assert found is not None
    assert found == Position(int(TRACE, 16), int(SPAN, 16), True, "vendor=1", True)
    assert found.traceparent == f"00-{TRACE}-{SPAN}-01"


@rows("flags, sampled", [("00", False), ("01", True), ("03", True), ("02", False)])
def test_the_flag_says_whether_the_trace_is_sampled(flags: str, sampled: bool) -> None:
    found = position_in({"TRACEPARENT": f"00-{TRACE}-{SPAN}-{flags}"})
    assert found is not None
    assert found.sampled is sampled


@rows(
    "text",
    [
        "",
        "x",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
    ],
)
def test_an_invalid_variable_is_ignored(text: str) -> None:
    assert position_in({"TRACEPARENT": text}) is None


def test_a_later_version_may_have_more_parts() -> None:
    assert position_in({"TRACEPARENT": f"01-{TRACE}-{SPAN}-01-more"}) is not None


def test_nobody_is_told_of_a_trace_that_is_not_sent() -> None:
    assert NOWHERE.traceparent == ""
