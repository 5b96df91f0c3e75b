"""Settings → hooks, and what is told about entries that cannot be used."""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.rows import rows
from wave_agent.errors import SettingsError
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer, Mode, Phase, with_project
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS as EVENT_ROWS
from wave_agent.hooks.events import NEVER_HERE, HookEvent, OnFailure
from wave_agent.rules.rule import Places
from wave_agent.settings.hook_entries import (
    MAX_HOOKS,
    HookConfig,
    Issue,
    SettingsSource,
    hooks_in_code,
    load_hooks,
    parse_settings,
    short_name,
)

PLACES = Places("/srv/project", "/home/me")


def in_layer(hooks: object, layer: Layer = Layer.PROJECT, name: str = "settings.json") -> SettingsSource:
    return SettingsSource(layer, name, Document({"hooks": hooks}, {}))


def load(hooks: object, layer: Layer = Layer.PROJECT, *, strict: bool = False) -> HookConfig:
    return load_hooks([in_layer(hooks, layer)], strict=strict)


def one_hook(entry: object, event: str = "PreToolUse", layer: Layer = Layer.PROJECT, **group: Any) -> HookDefinition:
    """The one hook of settings that have nothing wrong with them."""
    config = load({event: [{**group, "hooks": [entry]}]}, layer)
    assert config.issues == ()
    assert len(config.hooks) == 1
    return config.hooks[0]


def the_issue(config: HookConfig) -> Issue:
    """The one issue of settings that yield no hook."""
    assert config.hooks == ()
    assert len(config.issues) == 1
    return config.issues[0]


def warnings_of(config: HookConfig) -> list[str]:
    assert not [issue for issue in config.issues if issue.broken]
    return [issue.message for issue in config.issues]


def guard(call: Any) -> None:
    """A hook function."""


# ------------------------------------------------------------------------------------------------------- sound settings


def test_a_hook_has_every_field_that_was_given() -> None:
    entry = {
        "type": "command",
        "command": " ./check.sh --fast ",
        "args": ["a", ""],
        "timeout": 2.5,
        "async": False,
        "onFailure": "block",
        "mode": "shadow",
        "enabled": False,
        "name": "bash-guard",
        "statusMessage": "Checking …",
        "if": "Bash(git push:*)",
    }
    hook = one_hook(entry, matcher="Bash|Edit", sequential=True, phase="rewrite")
    assert hook.event is HookEvent.PRE_TOOL_USE
    assert hook.layer is Layer.PROJECT
    assert hook.source == "settings.json"
    assert hook.path == ("hooks", "PreToolUse", 0, "hooks", 0)
    assert hook.matcher.text == "Bash|Edit"
    assert hook.sequential is True
    assert hook.phase is Phase.REWRITE
    assert hook.command == "./check.sh --fast"
    assert hook.args == ("a", "")
    assert hook.timeout == 2.5
    assert hook.is_async is False
    assert hook.on_failure is OnFailure.BLOCK
    assert hook.mode is Mode.SHADOW
    assert hook.enabled is False
    assert hook.name == "bash-guard"
    assert hook.status_message == "Checking …"
    assert hook.condition is not None
    assert hook.condition.text == "Bash(git push:*)"
    assert hook.function is None


@pytest.mark.parametrize("nothing", [{}, dict.fromkeys(["args", "timeout", "async", "onFailure", "mode", "enabled"])])
def test_what_is_absent_or_null_has_its_default(nothing: dict[str, None]) -> None:
    hook = one_hook({"command": "./check.sh", **nothing, "name": None, "if": None, "statusMessage": None, "type": None})
    assert hook.matcher.matches("Anything")
    assert (hook.sequential, hook.phase, hook.args, hook.condition) == (False, None, None, None)
    assert (hook.is_async, hook.on_failure, hook.mode, hook.enabled) == (False, OnFailure.CONTINUE, Mode.ENFORCE, True)
    assert (hook.name, hook.status_message) == ("check.sh", "")


@pytest.mark.parametrize(
    ("event", "seconds"),
    [("UserPromptSubmit", 30), ("PreToolUse", 60), ("PostToolUse", 600), ("Stop", 600), ("SessionStart", 60)],
)
def test_the_default_timeout_is_that_of_the_event(event: str, seconds: float) -> None:
    assert one_hook("./x", event).timeout == seconds


@rows(
    "groups",
    [
        [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./x"}]}],
        [{"matcher": "Bash", "hooks": [{"command": "./x"}]}],
        [{"matcher": "Bash", "hooks": ["./x"]}],
        [{"matcher": "Bash", "command": "./x"}],
        [{"matcher": "Bash", "type": "command", "command": "./x", "hooks": None}],
        [{"matcher": "Bash", "hooks": [{"command": "./x", "description": "d", "id": 7, "_comment": [], "once": True}]}],
        [{"matcher": "Bash", "description": "d", "priority": 1, "hooks": ["./x"]}],
        [{"hooks": []}, {"matcher": "Bash", "hooks": ["./x"]}],
    ],
)
def test_every_shape_that_is_in_use_is_understood(groups: list[Any]) -> None:
    config = load({"PreToolUse": groups})
    assert config.issues == ()
    assert [hook.command for hook in config.hooks] == ["./x"]
    assert config.hooks[0].matcher.matches("Bash")
    assert not config.hooks[0].matcher.matches("Read")


def test_a_bare_string_in_place_of_a_group_is_a_hook_for_everything() -> None:
    hook = load({"PreToolUse": ["./x"]}).hooks[0]
    assert hook.command == "./x"
    assert hook.matcher.matches("Anything")
    assert hook.path == ("hooks", "PreToolUse", 0)


def test_a_group_of_one_takes_the_keys_of_both() -> None:
    config = load({"PreToolUse": [{"matcher": "Bash", "phase": "rewrite", "command": "./x", "onFailure": "block"}]})
    assert config.issues == ()
    assert config.hooks[0].phase is Phase.REWRITE
    assert config.hooks[0].on_failure is OnFailure.BLOCK


@pytest.mark.parametrize("value", [{}, {"hooks": None}, {"hooks": {}}, {"hooks": {"Stop": []}}, {"other": {"Stop": 1}}])
def test_settings_without_hooks_are_fine(value: dict[str, Any]) -> None:
    assert load_hooks([SettingsSource(Layer.USER, "s", Document(value, {}))]) == HookConfig()
    assert load_hooks([]) == HookConfig()


def test_keys_that_start_with_two_slashes_are_comments() -> None:
    assert load({"//": "what these are for", "// PreToolUse": [{"hooks": 5}], "Stop": ["./x"]}).issues == ()


def test_hooks_of_all_layers_add_up_in_the_order_of_the_layers() -> None:
    sources = [in_layer({"Stop": [f"./{layer}", "./same"]}, layer) for layer in reversed(Layer)]
    config = load_hooks(sources)
    assert config.issues == ()
    expected = [
        command
        for layer in ("managed", "code", "user", "project", "local", "flag")
        for command in (f"./{layer}", "./same")
    ]
    assert [hook.command for hook in config.hooks] == expected
    assert [hook.position for hook in config.hooks] == list(range(12))


def test_two_sources_of_one_layer_keep_the_order_in_which_they_were_given() -> None:
    config = load_hooks([in_layer({"Stop": ["./b"]}, name="b"), in_layer({"Stop": ["./a"]}, name="a")])
    assert [(hook.command, hook.source) for hook in config.hooks] == [("./b", "b"), ("./a", "a")]


def test_hooks_share_a_group_number_exactly_when_they_share_a_group() -> None:
    groups = [{"hooks": []}, {"matcher": "(", "hooks": ["./broken"]}, {"sequential": True, "hooks": ["./a", "./b"]}]
    config = load_hooks([
        in_layer({"PreToolUse": groups}, Layer.USER),
        in_layer({"PreToolUse": [{"sequential": True, "hooks": ["./c", "./d"]}, "./e", "./f"]}, Layer.PROJECT),
        in_layer({"PreToolUse": [{"sequential": True, "hooks": ["./g"]}, "./h"]}, Layer.LOCAL),
    ])  # fmt: skip
    numbers = {hook.command: hook.group for hook in config.hooks}
    assert numbers["./a"] == numbers["./b"]
    assert numbers["./c"] == numbers["./d"]
    assert len(set(numbers.values())) == 6


# ----------------------------------------------------------------------------------------------------- Python functions


def test_a_function_is_a_hook_wherever_a_hook_may_stand() -> None:
    shapes: list[Any] = [
        guard,
        {"matcher": "Bash", "hooks": [guard]},
        {"matcher": "Edit", "hooks": [{"function": guard, "timeout": 5, "name": "named"}]},
        {"matcher": "Read", "function": guard},
    ]
    config = load_hooks([hooks_in_code({"PreToolUse": shapes})])
    assert config.issues == ()
    assert [(hook.name, hook.function, hook.layer) for hook in config.hooks] == [
        ("guard", guard, Layer.CODE),
        ("guard", guard, Layer.CODE),
        ("named", guard, Layer.CODE),
        ("guard", guard, Layer.CODE),
    ]
    assert config.hooks[0].shown_command == "python:guard"
    assert config.hooks[0].source == "hooks"


def test_a_callable_object_is_named_after_its_class() -> None:
    class Watcher:
        def __call__(self, call: Any) -> None: ...

    assert load_hooks([hooks_in_code({HookEvent.STOP: [Watcher()]})]).hooks[0].name == "Watcher"


@pytest.mark.parametrize(
    ("event", "default"),
    [
        ("PreToolUse", OnFailure.BLOCK),
        ("UserPromptSubmit", OnFailure.BLOCK),
        ("PostToolUse", OnFailure.CONTINUE),
        ("Stop", OnFailure.CONTINUE),
        ("SessionStart", OnFailure.CONTINUE),
    ],
)
def test_a_function_in_code_fails_closed_where_something_is_about_to_happen(event: str, default: OnFailure) -> None:
    config = load_hooks([hooks_in_code({event: [guard, "./command"]})])
    assert [hook.on_failure for hook in config.hooks] == [default, OnFailure.CONTINUE]


def test_a_function_may_be_told_to_fail_open() -> None:
    config = load_hooks([hooks_in_code({"PreToolUse": [{"function": guard, "onFailure": "continue"}]})])
    assert config.hooks[0].on_failure is OnFailure.CONTINUE


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"function": "guard"}, "must be a Python function"),
        ({"function": guard, "command": "./x"}, "has a command and a function; a hook can have only one of them"),
        ({"function": guard, "args": []}, "a function takes no args"),
    ],
)
def test_a_function_entry_that_makes_no_sense_is_broken(entry: dict[str, Any], message: str) -> None:
    config = load_hooks([hooks_in_code({"Stop": [{"hooks": [entry]}]})])
    assert the_issue(config).message == message


