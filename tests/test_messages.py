"""The conversation: what each operation makes of it, and what it announces."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wave_agent.messages import (
    HARNESS,
    AsideUpdated,
    BlockAdded,
    Change,
    Compacted,
    EachOnce,
    ErrorBlock,
    Message,
    MessageAdded,
    MessageManager,
    NoticeBlock,
    Origin,
    PromptAccepted,
    PromptAdded,
    PromptRemoved,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
    ToolUpdated,
)

GUARD = Origin("PreToolUse", "guard")


def watched(*messages: Message) -> tuple[MessageManager, list[Change]]:
    """A manager, and the list that its announcements go to."""
    changes: list[Change] = []
    return MessageManager(messages, changes.append), changes


def user(text: str) -> Message:
    return Message("user", (TextBlock(text, "user"),))


def call(tool_id: str = "one", **parameters: Any) -> ToolBlock:
    return ToolBlock(tool_id, "Bash", parameters)


# ------------------------------------------------------------------------------------------------------------- messages


def test_an_empty_manager_has_no_messages_and_needs_nobody_to_listen() -> None:
    manager = MessageManager()
    manager.add_user_message(TextBlock("hello", "user"))
    assert manager.messages == [user("hello")]
    assert MessageManager().messages == []


def test_a_message_of_the_users_role_keeps_every_text_and_its_origin() -> None:
    manager, changes = watched()
    texts = (TextBlock("first", "hook", GUARD), TextBlock("second", "hook", GUARD))
    manager.add_user_message(*texts)
    assert manager.messages == [Message("user", texts)]
    assert changes == [MessageAdded(Message("user", texts))]


def test_a_message_of_the_assistant_keeps_every_block_in_order() -> None:
    manager, changes = watched()
    blocks = (ReasoningBlock("hm"), TextBlock("let me see", "model"), call(command="ls"))
    manager.add_assistant_message(*blocks)
    assert manager.messages == [Message("assistant", blocks)]
    assert changes == [MessageAdded(Message("assistant", blocks))]


def test_the_text_of_a_message_is_its_text_blocks_and_nothing_of_tools_or_for_the_user_alone() -> None:
    blocks = (
        ReasoningBlock("thought"),
        TextBlock("one", "model"),
        ErrorBlock("error"),
        NoticeBlock("notice"),
        msgspec.structs.replace(call(), result="result"),
        TextBlock("two", "model"),
    )
    assert Message("assistant", blocks).text == "one\ntwo"
    assert Message("assistant").text == ""


def test_the_list_of_messages_is_a_copy() -> None:
    manager, _ = watched(user("kept"))
    taken = manager.messages
    taken.clear()
    assert manager.messages == [user("kept")]


def test_a_list_taken_earlier_does_not_change_later() -> None:
    manager, _ = watched()
    manager.add_assistant_message(call())
    before = manager.messages
    manager.update_tool_block("one", result="done", success=True)
    manager.add_error_block("oops")
    assert before == [Message("assistant", (call(),))]


def test_the_messages_given_at_the_start_are_not_announced_and_not_changed() -> None:
    given_messages = (user("old"), Message("assistant", (call(),)))
    manager, changes = watched(*given_messages)
    assert changes == []
    manager.update_tool_block("one", result="done", success=True)
    assert given_messages == (user("old"), Message("assistant", (call(),)))


def test_messages_and_blocks_are_frozen() -> None:
    with pytest.raises(AttributeError):
        user("x").role = "assistant"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        TextBlock("x", "user").content = "y"  # pyright: ignore[reportAttributeAccessIssue]


# --------------------------------------------------------------------------------------------------------------- prompt


def test_a_prompt_stands_in_the_conversation_while_it_is_judged() -> None:
    manager, changes = watched()
    manager.add_prompt("do it")
    assert manager.messages == [user("do it")]
    assert changes == [PromptAdded("do it")]


def test_an_accepted_prompt_stays() -> None:
    manager, changes = watched()
    manager.add_prompt("do it")
    manager.accept_prompt()
    assert manager.messages == [user("do it")]
    assert changes == [PromptAdded("do it"), PromptAccepted("do it")]


def test_a_prompt_is_accepted_once() -> None:
    manager, changes = watched()
    manager.accept_prompt()
    assert changes == []
    manager.add_prompt("do it")
    manager.accept_prompt()
    manager.accept_prompt()
    assert changes == [PromptAdded("do it"), PromptAccepted("do it")]


def test_a_refused_prompt_leaves_the_conversation_with_the_reason_announced() -> None:
    manager, changes = watched(user("before"))
    manager.add_prompt("secret")
    manager.remove_last_user_message("not that")
    assert manager.messages == [user("before")]
    assert changes == [PromptAdded("secret"), PromptRemoved("secret", "not that")]


def test_the_prompt_that_waits_is_removed_also_when_other_messages_of_the_users_role_follow_it() -> None:
    manager, _ = watched()
    manager.add_prompt("secret")
    manager.add_user_message(TextBlock("context", "hook", GUARD))
    manager.remove_last_user_message()
    assert [message.text for message in manager.messages] == ["context"]


def test_a_removed_prompt_cannot_be_accepted() -> None:
    manager, changes = watched()
    manager.add_prompt("secret")
    manager.remove_last_user_message()
    manager.accept_prompt()
    assert manager.messages == []
    assert changes == [PromptAdded("secret"), PromptRemoved("secret", "")]


def test_without_a_waiting_prompt_the_last_message_of_the_users_role_is_removed() -> None:
    manager, changes = watched(user("one"), user("two"), Message("assistant", (TextBlock("three", "model"),)))
    manager.remove_last_user_message("why")
    assert [message.text for message in manager.messages] == ["one", "three"]
    assert changes == [PromptRemoved("two", "why")]


def test_where_the_user_said_nothing_there_is_nothing_to_remove() -> None:
    manager, changes = watched(Message("assistant", (TextBlock("hello", "model"),)))
    manager.remove_last_user_message("why")
    assert len(manager.messages) == 1
    assert changes == []


# --------------------------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize(
    ("add", "block"),
    [
        (lambda manager: manager.add_error_block("broken"), ErrorBlock("broken")),
        (lambda manager: manager.add_notice_block("look"), NoticeBlock("look", "warning")),
        (lambda manager: manager.add_notice_block("fyi", "info"), NoticeBlock("fyi", "info")),
    ],
    ids=["error", "warning", "info"],
)
class TestABlockForTheUserAlone:
    def test_joins_the_assistants_message_at_the_end(self, add: Callable[[MessageManager], None], block: Any) -> None:
        said = TextBlock("hello", "model")
        manager, changes = watched(Message("assistant", (said,)))
        add(manager)
        assert manager.messages == [Message("assistant", (said, block))]
        assert changes == [BlockAdded(block)]

    def test_gets_a_message_of_its_own_after_one_of_the_user(
        self, add: Callable[[MessageManager], None], block: Any
    ) -> None:
        manager, changes = watched(user("hello"))
        add(manager)
        assert manager.messages == [user("hello"), Message("assistant", (block,))]
        assert changes == [BlockAdded(block)]

    def test_gets_a_message_of_its_own_in_an_empty_conversation(
        self, add: Callable[[MessageManager], None], block: Any
    ) -> None:
        manager, _ = watched()
        add(manager)
        assert manager.messages == [Message("assistant", (block,))]


def test_an_error_block_is_never_empty() -> None:
    manager, changes = watched()
    manager.add_error_block("")
    assert isinstance(changes[0], BlockAdded)
    assert changes[0].block.content.strip()


# ---------------------------------------------------------------------------------------------------------------- calls


def test_a_result_is_set_and_the_parameters_stay_what_the_model_asked_for() -> None:
    manager, changes = watched()
    first, second, said = call("one", command="ls"), call("two", command="pwd"), TextBlock("now", "model")
    manager.add_assistant_message(said, first, second)
    manager.update_tool_block("two", result="no", success=False, error="refused", origin=GUARD)
    done = ToolBlock("two", "Bash", {"command": "pwd"}, "no", False, "refused", GUARD)
    assert manager.messages == [Message("assistant", (said, first, done))]
    assert changes[1:] == [ToolUpdated(done)]


def test_a_later_result_replaces_all_of_an_earlier_one() -> None:
    manager, _ = watched(Message("assistant", (call(),)))
    manager.update_tool_block("one", result="no", success=False, error="refused", origin=GUARD)
    manager.update_tool_block("one", result="yes", success=True)
    assert manager.messages[0].blocks == (ToolBlock("one", "Bash", {}, "yes", True, None, None),)


def test_of_two_calls_with_one_id_the_later_one_gets_the_result() -> None:
    manager, _ = watched(Message("assistant", (call(),)), Message("assistant", (call(),)))
    manager.update_tool_block("one", result="done", success=True)
    results = [block.result for message in manager.messages for block in message.blocks if isinstance(block, ToolBlock)]
    assert results == [None, "done"]


@pytest.mark.parametrize("tool_id", ["two", ""])
def test_a_result_for_an_unknown_call_is_refused_and_changes_nothing(tool_id: str) -> None:
    manager, changes = watched(user("hello"), Message("assistant", (TextBlock("one", "model"), call())))
    before = manager.messages
    with pytest.raises(KeyError):
        manager.update_tool_block(tool_id, result="done", success=True)
    assert manager.messages == before
    assert changes == []


def test_calls_without_a_result_are_open_an_empty_result_is_one() -> None:
    manager, _ = watched(Message("assistant", (call("one"), call("two"))))
    manager.add_assistant_message(call("three"))
    manager.update_tool_block("two", result="", success=True)
    assert [block.id for block in manager.open_calls()] == ["one", "three"]
    manager.update_tool_block("one", result="x", success=True)
    manager.update_tool_block("three", result="x", success=False)
    assert manager.open_calls() == []


def test_the_results_are_those_that_tools_have_given_back_in_order() -> None:
    manager, _ = watched(Message("assistant", (call("one"), call("two"), TextBlock("said", "model"))))
    manager.add_assistant_message(call("three"))
    for tool_id, result in (("three", "c"), ("one", "a"), ("two", "")):
        manager.update_tool_block(tool_id, result=result, success=True)
    assert manager.results() == ["a", "c"]


def test_every_call_is_known_by_its_id_whether_it_was_resumed_or_made_here() -> None:
    manager, _ = watched(Message("assistant", (call("resumed"),)))
    manager.add_assistant_message(call("made"))
    assert manager.has_call("resumed")
    assert manager.has_call("made")
    assert not manager.has_call("other")


# ----------------------------------------------------------------------------------------------------------- compaction


def test_without_a_summary_the_model_reads_every_message() -> None:
    manager, _ = watched(user("one"), user("two"))
    assert manager.for_model == manager.messages
    assert manager.compacted_upto == 0


def test_a_summary_stands_for_the_first_messages_for_the_model_and_the_user_keeps_them_all() -> None:
    manager, changes = watched(user("one"), user("two"), user("three"))
    manager.compact("they said one and two", 2)
    assert [message.text for message in manager.messages] == ["one", "two", "three"]
    summary, rest = manager.for_model
    assert summary.role == "user"
    assert summary.text.endswith("they said one and two")
    assert rest == user("three")
    assert changes == [Compacted("they said one and two", 2)]
    assert manager.compacted_upto == 2


def test_a_later_summary_takes_the_place_of_an_earlier_one_and_a_resumed_one_counts() -> None:
    messages = (user("one"), user("two"), user("three"))
    manager = MessageManager(messages, compacted=Compacted("first", 1))
    assert [message.text for message in manager.for_model[1:]] == ["two", "three"]
    manager.compact("second", 2)
    summary, rest = manager.for_model
    assert summary.text.endswith("second")
    assert "first" not in summary.text
    assert rest == user("three")


def test_what_comes_after_a_summary_is_read_by_the_model_as_it_is() -> None:
    manager, _ = watched(user("one"))
    manager.compact("summary", 1)
    manager.add_prompt("two")
    manager.add_error_block("oops")
    assert manager.for_model[1:] == manager.messages[1:]


# -------------------------------------------------------------------------------------------------------- announcements

STEPS: dict[str, Callable[[MessageManager], None]] = {
    "prompt": lambda manager: manager.add_prompt("prompt"),
    "accept": lambda manager: manager.accept_prompt(),
    "remove": lambda manager: manager.remove_last_user_message("why"),
    "user": lambda manager: manager.add_user_message(TextBlock("user", "user")),
    "assistant": lambda manager: manager.add_assistant_message(TextBlock("model", "model"), call()),
    "error": lambda manager: manager.add_error_block("error"),
    "notice": lambda manager: manager.add_notice_block("notice"),
    "update": lambda manager: (
        manager.update_tool_block("one", result="done", success=True) if manager.has_call("one") else None
    ),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=20))
def test_each_change_is_announced_once_in_order_and_after_it_was_made(steps: list[str]) -> None:
    seen: list[tuple[Change, list[Message]]] = []
    manager = MessageManager((), lambda change: seen.append((change, manager.messages)))
    for step in steps:
        before, announced = manager.messages, len(seen)
        STEPS[step](manager)
        changed = manager.messages != before
        accepted = any(isinstance(change, PromptAccepted) for change, _ in seen[announced:])
        repeated = step == "update" and manager.has_call("one")  # the same result again is still announced
        assert len(seen) - announced == int(changed or accepted or repeated)
        if len(seen) > announced:
            assert seen[-1][1] == manager.messages


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=20))
def test_the_announcements_alone_tell_the_whole_conversation(steps: list[str]) -> None:
    """Whoever follows them, as the transcript does, knows every message; only removals need the manager's word."""
    changes: list[Change] = []
    manager = MessageManager((), changes.append)
    for step in steps:
        if step != "remove":
            STEPS[step](manager)
    told = [change.text for change in changes if isinstance(change, PromptAdded)]
    told += [change.message.text for change in changes if isinstance(change, MessageAdded)]
    texts = [block.content for message in manager.messages for block in message.blocks if isinstance(block, TextBlock)]
    assert sorted(told) == sorted(texts)


