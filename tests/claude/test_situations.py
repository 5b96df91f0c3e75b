"""The comparison with Claude Code, as far as it needs no npm: its data, its judgement, and our side of some situations.

What the original did is recorded; `make test-claude` runs it.
"""

import json
import re
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.claude.__main__ import Row, recorded, table
from tests.claude.agents import ours
from tests.claude.comparison import KINDS, WITHOUT_ARGUMENT, facts, judge, parts
from tests.claude.messages_server import serving_messages
from tests.claude.situations import Situation, load
from tests.rows import rows

SITUATIONS = load()
OF_A_HOOK = ("fired", "not fired", "stdin", "fields", "variable", "directory")
"""Kinds of facets whose argument begins with the name of a hook."""


def test_every_situation_has_a_name_of_its_own():
    assert [name for name, times in Counter(situation.name for situation in SITUATIONS).items() if times > 1] == []


def _can_be_observed(situation: Situation, facet: str) -> bool:
    kind, argument = parts(facet)
    hooks = {hook.name for hook in (*situation.hooks, *situation.user_hooks)}
    known = kind in KINDS and bool(argument) == (kind not in WITHOUT_ARGUMENT)
    return known and (kind not in OF_A_HOOK or argument.partition(".")[0] in hooks)


def test_what_is_observed_can_be_observed():
    assert [situation.name for situation in SITUATIONS if not situation.observe] == []
    facets = [(situation, facet) for situation in SITUATIONS for facet in situation.observe]
    assert [(situation.name, facet) for situation, facet in facets if not _can_be_observed(situation, facet)] == []


def test_a_difference_carries_its_reason_and_nothing_else_does():
    wrong = [situation for situation in SITUATIONS if bool(situation.reason) != (situation.result != "same")]
    assert [situation.name for situation in wrong] == []


def test_what_the_original_did_is_recorded_for_every_situation():
    kept = recorded().facts
    wrong = [situation for situation in SITUATIONS if list(kept.get(situation.name, {})) != situation.observe]
    assert [situation.name for situation in wrong] == []


def test_nothing_is_recorded_that_is_no_situation():
    assert set(recorded().facts) == {situation.name for situation in SITUATIONS}


def test_the_version_that_is_installed_is_the_one_that_was_recorded():
    makefile = Path(__file__).parents[2] / "Makefile"
    assert re.findall(r"^CLAUDE_VERSION \?= (\S+)$", makefile.read_text(), re.MULTILINE) == [recorded().version]


@pytest.mark.parametrize(
    "situation", [situation for situation in SITUATIONS if situation.quick], ids=lambda situation: situation.name
)
def test_here_it_does_what_the_data_says(situation: Situation, tmp_path: Path):
    seen = ours(situation, tmp_path)
    assert seen.exit_code is not None, seen.stderr
    assert seen.requests or seen.runs, seen.stderr
    here = facts(situation, seen, tmp_path)
    assert judge(recorded().facts[situation.name], here) == situation.result, (here, seen.stderr)


@rows(
    ("there", "here", "result"),
    [
        ({"ran": False}, {"ran": True}, "looser"),
        ({"ran": True}, {"ran": False}, "stricter"),
        ({"called": False}, {"called": True}, "looser"),
        ({"goes on": 2}, {"goes on": 1}, "looser"),
        ({"goes on": 1}, {"goes on": 2}, "stricter"),
        ({"ends": 1}, {"ends": 2}, "looser"),
        ({"hidden: a": False}, {"hidden: a": True}, "looser"),
        ({"told: a": True}, {"told: a": False}, "different"),
        ({"told: a": False}, {"told: a": True}, "different"),
        ({"fired: a": 2}, {"fired: a": 1}, "looser"),
        ({"not fired: a": 0}, {"not fired: a": 1}, "looser"),
        ({"fields: a": ["x"]}, {"fields: a": ["x", "y"]}, "same"),
        ({"fields: a": ["x", "y"]}, {"fields: a": ["x"]}, "different"),
        ({"file: a": "x"}, {"file: a": None}, "different"),
        ({"ran": True, "told: a": True}, {"ran": False, "told: a": False}, "stricter"),
        ({"ran": True, "fired: a": 1}, {"ran": False, "fired: a": 0}, "looser"),
        ({"ran": True, "told: a": False}, {"ran": True, "told: a": False}, "same"),
    ],
)
def test_the_most_serious_difference_is_the_result(there: dict[str, Any], here: dict[str, Any], result: str):
    assert judge(there, here) == result


def test_looser_than_the_data_says_is_a_complaint_and_a_known_difference_is_none():
    guard = Situation("a | b", "Section", ["ran"])
    looser = Row(guard, {"ran": False}, {"ran": True}, "looser")
    assert looser.complaint == "looser here, and the data says same"
    assert "| a \\| b | did not run | ran | **looser** |" in table([looser])
    known = Situation("b", "Section", ["ran"], result="looser", reason="because")
    row = Row(known, {"ran": False}, {"ran": True}, "looser")
    assert row.complaint == ""
    assert "**looser**: because |" in table([row])
    assert Row(known, {"ran": False}, {"ran": False}, "same").complaint == ""
    assert Row(known, {"ran": False}, {"ran": False}, "same", "this agent did not end in time").complaint


def test_the_messages_server_streams_a_call_and_keeps_the_request():
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "true"}}
    with serving_messages([[call], [{"type": "text", "text": "Done."}]], "aside") as server:
        connection = HTTPConnection(server.base_url.removeprefix("http://"), timeout=10)
        streams: list[list[dict[str, Any]]] = []
        for tools in ([{"name": "Bash"}], [], [{"name": "Bash"}]):
            body = json.dumps({"stream": True, "messages": [], "tools": tools})
            connection.request("POST", "/v1/messages?beta=true", body)
            lines = connection.getresponse().read().decode().splitlines()
            streams.append([json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")])
        connection.close()
        assert (len(server.requests), len(server.asides)) == (2, 1)
    first, aside, second = streams
    assert json.loads(first[2]["delta"]["partial_json"]) == {"command": "true"}
    assert [stream[-2]["delta"]["stop_reason"] for stream in streams] == ["tool_use", "end_turn", "end_turn"]
    assert [stream[2]["delta"]["text"] for stream in (aside, second)] == ["aside", "Done."]
