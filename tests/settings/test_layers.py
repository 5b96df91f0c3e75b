"""The layers of settings: each key, what is told about a wrong one and where, and which layer wins."""

import json
import os
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import OnFailure
from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.settings.hook_entries import Issue, SettingsSource, parse_settings
from wave_agent.settings.layers import MOST_RULES, MOST_RULES_IN_ALL, Settings, merge_settings, only_restrictions
from wave_agent.settings.mcp_keys import MCP_SETTINGS
from wave_agent.settings.places import MANAGED_FILE, has_settings, read_source
from wave_agent.settings.values import KEYS, MCP_KEYS


def layer(content: object, where: Layer = Layer.USER) -> SettingsSource:
    return parse_settings(json.dumps(content, indent=1), where, f"{where.value}.json")


def merged(**layers: object) -> Settings:
    """Settings of layers that are given by their names."""
    return merge_settings(layer(content, Layer(name)) for name, content in layers.items())


def the_issue(found: Settings) -> Issue:
    assert len(found.issues) == 1, found.issues
    return found.issues[0]


def rules(*texts: str) -> tuple[Any, ...]:
    return tuple(map(parse_rule, texts))


# ---------------------------------------------------------------------------------------------------------- single keys

SCALARS = ["a string", 5, True, [], {}, 1.5]


def nested(path: str, value: object) -> dict[str, Any]:
    *outer, last = path.split(".")
    found: dict[str, Any] = {last: value}
    for step in reversed(outer):
        found = {step: found}
    return found


RIGHT: list[tuple[str, str, Any, Any]] = [
    ("model", "model", "gpt-oss", "gpt-oss"),
    ("baseUrl", "base_url", "http://localhost:1/v1", "http://localhost:1/v1"),
    ("models", "models", {"a": {"contextWindow": 5}}, {"a": {"contextWindow": 5}}),
    ("maxStopBlocks", "max_stop_blocks", 3, 3),
    ("maxStopBlocks", "max_stop_blocks", 0, 0),
    ("strictHooks", "strict_hooks", True, True),
    ("strictHooks", "strict_hooks", False, False),
    ("cleanupPeriodDays", "cleanup_days", 7, 7),
    ("sessions.identity", "record_identity", False, False),
    ("compat.claude", "compat_claude", False, False),
    ("compat.claude", "compat_claude", True, True),
    ("httpHooks.hosts", "http_hosts", ["a", "b"], ("a", "b")),
    ("httpHooks.env", "http_env", ["TOKEN"], ("TOKEN",)),
    ("permissions.additionalDirectories", "additional_directories", ["/srv"], ("/srv",)),
    *(("permissions.defaultMode", "default_mode", mode.value, mode) for mode in PermissionMode),
    ("permissions.allow", "rules", ["Bash(ls)"], Rules(allow=rules("Bash(ls)"))),
    ("permissions.ask", "rules", ["Edit"], Rules(ask=rules("Edit"))),
    ("permissions.deny", "rules", ["Read(.env)", "Bash"], Rules(deny=rules("Read(.env)", "Bash"))),
    ("env.PAGER", "env", "cat", {"PAGER": "cat"}),
]


@rows(("path", "name", "value", "expected"), RIGHT)
def test_a_key_with_a_right_value_is_read(path: str, name: str, value: Any, expected: Any) -> None:
    found = merged(user=nested(path, value))
    assert found.issues == ()
    assert getattr(found, name) == expected


def test_nothing_set_is_the_defaults() -> None:
    assert merge_settings([]) == Settings()
    assert merged(user={}) == Settings()
    assert (Settings().max_stop_blocks, Settings().strict_hooks, Settings().default_mode) == (
        *(8, False, PermissionMode.DEFAULT),
    )


@rows("path", sorted({path for path, *_ in RIGHT}))
def test_a_null_says_nothing(path: str) -> None:
    assert merged(user=nested(path, None)) == Settings()


