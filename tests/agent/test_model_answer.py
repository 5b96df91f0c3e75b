"""Answers that were cut and went on."""

from tests.rows import rows
from wave_agent.agent.model_answer import joined


@rows(
    ("before", "after", "whole"),
    [
        ("The answer is for", "ty-two.", "The answer is forty-two."),
        ("One. ", "Two.", "One. Two."),
        ("One.", "Two.", "One. Two."),
        ("One", " two", "One two"),
        ("def f(x):", "\n    return x", "def f(x):\n    return x"),
        ("The quick brown fox", "quick brown fox jumps.", "The quick brown fox jumps."),
        ("a, b", "b, c", "a, bb, c"),
        ("All.", "", "All."),
    ],
)
def test_what_the_model_went_on_with_is_joined(before: str, after: str, whole: str) -> None:
    assert joined(before, after) == whole