# ----------------------------------------------------------------------------------------------------------- JSON shape


def test_the_json_shape_of_a_message_is_exactly_the_documented_one() -> None:
    blocks = (
        TextBlock("hello", "hook", GUARD),
        ToolBlock("one", "Bash", {"command": "ls", "deep": {"list": [1, None]}}, "done", True, None, GUARD),
        ErrorBlock("broken"),
        NoticeBlock("look"),
        ReasoningBlock("hm"),
    )
    assert json.loads(json.dumps(Message("assistant", blocks).to_dict())) == {
        "role": "assistant",
        "blocks": [
            {"type": "text", "content": "hello", "source": "hook"},
            {
                "type": "tool",
                "id": "one",
                "name": "Bash",
                "parameters": {"command": "ls", "deep": {"list": [1, None]}},
                "result": "done",
                "success": True,
                "error": None,
            },
            {"type": "error", "content": "broken"},
            {"type": "notice", "content": "look", "level": "warning"},
            {"type": "reasoning", "content": "hm"},
        ],
    }


def test_a_call_without_a_result_says_so_in_json() -> None:
    (block,) = Message("assistant", (call(),)).to_dict()["blocks"]
    assert (block["result"], block["success"], block["error"]) == (None, None, None)


@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=6), max_size=6))
def test_each_once_is_the_same_as_working_everything_out_anew(edits: list[list[tuple[bool, int]]]) -> None:
    def work(message: Message) -> tuple[str, ...]:
        return tuple(message.text)

    each = EachOnce(work)
    messages: list[Message] = []
    for edit in edits:
        for adds, at in edit:
            text = TextBlock("x" * at, "user")
            if adds or at >= len(messages):
                messages.append(Message("user", (text,)))
            elif at % 2:
                messages[at] = Message("user", (text, text))
            else:
                del messages[at]
        assert each(messages) == [value for message in messages for value in work(message)]