TAKES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "baseUrl": (str,),
    "models": (dict,),
    "maxStopBlocks": (int,),
    "strictHooks": (bool,),
    "allowManagedHooksOnly": (bool,),
    "cleanupPeriodDays": (int,),
    "sessions": (dict,),
    "sessions.identity": (bool,),
    "compat": (dict,),
    "compat.claude": (bool,),
    "httpHooks": (dict,),
    "httpHooks.hosts": (list,),
    "httpHooks.env": (list,),
    "permissions.additionalDirectories": (list,),
    "permissions.defaultMode": (),
    "permissions.allow": (list,),
    "env": (dict,),
    "env.PAGER": (str,),
}


@rows(
    ("path", "value"),
    [(path, value) for path, kinds in TAKES.items() for value in SCALARS if type(value) not in kinds],
)
def test_a_key_of_a_wrong_type_is_told_with_its_place_and_changes_nothing(path: str, value: Any) -> None:
    found = merged(user=nested(path, value))
    issue = the_issue(found)
    assert issue.path == tuple(path.split("."))
    assert (issue.source, issue.line) == ("user.json", path.count(".") + 2)
    assert (issue.broken, issue.fatal) == (True, False)
    assert str(issue).startswith(f"user.json:{issue.line}: {path}: ")
    found.require_usable()
    for name in Settings.__struct_fields__:
        if name != "issues":
            assert getattr(found, name) == getattr(Settings(), name)


@rows(
    ("path", "value", "message"),
    [
        ("model", 5, "must be a string, not a number"),
        ("strictHooks", "yes", "must be true or false, not a string"),
        ("maxStopBlocks", -1, "must be a whole number, 0 or more, not -1"),
        ("maxStopBlocks", 1.5, "must be a whole number, 0 or more, not a number"),
        ("maxStopBlocks", "8", "must be a whole number, 0 or more, not a string"),
        ("httpHooks.hosts", "a", "must be a list of strings, not a string"),
        ("httpHooks.hosts", ["a", 5], "must be a string, not a number"),
        ("models", [], "must be an object, not a list"),
        ("permissions.allow", {}, "must be a list of rules, not an object"),
        ("permissions.defaultMode", "acceptedits", '(did you mean "acceptEdits"?)'),
        ("permissions.defaultMode", 5, "5 is not a permission mode; expected one of default, acceptEdits, plan,"),
        ("permissions.defaultMode", ["plan"], "is not a permission mode; expected one of"),
    ],
)
def test_what_is_wrong_with_a_value_is_told_in_words(path: str, value: Any, message: str) -> None:
    assert message in the_issue(merged(user=nested(path, value))).message


def test_what_is_said_about_a_model_must_be_an_object() -> None:
    found = merged(user={"models": {"good": {"contextWindow": 5}, "bad": 5}})
    assert the_issue(found).path == ("models", "bad")
    assert found.models == {"good": {"contextWindow": 5}}


def test_one_wrong_value_does_not_cost_the_others() -> None:
    found = merged(user={"env": {"A": "a", "B": 5}, "model": 5, "baseUrl": "http://x", "compat": 5})
    assert (found.env, found.model, found.base_url) == ({"A": "a"}, None, "http://x")
    assert [issue.path for issue in found.issues] == [("compat",), ("model",), ("env", "B")]


def test_an_unknown_key_is_a_notice_with_the_nearest_known_one() -> None:
    issue = the_issue(merged(user={"model": "m", "permisions": {}}))
    assert issue.message == 'unknown setting "permisions" (did you mean "permissions"?)'
    assert (issue.line, issue.broken, issue.fatal) == (3, False, False)
    assert the_issue(merged(managed={"zzz": 1})).message == 'unknown setting "zzz"'
    assert not the_issue(merged(managed={"zzz": 1})).fatal


@pytest.mark.parametrize(
    ("section", "key", "meant"),
    [
        ("permissions", "denny", "deny"),
        ("permissions", "defaultmode", "defaultMode"),
        ("compat", "claud", "claude"),
        ("httpHooks", "host", "hosts"),
    ],
)
def test_an_unknown_key_inside_a_section_is_a_notice_as_well(section: str, key: str, meant: str) -> None:
    """A misspelt `deny` is a guard that is not there."""
    issue = the_issue(merged(user={section: {key: []}}))
    assert issue.path == (section, key)
    assert f'(did you mean "{meant}"?)' in issue.message
    assert not issue.broken


