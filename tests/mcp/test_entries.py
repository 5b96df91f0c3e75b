"""One entry of `mcpServers`: what it says, and what is wrong with it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.definitions import plain_name
from wave_agent.mcp.entries import RawEntry, ReadEntry, expand, name_key, name_problem, read_entry
from wave_agent.mcp.values import OAuth, ServerEntry, ServerTransport
from wave_agent.system.credentials import AGENT_KEYS

ENVIRONMENT = {
    "TOKEN": "secret",
    "EMPTY": "",
    "NESTED": "${TOKEN}",
    "WAVE_PARENT": "limits",
    "WAVE_BASE_URL": "https://user:pass@models.example/v1",
    **dict.fromkeys(AGENT_KEYS, "the agent's own key"),
}


def read(value: Any, *, name: str = "srv", layer: Layer = Layer.USER) -> ReadEntry:
    raw = RawEntry(name=name, value=value, layer=layer, source="f.json", path=("mcpServers", name), line=3)
    return read_entry(raw, ENVIRONMENT)


@rows(
    ("value", "entry"),
    [
        ({"command": "x"}, ServerEntry(transport=ServerTransport.STDIO, command="x")),
        (
            {"type": "stdio", "command": "${TOKEN}", "args": ["${NOPE:-a}", "b${TOKEN}"], "env": {"A": "${EMPTY:-d}"}},
            ServerEntry(transport=ServerTransport.STDIO, command="secret", args=("a", "bsecret"), env={"A": "d"}),
        ),
        (
            {"type": "streamable-http", "url": "https://x.example/${TOKEN}", "headers": {"A": "Bearer ${TOKEN}"}},
            ServerEntry(transport=ServerTransport.HTTP, url="https://x.example/secret", headers={"A": "Bearer secret"}),
        ),
        (
            {"type": "sse", "url": "http://127.0.0.1:1/", "headersHelper": "echo ${TOKEN}", "timeout": 1500,
             "alwaysLoad": True,
             "oauth": {"clientId": "c", "clientSecret": "${TOKEN}", "callbackPort": 80, "scopes": ["a", "b"]}},
            ServerEntry(transport=ServerTransport.SSE, url="http://127.0.0.1:1/", headers_helper="echo ${TOKEN}",
                        timeout=1.5,
                        always_load=True,
                        oauth=OAuth(client_id="c", client_secret="secret", callback_port=80, scopes="a b")),
        ),
        ({"command": "x", "//": "a comment"}, ServerEntry(transport=ServerTransport.STDIO, command="x")),
    ],
)  # fmt: skip
def test_an_entry_says(value: dict[str, Any], entry: ServerEntry) -> None:
    assert read(value) == ReadEntry(entry=entry, variables=read(value).variables)


@rows(
    ("value", "message"),
    [
        ({"url": "https://x.example"}, '"type": "http"'),
        ({"url": "https://x.example", "command": "x"}, '"type": "http"'),
        ({"type": "ws", "url": "wss://x.example"}, "WebSocket servers are not supported"),
        ({"type": "htp", "url": "https://x.example"}, 'did you mean "http"?'),
        ({"type": "http"}, 'has no "url"'),
        ({}, 'has no "command"'),
        ({"command": ""}, 'has no "command"'),
        ({"command": ["x"]}, "must be a string, not a list"),
        ({"command": "x", "args": "y"}, "must be a list of strings"),
        ({"command": "x", "args": [1]}, "args[0]: must be a string, not a number"),
        ({"command": "x", "env": {"A": 1}}, "env.A: must be a string"),
        ({"command": "x", "env": {"A=B": "1"}}, "is not the name of a variable"),
        ({"command": "x\0"}, "NUL"),
        ({"command": "x", "timeout": "5"}, "must be a number of milliseconds"),
        ({"command": "x", "alwaysLoad": 1}, "must be true or false"),
        ({"type": "http", "url": "ftp://x"}, "is not a URL"),
        ({"type": "http", "url": "https://a.example\\.b.example/"}, "is not a URL"),
        ({"type": "http", "url": "https://x", "headers": {"A": "a\r\nB: c"}}, "line break"),
        ({"type": "http", "url": "https://x", "headers": {"A b": "c"}}, "is not the name of a header"),
        ({"type": "http", "url": "https://x", "oauth": {"callbackPort": True}}, "must be a port number"),
        ("x", "must be an object, not a string"),
    ],
)
def test_an_invalid_entry_is_reported_with_its_place(value: Any, message: str) -> None:
    found = read(value)
    assert found.entry is None
    assert [str(one) for one in found.issues if one.broken and str(one).startswith("f.json:3: mcpServers.srv")]
    assert message in str(found.issues[0])


@rows(
    ("value", "message"),
    [
        ({"command": "x", "timeout": 30}, "30 is ignored: it is in milliseconds"),
        ({"command": "x", "cmd": 1}, 'unknown key "cmd"'),
        ({"command": "x", "comand": 1}, 'did you mean "command"?'),
        ({"type": "stdio", "command": "x", "url": "https://x"}, '"url" has no meaning for a stdio server'),
        ({"command": "${NOPE}"}, "${NOPE} is not set, and stays as it is written"),
    ],
)
def test_an_entry_with_a_warning_still_works(value: Any, message: str) -> None:
    found = read(value)
    assert found.entry is not None
    assert [one.broken for one in found.issues] == [False] * len(found.issues)
    assert any(message in str(one) for one in found.issues)


def test_an_entry_can_be_disabled() -> None:
    found = read({"command": "x", "disabled": True})
    assert (found.entry, found.disabled, found.issues) == (None, True, ())


def test_no_project_gets_the_agents_own_credentials() -> None:
    for name in (*AGENT_KEYS, "WAVE_PARENT"):
        value = {
            "type": "http",
            "url": "https://x.example/",
            "headers": {"A": f"${{{name}}}", "B": f"${{{name}:-none}}"},
        }
        for layer in (Layer.PROJECT, Layer.LOCAL):
            found = read(value, layer=layer)
            assert found.entry is not None
            assert found.entry.headers == {"A": f"${{{name}}}", "B": "none"}
            assert found.variables == (name,)
            assert any("the agent's own keys" in str(one) for one in found.issues)
        own = read(value, layer=Layer.USER).entry
        assert own is not None
        assert own.headers["A"] == ENVIRONMENT[name]
    url = read({"command": "x", "args": ["${WAVE_BASE_URL}"]}, layer=Layer.PROJECT).entry
    assert url is not None
    assert url.args == ("https://models.example/v1",)


def test_a_value_is_not_expanded_again_and_not_shown() -> None:
    found = read({"command": "x", "args": ["${NESTED}", "${A:-${TOKEN}}", "$TOKEN", "${TOKEN"]})
    assert found.entry is not None
    assert found.entry.args == ("${TOKEN}", "${TOKEN}", "$TOKEN", "${TOKEN")
    broken = read({"type": "http", "url": "${TOKEN}"})
    assert broken.entry is None
    assert "secret" not in str(broken.issues)


NAMES = st.text(st.sampled_from("aA1_-. é"), max_size=60)


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_server_can_take_another_ones_place_before_its_tools(one: str, tool: str, other: str, another: str) -> None:
    if name_problem(one) or name_problem(other) or name_key(one) == name_key(other) or not tool or not another:
        return
    assert plain_name(one, tool).casefold() != plain_name(other, another).casefold()
    assert not plain_name(one, tool).casefold().startswith(plain_name(other, "").casefold())


@rows(
    ("name", "is_good"),
    [
        ("github", True), ("my-server_2", True), ("A" * 48, True), ("A" * 49, False), ("", False), ("a__b", False),
        ("_a", False), ("a_", False), ("a b", False), ("a.b", False), ("é", False), ("a\n", False), ("\u0430", False),
    ],
)  # fmt: skip
def test_names(name: str, is_good: bool) -> None:
    assert (name_problem(name) is None) is is_good


TEXTS = st.text(st.sampled_from("${}:-AB_ x"), max_size=40)


@given(TEXTS, st.dictionaries(st.sampled_from(["A", "B", "AB", "_"]), TEXTS))
def test_expansion_never_fails_and_is_one_pass(text: str, values: dict[str, str]) -> None:
    found = expand(text, values.get)
    assert set(found.unset) <= set(found.used)
    assert not set(found.unset) & values.keys()
    if not found.used:
        assert found.text == text
    blank = expand(text, dict.fromkeys(found.used, "").get)  # nothing of a value is taken for a variable
    marked = expand(text, dict.fromkeys(found.used, "${A}").get)
    assert blank.used == marked.used == found.used


@given(
    st.dictionaries(
        st.sampled_from(["type", "command", "args", "env", "url", "headers", "oauth", "timeout", "alwaysLoad", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_reading_never_raises(value: dict[str, Any]) -> None:
    found = read(value, layer=Layer.PROJECT)
    assert found.entry is not None or any(one.broken for one in found.issues)
