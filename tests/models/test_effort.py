"""What is asked of a server that refuses a level of effort."""

from collections.abc import Sequence

import pytest

from wave_agent.models.base import EFFORTS
from wave_agent.models.effort import AcceptedEffort

FIELD = "reasoning_effort"


def asked(wanted: str, refusals: Sequence[str]) -> list[str | None]:
    """What each request asks for, up to the one that is not refused."""
    effort = AcceptedEffort()
    found = [effort.of(wanted, "m")]
    for refusal in refusals:
        assert effort.adapts_to(refusal, FIELD)
        found.append(effort.of(wanted, "m"))
    return found


@pytest.mark.parametrize(
    ("wanted", "refusals", "expected"),
    [
        ("max", ["Unsupported value: 'max' is not supported with the 'm' model."], ["max", "xhigh"]),
        ("max", ["'max' is wrong", "'xhigh' is wrong"], ["max", "xhigh", "high"]),
        ("xhigh", [f"{FIELD}: 'xhigh' is not one of 'none', 'low', 'medium' and 'high'."], ["xhigh", "high"]),
        ("low", [f"{FIELD} does not support 'low'. Supported values are: 'medium' and 'high'."], ["low", "medium"]),
        ("max", [f"Unknown parameter: {FIELD}"], ["max", None]),
        ("high", [f"{FIELD} does not support 'high' with this model."], ["high", None]),
        (
            "high",
            [f"{FIELD}: only 'max'", f"{FIELD}: not 'max'", f"{FIELD}: not 'xhigh'"],
            ["high", "max", "xhigh", None],
        ),
    ],
)
def test_the_nearest_level_is_asked_for(wanted: str, refusals: list[str], expected: list[str | None]) -> None:
    assert asked(wanted, refusals) == expected


@pytest.mark.parametrize("wanted", EFFORTS)
@pytest.mark.parametrize("refusal", [f"{FIELD}: {' '.join(map(repr, EFFORTS))}", f"{FIELD}: no", f"{FIELD}: 'low'"])
def test_a_server_that_refuses_everything_is_asked_for_nothing_in_the_end(wanted: str, refusal: str) -> None:
    effort = AcceptedEffort()
    levels: list[str | None] = []
    while (level := effort.of(wanted, "m")) is not None:
        assert level not in levels
        levels.append(level)
        assert effort.adapts_to(refusal, FIELD)
    assert not effort.adapts_to(refusal, FIELD)


def test_a_refusal_of_something_else_changes_nothing() -> None:
    effort = AcceptedEffort()
    assert effort.of("high", "m") == "high"
    assert not effort.adapts_to("image_url.detail must be 'low' or 'high'", FIELD)
    assert effort.of("high", "m") == "high"


def test_another_model_may_know_what_this_one_refused() -> None:
    effort = AcceptedEffort()
    effort.of("max", "small")
    assert effort.adapts_to(f"Unknown parameter: {FIELD}", FIELD)
    assert (effort.of("max", "small"), effort.of("max", "large")) == (None, "max")
