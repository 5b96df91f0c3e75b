"""What hooks mean → what the conversation becomes: the whole table, and what it does to a real conversation."""

from collections.abc import Iterable
from itertools import chain, combinations, product

import pytest

from tests.rows import rows
from wave_agent.agent.consequences import (
    BLOCKED,
    DENIED,
    STOPPED,
    ErasePrompt,
    GiveResult,
    Operation,
    TellError,
    TellModel,
    TellNotice,
    When,
    consequences,
    context_blocks,
    perform,
)
from wave_agent.hooks.events import EVENTS, Audience, ContextPlace, Decision, Flow, HookEvent
from wave_agent.hooks.semantics import limited, merge
from wave_agent.hooks.verdicts import (
    AddContext,
    Approve,
    Ask,
    Block,
    Blocks,
    Defer,
    Effect,
    EndTurn,
    Failure,
    FailureKind,
    Outcome,
    RankedVerdict,
    Role,
    Said,
    TellRefused,
    TellUser,
    ToUser,
    Verdict,
)
from wave_agent.messages import (
    Change,
    ErrorBlock,
    Message,
    MessageManager,
    NoticeBlock,
    Origin,
    TextBlock,
    ToolBlock,
)
from wave_agent.models.conversion import convert_messages_for_api

PROMPT, PRE, POST, STOP, START, PRE_COMPACT, POST_COMPACT = (
    HookEvent.USER_PROMPT_SUBMIT,
    HookEvent.PRE_TOOL_USE,
    HookEvent.POST_TOOL_USE,
    HookEvent.STOP,
    HookEvent.SESSION_START,
    HookEvent.PRE_COMPACT,
    HookEvent.POST_COMPACT,
)
REQUEST, FAILED, END = HookEvent.PERMISSION_REQUEST, HookEvent.POST_TOOL_USE_FAILURE, HookEvent.SESSION_END
BEGUN, ENDED = HookEvent.SUBAGENT_START, HookEvent.SUBAGENT_STOP
EXPANSION = HookEvent.USER_PROMPT_EXPANSION
QUESTIONS = (HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT)
UNHEARD = (
    *(HookEvent.NOTIFICATION, HookEvent.STOP_FAILURE, HookEvent.CONFIG_CHANGE),
    *(HookEvent.INSTRUCTIONS_LOADED, HookEvent.FILE_CHANGED, HookEvent.CWD_CHANGED),
)
TASKS = (HookEvent.TASK_CREATED, HookEvent.TASK_COMPLETED)
BATCH, REFUSAL = HookEvent.POST_TOOL_BATCH, HookEvent.PERMISSION_DENIED
NOW, LATER = When.NOW, When.AFTER_RESULTS
SAYS: dict[Decision, tuple[Effect, ...]] = {
    Decision.NONE: (),
    Decision.ALLOW: (Approve("fine"),),
    Decision.ASK: (Ask("sure?"),),
    Decision.DEFER: (Defer("later"),),
    Decision.BLOCK: (Block("never"),),
    Decision.STOP: (EndTurn("enough"),),
}


def outcome(event: HookEvent, *hooks: Iterable[Effect]) -> Outcome:
    """Of hooks that are called `one`, `two`, … and say this."""
    names = ("one", "two", "three")
    return merge(
        event,
        [
            RankedVerdict(position=at, name=names[at], verdict=Verdict(tuple(effects)), role=Role.ENFORCE)
            for at, effects in enumerate(hooks)
        ],
    )


def hook_text(event: HookEvent, text: str, name: str = "one") -> TextBlock:
    return TextBlock(text, "hook", Origin(event, name))


def warning(text: str) -> TellNotice:
    return TellNotice(text, "warning")


# ------------------------------------------------------------------------------------------------------------ the table

REFUSED = "Not run: denied by hook one. Do without it, or tell the user."
STOPPED_CALL = GiveResult("id", STOPPED, STOPPED, None)