def test_each_once_does_not_work_again_on_what_it_has_seen() -> None:
    seen: list[str] = []

    def work(message: Message) -> tuple[int, ...]:
        seen.append(message.text)
        return (1, 2)

    each = EachOnce(work)
    messages = [Message("user", (TextBlock(str(number), "user"),)) for number in range(5)]
    each(messages)
    each([*messages, Message("user", (TextBlock("new", "user"),))])
    assert seen == ["0", "1", "2", "3", "4", "new"]


# ------------------------------------------------------------------------------------------------------- for the model


def test_beside_a_summary_stand_the_users_words_and_facts() -> None:
    manager, changes = watched(user("one"), Message("assistant", (TextBlock("a", "model"),)), user("two"))
    manager.compact("they said one", 2, words="one", facts="todo")
    assert changes == [Compacted("they said one", 2, "one", "todo")]
    summary, last = manager.for_model
    assert last == user("two")
    assert summary.is_prompt
    assert [block.content for block in summary.blocks if isinstance(block, TextBlock) and block.source == "user"] == [
        "one"
    ]
    assert "they said one" in summary.text
    assert "todo" in summary.text
    assert manager.for_model[0] is summary
    resumed = MessageManager(manager.messages, compacted=Compacted("they said one", 2, "one", "todo"))
    assert resumed.for_model == manager.for_model


