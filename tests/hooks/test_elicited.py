"""Hooks that answer an MCP server: they refuse in any form, and accept only with what the server asked for."""

from typing import Any

from tests.rows import rows
from wave_agent.hooks.elicited import checked, why_unfit
from wave_agent.hooks.events import Decision, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.semantics import merge, read
from wave_agent.hooks.verdicts import AnswerServer, Approve, Block, Failure, FailureKind, RankedVerdict, Verdict

ASKED = HookEvent.ELICITATION
FORM = {
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "height": {"type": "number"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array"},
        "more": {"type": "object"},
        "nothing": {"type": "null"},
        "level": {"enum": [1, "high"]},
        "odd": {"type": ["string", "null"], "enum": "x"},
        "broken": 5,
    },
    "required": ["name"],
}


def verdict(stdout: str, event: HookEvent = ASKED) -> Verdict:
    return read(event, HookExecutionResult(exit_code=0, stdout=stdout), name="guard")


def specific(fields: str) -> str:
    return f'{{"hookSpecificOutput": {{{fields}}}}}'


@rows(
    ("content", "problem"),
    [
        ({"name": "Ada"}, ""),
        ({"name": "Ada", "age": 3, "height": 1.5, "sure": True, "tags": [], "more": {}, "nothing": None}, ""),
        ({"name": "Ada", "age": 3.0, "level": "high", "odd": 3, "broken": [], "unknown": 1}, ""),
        ({}, 'the field "name" is missing'),
        ({"name": 1}, 'the field "name" must be of type string, not a number'),
        ({"name": "Ada", "age": 1.5}, 'the field "age" must be of type integer, not a number'),
        ({"name": "Ada", "age": True}, 'the field "age" must be of type integer, not true or false'),
        ({"name": "Ada", "height": True}, 'the field "height" must be of type number, not true or false'),
        ({"name": "Ada", "level": True}, 'the field "level" is none of the values that the server allows'),
    ],
)
def test_content_has_the_types_the_required_fields_and_the_values_of_the_form(content: Any, problem: str) -> None:
    assert why_unfit(FORM, content) == problem


@rows("schema", [None, 5, {}, {"properties": 5, "required": "name"}])
def test_a_schema_that_says_nothing_fits_everything(schema: Any) -> None:
    assert why_unfit(schema, {"x": 1}) == ""


@rows(
    ("fields", "effects"),
    [
        ('"action": "accept", "content": {"a": 1}', (AnswerServer("accept", {"a": 1}), Approve())),
        (
            '"action": "accept", "content": {"updatedInput": 1}',
            (AnswerServer("accept", {"updatedInput": 1}), Approve()),
        ),
        ('"action": "accept"', (AnswerServer("accept"), Approve())),
        ('"action": "cancel", "content": {"a": 1}', (AnswerServer("cancel"), Block("Blocked by hook guard"))),
    ],
)
def test_an_answer_that_can_be_read(fields: str, effects: Any) -> None:
    assert verdict(specific(fields)).effects == effects


@rows(
    ("stdout", "fragment"),
    [
        (specific('"action": "Accept"'), 'did you mean "accept"?'),
        (specific('"action": 1'), "action must be a string"),
        (specific('"action": "accept", "content": "x"'), "content must be an object"),
        (specific('"action": "accept", "content": {"a": 1e999}'), "content cannot be used: it holds"),
        (specific('"action": "accept", "content": {}, "content": {}'), 'duplicate key "hookSpecificOutput.content"'),
        ('{"content": {}, "hookSpecificOutput": {"action": "accept"}}', "it belongs in hookSpecificOutput"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_failure(stdout: str, fragment: str) -> None:
    found = verdict(stdout)
    assert found.answer is None
    assert found.failure is not None
    assert fragment in found.failure.message


@rows(
    ("stdout", "action"),
    [
        (specific('"action": "accept", "action": "cancel"'), "cancel"),
        ('{"hookSpecificOutput": {"action": "decline", "content": {}}, "hookSpecificOutput": {}}', "decline"),
        (specific('"hookEventName": "Stop", "action": "decline"'), "decline"),
        (specific('"action": "decline", "content": 5'), "decline"),
    ],
)
def test_a_refusal_counts_wherever_and_however_often_it_stands(stdout: str, action: str) -> None:
    found = verdict(stdout)
    assert (found.decision, found.answer) == (Decision.BLOCK, AnswerServer(action))


@rows("stdout", ['{"hookSpecificOutput": {"action": "accept"}, "hookSpecificOutput": {}}',
                 specific('"hookEventName": "Stop", "action": "accept"')])  # fmt: skip
def test_an_accept_in_doubt_does_not_count(stdout: str) -> None:
    found = verdict(stdout)
    assert (found.decision, found.answer) == (Decision.NONE, None)


def test_the_fields_of_an_answer_mean_nothing_on_other_events() -> None:
    found = verdict('{"action": "decline", "content": {}}', HookEvent.PRE_TOOL_USE)
    assert (found.decision, found.answer, found.failure) == (Decision.NONE, None, None)


def test_content_that_does_not_fit_is_a_failure_which_keeps_other_restrictions() -> None:
    said = Verdict((Block("no"), AnswerServer("accept", {}), Approve()))
    payload = {"mode": "form", "requested_schema": FORM}
    message = 'Hook guard: its content is not what the server asked for: the field "name" is missing'
    for policy in OnFailure:
        found = checked(said, payload, name="guard", on_failure=policy)
        assert found.effects == (Block("no"), Failure(FailureKind.JSON, message, blocks=policy is OnFailure.BLOCK))


def test_only_a_person_accepts_a_page() -> None:
    accept, decline = Verdict((AnswerServer("accept", {"a": 1}), Approve())), Verdict((AnswerServer("decline"),))
    page = {"mode": "url", "url": "https://example.com"}

    def judged(said: Verdict, **more: Any) -> Verdict:
        return checked(said, {**page, **more}, name="guard", on_failure=OnFailure.CONTINUE)

    for before in ({}, {"action": "decline"}, {"action": "cancel"}):
        assert judged(accept, **before).decision is Decision.BLOCK
    assert judged(accept, action="accept").effects == (Approve(), AnswerServer("accept"))
    assert judged(decline, action="accept") == decline
    assert judged(Verdict()) == Verdict()


def test_an_accept_that_does_not_count_is_not_sent() -> None:
    said = Verdict((AnswerServer("accept", {"a": 1}), Approve()))
    ranked = [
        RankedVerdict(position=0, name="conditional", verdict=said, allow_counts=False),
        RankedVerdict(position=1, name="other", verdict=Verdict((AnswerServer("accept", {"a": 2}), Approve()))),
    ]
    assert merge(ASKED, ranked).answer == AnswerServer("accept", {"a": 2})
    assert merge(ASKED, ranked[:1]).answer is None
    assert merge(ASKED, [RankedVerdict(position=0, name="odd", verdict=Verdict((Approve(),)))]).answer is None