@pytest.mark.parametrize(
    "groups",
    [
        [{"matcher": "(", "hooks": [guard]}],
        [{"hooks": [{"function": guard, "timeout": "soon"}]}],
        [{"hooks": (guard,)}],
    ],
    ids=["its matcher", "itself", "its list"],
)
def test_a_broken_entry_with_a_function_that_would_fail_closed_stops_the_start(groups: list[Any]) -> None:
    config = load_hooks([hooks_in_code({"PreToolUse": groups})])
    assert the_issue(config).fatal


# ------------------------------------------------------------------------------------------------------------- timeouts


@pytest.mark.parametrize("seconds", [1, 0.001, 10, 599.5, 600])
def test_a_timeout_is_in_seconds(seconds: float) -> None:
    assert one_hook({"command": "x", "timeout": seconds}).timeout == seconds


@rows(
    ("written", "used", "warnings"),
    [
        (601, 600, ["601 s exceeds the limit; 600 s is used"]),
        (999.5, 600, ["999.5 s exceeds the limit; 600 s is used"]),
        (1000, 1, ["1000 is read as milliseconds: 1 s; write seconds"]),
        (2500, 2.5, ["2500 is read as milliseconds: 2.5 s; write seconds"]),
        (3600, 600, ["3600 s exceeds the limit; 600 s is used"]),
        (7200.0, 600, ["7200 s exceeds the limit; 600 s is used"]),
        (6000, 6, ["6000 is read as milliseconds: 6 s; write seconds"]),
        (600_000, 600, ["600000 is read as milliseconds: 600 s; write seconds"]),
        (
            900_000,
            600,
            [
                "900000 is read as milliseconds: 900 s; write seconds",
                "900 s exceeds the limit; 600 s is used",
            ],
        ),
    ],
)
def test_a_timeout_in_milliseconds_or_beyond_the_limit_is_used_with_a_warning(
    written: float, used: float, warnings: list[str]
) -> None:
    config = load({"Stop": [{"hooks": [{"command": "x", "timeout": written}]}]})
    assert config.hooks[0].timeout == used
    assert warnings_of(config) == warnings
    assert {issue.path for issue in config.issues} == {("hooks", "Stop", 0, "hooks", 0, "timeout")}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (0, "must be more than 0 seconds, not 0"),
        (-1, "must be more than 0 seconds, not -1"),
        (float("inf"), "must be more than 0 seconds, not inf"),
        (float("nan"), "must be more than 0 seconds, not nan"),
        ("10", "must be a number of seconds, not a string"),
        (True, "must be a number of seconds, not true or false"),
        ([10], "must be a number of seconds, not a list"),
    ],
)
def test_a_timeout_that_is_no_time_is_a_broken_entry(written: object, message: str) -> None:
    config = load({"Stop": [{"hooks": [{"command": "x", "timeout": written}]}]})
    issue = the_issue(config)
    assert issue.message == message
    assert issue.path == ("hooks", "Stop", 0, "hooks", 0, "timeout")


def test_a_whole_number_too_large_for_any_clock_disables_nothing_else() -> None:
    config = load({"Stop": [{"hooks": [{"command": "x", "timeout": 10**400}, "./sound"]}]})
    assert "./sound" in [hook.command for hook in config.hooks]
    assert config.issues


# ------------------------------------------------------------------------------------------------------------ onFailure


@rows(
    ("layer", "stated", "expected"),
    [
        (Layer.USER, None, OnFailure.CONTINUE),
        (Layer.PROJECT, None, OnFailure.CONTINUE),
        (Layer.LOCAL, None, OnFailure.CONTINUE),
        (Layer.FLAG, None, OnFailure.CONTINUE),
        (Layer.CODE, None, OnFailure.CONTINUE),
        (Layer.MANAGED, None, OnFailure.BLOCK),
        (Layer.MANAGED, "continue", OnFailure.CONTINUE),
        (Layer.PROJECT, "block", OnFailure.BLOCK),
        (Layer.PROJECT, "continue", OnFailure.CONTINUE),
    ],
)
def test_settings_hooks_fail_open_and_managed_ones_closed_unless_stated(
    layer: Layer, stated: str | None, expected: OnFailure
) -> None:
    assert one_hook({"command": "x", "onFailure": stated}, layer=layer).on_failure is expected


@pytest.mark.parametrize("stated", [None, "continue", "block"])
def test_strict_makes_every_hook_fail_closed(stated: str | None) -> None:
    config = load({"PreToolUse": [{"hooks": [{"command": "x", "onFailure": stated}]}]}, strict=True)
    assert config.hooks[0].on_failure is OnFailure.BLOCK


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("layer", [Layer.PROJECT, Layer.MANAGED])
def test_what_cannot_block_is_never_made_to(layer: Layer, strict: bool) -> None:
    config = load({"SessionStart": ["./x"], "PreToolUse": [{"command": "./y", "async": True}]}, layer, strict=strict)
    assert config.issues == ()
    assert [hook.on_failure for hook in config.hooks] == [OnFailure.CONTINUE, OnFailure.CONTINUE]