def test_comments_and_the_schema_are_no_unknown_keys() -> None:
    assert merged(user={"//": "why", "// model": "x", "$schema": "https://example.com"}) == Settings()


def test_a_project_cannot_shorten_the_life_of_other_projects_sessions() -> None:
    found = merged(user={"cleanupPeriodDays": 60}, project={"cleanupPeriodDays": 1})
    assert found.cleanup_days == 60
    assert "only user settings and managed settings can set this" in str(found.issues[0])


def test_every_documented_key_is_known() -> None:
    assert set(MCP_SETTINGS) == set(MCP_KEYS)
    assert set(KEYS) == {
        *("hooks", "env", "permissions", "model", "baseUrl", "models", "maxStopBlocks", "strictHooks", "compat"),
        *("httpHooks", "allowManagedHooksOnly", "cleanupPeriodDays", "sandbox", "$schema", "api", "apiKeyHelper"),
        "hookModel",
        "sessions",
        "disableAllHooks",
        "telemetry",
        *("mcpServers", "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly"),
        *("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"),
    }


# -------------------------------------------------------------------------------------------------------------- network


@rows("value", [True, False, []])
def test_the_network_of_a_sandbox_is_on_or_off(value: Any) -> None:
    assert merged(user={"sandbox": {"network": value}}).sandbox_network == (tuple(value) if value == [] else value)


def test_or_a_list_of_hosts_of_which_the_last_layer_wins() -> None:
    found = merged(
        user={"sandbox": {"network": ["old.example"]}},
        project={"sandbox": {"network": ["API.example.com", "*.example.org", "localhost:8080", "api.example.com"]}},
    )
    assert found.sandbox_network == ("api.example.com", "*.example.org", "localhost:8080")
    assert found.issues == ()


@rows(
    ("value", "place", "message"),
    [
        ("api.example.com", (), "must be true, false or a list of hosts, not a string"),
        (["a.example", "https://b.example/x"], (1,), "write it without scheme and path"),
        (["*"], (0,), "set sandbox.network to true"),
        ([5], (0,), "must be a string, not a number"),
    ],
)
def test_a_network_that_cannot_be_read_is_off(value: Any, place: tuple[int, ...], message: str) -> None:
    """It may have been meant to restrict what another layer permits."""
    found = merged(user={"sandbox": {"network": True}}, project={"sandbox": {"network": value}})
    issue = the_issue(found)
    assert issue.path == ("sandbox", "network", *place)
    assert message in issue.message
    assert issue.broken
    assert found.sandbox_network is False


# ---------------------------------------------------------------------------------------------------------------- rules


@rows("kind", ["deny", "ask"])
@rows(("value", "place"), [(["Bash", "Ba sh("], 1), ([5], 0), ([None], 0), (["Read()"], 0), (["WebFetch(x/y)"], 0)])
def test_a_rule_that_restricts_and_cannot_be_read_stops_the_start(kind: str, value: list[Any], place: int) -> None:
    found = merged(user={"permissions": {kind: value}})
    issue = the_issue(found)
    assert issue.path == ("permissions", kind, place)
    assert issue.line == 4 + place
    assert issue.fatal
    with pytest.raises(SettingsError, match=rf"user\.json:{issue.line}: permissions\.{kind}\[{place}\]"):
        found.require_usable()


@rows("kind", ["deny", "ask"])
@rows("value", ["Bash", {}, 5, True])
def test_rules_that_restrict_and_are_no_list_stop_the_start(kind: str, value: Any) -> None:
    issue = the_issue(merged(user={"permissions": {kind: value}}))
    assert issue.path == ("permissions", kind)
    assert issue.fatal


@pytest.mark.parametrize("value", ["a string", 5, True, [{"deny": ["Bash"]}]])
def test_permissions_that_are_no_object_stop_the_start_since_nobody_knows_what_they_denied(value: Any) -> None:
    issue = the_issue(merged(user={"permissions": value}))
    assert issue.path == ("permissions",)
    assert "must be an object" in issue.message
    assert issue.fatal