TABLE: dict[tuple[HookEvent, Decision], tuple[Operation, ...]] = {
    (PROMPT, Decision.NONE): (),
    (PROMPT, Decision.ALLOW): (warning("fine"),),
    (PROMPT, Decision.ASK): (ErasePrompt("sure?"), TellError("sure?")),
    (PROMPT, Decision.BLOCK): (ErasePrompt("never"), TellError("never")),
    (PROMPT, Decision.STOP): (warning("enough"),),
    (EXPANSION, Decision.NONE): (),
    (EXPANSION, Decision.ALLOW): (warning("fine"),),
    (EXPANSION, Decision.ASK): (ErasePrompt("sure?"), TellError("sure?")),
    (EXPANSION, Decision.BLOCK): (ErasePrompt("never"), TellError("never")),
    (EXPANSION, Decision.STOP): (warning("enough"),),
    (PRE, Decision.NONE): (),
    (PRE, Decision.ALLOW): (warning("fine"),),
    (PRE, Decision.ASK): (),
    (PRE, Decision.DEFER): (warning("later"),),
    (PRE, Decision.BLOCK): (GiveResult("id", "never", BLOCKED, Origin(PRE, "one")),),
    (PRE, Decision.STOP): (STOPPED_CALL, warning("enough")),
    (POST, Decision.NONE): (),
    (POST, Decision.ALLOW): (warning("fine"),),
    (POST, Decision.ASK): (TellModel((hook_text(POST, "sure?"),), LATER),),
    (POST, Decision.BLOCK): (TellModel((hook_text(POST, "never"),), LATER),),
    (POST, Decision.STOP): (warning("enough"),),
    (STOP, Decision.NONE): (),
    (STOP, Decision.ALLOW): (warning("fine"),),
    (STOP, Decision.ASK): (TellModel((hook_text(STOP, "sure?"),), NOW),),
    (STOP, Decision.BLOCK): (TellModel((hook_text(STOP, "never"),), NOW),),
    (STOP, Decision.STOP): (warning("enough"),),
    (START, Decision.NONE): (),
    (START, Decision.ALLOW): (warning("fine"),),
    (START, Decision.ASK): (),
    (START, Decision.BLOCK): (warning("never"),),
    (START, Decision.STOP): (warning("enough"),),
    (BEGUN, Decision.NONE): (),
    (BEGUN, Decision.ALLOW): (warning("fine"),),
    (BEGUN, Decision.ASK): (),
    (BEGUN, Decision.BLOCK): (warning("never"),),
    (BEGUN, Decision.STOP): (warning("enough"),),
    (ENDED, Decision.NONE): (),
    (ENDED, Decision.ALLOW): (warning("fine"),),
    (ENDED, Decision.ASK): (TellModel((hook_text(ENDED, "sure?"),), NOW),),
    (ENDED, Decision.BLOCK): (TellModel((hook_text(ENDED, "never"),), NOW),),
    (ENDED, Decision.STOP): (warning("enough"),),
    (PRE_COMPACT, Decision.NONE): (),
    (PRE_COMPACT, Decision.ALLOW): (warning("fine"),),
    (PRE_COMPACT, Decision.ASK): (),
    (PRE_COMPACT, Decision.BLOCK): (warning("never"),),
    (PRE_COMPACT, Decision.STOP): (warning("enough"),),
    (POST_COMPACT, Decision.NONE): (),
    (POST_COMPACT, Decision.ALLOW): (warning("fine"),),
    (POST_COMPACT, Decision.ASK): (),
    (POST_COMPACT, Decision.BLOCK): (warning("never"),),
    (POST_COMPACT, Decision.STOP): (warning("enough"),),
    (REQUEST, Decision.NONE): (),
    (REQUEST, Decision.ALLOW): (warning("fine"),),
    (REQUEST, Decision.ASK): (),
    (REQUEST, Decision.BLOCK): (GiveResult("id", REFUSED, DENIED, None), warning("never")),
    (REQUEST, Decision.STOP): (STOPPED_CALL, warning("enough")),
    (FAILED, Decision.NONE): (),
    (FAILED, Decision.ALLOW): (warning("fine"),),
    (FAILED, Decision.ASK): (TellModel((hook_text(FAILED, "sure?"),), LATER),),
    (FAILED, Decision.BLOCK): (TellModel((hook_text(FAILED, "never"),), LATER),),
    (FAILED, Decision.STOP): (warning("enough"),),
    (END, Decision.NONE): (),
    (END, Decision.ALLOW): (warning("fine"),),
    (END, Decision.ASK): (),
    (END, Decision.BLOCK): (warning("never"),),
    (END, Decision.STOP): (warning("enough"),),
    **{(event, Decision.NONE): () for event in (BATCH, REFUSAL, *TASKS)},
    **{(event, Decision.ALLOW): (warning("fine"),) for event in (BATCH, REFUSAL, *TASKS)},
    **{(event, Decision.ASK): () for event in (BATCH, REFUSAL)},
    **{(event, Decision.BLOCK): (warning("never"),) for event in (BATCH, REFUSAL)},
    **{(event, Decision.ASK): (TellModel((hook_text(event, "sure?"),), LATER),) for event in TASKS},
    **{(event, Decision.BLOCK): (TellModel((hook_text(event, "never"),), LATER),) for event in TASKS},
    **{(event, Decision.STOP): (warning("enough"),) for event in (BATCH, REFUSAL, *TASKS)},
    **{(event, Decision.NONE): () for event in QUESTIONS},
    **{(event, Decision.ALLOW): (warning("fine"),) for event in QUESTIONS},
    **{(event, Decision.ASK): () for event in QUESTIONS},
    **{(event, Decision.BLOCK): (warning("never"),) for event in QUESTIONS},
    **{(event, Decision.STOP): (warning("enough"),) for event in QUESTIONS},
    **{(event, decision): () for event in UNHEARD for decision in Decision},
}