@pytest.mark.parametrize(
    ("event", "group", "entry", "message"),
    [
        ("PreToolUse", {}, {"onFailure": "block"}, 'so "onFailure": "block" cannot work; remove one of the two'),
        ("PreToolUse", {"sequential": True}, {}, "so they cannot be part of a sequential group"),
        ("PreToolUse", {"phase": "rewrite"}, {}, "so they cannot be part of a rewrite group"),
        ("Stop", {"sequential": True}, {}, "so they cannot be part of a sequential group"),
    ],
)
def test_async_where_it_would_have_to_be_waited_for_is_refused(
    event: str, group: dict[str, Any], entry: dict[str, Any], message: str
) -> None:
    config = load({event: [{**group, "hooks": [{"command": "x", "async": True, **entry}]}]})
    assert the_issue(config).message == f'"async" hooks are not awaited, {message}'


def test_blocking_on_failure_where_nothing_can_be_blocked_is_told() -> None:
    config = load({"SessionStart": [{"hooks": [{"command": "x", "onFailure": "block"}]}]})
    assert warnings_of(config) == ["nothing can be blocked on SessionStart; a failure is only reported"]
    assert config.hooks[0].on_failure is OnFailure.CONTINUE


@rows("event", NEVER_HERE)
@rows("groups", [[{"hooks": [{"command": "x", "onFailure": "block"}]}], ["x"], 5, None])
def test_an_event_that_only_other_agents_have_is_told_and_nothing_of_it_is_kept(event: str, groups: Any) -> None:
    config = load({event: groups, "Stop": ["y"]})
    assert [hook.command for hook in config.hooks] == ["y"]
    assert warnings_of(config) == [f"never happens here, so its hooks do not run: {NEVER_HERE[event]}"]
    config.require_usable()


def test_a_timeout_beyond_what_all_hooks_of_an_event_have_together_is_told() -> None:
    config = load({"SessionEnd": [{"hooks": [{"command": "x", "timeout": 30}, {"command": "y"}]}]})
    assert warnings_of(config) == ["the hooks of SessionEnd have 1.5 s together; 30 s exceeds that"]
    assert [hook.timeout for hook in config.hooks] == [30, 1.5]


def test_a_rewrite_phase_where_nothing_is_rewritten_is_refused() -> None:
    issue = the_issue(load({"PostToolUse": [{"phase": "rewrite", "hooks": ["x"]}]}))
    assert issue.message == '"rewrite" is for PreToolUse, PermissionRequest only'
    assert issue.path == ("hooks", "PostToolUse", 0, "phase")


# ------------------------------------------------------------------------------------------------------- broken entries


BROKEN_ENTRIES = [
    pytest.param({}, 'needs a "command"', (), id="no command"),
    pytest.param({"command": "  "}, 'needs a "command"', (), id="an empty command"),
    pytest.param({"command": ["./x"]}, 'needs a "command"', (), id="a list as command"),
    pytest.param(5, "must be an object with a command, not a number", (), id="a number"),
    pytest.param(None, "must be an object with a command, not null", (), id="null"),
    pytest.param(["./x"], "must be an object with a command, not a list", (), id="a list"),
    pytest.param(
        {"command": "x", "type": "comand"},
        "'comand' is not a type of hook (did you mean \"command\"?); expected one of command, python, http, mcp_tool, "
        "prompt, agent",
        ("type",),
        id="a misspelt type",
    ),
    pytest.param(
        {"type": 7},
        "7 is not a type of hook; expected one of command, python, http, mcp_tool, prompt, agent",
        ("type",),
        id="a number as type",
    ),
    pytest.param({"type": "python"}, 'needs a "target"', (), id="python without a target"),
    pytest.param({"type": "prompt"}, 'needs a "prompt"', (), id="a prompt hook without a prompt"),
    pytest.param(
        {"type": "agent", "prompt": "x", "model": 5},
        "must be a string, not a number",
        ("model",),
        id="a number as model",
    ),
    pytest.param({"type": "mcp_tool", "tool": "x"}, 'needs a "server"', (), id="a tool without a server"),
    pytest.param(
        {"type": "mcp_tool", "server": "s", "tool": "x", "input": [1]},
        "must be an object, not a list",
        ("input",),
        id="a tool with a list",
    ),
    *(
        pytest.param(
            {"type": "python", "target": target},
            f'"{target}" must name a file and a function, such as guard.py:check',
            ("target",),
            id=f"the target {target!r}",
        )
        for target in ("guard.py", "guard.py:", ":check", "guard.py:not a name", "guard.py:a..b")
    ),
    pytest.param(
        {"type": "python", "target": "guard.py:check", "args": []},
        "a target takes no args",
        ("args",),
        id="a target with args",
    ),
    pytest.param(
        {"type": "python", "command": "guard.py"},
        '"command" does not belong to a hook of type python; did you mean "type": "command"?',
        ("command",),
        id="a command as python",
    ),
    pytest.param(
        {"target": "guard.py:check"},
        '"target" does not belong to a hook of type command; did you mean "type": "python"?',
        ("target",),
        id="a target without its type",
    ),
    pytest.param(
        {"type": "python", "target": "guard.py:check", "url": "http://localhost"},
        "has a url and a target; a hook can have only one of them",
        (),
        id="a target and a url",
    ),
    pytest.param({"type": "http"}, 'needs a "url"', (), id="http without a url"),
    *(
        pytest.param(
            {"type": "http", "url": url},
            f'"{url}" is not a URL; expected something like https://policy.example.com/decide',
            ("url",),
            id=f"the url {url!r}",
        )
        for url in ("policy", "ftp://x/", "http://", "http://x:99999/", "http://[x/", "http://é/", "http://a b")
    ),
    pytest.param(
        {"type": "http", "url": "http://me:secret@x/"},
        "must not contain a user and password; put them in headers, using a variable listed in httpHooks.env",
        ("url",),
        id="a url with a password",
    ),
    *(
        pytest.param({"type": "http", "url": "http://x", "headers": headers}, message, path, id=f"headers {headers!r}")
        for headers, message, path in (
            (["a"], "must be an object, not a list", ("headers",)),
            ({"a b": "c"}, "is not a valid header name", ("headers", "a b")),
            ({"Host": "c"}, "is set by the agent and cannot be overridden", ("headers", "Host")),
            ({"X": 5}, "must be a string, not a number", ("headers", "X")),
            ({"X": "a\r\nB: c"}, "has characters that are not allowed in a header", ("headers", "X")),
        )
    ),
    pytest.param(
        {"type": "http", "url": "http://x", "format": "oba"},
        '"oba" is not valid; expected one of plain, opa',
        ("format",),
        id="a misspelt format",
    ),
    pytest.param({"command": "x", "args": "a"}, "must be a list of strings", ("args",), id="args as a string"),
    pytest.param(
        {"command": "x", "shell": "powershell"},
        "'powershell' is not available: commands run in Bash",
        ("shell",),
        id="another shell",
    ),
    pytest.param(
        {"type": "http", "url": "http://a/", "allowedEnvVars": "A"},
        "must be a list of strings",
        ("allowedEnvVars",),
        id="variables as a string",
    ),
    pytest.param({"command": "x", "args": [1]}, "must be a list of strings", ("args",), id="args with a number"),
    pytest.param(
        {"command": "x", "async": "yes"}, "must be true or false, not a string", ("async",), id="async as a string"
    ),
    pytest.param({"command": "x", "enabled": 0}, "must be true or false, not a number", ("enabled",), id="enabled 0"),
    pytest.param({"command": "x", "name": 5}, "must be a string, not a number", ("name",), id="a number as name"),
    pytest.param({"command": "x", "if": ["Bash"]}, "must be a string, not a list", ("if",), id="a list as if"),
    pytest.param(
        {"command": "x", "statusMessage": {}}, "must be a string, not an object", ("statusMessage",), id="statusMessage"
    ),
    pytest.param(
        {"command": "x", "mode": "shadw"},
        '"shadw" is not valid (did you mean "shadow"?); expected one of enforce, shadow',
        ("mode",),
        id="a misspelt mode",
    ),
    pytest.param(
        {"command": "x", "mode": True},
        "true or false is not valid; expected one of enforce, shadow",
        ("mode",),
        id="mode true",
    ),
    pytest.param(
        {"command": "x", "onFailure": "Block"},
        '"Block" is not valid (did you mean "block"?); expected one of continue, block',
        ("onFailure",),
        id="a misspelt onFailure",
    ),
    pytest.param(
        {"command": "x", "if": "Bash(git"},
        '"Bash(git" is not a rule: write Tool or Tool(pattern), such as Bash(git push:*) or Read(.env)',
        ("if",),
        id="a broken if",
    ),
]


