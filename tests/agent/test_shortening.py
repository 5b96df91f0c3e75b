"""What is left out of a conversation that is too long, and what never is."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wave_agent.agent.outgoing import tokens_of
from wave_agent.agent.shortening import Shortening, cut_text
from wave_agent.messages import ErrorBlock, Kept, Message, ReasoningBlock, TextBlock, ToolBlock
from wave_agent.models.conversion import convert_messages_for_api

LONG = "0123456789" * 1000


def user(text: str, source: Any = "user") -> Message:
    return Message("user", (TextBlock(text, source),))


def assistant(*blocks: Any) -> Message:
    return Message("assistant", blocks)


def test_reasoning_that_goes_back_whole_goes_back_whole_or_not_at_all() -> None:
    kept = Kept("anthropic", "claude", {"thinking": LONG, "signature": "s"})
    short = Kept("anthropic", "claude", {"thinking": "", "signature": "s"})
    blocks = (ReasoningBlock(LONG, kept=kept), ReasoningBlock("", kept=short), TextBlock("Hello.", "model"))
    messages = [user("Hi."), assistant(*blocks), user("And?"), assistant(TextBlock("Well.", "model"))]
    assert tokens_of(messages) > 2500
    shortening = Shortening()
    assert shortening.shorten(messages, 1000, tokens_of)
    cut, whole, _ = shortening.apply(messages)[1].blocks
    assert isinstance(cut, ReasoningBlock)
    assert (cut.kept, len(cut.content) < len(LONG)) == (None, True)
    assert whole == blocks[1]


def test_a_conversation_that_fits_is_sent_as_it_is() -> None:
    shortening = Shortening()
    messages = [user(LONG), assistant(TextBlock(LONG, "model"))]
    assert shortening.apply(messages) is messages
    assert not shortening.shorten(messages, 10**6, tokens_of)
    assert list(shortening.apply([user(LONG)])) == [user(LONG)]


def test_everything_but_the_users_words_is_cut_in_the_middle() -> None:
    call = ToolBlock("a", "Write", {"content": LONG, "edits": [{"old": LONG}], "n": 3}, LONG, True)
    open_call = ToolBlock("b", "Read", {"file_path": "x"})
    blocks = (ReasoningBlock(LONG, "reasoning"), TextBlock(LONG, "model"), call, open_call, ErrorBlock(LONG))
    messages = [user(LONG), assistant(*blocks), user(LONG, "hook")]
    shortening = Shortening()
    assert shortening.shorten(messages, 3500, tokens_of)
    prompt, answer, hook = shortening.apply(messages)
    assert prompt == messages[0]
    reasoning, text, cut, opened, error = answer.blocks
    assert isinstance(reasoning, ReasoningBlock)
    assert isinstance(text, TextBlock)
    assert isinstance(cut, ToolBlock)
    assert (opened, error) == (open_call, ErrorBlock(LONG))
    assert cut.result is not None
    for shown in (reasoning.content, text.content, cut.parameters["content"], cut.parameters["edits"][0]["old"]):
        assert shown.startswith("0123")
        assert shown.endswith("789")
        assert "characters omitted here, because the conversation is too long for the model" in shown
    assert "call the tool again" in cut.result
    assert cut.parameters["n"] == 3
    assert "omitted" in hook.text


def test_the_latest_answer_keeps_more_than_older_ones() -> None:
    messages = [user("q"), *(assistant(ToolBlock(str(n), "Read", {}, LONG, True)) for n in range(4))]
    shortening = Shortening()
    shortening.shorten(messages, 5000, tokens_of)
    sizes = [tokens_of([message]) for message in shortening.apply(messages)]
    assert sizes[1] == sizes[2] == sizes[3] < sizes[4]


def test_what_was_cut_stays_cut_the_same_way_until_it_has_to_get_shorter() -> None:
    messages = [user("q"), assistant(TextBlock(LONG, "model")), user("r"), assistant(TextBlock("short", "model"))]
    shortening = Shortening()
    shortening.shorten(messages, 2300, tokens_of)
    once = list(shortening.apply(messages))
    assert list(shortening.apply([*messages, user("more")])) == [*once, user("more")]
    copy = shortening.copy()
    assert copy.shorten(messages, 100, tokens_of)
    assert list(shortening.apply(messages)) == once
    assert tokens_of(copy.apply(messages)) < tokens_of(once)
    before = list(copy.apply(messages))
    assert not copy.shorten(messages, 2300, tokens_of)
    assert list(copy.apply(messages)) == before


def test_old_messages_are_left_out_only_when_cutting_is_not_enough_and_one_note_says_so() -> None:
    messages = [
        message for n in range(40) for message in (user(f"prompt {n}"), assistant(TextBlock("a" * 190, "model")))
    ]
    messages[1:1] = [user("a hook's word", "hook"), user("summary", "model")]
    shortening = Shortening()
    assert shortening.shorten(messages, 1000, tokens_of)
    texts = [message.text for message in shortening.apply(messages)]
    assert [text for text in texts if text.startswith("prompt")] == [f"prompt {n}" for n in range(40)]
    assert texts[1].startswith("[Older messages were omitted")
    assert sum("omitted" in text for text in texts) == 1
    assert "summary" in texts
    assert texts[-1] == "a" * 190
    assert not shortening.shorten(messages, 1000, tokens_of)


def test_a_text_that_would_hardly_get_shorter_is_not_cut() -> None:
    assert cut_text("a" * 300, 100) == "a" * 300
    assert len(cut_text("a" * 301, 100)) < 301
    assert cut_text("a" * 301, 0).startswith("[301 characters omitted here")


texts = st.text(max_size=3000)
blocks = st.builds(lambda text: TextBlock(text, "model"), texts) | st.builds(
    lambda name, text: ToolBlock(name, "Bash", {"command": text}, text, True), st.uuids().map(str), texts
)
conversations = st.lists(
    st.builds(user, texts) | st.builds(lambda found: assistant(*found), st.lists(blocks, min_size=1, max_size=3)),
    min_size=1,
    max_size=12,
)


@given(conversations, st.integers(0, 3000))
def test_no_prompt_is_lost_and_what_is_sent_stays_valid(messages: list[Message], budget: int) -> None:
    shortening = Shortening()
    before = tokens_of(messages)
    smaller = shortening.shorten(messages, budget, tokens_of)
    shown = shortening.apply(messages)
    assert smaller == (tokens_of(shown) < before)
    assert [message for message in shown if message.is_prompt] == [message for message in messages if message.is_prompt]
    calls = [part["id"] for one in convert_messages_for_api(shown) for part in one.get("tool_calls", ())]
    results = [one["tool_call_id"] for one in convert_messages_for_api(shown) if one["role"] == "tool"]
    assert calls == results
