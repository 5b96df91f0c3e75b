"""The schemas: what the readers take, they take."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from tests.test_docs import DOCUMENTS, blocks
from wave_agent.effects.shown import to_json
from wave_agent.effects.values import Effects
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.hooks.reader import FIELDS, REPLY_FIELDS, RETRY, read_output
from wave_agent.settings.hook_entries import GROUP_KEYS, HOOK_KEYS, parse_settings
from wave_agent.settings.layers import merge_settings
from wave_agent.settings.values import KEYS, SCHEMAS, VALUES
from wave_agent.workshop.schemas import all_schemas, input_schema, output_schema, settings_schema

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = jsonschema.Draft202012Validator(settings_schema())


def accepted(settings: dict[str, Any], layer: Layer = Layer.PROJECT) -> bool:
    """The loader has nothing to say about them."""
    return not merge_settings([parse_settings(json.dumps(settings), layer, "settings.json")]).issues


# -------------------------------------------------------------------------------------------------------------- as such


@rows("name", all_schemas())
def test_each_is_a_schema_and_stands_in_the_repository(name: str) -> None:
    schema = all_schemas()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads((ROOT / "schemas" / name).read_text()) == schema


def test_every_setting_and_every_key_of_a_hook_is_described() -> None:
    schema = settings_schema()
    assert sorted(schema["properties"]) == sorted(KEYS)
    for value in VALUES:
        assert value.reader in SCHEMAS
        place = schema["properties"][value.section] if value.section else schema
        assert place["properties"][value.key]["description"] == value.meaning
    assert set(schema["properties"]["hooks"]["properties"]) == set(EVENTS)
    assert set(schema["$defs"]["toolHook"]["properties"]) == set(HOOK_KEYS) - {"function"}
    for event in EVENTS:
        _, several, alone = schema["properties"]["hooks"]["properties"][event]["items"]["anyOf"]
        assert set(alone["properties"]) == set(GROUP_KEYS) <= set(several["properties"])


def test_every_field_of_a_hooks_answer_is_described_somewhere() -> None:
    found: set[str] = set()
    for event in EVENTS:
        properties = output_schema(event)["properties"]
        found |= properties.keys() | properties["hookSpecificOutput"]["properties"].keys()
    assert found == {*FIELDS, *REPLY_FIELDS, RETRY.name}


def test_the_input_of_an_event_needs_its_fields_but_those_that_are_not_always_there() -> None:
    schema = input_schema(HookEvent.PRE_TOOL_USE)
    assert "original_tool_input" in schema["properties"]
    assert schema["required"][-4:] == ["tool_name", "tool_input", "tool_use_id", "effects"]


def test_the_effects_of_a_call_are_described() -> None:
    for event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST):
        described = input_schema(event)["properties"]["effects"]
        found = to_json(Effects(reads=("/a",), runs=(("cat", "/a"),)))
        jsonschema.validate(found, described)
        assert list(described["properties"]) == described["required"] == list(found)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found, "runs": ["cat"]}, described)


# ------------------------------------------------------------------------------------------------------------- settings


NOT_READ = [".gemini/settings.json"]
"""Settings of other agents that Wave does not read, shown next to their translation."""


def test_every_settings_example_in_the_documentation_fits() -> None:
    examples = [
        (block.place, value)
        for document in DOCUMENTS
        for block in blocks(document)
        if block.language == "json" and block.file not in NOT_READ
        if isinstance(value := json.loads(block.text), dict) and "hooks" in value
    ]
    assert len(examples) > 3
    for place, value in examples:
        assert [error.message for error in SETTINGS.iter_errors(value)] == [], place


def with_commands(value: Any) -> Any:
    """A case says what a hook's process does; in settings a command stands there."""
    if isinstance(value, list):
        return [with_commands(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: with_commands(item) for key, item in value.items() if key != "run"}
    return {**changed, "command": "./hook"} if "run" in value else changed


def conformance_settings() -> list[dict[str, Any]]:
    cases = [
        case
        for file in sorted((ROOT / "tests" / "conformance").glob("*.json"))
        for case in json.loads(file.read_text())["cases"]
    ]
    return [
        with_commands({"hooks": groups if isinstance(groups, dict) else {case["event"]: groups}})
        for case in cases
        for groups in case.get("layers", {}).values()
    ]


def test_all_settings_of_the_conformance_cases_that_the_loader_takes_fit() -> None:
    taken = [settings for settings in conformance_settings() if accepted(settings)]
    assert len(taken) > 200
    for settings in taken:
        assert [error.message for error in SETTINGS.iter_errors(settings)] == [], settings


texts = st.sampled_from(["", " ", "Bash", "Edit|Write", "./guard.sh", "*", "rewrite", "block", "shadow", "Bash(ls:*)"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2000), texts, st.just([]), st.just(["a"]), st.just({}))


def entry(keys: Any, **more: Any) -> Any:
    usual: dict[str, Any] = {
        "type": st.just("command"),
        "command": texts,
        "args": st.lists(texts, max_size=2),
        "timeout": st.one_of(st.integers(1, 900), st.floats(0.1, 5)),
        "async": st.booleans(),
        "sequential": st.booleans(),
        "enabled": st.booleans(),
        "onFailure": st.sampled_from(["block", "continue"]),
        "mode": st.sampled_from(["enforce", "shadow"]),
        "phase": st.just("rewrite"),
        **more,
    }
    values = {key: st.one_of(usual.get(key, texts), usual.get(key, texts), scalars) for key in keys}
    return st.fixed_dictionaries({}, optional=values)


hook_entries = st.one_of(texts, entry([key for key in HOOK_KEYS if key != "function"]))
groups = st.one_of(
    texts,
    entry([*GROUP_KEYS, *(key for key in HOOK_KEYS if key != "function")], hooks=st.lists(hook_entries, max_size=2)),
    entry(GROUP_KEYS, hooks=st.lists(hook_entries, max_size=2)),
)
settings_files = st.fixed_dictionaries(
    {},
    optional={
        "hooks": st.dictionaries(st.sampled_from([*EVENTS, "// off"]), st.lists(groups, max_size=2), max_size=2),
        "$schema": texts,
        "// comment": scalars,
        "env": st.one_of(scalars, st.dictionaries(texts, texts, max_size=2)),
        "models": st.one_of(scalars, st.dictionaries(texts, st.fixed_dictionaries({}, optional={
            "contextWindow": scalars, "foldUserMessages": scalars, "images": scalars}), max_size=2)),
        "permissions": st.one_of(scalars, st.fixed_dictionaries({}, optional={
            "allow": scalars, "deny": scalars, "defaultMode": st.one_of(st.just("plan"), scalars),
            "additionalDirectories": scalars, "// why": scalars})),
        "maxStopBlocks": scalars,
        "strictHooks": scalars,
        "model": scalars,
        "compat": st.one_of(scalars, st.fixed_dictionaries({}, optional={"claude": scalars})),
    },
)  # fmt: skip


@given(settings_files)
def test_whatever_the_loader_takes_without_a_finding_fits(settings: dict[str, Any]) -> None:
    if accepted(settings):
        assert [error.message for error in SETTINGS.iter_errors(settings)] == []


@rows(
    "settings",
    [
        {"hoks": {}},
        {"hooks": {"PreTolUse": []}},
        {"hooks": {"Stop": ["  "]}},
        {"hooks": {"Stop": [{"hooks": [{"command": ""}]}]}},
        {"hooks": {"Stop": [{"hooks": [], "command": "true"}]}},
        {"hooks": {"Stop": [{"matcher": "x"}]}},
        {"hooks": {"Stop": [{"command": "true", "phase": "rewrite"}]}},
        {"hooks": {"Stop": [{"command": "true", "if": "Bash(ls)"}]}},
        {"hooks": {"PreToolUse": [{"command": "true", "onFailure": "deny"}]}},
        {"hooks": {"PreToolUse": [{"command": "true", "timeout": 0}]}},
        {"permissions": {"defaultMode": "free"}},
        {"permissions": {"denied": []}},
        {"maxStopBlocks": -1},
        {"env": {"A=B": "c"}},
        {"models": {"m": {"contextWindow": 0}}},
        {"models": {"m": {"images": "yes"}}},
    ],
)
def test_common_mistakes_do_not_fit(settings: dict[str, Any]) -> None:
    assert not accepted(settings)
    assert list(SETTINGS.iter_errors(settings))


# ------------------------------------------------------------------------------------------------------- what hooks say


fields = st.dictionaries(
    st.sampled_from(list(FIELDS)),
    st.one_of(st.none(), st.booleans(), st.sampled_from(["block", "allow", "ask", "PreToolUse", "no"]), st.just({})),
    max_size=4,
)


@given(st.sampled_from(list(EVENTS)), fields, fields)
def test_every_answer_that_is_read_without_a_problem_fits(
    event: HookEvent, top: dict[str, Any], specific: dict[str, Any]
) -> None:
    answer = {**top, "hookSpecificOutput": specific}
    found = read_output(EVENTS[event], answer)
    if not found.problems and not found.unreadable:
        jsonschema.Draft202012Validator(output_schema(event)).validate(answer)