@rows(("entry", "message", "place"), BROKEN_ENTRIES)
def test_a_broken_entry_disables_itself_alone_and_says_where_and_why(
    entry: object, message: str, place: tuple[str, ...]
) -> None:
    config = load({"PreToolUse": [{"hooks": ["./before", entry, "./after"]}, "./beside"], "Stop": ["./elsewhere"]})
    assert [hook.command for hook in config.hooks] == ["./before", "./after", "./beside", "./elsewhere"]
    broken = [issue for issue in config.issues if issue.broken]
    assert [(issue.message, issue.path) for issue in broken] == [
        (message, ("hooks", "PreToolUse", 0, "hooks", 1, *place))
    ]


@rows(
    ("group", "message", "place"),
    [
        ({}, 'needs a list "hooks" of the hooks to run', ()),
        ({"matcher": "Bash"}, 'needs a list "hooks" of the hooks to run', ()),
        ({"hooks": "./x"}, 'needs a list "hooks" of the hooks to run', ()),
        ({"hooks": {"command": "./x"}}, 'needs a list "hooks" of the hooks to run', ()),
        (5, "must be an object with matcher and hooks, not a number", ()),
        (None, "must be an object with matcher and hooks, not null", ()),
        ([["./x"]], "must be an object with matcher and hooks, not a list", ()),
        ({"matcher": 5, "hooks": ["x"]}, "must be a string, not a number", ("matcher",)),
        ({"matcher": ["Bash"], "hooks": ["x"]}, "must be a string, not a list", ("matcher",)),
        ({"matcher": "||", "hooks": ["x"]}, 'it is empty; to match every tool, write "*"', ("matcher",)),
        (
            {"matcher": "mcp__(", "hooks": ["x"]},
            '"mcp__(" is not a valid regular expression: missing ), unterminated subpattern at position 5',
            ("matcher",),
        ),
        (
            {"matcher": "Bash(rm:*)", "hooks": ["x"]},
            'a matcher contains only tool names: write "Bash" and put "if": "Bash(rm:*)" on the hook',
            ("matcher",),
        ),
        ({"sequential": "true", "hooks": ["x"]}, "must be true or false, not a string", ("sequential",)),
        ({"phase": "first", "hooks": ["x"]}, '"first" is not valid; expected one of rewrite', ("phase",)),
        (
            {"phase": "rewrites", "hooks": ["x"]},
            '"rewrites" is not valid (did you mean "rewrite"?); expected one of rewrite',
            ("phase",),
        ),
    ],
)
def test_a_broken_group_disables_itself_alone_and_says_where_and_why(
    group: object, message: str, place: tuple[str, ...]
) -> None:
    config = load({"PreToolUse": ["./before", group, "./after"], "Stop": ["./elsewhere"]})
    assert [hook.command for hook in config.hooks] == ["./before", "./after", "./elsewhere"]
    assert [(issue.message, issue.path) for issue in config.issues] == [(message, ("hooks", "PreToolUse", 1, *place))]
    assert config.issues[0].broken
    assert not config.issues[0].fatal


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "preToolUse",
            [],
            'unknown event "preToolUse" (did you mean "PreToolUse"?); expected one of UserPromptSubmit, ',
        ),
        ("Banana", ["./x"], 'unknown event "Banana"; expected one of UserPromptSubmit, '),
        ("PreToolUse", {"hooks": []}, "must be a list of matcher groups, not an object"),
        ("PreToolUse", "./x", "must be a list of matcher groups, not a string"),
        ("PreToolUse", None, "must be a list of matcher groups, not null"),
    ],
)
def test_a_broken_event_is_told_and_the_others_stand(key: str, value: object, message: str) -> None:
    config = load({"UserPromptSubmit": ["./before"], key: value, "Stop": ["./after"]})
    assert [hook.command for hook in config.hooks] == ["./before", "./after"]
    assert len(config.issues) == 1
    assert config.issues[0].message.startswith(message)
    assert config.issues[0].path == ("hooks", key)
    assert config.issues[0].broken


@pytest.mark.parametrize(("hooks", "kind"), [([], "a list"), ("./x", "a string"), (True, "true or false")])
def test_hooks_that_are_no_object_stop_the_start(hooks: object, kind: str) -> None:
    issue = the_issue(load(hooks))
    assert issue.message == f"must be an object of events, not {kind}"
    assert issue.path == ("hooks",)
    assert issue.fatal


MUST_BLOCK = {"command": "./guard", "onFailure": "block"}


@rows(
    "hooks",
    [
        {"PreToolUse": [{"hooks": [{**MUST_BLOCK, "timeout": "soon"}]}]},
        {"PreToolUse": [{"hooks": [{**MUST_BLOCK, "async": True}]}]},
        {"PreToolUse": [{"hooks": [{"command": "./guard", "onFailure": "Block"}]}]},
        {"PreToolUse": [{"matcher": "(", "hooks": ["./x", MUST_BLOCK]}]},
        {"PreToolUse": [{"matcher": "(", **MUST_BLOCK}]},
        {"PreToolUse": [{"hooks": {"first": MUST_BLOCK}}]},
        {"PreToolUse": [[MUST_BLOCK]]},
        {"PreToolUse": MUST_BLOCK},
        {"PreToolsUse": [{"hooks": [MUST_BLOCK]}]},
    ],
    ids=[
        *("a field", "async", "another spelling", "the matcher", "the matcher of a group of one"),
        *("no list", "a list too many", "no group", "the event"),
    ],
)
def test_a_broken_entry_that_was_meant_to_fail_closed_stops_the_start(hooks: object) -> None:
    config = load(hooks)
    assert the_issue(config).fatal
    with pytest.raises(SettingsError) as refused:
        config.require_usable()
    assert refused.value.problems == (str(config.issues[0]),)
    assert str(refused.value).startswith("These hooks are invalid and must not be skipped; fix them first:\n  ")


@rows("strict", [False, True])
@rows("layer", Layer)
@rows(
    "hooks",
    [{"Stop": [{"hooks": [{}]}]}, {"Stop": [5]}, {"Stop": 5}, {"Sotp": []}],
    ids=["hook", "group", "list", "event"],
)
def test_a_broken_entry_that_is_managed_or_in_code_stops_the_start_and_strictly_any_at_all(
    hooks: object, layer: Layer, strict: bool
) -> None:
    config = load(hooks, layer, strict=strict)
    assert the_issue(config).fatal is (strict or layer in (Layer.MANAGED, Layer.CODE))


def test_a_broken_entry_that_may_fail_open_does_not_stop_the_start() -> None:
    config = load({"Stop": [{"hooks": [{"command": 5, "onFailure": "continue"}]}]})
    assert the_issue(config).fatal is False
    config.require_usable()


