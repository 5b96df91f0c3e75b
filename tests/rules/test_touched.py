"""Permission rules: which effects they restrict, whatever tool has them."""

import pytest

from tests.rows import rows
from wave_agent.effects.values import Effects
from wave_agent.rules.rule import Places, Purpose, RuleError, below, parse_rule
from wave_agent.rules.touched import an_instance, literal

PLACES = Places("/srv/project", "/home/me")
EDITING = ["Edit", "Write", "MultiEdit", "NotebookEdit"]


def restricts(rule: str, effects: Effects | None, tool: str = "Bash") -> bool:
    """Whether a call with these effects is denied, or asked about, because of the rule."""
    parsed = parse_rule(rule)
    if parsed.matches(tool, {"command": "x"}, PLACES) or parsed.touched(effects, PLACES) is not None:
        return True
    return effects is not None and parsed.may_mean(effects.hosts)


@rows(
    ("rule", "path", "expected"),
    [
        ("Read(.env)", "/srv/project/.env", True),
        ("Read(.env)", "/srv/project/a/b/.env", True),
        ("Read(.env)", "/srv/project/.env/x", True),
        ("Read(.env)", "/srv/project/.env.example", False),
        ("Read(.env)", "/srv/other/.env", False),
        ("Read(src/**)", "/srv/project/src/a", True),
        ("Read(src/**)", "/srv/project/src/*", True),
        ("Read(src/**)", "/srv/project/src/a/*.py", True),
        ("Read(src/**)", "/srv/project/**", False),
        ("Read(*.env)", "/srv/project/**/*.env", True),
        ("Read(*.env)", "/srv/project/*", False),
        ("Read(a[*]b)", "/srv/project/a[*]b", True),
        ("Read(a[*]b)", "/srv/project/axb", False),
        ("Read(~/.ssh/**)", "/home/me/.ssh/id", True),
        ("Read(//etc/shadow)", "/etc/shadow", True),
        ("Read(.env)", "/srv/project/.en[v]", True),
        ("Edit(.env)", "/srv/project/.env", False),
        ("Glob(.env)", "/srv/project/.env", False),
        ("Read", "/srv/project/.env", False),
        ("Net(*)", "/srv/project/.env", False),
    ],
)
def test_a_read_rule_restricts_whatever_reads_the_path(rule: str, path: str, expected: bool) -> None:
    assert restricts(rule, Effects(reads=(path,))) is expected
    assert not restricts(rule, Effects(runs=(("cat", path),)))


@rows("tool", EDITING)
@rows("effects", [Effects(writes=("/srv/project/vendor/x",)), Effects(deletes=("/srv/project/vendor/**",))])
def test_a_rule_for_an_editing_tool_restricts_whatever_writes_or_deletes_the_path(tool: str, effects: Effects) -> None:
    assert restricts(f"{tool}(vendor/**)", effects)
    assert restricts(f"{tool}(vendor/**)", effects, "Write")
    assert not restricts(f"{tool}(vendor/**)", Effects(reads=("/srv/project/vendor/x",)))
    assert not restricts(f"{tool}(lib/**)", effects)
    assert not restricts(tool, effects)


@rows(
    ("rule", "host", "expected"),
    [
        ("Net(example.com)", "example.com", True),
        ("Net(Example.com.)", "example.com", True),
        ("Net(example.com)", "www.example.com", False),
        ("Net(*.example.com)", "www.example.com", True),
        ("Net(*.example.com)", "a.b.example.com", True),
        ("Net(*.example.com)", "example.com", False),
        ("Net(*.example.com)", "badexample.com", False),
        ("Net(*)", "example.com", True),
        ("Net", "example.com", True),
        ("Net(example.com)", "*", True),
        ("Net([::1])", "::1", True),
        ("Net(localhost)", "localhost", True),
        ("Read(example.com)", "example.com", False),
    ],
)
def test_a_net_rule_restricts_whatever_reaches_the_host(rule: str, host: str, expected: bool) -> None:
    assert restricts(rule, Effects(hosts=(host,))) is expected
    assert restricts(rule, Effects(hosts=("other.test", host))) is (expected or rule in ("Net", "Net(*)"))
    assert not restricts(rule, Effects())


@rows(
    "rule",
    ["Net()", "Net(https://example.com)", "Net(example.com:443)", "Net(example.com/x)", "Net(a*.com)", "Net(a b)"],
)
def test_a_net_rule_is_a_host(rule: str) -> None:
    with pytest.raises(RuleError, match="without scheme, port and path"):
        parse_rule(rule)


@rows("rule", ["Net", "Net(*)", "net(example.com)"])
def test_a_net_rule_allows_no_command(rule: str) -> None:
    assert not parse_rule(rule).matches("Bash", {"command": "curl example.com"}, PLACES, Purpose.PERMIT)
    assert parse_rule(rule).matches("WebFetch", {"url": "https://example.com/x"}, PLACES, Purpose.PERMIT)


def test_a_tool_that_someone_called_net_falls_under_every_net_rule() -> None:
    rule = parse_rule("Net(example.com)")
    assert rule.matches("Net", {}, PLACES)
    assert not rule.matches("Net", {}, PLACES, Purpose.PERMIT)
    assert not parse_rule("Net").matches("Net", {}, PLACES, Purpose.PERMIT)


def test_without_effects_only_the_tool_and_its_input_decide() -> None:
    assert not restricts("Read(.env)", None)
    assert not restricts("Net(*)", None)
    assert restricts("Bash(x)", None)
    assert restricts("Bash(x)", Effects())


def test_a_rule_of_a_subdirectory_is_about_both_places() -> None:
    rule = below(parse_rule("Edit(vendor/**)"), "packages/one")
    for place in ("vendor", "packages/one/vendor"):
        assert rule.touched(Effects(writes=(f"/srv/project/{place}/x",)), PLACES) is not None
    assert rule.touched(Effects(writes=("/srv/project/packages/two/vendor/x",)), PLACES) is None


@rows(
    ("rule", "effects", "expected"),
    [
        ("Read(.env)", Effects(reads=("/srv/project/a", "/srv/project/.env")), "read .env"),
        ("Edit(a)", Effects(writes=("/srv/project/x/a",)), "write x/a"),
        ("Write(x)", Effects(deletes=("/srv/project/x/**",)), "delete x/**"),
        ("Read(//etc/*)", Effects(reads=("/etc/a[*]",)), "read /etc/a*"),
        ("Net(*)", Effects(hosts=("example.com",)), "reach example.com"),
        ("Net(*)", Effects(hosts=("*",)), "reach a host that is not known"),
        ("Net(*)", Effects(), None),
        ("Bash(cat:*)", Effects(reads=("/srv/project/.env",)), None),
    ],
)
def test_a_rule_says_which_effect_it_is_about(rule: str, effects: Effects, expected: str | None) -> None:
    assert parse_rule(rule).touched(effects, PLACES) == expected


@rows(
    ("pattern", "path"),
    [("/a/b", "/a/b"), ("/a[*]/[?][[]x", "/a*/?[x"), ("/a/*", None), ("/a/**", None), ("/a?", None), ("/[ab]", None)],
)
def test_a_pattern_with_nothing_but_quotes_is_one_path(pattern: str, path: str | None) -> None:
    assert literal(pattern) == path


def test_an_instance_of_a_pattern_has_no_name_that_a_rule_could_mean() -> None:
    assert an_instance("/a/**/[!x]?*.py") == "/a/\ue000/\ue000\ue000\ue000.py"
    assert an_instance("/[ab]") == "/a"