def test_a_word_of_the_agent_itself_is_no_prompt() -> None:
    manager, changes = watched()
    manager.tell_model("Go on.")
    assert changes == [MessageAdded(Message("user", (TextBlock("Go on.", "hook", HARNESS),)))]
    assert not manager.messages[0].is_prompt


def test_the_result_of_a_call_is_found() -> None:
    manager, _ = watched()
    manager.add_assistant_message(call("one"), call("two"))
    manager.update_tool_block("two", result="done", success=True)
    assert [manager.result_of(name) for name in ("one", "two", "three")] == ["", "done", ""]


def test_a_call_is_found_by_its_id_and_one_that_was_never_made_is_not() -> None:
    messages = MessageManager()
    messages.add_assistant_message(ToolBlock("one", "Bash", {}), ToolBlock("two", "Read", {}))
    assert messages.call("two").name == "Read"
    assert messages.result_of("three") == ""
    with pytest.raises(KeyError):
        messages.call("three")


def test_the_field_of_reasoning_is_no_part_of_the_public_shape() -> None:
    shape = Message("assistant", (ReasoningBlock("hm", "reasoning_content"),)).to_dict()
    assert list(shape["blocks"]) == [{"type": "reasoning", "content": "hm"}]


# ----------------------------------------------------------------------------------------------- what a prompt asks for


def test_a_prompt_that_waits_can_be_expanded_and_is_accepted_or_removed_as_such() -> None:
    manager, changes = watched()
    manager.expand_prompt("nothing waits")
    assert manager.messages == []
    manager.add_prompt("/go")
    manager.expand_prompt("Go there.")
    manager.accept_prompt()
    assert changes == [PromptAdded("/go"), PromptAccepted("Go there.")]
    manager.add_prompt("/go")
    manager.expand_prompt("Go there.")
    manager.drop_unjudged_prompt("no")
    manager.drop_unjudged_prompt("no")
    assert changes[2:] == [PromptAdded("/go"), PromptRemoved("Go there.", "no", "/go")]
    assert [message.text for message in manager.messages] == ["Go there."]


def test_a_call_aside_gets_its_result_and_stays_out_of_the_conversation() -> None:
    manager, changes = watched()
    manager.add_aside(ToolBlock("a", "Bash", {"command": "ls"}))
    manager.update_tool_block("a", result="out", success=True)
    done = ToolBlock("a", "Bash", {"command": "ls"}, "out", True)
    assert (manager.aside("a"), changes, manager.messages) == (done, [AsideUpdated(done)], [])
    manager.add_prompt("next")
    assert manager.aside("a") is None