# ------------------------------------------------------------------------------------------------------------- warnings


def test_a_warning_is_neither_broken_nor_fatal_even_where_everything_is_strict() -> None:
    config = load({"Stop": [{"hooks": [{"command": "x", "timeout": 5000}]}]}, Layer.MANAGED, strict=True)
    assert [(issue.broken, issue.fatal) for issue in config.issues] == [(False, False)]
    config.require_usable()


@pytest.mark.parametrize(
    ("group", "key", "meant"),
    [
        ({"hooks": [{"command": "x", "onfailure": "block"}]}, "onfailure", "onFailure"),
        ({"hooks": [{"command": "x", "time_out": 5}]}, "time_out", "timeout"),
        ({"matchers": "Bash", "hooks": ["x"]}, "matchers", "matcher"),
        ({"matcher": "Bash", "command": "x", "onfailure": "block"}, "onfailure", "onFailure"),
        ({"command": "x", "onfailure": "block"}, "onfailure", "onFailure"),
        ({"hooks": [{"matcher": "Bash", "command": "x", "onfailure": "block"}]}, "onfailure", "onFailure"),
    ],
    ids=["hook", "another", "group", "group of one", "group of one without matcher", "hook with a stray matcher"],
)
def test_a_key_that_looks_misspelt_is_told_once(group: dict[str, Any], key: str, meant: str) -> None:
    config = load({"PreToolUse": [group]})
    assert len(config.hooks) == 1
    assert warnings_of(config) == [f'unknown key "{key}" (did you mean "{meant}"?)']
    assert config.issues[0].path[-1] == key


@pytest.mark.parametrize("key", ["onFailure", "command"])
def test_a_key_of_a_hook_that_stands_at_its_group_is_not_dropped_in_silence(key: str) -> None:
    value = "block" if key == "onFailure" else "./guard.sh"
    config = load({"PreToolUse": [{"matcher": "Bash", key: value, "hooks": []}]})
    assert key in " ".join(str(issue) for issue in config.issues)


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit"])
def test_a_matcher_where_there_is_nothing_to_match_is_accepted_with_a_warning(event: str) -> None:
    config = load({event: [{"matcher": "Bash(", "hooks": ["./x"]}]})
    assert warnings_of(config) == [f"{event} has nothing to compare a matcher with; the hooks run every time"]
    assert config.hooks[0].why_not({"tool_name": "Read"}, PLACES) is None


@pytest.mark.parametrize("matcher", ["", "*"])
def test_a_matcher_for_everything_needs_no_warning_anywhere(matcher: str) -> None:
    assert load({"Stop": [{"matcher": matcher, "hooks": ["./x"]}]}).issues == ()


def test_a_matcher_of_an_event_with_a_target_of_its_own_is_compared_with_that() -> None:
    hook = one_hook("./x", "SessionStart", matcher="startup|resume")
    assert hook.why_not({"source": "resume"}, PLACES) is None
    assert hook.why_not({"source": "clear"}, PLACES) is not None


def test_an_entry_that_is_there_twice_in_one_layer_runs_once() -> None:
    group = {"matcher": "Bash", "hooks": ["./x", {"command": "./x", "type": "command"}]}
    config = load({"PreToolUse": [group, group, "./x"], "PostToolUse": [group]})
    assert [(hook.event.value, hook.matcher.text) for hook in config.hooks] == [
        ("PreToolUse", "Bash"),
        ("PreToolUse", ""),
        ("PostToolUse", "Bash"),
    ]
    assert warnings_of(config) == ["the same as an earlier entry (x); it runs once"] * 4


@rows(
    "other",
    [
        {"matcher": "Bash", "hooks": [{"command": "./x", "timeout": 5}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "onFailure": "block"}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "name": "other"}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "args": []}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "if": "Bash(ls)"}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "mode": "shadow"}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "enabled": False}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "async": True}]},
        {"matcher": "Bash", "hooks": [{"command": "./x", "statusMessage": "…"}]},
        {"matcher": "Bash|Edit", "hooks": ["./x"]},
        {"matcher": "Bash", "sequential": True, "hooks": ["./x"]},
        {"matcher": "Bash", "phase": "rewrite", "hooks": ["./x"]},
    ],
)
def test_entries_that_differ_in_any_field_are_two(other: dict[str, Any]) -> None:
    config = load({"PreToolUse": [{"matcher": "Bash", "hooks": ["./x"]}, other]})
    assert len(config.hooks) == 2
    assert config.issues == ()


def test_two_functions_are_two_hooks_and_one_function_is_one() -> None:
    def made() -> Callable[..., None]:
        def same_name(call: Any) -> None: ...

        return same_name

    config = load_hooks([hooks_in_code({"Stop": [made(), made()]})])
    assert len(config.hooks) == 2
    assert len(load_hooks([hooks_in_code({"Stop": [guard, guard]})]).hooks) == 1


# ----------------------------------------------------------------------------------------------------------- conditions


def test_a_condition_must_match_as_well() -> None:
    hook = one_hook({"command": "x", "if": "Bash(git push*)"}, matcher="Bash")
    assert hook.why_not({"tool_name": "Bash", "tool_input": {"command": "cd x && git push origin"}}, PLACES) is None
    assert hook.why_not({"tool_name": "Bash", "tool_input": {"command": "git pull"}}, PLACES) == (
        'its condition "Bash(git push*)" does not match the input'
    )
    assert hook.why_not({"tool_name": "Bash"}, PLACES) is not None
    assert hook.why_not({"tool_name": "Read", "tool_input": {}}, PLACES) == (
        'its matcher (name "Bash") does not match "Read"'
    )


def test_a_hook_that_is_switched_off_says_so() -> None:
    hook = one_hook({"command": "x", "enabled": False})
    assert hook.why_not({"tool_name": "Bash"}, PLACES) == "it is disabled (enabled: false)"


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_condition_is_none(empty: str) -> None:
    assert one_hook({"command": "x", "if": empty}).condition is None


def test_the_blanks_inside_a_condition_are_part_of_it() -> None:
    hook = one_hook({"command": "x", "if": "Bash(echo  done)"})
    assert hook.why_not({"tool_name": "Bash", "tool_input": {"command": "echo  done"}}, PLACES) is None


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "SessionStart"])
def test_a_condition_without_a_tool_is_refused(event: str) -> None:
    issue = the_issue(load({event: [{"hooks": [{"command": "x", "if": "Bash"}]}]}))
    assert issue.message == f"needs a tool, and {event} has none"


def test_a_condition_that_the_matcher_never_lets_through_is_told() -> None:
    config = load({"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"command": "x", "if": "bash(git push)"}]}]})
    assert len(config.hooks) == 1
    assert warnings_of(config) == ['the matcher "Edit|Write" never matches Bash, so this hook never runs']


@pytest.mark.parametrize(
    ("matcher", "condition", "missed"),
    [
        ("Bash", "Read(.env)", None),
        ("*", "Net(*)", None),
        ("mcp__.*", "Edit(x)", None),
        ("Deploy", "Edit(x)", None),
        ("Read|Bash", "Edit(x)", None),
        ("read|Grep", "Edit(x)", "changes files"),
        ("Write", "Read(.env)", "reads files"),
        ("Edit|Write", "Net(example.com)", "reaches a host"),
    ],
)
def test_a_condition_about_effects_takes_any_matcher_that_can_have_them(
    matcher: str, condition: str, missed: str | None
) -> None:
    config = load({"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x", "if": condition}]}]})
    expected = [f'the matcher "{matcher}" matches no tool that {missed}, so this hook never runs'] if missed else []
    assert warnings_of(config) == expected
    assert len(config.hooks) == 1


# ---------------------------------------------------------------------------------------------------------------- names


