"""Answers that were cut and went on."""

from typing import Any

import pytest

from tests.rows import rows
from wave_agent.agent.model_answer import ModelAnswer, joined
from wave_agent.errors import ModelError
from wave_agent.messages import Kept, MessageManager, ReasoningBlock, TextBlock, ToolBlock
from wave_agent.models.base import Reasoning, Text, ToolCall, ToolSpec
from wave_agent.models.limits import AnswerLimits


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


# ----------------------------------------------------------------------------------------------- what an API wants back


def kept(**data: Any) -> Kept:
    return Kept("api", "model", data)


def taken(*deltas: Text | Reasoning | ToolCall) -> ModelAnswer:
    answer = ModelAnswer()
    for delta in deltas:
        answer.take(delta)
    return answer


TOOLS = [ToolSpec("Glob", "", {"type": "object", "required": ["pattern"]})]


def test_blocks_keep_the_order_in_which_they_came() -> None:
    answer = taken(
        Reasoning("One"),
        Reasoning("."),
        Reasoning("", kept=kept(a=1)),
        Reasoning("", kept=kept(a=2)),
        Text("He"),
        Text("llo."),
        ToolCall("a", "Glob", '{"pattern": "*"}', kept(a=3)),
        Reasoning("Two."),
        Reasoning("", kept=kept(a=4)),
        ToolCall("b", "Glob", '{"pattern": "a*"}'),
        Text("Bye."),
        Text("", kept(a=5)),
    )
    answer.read_calls(TOOLS, MessageManager())
    assert answer.blocks() == [
        ReasoningBlock("One.", kept=kept(a=1)),
        ReasoningBlock("", kept=kept(a=2)),
        TextBlock("Hello.", "model"),
        ToolBlock("a", "Glob", {"pattern": "*"}, kept=kept(a=3)),
        ReasoningBlock("Two.", kept=kept(a=4)),
        ToolBlock("b", "Glob", {"pattern": "a*"}),
        TextBlock("Bye.", "model", kept=kept(a=5)),
    ]
    assert answer.text == "Hello.Bye."


def test_what_came_before_a_retry_is_shown_but_not_sent_back() -> None:
    answer = taken(Reasoning("One."), Reasoning("", kept=kept(a=1)))
    answer.begin_again()
    answer.take(Reasoning("Two."))
    answer.take(Reasoning("", kept=kept(a=2)))
    answer.take(Text("Hello."))
    assert answer.blocks() == [ReasoningBlock("One.Two.", kept=kept(a=2)), TextBlock("Hello.", "model")]


def test_calls_that_do_not_run_are_not_stored() -> None:
    answer = taken(Reasoning("", kept=kept(a=1)), ToolCall("a", "Glob", "{}", kept(a=2)))
    answer.calls.clear()  # as after an answer that broke off
    assert answer.blocks() == [ReasoningBlock("", kept=kept(a=1))]


def test_a_call_written_as_text_follows_the_rest() -> None:
    call = '<tool_call>{"name": "Glob", "arguments": {"pattern": "*"}}</tool_call>'
    answer = taken(Reasoning("Hm."), Reasoning("", kept=kept(a=1)), Text(f"I look.\n{call}"))
    answer.read_calls(TOOLS, MessageManager())
    thought, text, made = answer.blocks()
    assert (thought, text) == (ReasoningBlock("Hm.", kept=kept(a=1)), TextBlock("I look.", "model"))
    assert isinstance(made, ToolBlock)
    assert made.parameters == {"pattern": "*"}


def test_what_is_to_be_sent_back_is_limited_too() -> None:
    answer = ModelAnswer(AnswerLimits(max_text_bytes=1000))
    with pytest.raises(ModelError, match="maxTextBytes"):
        answer.take(Reasoning("", kept=kept(a="x" * 2000)))
