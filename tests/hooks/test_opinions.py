"""The answers of models, read strictly."""

import json
import re
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.opinions import OpinionError, objects_in, opinion_in, opinion_of


@rows(
    ("text", "opinion"),
    [
        ('{"ok": true}', Opinion(ok=True)),
        (' {"ok": true, "reason": "fine", "more": 1}\n', Opinion(ok=True, reason="fine")),
        ('{"ok": true, "impossible": true}', Opinion(ok=True)),
        ('```json\n{"ok": false, "reason": " no "}\n```', Opinion(ok=False, reason="no")),
        ('```\n{"ok": false, "reason": "no", "impossible": true}\n```', Opinion(False, "no", impossible=True)),
        ('{"ok": true, "reason": null, "impossible": null}', Opinion(ok=True)),
    ],
)
def test_a_valid_answer_is_an_opinion(text: str, opinion: Opinion) -> None:
    assert opinion_in(text) == opinion


@rows(
    ("text", "problem"),
    [
        ("", "not one JSON object"),
        ("ok", "not one JSON object"),
        ("[true]", "not one JSON object: a list, not an object"),
        ('Sure: {"ok": true}', "not one JSON object"),
        ('{"ok": true} {"ok": true}', "unexpected text after the end"),
        ('{"ok": false, "reason": "x", "ok": true}', 'duplicate key "ok"'),
        ('{"ok": NaN}', "not one JSON object"),
        ("{}", '"ok" is missing'),
        ('{"ok": 1}', '"ok" must be true or false, not 1'),
        ('{"ok": "true"}', '"ok" must be true or false, not "true"'),
        ('{"ok": false}', 'there is no "reason"'),
        ('{"ok": false, "reason": " \\n"}', 'there is no "reason"'),
        ('{"ok": false, "reason": ["x"]}', '"reason" must be a string, not a list'),
        ('{"ok": false, "reason": "x", "impossible": 1}', '"impossible" must be true or false, not a number'),
    ],
)
def test_any_other_answer_is_an_error_that_says_why(text: str, problem: str) -> None:
    with pytest.raises(OpinionError, match=re.escape(problem)):
        opinion_in(text)


@rows("answer", [None, "ok", [True], 5])
def test_only_an_object_is_an_opinion(answer: Any) -> None:
    with pytest.raises(OpinionError, match="not an object"):
        opinion_of(answer)


@rows(
    "text",
    [
        '{"ok": false, "reason": "drops',
        '{"ok": false',
        '{"ok": fal',
        '{"ok": "false"}',
        '{"ok": "False", "reason": "x"}',
        '{"ok": "no"}',
        '{"ok": "denied"}',
        '{"ok": "maybe"}',
        '{"ok": 0}',
        '{"ok": []}',
        '{"ok": null, "reason": "drops a table"}',
        '{"reason": "drops a table"}',
        '{"impossible": true}',
        '{"OK": false}',
        '{"ok ": false, "reason": "x"}',
        '{"ok": false, "reason": "x", "ok": true}',
        '{"ok": true, "ok": false}',
        '{"ok": true} {"ok": false, "reason": "x"}',
        '[{"ok": false}]',
        '{"verdict": {"ok": false}}',
        '{"verdict": "deny"}',
        '{"decision": "block", "reason": "x"}',
        '{"permissionDecision": "deny"}',
        '{"allowed": false}',
        '{"blocked": true}',
        '"{\\"ok\\": false}"',
        '```json\n{"ok": false,\n```',
        'My verdict: {"ok": false, "reason": "x"}',
        "ok: false",
        "{ok: false, reason: x}",
        "{'ok': False, 'reason': 'x'}",
        "**Verdict:** deny",
        "<ok>false</ok>",
        "ok = false",
        "false",
        "No.",
        "Denied: it drops a table",
        "It is bad.\nBlocked.",
        "Not allowed.",
        "I object, it drops a table.",
        "I refuse this command: it drops a table.",
        "**I deny it.**",
        '{"ok": true, "decision": "deny"}',
        '{"ok": true, "verdict": {"ok": false}}',
        '{"ok": false, "reason": "x"}',
        '{"ok": false}',
        '{"ok": false, "reason": 5}',
    ],
)
def test_an_objection_is_heard_in_any_answer_that_states_one(text: str) -> None:
    assert objects_in(text)


@rows(
    "text",
    [
        *(
            '{"ok": true}',
            '{"ok": true',
            '{"ok": "true"}',
            '{"ok": "Yes."}',
            '{"ok": 1}',
            "{}",
            "",
            "Hm.",
            '{"ok": ',
            "ok: true",
        ),
        *(
            'Sure: {"ok": true}',
            "I see no problem.",
            "No objection.",
            '{"ok": null}',
            '{"ok": true, "reason": ["x"]}',
            "yes",
        ),
        *(
            "It looks wrong to me.",
            '{"ok": true, "reason": "it says \\"ok\\": false"}',
            '{"blocked": false',
            "decision: allow",
            "Verdict: no objection.",
            "Result: 0 problems found",
            "Answer: not a problem",
        ),
        *(
            "Nothing is denied or blocked here.",
            '{"verdict": "none"',
            "[true]",
            '{"allowed": true',
            "No problem: it only reads.",
            "If I deny this, nothing works.",
            '{"ok": true, "decision": "allow", "reason": "the decision: deny rules do not apply"}',
        ),
    ],
)
def test_none_is_heard_where_there_is_none(text: str) -> None:
    assert not objects_in(text)


@rows("answer", [[{"ok": False}], "deny", False])
def test_an_objection_that_is_no_object_is_one(answer: Any) -> None:
    with pytest.raises(OpinionError) as raised:
        opinion_of(answer)
    assert raised.value.objects


def test_an_opinion_is_journalled_as_it_was_given() -> None:
    for given in ({"ok": True}, {"ok": False, "reason": "x"}, {"ok": False, "reason": "x", "impossible": True}):
        assert opinion_in(json.dumps(given)).to_dict() == given


def test_a_long_reason_is_cut() -> None:
    assert len(opinion_of({"ok": False, "reason": "x" * 20_000}).reason) == 10_000
