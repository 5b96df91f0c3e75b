"""The paths and hosts that the arguments of an unknown tool name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.strategies import texts, values
from wave_agent.effects.argument_hosts import hosts_in
from wave_agent.effects.argument_texts import texts_in
from wave_agent.effects.arguments import argument_effects, named_paths
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.rules.rule import Places, parse_rule

HERE = Surroundings(directory="/p/sub", project="/p", variables={"HOME": "/home/me"})
PLACES = Places("/p", "/home/me", "/p/sub")


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "/p/.env"},
        {"path": ".env"},
        {"path": "./.env"},
        {"path": "../.env"},
        {"path": "x/../.env"},
        {"path": "//p/.env"},
        {"q": {"deep": [{"er": ".env"}]}},
        {"files": {".env": "x"}},
        {"uri": "file:///p/.env"},
        {"uri": "FILE:/p/.env"},
        {"uri": "file://localhost/p/%2Eenv"},
        {"uri": "file:///p/%2eenv#x"},
        {"path": "%2Eenv"},
        {"rev": "HEAD:.env"},
        {"rev": "HEAD~2:../.env"},
        {"at": ".env:12"},
        {"at": "/p/.env:12:3"},
        {"arg": "--config=.env"},
        {"arg": "-F.env"},
        {"arg": "@.env"},
        {"arg": "'.env'"},
        {"args": "add a.py .env"},
        {"args": "a.py,.env"},
        {"args": "a.py\n.env\n"},
        {"args": '["a.py", ".env"]'},
        {"line": "cat < .env"},
        {"spec": ":(top).env"},
        {"repo_path": "/p", "files": [".env"]},
        {"repo_path": "/p/other", "file": ".env"},
        {"directory": "other", "file": "deeper/.env"},
        {"files": "x " * 2000 + "see .env"},
    ],
)
def test_a_rule_about_a_file_holds_however_an_argument_names_it(tool_input: dict[str, Any]) -> None:
    effects = effects_of("mcp__any__tool", tool_input, HERE)
    assert not effects.complete
    for rule in ("Read(.env)", "Edit(.env)", "Write(.env)"):
        assert parse_rule(rule).touched(effects, PLACES), rule


@pytest.mark.parametrize("path", ["~/.ssh/id", "$HOME/.ssh/id", "${HOME}/.ssh/id", "/home/me/.ssh/id"])
def test_home_is_found(path: str) -> None:
    assert parse_rule("Read(~/.ssh/**)").touched(argument_effects({"x": path}, HERE), PLACES)


def test_the_roots_of_a_server_are_where_relative_paths_may_start() -> None:
    effects = argument_effects({"path": "id_rsa"}, HERE, ("~/.ssh", "/srv"))
    assert parse_rule("Read(~/.ssh/**)").touched(effects, PLACES)
    assert parse_rule("Read(//srv/id_rsa)").touched(effects, PLACES)


def test_the_names_of_fields_are_no_paths() -> None:
    assert [*named_paths({"env": "x"}, ("/p",), "", lambda _: None).paths] == ["/p/x"]


@pytest.mark.parametrize("text", ["https://example.com/.env", "src/env.py", ".environment", "envelope"])
def test_other_names_do_not_match(text: str) -> None:
    assert parse_rule("Read(.env)").touched(argument_effects({"x": text}, HERE), PLACES) is None


@pytest.mark.parametrize(
    ("tool_input", "host"),
    [
        ({"url": "https://example.com/x"}, "example.com"),
        ({"url": "HTTPS://User:Pw@EXAMPLE.com.:8443?q"}, "example.com"),
        ({"x": {"y": ["see https://example.com, please"]}}, "example.com"),
        ({"x": "//example.com/x"}, "example.com"),
        ({"x": "https:\\\\example.com\\x"}, "example.com"),
        ({"x": "https%3A%2F%2Fexample.com%2Fx"}, "example.com"),
        ({"x": "https://ex%61mple.com/"}, "example.com"),
        ({"x": "https://bücher.example/"}, "xn--bcher-kva.example"),
        ({"x": "example.com:443"}, "example.com"),
        ({"x": "git@example.com:org/repo.git"}, "example.com"),
        ({"x": "http://[::1]:80/"}, "::1"),
        ({"x": "10.0.0.1"}, "10.0.0.1"),
        ({"x": "http://0x7f000001/"}, "127.0.0.1"),
        ({"host": "Example.com"}, "example.com"),
        ({"base_url": "example.com/path"}, "example.com"),
        ({"x": '{"link": "https://example.com"}'}, "example.com"),
    ],
)
def test_hosts_are_found_in_any_spelling(tool_input: dict[str, Any], host: str) -> None:
    assert host in hosts_in(texts_in(tool_input))


@pytest.mark.parametrize("text", ["README.md", "a/b.py", "print(x)", "1.5", "12:30:00"])
def test_names_and_numbers_are_no_hosts(text: str) -> None:
    assert hosts_in(texts_in({"x": text})) == ()


@pytest.mark.parametrize(
    "text",
    [
        *(sign * 100_000 for sign in ("a", "/", ":", "@", "%25", "\\", ".", "{a,b}", "*", "../", "//a")),
        *(sign * 250 for sign in ("{", "[", "!(", "*a", "{a,b}", "{{a,b},", "[!", "`")),
        "http://" + "a" * 5000,
        "see " + "/x" * 5000,
        "[" * 60_000,
        "cat " + "$(( " * 400,
        " ".join(f"a{number}/b" for number in range(20_000)),
    ],
    ids=range(24),
)
def test_effects_are_bounded(text: str) -> None:
    effects = argument_effects({"x": [text, text], "again": text, "dir": "a"}, HERE, ["/srv"])
    assert len(effects.writes) < 60_000


strange = texts | st.text("/.~%:@=-\\\"' ,\n[]{}()!?#$HOMEfileht*pu02", max_size=40)


@given(st.dictionaries(strange, values | strange | st.lists(strange, max_size=4), max_size=4), st.lists(strange))
def test_any_input_has_effects(tool_input: dict[str, Any], bases: list[str]) -> None:
    effects = argument_effects(tool_input, HERE, bases)
    assert not effects.complete
    assert all(path.startswith("/") for path in effects.reads)