def test_the_table_has_every_event_and_every_decision() -> None:
    assert set(TABLE) == set(product(HookEvent, Decision)) - {
        (event, Decision.DEFER) for event in HookEvent if event not in (PRE, *UNHEARD)
    }


def test_a_call_that_is_deferred_and_cannot_be_is_one_that_needs_an_answer() -> None:
    made = outcome(PRE, [Defer("later"), TellUser("by the way")], [Ask("sure?")])
    assert consequences(made.as_ask(), tool_id="id") == (warning("by the way"),)
    assert made.as_ask().reasons == {Decision.ASK: (Said("one", "later"), Said("two", "sure?"))}
    assert made.as_ask().flow is Flow.CONFIRM


@rows(("event", "decision"), TABLE, ids=lambda part: part.name)
def test_the_operations_of(event: HookEvent, decision: Decision) -> None:
    assert consequences(outcome(event, SAYS[decision]), tool_id="id") == TABLE[event, decision]


@rows("flow", Flow)
def test_every_flow_has_consequences_on_every_event(flow: Flow) -> None:
    for event in HookEvent:
        said = {Decision.BLOCK: (Said("one", "never"),)}
        made = Outcome(event=event, decision=Decision.BLOCK, flow=flow, blocked=True, reasons=said)
        assert isinstance(consequences(made, tool_id="id"), tuple)


CONTEXT_TIMES = {
    **{PROMPT: NOW, EXPANSION: NOW, START: NOW, STOP: NOW, BEGUN: NOW, ENDED: NOW},
    **{PRE: LATER, POST: LATER, FAILED: LATER, BATCH: LATER, REFUSAL: LATER},
}


@rows(("event", "decision"), TABLE, ids=lambda part: part.name)
def test_context_goes_where_the_event_puts_it_whatever_was_decided(event: HookEvent, decision: Decision) -> None:
    made = outcome(event, [*SAYS[decision], AddContext("a")], [AddContext("b")])
    found = [operation for operation in consequences(made, tool_id="id") if isinstance(operation, TellModel)]
    expected = [operation for operation in TABLE[event, decision] if isinstance(operation, TellModel)]
    erased = event in (PROMPT, EXPANSION) and decision in (Decision.BLOCK, Decision.ASK)
    if event in CONTEXT_TIMES and not erased:
        texts = (hook_text(event, "a"), hook_text(event, "b", "two"))
        expected.append(TellModel(texts, CONTEXT_TIMES[event]))
    assert found == expected