def test_an_allow_rule_that_cannot_be_read_disables_itself_alone() -> None:
    found = merged(user={"permissions": {"allow": ["Bash(ls)", "Ba sh(", 5, "Edit"]}})
    assert found.rules == Rules(allow=rules("Bash(ls)", "Edit"))
    assert [(issue.path[2], issue.broken, issue.fatal) for issue in found.issues] == [
        (1, True, False),
        (2, True, False),
    ]


def test_all_that_must_not_be_skipped_is_told_at_once() -> None:
    found = merged(user={"permissions": {"deny": [5], "ask": [6], "allow": [7]}})
    with pytest.raises(SettingsError) as told:
        found.require_usable()
    assert len(told.value.problems) == 2
    assert all(problem in str(told.value) for problem in told.value.problems)


# --------------------------------------------------------------------------------------------------------------- layers


def test_of_a_scalar_the_last_layer_that_says_something_wins() -> None:
    assert merged(user={"model": "u"}, project={"model": "p"}).model == "p"
    assert merged(project={"model": "p"}, user={"model": "u"}).model == "p"
    assert merged(user={"model": "u"}, project={"model": 5}).model == "u"
    assert merged(user={"model": "u"}, local={"model": "l"}, flag={"model": "f"}).model == "f"
    assert merged(user={"strictHooks": True}, project={"strictHooks": False}).strict_hooks is False


@pytest.mark.parametrize("other", [layer for layer in Layer if layer is not Layer.MANAGED])
def test_nobody_overrides_what_is_managed(other: Layer) -> None:
    found = merged(
        managed={"model": "m", "env": {"A": "m"}, "permissions": {"defaultMode": "plan"}, "maxStopBlocks": 2},
        **{
            other.value: {
                "model": "x",
                "env": {"A": "x", "B": "x"},
                "permissions": {"defaultMode": "bypassPermissions"},
            }
        },
    )
    assert (found.model, found.env, found.default_mode) == ("m", {"A": "m", "B": "x"}, PermissionMode.PLAN)
    assert found.max_stop_blocks == 2


def test_the_environment_is_merged_by_key() -> None:
    found = merged(user={"env": {"A": "u", "B": "u"}}, project={"env": {"B": "p", "C": "p"}})
    assert found.env == {"A": "u", "B": "p", "C": "p"}


def test_rules_of_all_layers_add_up() -> None:
    found = merged(
        managed={"permissions": {"deny": ["Bash(m)"]}},
        user={"permissions": {"deny": ["Bash(u)"], "ask": ["Edit"]}},
        flag={"permissions": {"deny": ["Bash(f)"], "allow": ["Read"]}},
    )
    assert set(found.rules.deny) == set(rules("Bash(m)", "Bash(u)", "Bash(f)"))
    assert (found.rules.ask, found.rules.allow) == (rules("Edit"), rules("Read"))


def test_additional_directories_of_all_layers_add_up_like_all_permissions() -> None:
    found = merged(
        user={"permissions": {"additionalDirectories": ["/u"]}},
        project={"permissions": {"additionalDirectories": ["/p"]}},
    )
    assert set(found.additional_directories) == {"/u", "/p"}


def hook(name: str, **more: Any) -> dict[str, Any]:
    return {"Stop": [{"hooks": [{"command": "true", "name": name, **more}]}]}


def test_hooks_of_all_layers_add_up_in_the_order_of_the_layers() -> None:
    found = merged(
        flag={"hooks": hook("f")},
        local={"hooks": hook("l")},
        project={"hooks": hook("p")},
        user={"hooks": hook("u")},
        code={"hooks": hook("c")},
        managed={"hooks": hook("m")},
    )
    assert [one.name for one in found.hooks.hooks] == ["m", "c", "u", "p", "l", "f"]