@rows(
    ("command", "name"),
    [
        ("./check.sh", "check.sh"),
        ("./hooks/guard", "guard"),
        ("/usr/local/bin/guard --fast", "guard"),
        ('python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.py --x', "guard.py"),
        ("python3.12 -u guard.py", "guard.py"),
        ("FOO=1 BAR=2 node hooks/a.js", "a.js"),
        ("/usr/bin/env bash ./x.sh", "x.sh"),
        ("uv run --quiet hooks/y.py", "y.py"),
        ("'./with quotes.sh'", "with quotes.sh"),
        ("jq -e .tool_input.command", "jq -e .tool_input.command"),
        ("echo   spaced   out", "echo spaced out"),
        ("make " + "x" * 50, "make " + "x" * 34 + "…"),
        ("make a-long-target another-long-target a-third", "make a-long-target another-long-target…"),
        (
            """bash -c 'INPUT=$(cat); grep -q "/etc/" <<< "$INPUT" && exit 2'""",
            'grep -q "/etc/" <<< "$INPUT" && exit 2',
        ),
        ("python3 -c 'import sys; print(1/2)' and some more", "python3 -c 'import sys; print(1/2)'…"),
        ("jq -r '.tool_input.file_path // empty' | xargs -r npx prettier --write", "npx prettier --write"),
        ('cd "$CLAUDE_PROJECT_DIR" && ./scripts/check.sh --fast', "check.sh"),
        ("set -euo pipefail; npm run lint", "npm run lint"),
        ("/bin/sh -c './hooks/x.sh'", "x.sh"),
        ("NODE_ENV=test node -e 'console.log(1/2)'", "NODE_ENV=test node -e 'console.log(1/2)'"),
        ("bash -c", "bash -c"),
        ("x=1; ", "x=1;"),
        ("./" + "long" * 20, "long" * 10),
        ("python3", "python3"),
        ("./\x1b[31mred.sh", "red.sh"),
        ("/", "hook"),
    ],
)
def test_a_hook_without_a_name_is_called_by_a_short_form_of_its_command(command: str, name: str) -> None:
    assert short_name(command) == name


@settings(deadline=None)
@given(command=st.text(min_size=1).filter(str.strip) | st.text(alphabet="a/. \"'-=\x1b[", min_size=1).filter(str.strip))
@example("\x01")
def test_every_command_has_a_name_that_fits_on_a_line(command: str) -> None:
    name = short_name(command)
    assert 0 < len(name) <= 40
    assert not set(name) & set("\x1b\x07\r")


def test_names_and_messages_are_one_line_without_control_characters() -> None:
    hook = one_hook({"command": "x", "name": " a\n\x1b[31mb ", "statusMessage": "c\td\x07"})
    assert (hook.name, hook.status_message) == ("a b", "c d")


# ----------------------------------------------------------------------------------------------------------- bare paths


@pytest.mark.parametrize("command", ["./check.sh", "/usr/bin/guard", "hooks/check", "~/.wave/x.py", "a-b/c_d@1:2,3%+"])
def test_a_command_that_is_one_bare_path_gets_arguments(command: str) -> None:
    assert one_hook(command).gets_arguments


@rows(
    "command",
    [
        *(
            "check.sh",
            "./check.sh --x",
            "./check.sh; true",
            '"./check.sh"',
            "'./x'",
            "$HOME/x",
            "./a*",
            "./a?",
            "./a|b",
        ),
        *(
            "./a&",
            "./a>b",
            "./a<b",
            "./$(x)",
            "./`x`",
            "./a\\ b",
            "./[a]",
            "./{a,b}",
            "A=./x",
            "./x#y",
            "!./x",
            "./a\tb",
        ),
    ],
)
def test_a_command_with_anything_for_the_shell_in_it_gets_none(command: str) -> None:
    assert not one_hook(command).gets_arguments


def test_a_command_with_args_of_its_own_gets_none() -> None:
    assert not one_hook({"command": "./check.sh", "args": []}).gets_arguments


def test_a_command_is_shown_as_it_is() -> None:
    assert one_hook("./check.sh").shown_command == "./check.sh"


# ----------------------------------------------------------------------------------------------------- files and places


SETTINGS = """\
{
  "env": {"A": "b"},
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {"type": "command", "command": "./sound.sh"},
          {
            "type": "command",
            "command": "./broken.sh",
            "timeout": "soon"
          },
          {
            "name": "no command"
          }
        ]
      },
      {
        "matcher": "mcp__(",
        "hooks": []
      }
    ],
    "PreTool": [
    ],
    "Stop": [
      {"hooks": [
        {"command": "./slow.sh",
         "timeout": 5000},
        {"command": "./blocking.sh",
         "onFailure":
           "blokc"}
      ]}
    ]
  }
}
"""


def test_every_issue_names_file_line_and_place() -> None:
    config = load_hooks([parse_settings(SETTINGS, Layer.PROJECT, ".wave/settings.json")])
    assert [(hook.name, hook.line) for hook in config.hooks] == [("sound.sh", 8), ("slow.sh", 28)]
    places = [str(issue).split(": ")[:2] for issue in config.issues]
    assert places == [
        [".wave/settings.json:12", "hooks.PreToolUse[0].hooks[1].timeout"],
        [".wave/settings.json:14", "hooks.PreToolUse[0].hooks[2]"],
        [".wave/settings.json:20", "hooks.PreToolUse[1].matcher"],
        [".wave/settings.json:24", "hooks.PreTool"],
        [".wave/settings.json:29", "hooks.Stop[0].hooks[0].timeout"],
        [".wave/settings.json:32", "hooks.Stop[0].hooks[1].onFailure"],
    ]
    with pytest.raises(SettingsError) as refused:
        config.require_usable()
    assert refused.value.problems == (
        ".wave/settings.json:32: hooks.Stop[0].hooks[1].onFailure: "
        '"blokc" is not valid (did you mean "block"?); expected one of continue, block',
    )


def test_an_issue_in_code_has_no_line() -> None:
    config = load_hooks([hooks_in_code({"Stop": [5]}, name="hooks of the agent")])
    expected = "hooks of the agent: hooks.Stop[0]: must be an object with matcher and hooks, not a number"
    assert str(config.issues[0]) == expected