def test_every_place_of_context_is_known() -> None:
    assert {row.context for row in EVENTS.values()} == set(ContextPlace)


def test_context_that_waited_comes_first_in_the_one_message_with_the_prompts_own() -> None:
    waited = (hook_text(STOP, "from before"),)
    made = outcome(PROMPT, [AddContext("now")])
    assert consequences(made, waiting=waited) == (TellModel((*waited, hook_text(PROMPT, "now"))),)
    assert consequences(outcome(PROMPT), waiting=waited) == (TellModel(waited),)


def test_context_blocks_carry_event_and_hook() -> None:
    made = context_blocks("Stop", [Said("one", "a"), Said("two", "b")])
    assert made == (hook_text(STOP, "a"), hook_text(STOP, "b", "two"))


# -------------------------------------------------------------------------------------------------------------- reasons


@pytest.mark.parametrize("event", [PRE, POST, STOP])
def test_the_reasons_of_all_that_block_are_told_in_configuration_order_with_all_their_names(event: HookEvent) -> None:
    made = outcome(event, [Block("first")], [Approve("fine")], [Block("third")])
    first, *_ = consequences(made, tool_id="id")
    reason, origin = "first\nthird", Origin(event, "one, three")
    if event is PRE:
        assert first == GiveResult("id", reason, BLOCKED, origin)
    else:
        assert first == TellModel((TextBlock(reason, "hook", origin),), LATER if event is POST else NOW)


def test_the_reasons_for_erasing_a_prompt_are_one_error_in_configuration_order() -> None:
    made = outcome(PROMPT, [Block("first")], [Block("second")], [Block("third")])
    assert consequences(made) == (ErasePrompt("first\nsecond\nthird"), TellError("first\nsecond\nthird"))


def test_a_hook_that_blocks_twice_is_named_once() -> None:
    made = outcome(PRE, [Block("a"), Block("b")])
    assert consequences(made, tool_id="id") == (GiveResult("id", "a\nb", BLOCKED, Origin(PRE, "one")),)


def test_a_stop_beside_a_block_still_erases_the_prompt_and_tells_both() -> None:
    made = outcome(PROMPT, [EndTurn("enough")], [Block("never"), AddContext("context")])
    assert consequences(made) == (ErasePrompt("never"), TellError("never"), warning("enough"))


@rows("event", [event for event in HookEvent if event not in (PROMPT, EXPANSION, *UNHEARD)])
def test_a_block_that_a_stop_has_beaten_is_told_to_the_user_and_not_to_the_model(event: HookEvent) -> None:
    operations = consequences(outcome(event, [Block("never")], [EndTurn("enough")]), tool_id="id")
    assert [one for one in operations if isinstance(one, TellNotice)] == [warning("enough"), warning("never")]
    assert not [one for one in operations if isinstance(one, TellModel)]


def test_a_refused_call_gives_the_model_what_the_hooks_want_it_to_know_and_the_user_their_reasons() -> None:
    made = outcome(REQUEST, [Block("by policy"), TellRefused("Ask first.")], [Block("late"), TellRefused("Not now.")])
    assert consequences(made, tool_id="id") == (
        GiveResult("id", "Ask first.\nNot now.", DENIED, Origin(REQUEST, "one, two")),
        warning("by policy"),
        warning("late"),
    )
    assert made.for_model() == ("Ask first.\nNot now.",)


def test_a_refusal_that_also_ends_the_turn_still_tells_the_model() -> None:
    made = outcome(REQUEST, [EndTurn("enough"), Block("never"), TellRefused("Ask first.")])
    result, *_ = consequences(made, tool_id="id")
    assert result == GiveResult("id", "Ask first.", STOPPED, Origin(REQUEST, "one"))


