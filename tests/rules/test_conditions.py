"""A hook's `if` about effects applies to what a call does, and to what it may do."""

import pytest

from wave_agent.effects.calls import TOOLS
from wave_agent.effects.values import UNKNOWN_EFFECTS, Effects
from wave_agent.rules.conditions import effect_missed_by, may_apply
from wave_agent.rules.rule import Places, below, parse_rule

PLACES = Places("/p", "/home/me")
READS_MUCH = tuple(f"/q/{number}*" for number in range(51))


@pytest.mark.parametrize(
    ("rule", "effects", "applies"),
    [
        ("Read(.env)", Effects(reads=("/p/.env",)), True),
        ("Read(.env)", Effects(reads=("/p/sub/.env",)), True),
        ("Read(.env)", Effects(reads=("/p/.envrc",)), False),
        ("Read(.env)", Effects(writes=("/p/.env",)), False),
        ("Edit(.env)", Effects(deletes=("/p/.env",)), True),
        ("Write(vendor/**)", Effects(writes=("/p/vendor/a",)), True),
        ("Read(.env)", UNKNOWN_EFFECTS, True),
        ("Net(*)", UNKNOWN_EFFECTS, True),
        ("Net(*)", Effects(hosts=("a.b",)), True),
        ("Net(*.b)", Effects(hosts=("a.b",)), True),
        ("Net(b)", Effects(hosts=("a.b",)), False),
        ("Net(b)", Effects(hosts=("*",)), True),
        # Wildcards that can name the path.
        ("Read(.env)", Effects(reads=("/p/.e*",)), True),
        ("Read(.env)", Effects(reads=("/p", "/p/**")), True),
        ("Read(.env)", Effects(reads=("/p/*.py",)), False),
        ("Read(.env)", Effects(reads=("/q/**",)), False),
        ("Read(.env)", Effects(reads=("/p/.env[*]",)), False),
        ("Read(secrets/)", Effects(reads=("/p/secrets/*",)), True),
        ("Read(~/.ssh/**)", Effects(reads=("/home/me/.ssh/id*",)), True),
        ("Read(//etc/**)", Effects(reads=("/et?/passwd",)), True),
        ("Read(.env)", Effects(reads=READS_MUCH), True),
        ("Read(.env)", Effects(reads=READS_MUCH[1:]), False),
    ],
)
def test_it_applies_if_the_call_does_it_or_may(rule: str, effects: Effects, applies: bool) -> None:
    assert may_apply(parse_rule(rule), effects, PLACES) is applies


def test_a_rule_from_a_subdirectory_is_about_that_directory_too() -> None:
    rule = below(parse_rule("Read(keys/*)"), "app")
    assert may_apply(rule, Effects(reads=("/p/app/ke*/a",)), PLACES)
    assert may_apply(rule, Effects(reads=("/p/ke*/a",)), PLACES)
    assert not may_apply(rule, Effects(reads=("/p/other/ke*/a",)), PLACES)


@pytest.mark.parametrize(
    ("rule", "tools", "missed"),
    [
        ("Read(x)", ["Write"], "reads files"),
        ("Read(x)", ["Write", "Bash"], ""),
        ("Read(x)", [], ""),
        ("Edit(x)", ["Read", "Grep", "Glob"], "changes files"),
        ("Net(*)", ["Read"], "reaches a host"),
        ("Net(*)", ["Skill"], ""),
        ("Net(*)", [""], ""),
    ],
)
def test_a_matcher_can_miss_every_tool_with_the_effect(rule: str, tools: list[str], missed: str) -> None:
    assert effect_missed_by(parse_rule(rule), tools) == missed


def test_the_tools_that_can_have_an_effect_are_known() -> None:
    able = {tool for tool in TOOLS if not effect_missed_by(parse_rule("Read(x)"), [tool])}
    assert able == {"Read", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Bash"}