def test_strict_hooks_makes_every_hook_block_when_it_fails_whoever_says_so() -> None:
    loose, strict = {"hooks": hook("u", onFailure="continue")}, {"strictHooks": True}
    assert merged(user=loose).hooks.hooks[0].on_failure is OnFailure.CONTINUE
    assert merged(user=loose, project=strict).hooks.hooks[0].on_failure is OnFailure.BLOCK
    by_flag = merge_settings([layer(loose)], strict=True)
    assert by_flag.hooks.hooks[0].on_failure is OnFailure.BLOCK
    assert by_flag.strict_hooks is True


def test_where_only_managed_hooks_are_allowed_no_other_runs() -> None:
    assert merged(managed={"allowManagedHooksOnly": True}).managed_hooks_only is True
    found = merged(managed={"allowManagedHooksOnly": True, "hooks": hook("m")}, user={"hooks": hook("u")})
    assert [one.name for one in found.hooks.hooks] == ["m"]


@pytest.mark.parametrize("other", [layer for layer in Layer if layer is not Layer.MANAGED])
def test_only_the_managed_layer_can_allow_managed_hooks_only_and_whoever_else_tries_is_told(other: Layer) -> None:
    """A project could switch off the user's own guards otherwise."""
    layers: dict[str, Any] = {"user": {"hooks": hook("u")}}
    found = merged(**layers | {other.value: {"allowManagedHooksOnly": True, "hooks": hook("u")}})
    assert "u" in [one.name for one in found.hooks.hooks]
    assert found.managed_hooks_only is False
    assert the_issue(found).path == ("allowManagedHooksOnly",)


def test_what_is_wrong_with_hooks_is_among_the_issues() -> None:
    found = merged(user={"hooks": {"Stopp": []}, "modell": "x"})
    assert [issue.path for issue in found.issues] == [("hooks", "Stopp"), ("modell",)]


def test_a_wrong_value_in_the_managed_layer_stops_the_start() -> None:
    found = merged(managed={"model": 5, "permissions": {"allow": [5]}})
    assert [issue.fatal for issue in found.issues] == [True, True]
    with pytest.raises(SettingsError, match=r"managed\.json:2: model: must be a string"):
        found.require_usable()


# ---------------------------------------------------------------------------------------------------------------- files


def test_managed_settings_are_where_the_documentation_says() -> None:
    policy = Path(__file__).parents[2] / "docs" / "policy.md"
    assert f"`{MANAGED_FILE}` applies to every user" in policy.read_text()


def test_a_file_that_is_not_there_is_no_layer(tmp_path: Path) -> None:
    assert read_source(Layer.USER, tmp_path / "settings.json") is None
    assert read_source(Layer.USER, tmp_path / "gone" / "settings.json") is None