def test_the_question_itself_shows_why_a_hook_asks() -> None:
    """So it is not also a notice; what else the hook had to say is."""
    made = outcome(PRE, [Ask("sure?"), TellUser("by the way")], [Ask("really?")])
    assert consequences(made, tool_id="id") == (warning("by the way"),)


@rows("event", HookEvent)
def test_a_failure_is_an_error_for_the_user_and_a_message_of_a_hook_is_a_notice(event: HookEvent) -> None:
    failure = Failure(FailureKind.EXIT, "hook one failed", blocks=False)
    operations = consequences(outcome(event, [failure, TellUser("careful")]), tool_id="id")
    assert operations == (TellError("hook one failed"), warning("careful"))


@pytest.mark.parametrize("event", [PRE, POST, STOP])
def test_a_failure_that_blocks_tells_the_model_and_the_user(event: HookEvent) -> None:
    operations = consequences(outcome(event, [Failure(FailureKind.TIMEOUT, "too slow", blocks=True)]), tool_id="id")
    assert operations[-1] == TellError("too slow")
    assert len(operations) == 2


def test_at_the_limit_of_blocks_the_turn_ends_with_a_notice_and_nothing_for_the_model() -> None:
    made = limited(outcome(STOP, [Block("not yet")]), Blocks(total=8, in_a_row=8), limit=8)
    (told,) = consequences(made)
    assert isinstance(told, TellNotice)
    assert "8 times" in told.content


def test_a_gate_that_is_still_red_at_the_limit_is_an_error_that_names_it() -> None:
    red = Failure(FailureKind.EXIT, "1 failed", blocks=True, code=1)
    made = limited(outcome(STOP, [red]), Blocks(total=8, in_a_row=8), limit=8)
    failed, told, ended = consequences(made)
    assert failed == TellError("1 failed")
    assert isinstance(told, TellNotice)
    assert ended == TellError(made.error)
    assert "hook one did not pass" in made.error


def test_an_information_stays_one() -> None:
    made = Outcome(event=STOP, to_user=(ToUser("one", "fyi", "info"),))
    messages = MessageManager()
    perform(consequences(made), messages)
    assert messages.messages == [Message("assistant", (NoticeBlock("fyi", "info"),))]


# ------------------------------------------------------------------------------------------------ a refused prompt

BESIDE: dict[str, Effect] = {
    "a failure": Failure(FailureKind.EXIT, "hook two failed", blocks=False),
    "a failure that blocks": Failure(FailureKind.TIMEOUT, "hook two was too slow", blocks=True),
    "context": AddContext("context"),
    "a message": TellUser("careful"),
    "a stop": EndTurn("enough"),
    "a block": Block("also no"),
    "an allow": Approve("fine"),
}
COMBINED = list(chain.from_iterable(combinations(BESIDE, size) for size in range(3)))


def prompted() -> MessageManager:
    messages = MessageManager((Message("assistant", (TextBlock("hello", "model"),)),))
    messages.add_prompt("secret")
    return messages


@pytest.mark.parametrize(
    "beside", [[BESIDE[name] for name in names] for names in COMBINED], ids=[" and ".join(names) for names in COMBINED]
)
class TestAPromptThatAHookBlocks:
    def test_is_answered_by_exactly_one_error_block(self, beside: list[Effect]) -> None:
        messages = prompted()
        perform(consequences(outcome(PROMPT, [Block("never")], beside)), messages)
        blocks = [block for message in messages.messages for block in message.blocks]
        errors = [block.content for block in blocks if isinstance(block, ErrorBlock)]
        assert len(errors) == 1, errors
        assert errors[0].startswith("never")

    def test_leaves_nothing_for_the_model(self, beside: list[Effect]) -> None:
        messages = prompted()
        perform(consequences(outcome(PROMPT, beside, [Block("never")])), messages)
        assert convert_messages_for_api(messages.messages) == [{"role": "assistant", "content": "hello"}]

    def test_tells_the_user_everything_that_any_hook_said(self, beside: list[Effect]) -> None:
        messages = prompted()
        perform(consequences(outcome(PROMPT, beside, [Block("never")])), messages)
        blocks = [block for message in messages.messages for block in message.blocks]
        told = "\n".join(block.content for block in blocks if isinstance(block, ErrorBlock | NoticeBlock))
        for effect in beside:
            match effect:
                case Failure(message=text) | TellUser(text=text) | EndTurn(reason=text) | Block(reason=text):
                    assert text in told
                case _:
                    pass