@rows(
    ("text", "place"),
    [
        ('{\n  "hooks": {},\n}', "2:14"),
        ('{"a": [1, 2,]}', "1:12"),
        ('{\n  "a": 1\n  "b": 2\n}', "3:3"),
        ("[1\n 2]", "2:2"),
        ('{\n  // guards\n  "a": 1\n}', "2:3"),
        ('{\n  "a": /* one */ 1\n}', "2:8"),
        ('{\n  "a": 1 # one\n}', "2:10"),
        ("{\n  'a': 1\n}", "2:3"),
        ("{\"a\": 'b'}", "1:7"),
        ("{a: 1}", "1:2"),
        ('{\n  "hooks": {},\n  "hooks": {}\n}', "3:3"),
        ('{"hooks": {\n  "Stop": [],\n  "Stop": []}}', "3:3"),
        ('{\n  "timeout": NaN\n}', "2:14"),
        ('{\n  "timeout": -Infinity\n}', "2:14"),
        ('{\n  "hooks": {\n', "3:1"),
        ('{"a": [', "1:8"),
        ('{"a":', "1:6"),
        ('{"a"', "1:5"),
        ('{"a": "text', "1:7"),
        ('{"a": "two\nlines"}', "1:11"),
        ('{"a": "\\x"}', "1:8"),
        ('{"a": True}', "1:7"),
        ('{"a": undefined}', "1:7"),
        ('{"a" 1}', "1:6"),
        ('{"a": 1}\n{"b": 2}', "2:1"),
        ('{"a": 1}}', "1:9"),
        ("\ufeff{'a': 1}", "1:2"),
        ("hooks:\n  Stop: []", "1:1"),
    ],
)
def test_a_file_that_is_not_json_stops_the_start_with_line_and_column(text: str, place: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_settings(text, Layer.USER, "~/.wave/settings.json")
    assert str(refused.value).startswith(f"~/.wave/settings.json:{place}: not valid JSON: ")


@rows(
    ("text", "advice"),
    [
        ('{"a": 1,}', "trailing comma before }: remove it"),
        ("[1,]", "trailing comma before ]: remove it"),
        ('{"a": 1 "b": 2}', "expected a comma or }"),
        ("{'a': 1}", "expected a key in double quotes"),
        ('{"a": 1, // why\n"b": 2}', "JSON has no comments"),
        ('{ # why\n"b": 2}', "JSON has no comments"),
        ('{"a": 1 /* why */, "b": 2}', "JSON has no comments"),
        ('{"a": // why\n1}', "JSON has no comments"),
        ('{"a" 1}', 'expected a colon after "a"'),
        ('{"a": 1, "a": 2}', 'duplicate key "a": the first value would be lost'),
        ('{"a": }', "Expecting value: a value is missing or misspelt"),
        ("{} x", "unexpected text after the end of the document"),
        ("[NaN]", "NaN is not JSON"),
    ],
)
def test_the_message_says_what_to_do(text: str, advice: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_settings(text, Layer.USER, "f")
    assert str(refused.value).endswith(f"not valid JSON: {advice}")


@pytest.mark.parametrize("text", ["[]", '"hooks"', "5", "null", "true"])
def test_settings_that_are_no_object_stop_the_start(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^f: settings must be an object, not "):
        parse_settings(text, Layer.USER, "f")


@pytest.mark.parametrize(("text", "place"), [("", "1:1"), ("  ", "1:3"), ("\n\n", "3:1"), ("\ufeff", "1:1")])
def test_an_empty_file_is_not_json_either(text: str, place: str) -> None:
    with pytest.raises(SettingsError, match=f"^f:{place}: not valid JSON: "):
        parse_settings(text, Layer.USER, "f")


@pytest.mark.parametrize("text", ["{}", "\ufeff{}", "\n{\n}\n"])
def test_an_empty_object_is_settings_without_anything(text: str) -> None:
    source = parse_settings(text, Layer.USER, "f")
    assert source.document.value == {}
    assert load_hooks([source]) == HookConfig()


def test_a_file_with_a_byte_order_mark_is_read() -> None:
    source = parse_settings('\ufeff{"hooks": {"Stop": ["./x"]}}', Layer.USER, "f")
    assert [hook.command for hook in load_hooks([source]).hooks] == ["./x"]


# ------------------------------------------------------------------------------------------------------ any JSON at all


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "command",
        "block",
        "continue",
        "shadow",
        "enforce",
        "rewrite",
        "Bash",
        "Bash(",
        "[",
        "*",
        "./x",
        "Bash(git*)",
        "//",
    ]
)
KEYS = st.sampled_from([
    *("matcher", "sequential", "phase", "hooks", "type", "command", "args", "function", "timeout", "async"),
    *("onFailure", "mode", "enabled", "name", "statusMessage", "if", "onfailure", "description"),
])  # fmt: skip
NEARLY_HOOK = st.dictionaries(KEYS, WORDS | ANY_JSON, max_size=6) | WORDS | ANY_JSON
NEARLY_GROUP = st.builds(
    lambda fields, hooks: {**fields, "hooks": hooks},
    st.dictionaries(KEYS, WORDS | ANY_JSON, max_size=4),
    st.lists(NEARLY_HOOK, max_size=4),
)
EVENTS = st.sampled_from([*(event.value for event in HookEvent), "preToolUse", "//", "PreCompact"]) | st.text(
    max_size=8
)
GROUPS = st.lists(NEARLY_GROUP | NEARLY_HOOK, max_size=4)
HOOKS = st.dictionaries(EVENTS, GROUPS | ANY_JSON, max_size=4) | ANY_JSON


@given(hooks=HOOKS, layer=st.sampled_from(Layer), strict=st.booleans())
@example({"Stop": [{"command": "x", "timeout": 10**400}]}, Layer.USER, False)
@example({"PreToolUse": [{"matcher": "a{" + "9" * 5000 + "}", "hooks": []}]}, Layer.USER, False)
@example({"PreToolUse": [{"matcher": "[[a]", "hooks": []}]}, Layer.USER, False)
def test_whatever_stands_under_hooks_is_loaded_or_told(hooks: Any, layer: Layer, strict: bool) -> None:
    config = load(hooks, layer, strict=strict)
    assert [hook.position for hook in config.hooks] == list(range(len(config.hooks)))
    for hook in config.hooks:
        assert hook.command.strip()
        assert 0 < hook.timeout <= 600
        hook.why_not({"tool_name": "Bash", "tool_input": {"command": "ls"}, "source": "startup"}, PLACES)
    assert all(str(issue).startswith("settings.json: hooks") for issue in config.issues)
    if any(issue.fatal for issue in config.issues):
        with pytest.raises(SettingsError):
            config.require_usable()
    else:
        config.require_usable()


def insert(items: list[Any], at: int, item: object) -> list[Any]:
    place = at % (len(items) + 1)
    return [*items[:place], item, *items[place:]]


@given(
    others=st.dictionaries(EVENTS, GROUPS | ANY_JSON, max_size=3),
    groups=GROUPS,
    entries=st.lists(NEARLY_HOOK, max_size=4),
    at=st.integers(min_value=0, max_value=100),
)
def test_nothing_next_to_a_sound_hook_disables_it(
    others: Mapping[str, Any], groups: list[Any], entries: list[Any], at: int
) -> None:
    sound = {"type": "command", "command": "./the-guard.sh", "onFailure": "block"}
    group = {"matcher": "Bash", "hooks": insert(entries, at, sound)}
    config = load({**others, "PreToolUse": insert(groups, at, group)})
    guards = [hook for hook in config.hooks if hook.command == "./the-guard.sh"]
    assert len(guards) == 1
    assert guards[0].event is HookEvent.PRE_TOOL_USE
    assert guards[0].on_failure is OnFailure.BLOCK
    assert guards[0].why_not({"tool_name": "Bash", "tool_input": {}}, PLACES) is None


@settings(deadline=None)
@given(hooks=st.dictionaries(st.sampled_from([event.value for event in HookEvent]), GROUPS, max_size=3))
def test_settings_mean_the_same_in_a_file_and_in_code(hooks: dict[str, Any]) -> None:
    text = json.dumps({"hooks": hooks}, indent=2, allow_nan=True)
    if "NaN" in text or "Infinity" in text or "\\ud" in text:
        return
    from_file = load_hooks([parse_settings(text, Layer.CODE, "f")])
    from_code = load_hooks([hooks_in_code(hooks, name="f")])
    assert [hook.command for hook in from_file.hooks] == [hook.command for hook in from_code.hooks]
    assert [issue.message for issue in from_file.issues] == [issue.message for issue in from_code.issues]


def test_a_condition_on_a_tool_that_is_probably_misspelt_is_told() -> None:
    config = load({"PreToolUse": [{"hooks": [{"command": "true", "if": "Bsah"}]}]})
    [issue] = config.issues
    assert 'did you mean "Bash"' in issue.message
    assert not issue.broken


# ------------------------------------------------------------------------------------------------- for other agents


@pytest.mark.parametrize("more", [{"shell": "bash"}, {"shell": "sh"}, {"shell": None}, {"shell": "fish", "args": []}])
def test_a_line_for_bash_or_for_no_shell_at_all_is_fine(more: dict[str, Any]) -> None:
    assert one_hook({"command": "x", **more}).command == "x"


@pytest.mark.parametrize("dialect", Dialect)
def test_variables_of_headers_are_named_by_hooks_for_other_agents_alone(dialect: Dialect) -> None:
    entry = {"type": "http", "url": "http://a/", "allowedEnvVars": ["A"]}
    source = SettingsSource(Layer.USER, "x", Document({"hooks": {"Stop": [entry]}}, {}), dialect=dialect)
    found = load_hooks([source])
    assert found.hooks[0].header_env == ("A",)
    assert [issue.message for issue in found.issues] == (
        [] if dialect is Dialect.CLAUDE else ["has no effect here: list the variables in httpHooks.env"]
    )


def test_a_plugin_gets_both_of_its_directories_or_the_shell_does() -> None:
    entry = {"command": "${CLAUDE_PLUGIN_ROOT}/x", "args": ["${CLAUDE_PLUGIN_DATA}/y", "$CLAUDE_PLUGIN_ROOT"]}
    line = {"command": "${CLAUDE_PLUGIN_ROOT}/x ${CLAUDE_PLUGIN_DATA}/y"}
    document = Document({"hooks": {"Stop": [entry, line]}}, {})
    plugin = SettingsSource(Layer.FLAG, "x", document, plugin_root="/p", plugin_data="/d")
    program, shell = load_hooks([plugin]).hooks
    assert (program.command, program.args) == ("/p/x", ("/d/y", "$CLAUDE_PLUGIN_ROOT"))
    assert (shell.command, shell.plugin_data) == ("/p/x /d/y", "/d")
    _, quoted = load_hooks([replace(plugin, plugin_data="/d d")]).hooks
    assert quoted.command == line["command"]
    unknown, _ = load_hooks([replace(plugin, plugin_data="")]).hooks
    assert unknown.args == ("${CLAUDE_PLUGIN_DATA}/y", "$CLAUDE_PLUGIN_ROOT")


def test_the_project_is_put_into_what_no_shell_reads() -> None:
    assert with_project("${CLAUDE_PROJECT_DIR}/a ${WAVE_PROJECT_DIR} $WAVE_PROJECT_DIR", r"/p\1") == (
        r"/p\1/a /p\1 $WAVE_PROJECT_DIR"
    )


def test_as_many_hooks_as_there_may_be_are_loaded_and_one_more_stops_the_start() -> None:
    some = [{"hooks": [f"echo {number}" for number in range(MAX_HOOKS // 2)]}]
    layers = [Layer.USER, Layer.PROJECT]
    full = load_hooks([parse_settings(json.dumps({"hooks": {"Stop": some}}), layer, layer) for layer in layers])
    assert (len(full.hooks), full.issues) == (MAX_HOOKS, ())
    more = [parse_settings(json.dumps({"hooks": {"Stop": [*some, "true"]}}), layer, layer) for layer in layers]
    with pytest.raises(SettingsError, match="there are more than 2,000 hooks in all settings together; remove some"):
        load_hooks(more).require_usable()


@pytest.mark.parametrize("entry", [{"hooks": []}, {}, 1, "true"])
def test_a_flood_of_entries_is_not_read_to_its_end(entry: object) -> None:
    config = load_hooks([parse_settings(json.dumps({"hooks": {"Stop": [entry] * 20_000}}), Layer.PROJECT, "s")])
    assert config.hooks == ()
    assert len(config.issues) <= MAX_HOOKS + 1
    assert config.issues[-1].fatal


def test_an_expression_that_can_take_for_ever_is_a_broken_entry_with_the_reason() -> None:
    group = {"matcher": "(mcp_+)+x", "hooks": [{"command": "true", "onFailure": "block"}]}
    (issue,) = load_hooks([parse_settings(json.dumps({"hooks": {"PreToolUse": [group]}}), Layer.PROJECT, "s")]).issues
    assert issue.fatal
    assert "nested repeats" in issue.message


def test_hooks_that_stay_are_not_loaded_again_when_other_settings_of_the_file_are_dropped() -> None:
    source = parse_settings('{"hooks": {"Stop": ["./x"]}, "env": {"A": "b"}}', Layer.PROJECT, "s")
    loaded = source.hooks
    kept = source.with_settings({"hooks": source.document.value["hooks"]})
    assert kept.hooks is loaded
    assert kept.document.value == {"hooks": {"Stop": ["./x"]}}
    assert load_hooks([source.with_settings({"env": {}})]) == HookConfig()
    (other,) = load_hooks([source.with_settings({"hooks": {"Stop": ["./y"]}})]).hooks
    assert other.command == "./y"


def test_the_hooks_of_one_file_get_their_groups_and_strictness_from_the_settings_they_are_merged_with() -> None:
    first = parse_settings('{"hooks": {"Stop": ["./x", "./y"]}}', Layer.USER, "a")
    second = parse_settings('{"hooks": {"Stop": ["./z", {"command": "./z", "onFailure": "block"}]}}', Layer.USER, "b")
    loose, strict = load_hooks([first, second]), load_hooks([first, second], strict=True)
    assert [hook.group for hook in loose.hooks] == [1, 2, 3, 4]
    assert [hook.on_failure for hook in loose.hooks] == ["continue", "continue", "continue", "block"]
    assert [(hook.command, hook.on_failure) for hook in strict.hooks] == [
        (name, "block") for name in ("./x", "./y", "./z")
    ]
    assert [issue.message for issue in strict.issues] == ["the same as an earlier entry (z); it runs once"]
    assert load_hooks([second]).hooks[0].group == 1


@pytest.mark.parametrize(
    "name", ["HookConfig", "SettingsSource", "hooks_in_code", "in_configuration_order", "load_hooks", "parse_settings"]
)
def test_the_module_can_be_imported_under_the_name_it_was_published_with(name: str) -> None:
    published, own = import_module("wave_agent.hooks.config"), import_module("wave_agent.settings.hook_entries")
    assert getattr(published, name) is getattr(own, name)


def test_a_field_of_hooks_has_no_effect_on_a_group_and_is_reported() -> None:
    group = {"matcher": "Bash", "timeout": 5, "hooks": [{"command": "true"}]}
    config = load_hooks([hooks_in_code({"PreToolUse": [group]})])
    assert [hook.timeout for hook in config.hooks] != [5]
    assert any('"timeout" has no effect on a group' in str(issue) for issue in config.issues)


def test_hooks_that_ask_a_model_have_timeouts_and_names_of_their_own() -> None:
    long = "Refuse  everything that touches\nthe production database, whatever the reason"
    entries = [{"type": "prompt", "prompt": "Be strict."}, {"type": "agent", "prompt": long, "timeout": 5}]
    found = load_hooks([hooks_in_code({"Stop": [{"hooks": [*entries, {"type": "agent", "prompt": "x"}]}]})])
    assert [(hook.timeout, hook.name) for hook in found.hooks] == [
        (30, "Be strict."),
        (5, "Refuse everything that touches the…"),
        (60, "x"),
    ]


@rows("event", [row.event for row in EVENT_ROWS.values() if not row.asks_models])
def test_a_hook_that_asks_a_model_is_invalid_where_its_objection_means_nothing(event: HookEvent) -> None:
    source = parse_settings(json.dumps({"hooks": {event: [{"type": "agent", "prompt": "x"}]}}), Layer.USER, "x.json")
    (issue,) = load_hooks([source]).issues
    assert issue.broken
    assert issue.message.startswith(f"agent hooks cannot run on {event}, only on UserPromptSubmit, PreToolUse, ")


def test_a_name_of_a_model_that_only_another_agent_knows_means_the_usual_one() -> None:
    entry = {"type": "prompt", "prompt": "x", "model": "haiku"}
    ours, theirs = (
        load_hooks([hooks_in_code({"Stop": [{**entry, "dialect": dialect}]})]) for dialect in ("wave", "claude")
    )
    assert [found.hooks[0].model for found in (ours, theirs)] == ["haiku", ""]
    assert [found.hooks[0].continue_on_block for found in (ours, theirs)] == [True, False]
    assert [len(found.issues) for found in (ours, theirs)] == [0, 1]