def test_a_link_that_leads_nowhere_is_not_taken_for_no_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "settings.json").symlink_to(tmp_path / "gone")
    for file in (tmp_path / "file" / "settings.json", tmp_path / "link" / "settings.json", tmp_path / "settings.json"):
        with pytest.raises(SettingsError, match="dangling link"):
            read_source(Layer.PROJECT, file)
        assert has_settings(str(file.parent), tmp_path / "home", ["settings.json"])


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_file_is_read_and_named_in_every_finding(tmp_path: Path, start: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(start + '{\n "model": 5}', encoding="utf-8")
    source = read_source(Layer.USER, file)
    assert source is not None
    assert str(the_issue(merge_settings([source]))) == f"{file}:2: model: must be a string, not a number"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"model": "x",}', ":1:14: not valid JSON: trailing comma before }: remove it"),
        (b'{\n  "model" "x"}', ":2:11: not valid JSON: expected a colon"),
        (b"[]", ": settings must be an object, not a list"),
        (b"", ":1:1: not valid JSON"),
        (b'{"model": "\xff"}', ": not valid JSON: not UTF-8 (invalid start byte at byte 11)"),
    ],
)
def test_a_file_that_is_not_json_is_told_with_its_place(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as told:
        read_source(Layer.USER, file)
    assert str(told.value).startswith(f"{file}{problem}")


def test_a_directory_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(SettingsError, match=r"settings\.json cannot be read: Is a directory"):
        read_source(Layer.USER, tmp_path / "settings.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.json").touch(mode=0)
    with pytest.raises(SettingsError, match=r"settings\.json cannot be read: Permission denied"):
        read_source(Layer.USER, tmp_path / "settings.json")


def test_a_link_to_itself_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.json").symlink_to(tmp_path / "settings.json")
    with pytest.raises(SettingsError, match=r"settings\.json cannot be read"):
        read_source(Layer.USER, tmp_path / "settings.json")


# --------------------------------------------------------------------------------------------------- untrusted projects


def test_of_an_untrusted_project_only_what_restricts_is_kept() -> None:
    source = layer(
        {
            "$schema": "x",
            "// why": "x",
            "hooks": hook("p"),
            "env": {"PATH": "/evil"},
            "model": "evil",
            "permissions": {"allow": ["Bash"], "deny": ["Read(.env)"], "ask": ["Edit"], "defaultMode": "plan"},
        },
        Layer.PROJECT,
    )
    kept, dropped = only_restrictions(source)
    found = merge_settings([kept])
    assert found == Settings(rules=Rules(deny=rules("Read(.env)"), ask=rules("Edit")))
    assert dropped == ("hooks", "env", "model", "permissions.allow", "permissions.defaultMode")
    assert (kept.layer, kept.name) == (Layer.PROJECT, "project.json")


def test_a_broken_deny_rule_of_an_untrusted_project_still_stops_the_start_with_its_place() -> None:
    kept, _ = only_restrictions(layer({"permissions": {"deny": ["Ba sh("]}}, Layer.PROJECT))
    issue = the_issue(merge_settings([kept]))
    assert (issue.fatal, issue.line, issue.path) == (True, 4, ("permissions", "deny", 0))


def test_an_untrusted_project_that_says_nothing_loses_nothing() -> None:
    kept, dropped = only_restrictions(layer({}, Layer.PROJECT))
    assert (merge_settings([kept]), dropped) == (Settings(), ())


@pytest.mark.parametrize("value", ["a string", 5, ["deny"]])
def test_permissions_of_an_untrusted_project_that_are_no_object_are_not_lost_in_silence(value: Any) -> None:
    kept, dropped = only_restrictions(layer({"permissions": value}, Layer.PROJECT))
    assert merge_settings([kept]).issues or "permissions" in dropped


@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_too_many_rules_of_one_list_keep_the_agent_from_starting(kind: str) -> None:
    rules = [f"Bash(git x{number}:*)" for number in range(MOST_RULES + 1)]
    issue = the_issue(merged(project={"permissions": {kind: rules}}))
    assert (issue.fatal, issue.path) == (True, ("permissions", kind))
    assert "has 2,001 rules; the limit is 2,000 per list" in issue.message
    assert merged(project={"permissions": {kind: rules[1:]}}).issues == ()


def test_too_many_allow_rules_are_left_out() -> None:
    found = merged(user={"permissions": {"allow": ["Read"] * (MOST_RULES + 1)}})
    assert (the_issue(found).fatal, found.rules.allow) == (False, ())


def test_the_rules_of_many_files_add_up() -> None:
    one = layer({"permissions": {"deny": ["Bash"] * MOST_RULES}}, Layer.PROJECT)
    most = MOST_RULES_IN_ALL // MOST_RULES
    assert merge_settings([one] * most).issues == ()
    assert "8,000 in all settings" in the_issue(merge_settings([one] * (most + 1))).message


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["Bash(git x{}:*)", "Read(**/x{}*/**)", "Bash(*x{}* -f y)"])
def test_as_many_rules_as_there_may_be_are_compared_quickly(rule: str) -> None:
    rules = merged(project={"permissions": {"deny": [rule.format(n) for n in range(MOST_RULES)]}}).rules.deny
    calls = [("Bash", {"command": "true && $x push"}), ("Read", {"file_path": "/p/f.txt"})]

    def judge() -> float:
        began = process_time()
        assert not any(one.matches(*call, Places("/p", "/h")) for call in calls for one in rules)
        return process_time() - began

    judge()
    assert judge() < 0.5, "each expression is compiled once"