def test_a_failure_that_blocks_a_prompt_is_told_once() -> None:
    made = outcome(PROMPT, [Failure(FailureKind.SPAWN, "cannot start", blocks=True)])
    assert consequences(made) == (ErasePrompt("cannot start"), TellError("cannot start"))


def test_a_prompt_that_is_only_stopped_stays_with_its_context() -> None:
    messages = MessageManager()
    messages.add_prompt("hello")
    perform(consequences(outcome(PROMPT, [EndTurn("enough"), AddContext("context")])), messages)
    assert [message.text for message in messages.messages] == ["hello", "context", ""]
    assert messages.messages[-1].blocks == (NoticeBlock("enough"),)


# ---------------------------------------------------------------------------------------------------------- performing


def test_every_operation_does_what_it_says_to_a_real_conversation() -> None:
    changes: list[Change] = []
    messages = MessageManager((), changes.append)
    messages.add_prompt("secret")
    perform([ErasePrompt("never"), TellError("never")], messages)
    messages.add_prompt("run it")
    messages.accept_prompt()
    messages.add_assistant_message(ToolBlock("id", "Bash", {"command": "ls"}))
    origin = Origin(PRE, "guard")
    text = hook_text(POST, "look here")
    perform(
        [GiveResult("id", "not that", BLOCKED, origin), TellNotice("fyi", "info"), warning("hm"), TellModel((text,))],
        messages,
    )
    assert messages.messages == [
        Message("assistant", (ErrorBlock("never"),)),
        Message("user", (TextBlock("run it", "user"),)),
        Message(
            "assistant",
            (
                ToolBlock("id", "Bash", {"command": "ls"}, "not that", False, BLOCKED, origin),
                NoticeBlock("fyi", "info"),
                NoticeBlock("hm", "warning"),
            ),
        ),
        Message("user", (text,)),
    ]
    assert [type(change).__name__ for change in changes] == [
        *("PromptAdded", "PromptRemoved", "BlockAdded", "PromptAdded", "PromptAccepted", "MessageAdded"),
        *("ToolUpdated", "BlockAdded", "BlockAdded", "MessageAdded"),
    ]


def test_performing_nothing_changes_nothing() -> None:
    messages = prompted()
    before = messages.messages
    perform((), messages)
    assert messages.messages == before


@rows(("event", "decision"), TABLE, ids=lambda part: part.name)
def test_what_the_model_is_then_sent_is_what_the_outcome_promises(event: HookEvent, decision: Decision) -> None:
    made = outcome(event, [*SAYS[decision], AddContext("context"), TellUser("for the user")])
    messages = MessageManager((Message("assistant", (ToolBlock("id", "Bash", {}),)),))
    messages.add_prompt("the prompt")
    perform(consequences(made, tool_id="id"), messages)
    sent = "\n".join(one["content"] for one in convert_messages_for_api(messages.messages))
    for text in made.for_model():
        if event in CONTEXT_TIMES or text != "context":  # elsewhere it does not go into the conversation
            assert text in sent
    assert "for the user" not in sent
    if made.row.reason_reader is Audience.USER or decision in (Decision.ALLOW, Decision.STOP):
        assert made.reason == "" or made.reason not in sent


def test_a_message_that_must_wait_for_the_results_is_the_only_thing_that_waits() -> None:
    for event, decision in TABLE:
        made = outcome(event, [*SAYS[decision], AddContext("context"), TellUser("note")])
        waiting = [one for one in consequences(made, tool_id="id") if one.when is When.AFTER_RESULTS]
        assert all(
            isinstance(one, TellModel) and event in (PRE, POST, FAILED, BATCH, REFUSAL, *TASKS) for one in waiting
        )
