"""Rules about pages: `WebFetch(domain:…)` and `Net(…)`, for calls to WebFetch."""

import pytest

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.semantics import merge
from wave_agent.permissions.decision import JudgedCall, PermissionMode, Rules, ToolKind, decide, suggestions
from wave_agent.permissions.hosts import allowed_hosts
from wave_agent.rules.pages import page_rules
from wave_agent.rules.rule import Places, Purpose, RuleError, parse_rule

PLACES = Places("/srv/project", "/home/me")


@rows(
    ("rule", "url", "permits", "restricts"),
    [
        ("WebFetch", "https://a.example/", True, True),
        ("WebFetch(*)", "https://a.example/", True, True),
        ("WebFetch(domain:*)", "https://a.example/", True, True),
        ("WebFetch(domain:a.example)", "https://a.example/x?y", True, True),
        ("WebFetch(domain:A.Example.)", "http://a.EXAMPLE.:8080/", True, True),
        ("WebFetch(a.example)", "https://a.example/", True, True),
        ("webfetch(domain: a.example)", "https://a.example/", True, True),
        ("WebFetch(domain:a.example)", "https://b.a.example/", False, False),
        ("WebFetch(domain:*.a.example)", "https://b.a.example/", True, True),
        ("WebFetch(domain:*.a.example)", "https://a.example/", False, False),
        ("WebFetch(domain:a.example)", "https://a.example.evil.org/", False, False),
        ("WebFetch(domain:a.example)", "https://evil.org/a.example", False, False),
        ("WebFetch(domain:a.example)", "https://evil.org/?@a.example", False, False),
        ("WebFetch(domain:a.example)", "https://a.example@evil.org/", False, False),
        ("WebFetch(domain:a.example)", "https://evil.org#@a.example", False, False),
        # A host that cannot be told is restricted by every rule, and permitted by none.
        ("WebFetch(domain:a.example)", "https://a.example\\@evil.org/", False, True),
        ("WebFetch(domain:a.example)", "https://evil.org\\.a.example/", False, True),
        ("WebFetch(domain:a.example)", "no url", False, True),
        ("WebFetch(domain:a.example)", None, False, True),
        # Only a restriction means every name of this machine.
        ("WebFetch(domain:localhost)", "http://127.0.0.1/", False, True),
        ("WebFetch(domain:127.0.0.1)", "http://2130706433/", True, True),
        ("WebFetch(domain:[::1])", "http://[0:0::1]/", True, True),
        ("WebFetch(domain:bücher.example)", "https://xn--bcher-kva.example/", True, True),
        ("Net(a.example)", "https://a.example/", True, None),
        ("Net(*.a.example)", "https://b.a.example/", True, None),
        ("Net(*.a.example)", "https://a.example/", False, None),
        ("Net(*)", "https://a.example/", True, None),
        ("Net", "no url", False, None),
        ("Net(localhost)", "http://127.0.0.1/", False, None),
        ("Bash", "https://a.example/", False, False),
    ],
)  # fmt: skip
def test_a_rule_means_the_hosts_it_names(rule: str, url: object, permits: bool, restricts: bool | None) -> None:
    parsed, given = parse_rule(rule), {"url": url}
    assert parsed.matches("WebFetch", given, PLACES, Purpose.PERMIT) is permits
    if restricts is not None:
        assert parsed.matches("WebFetch", given, PLACES) is restricts
    assert not parsed.matches("Bash", {"command": f"curl {url}"}, PLACES, Purpose.PERMIT) or rule == "Bash"


@rows("rule", ["WebFetch(https://a.example)", "WebFetch(domain:)", "WebFetch(a.example:80)", "WebFetch(a b)"])
def test_a_pattern_of_webfetch_is_a_host(rule: str) -> None:
    with pytest.raises(RuleError, match=r"without scheme, port and path: WebFetch\(example.com\)"):
        parse_rule(rule)


def judged(url: str, mode: PermissionMode, **rules: str) -> str:
    around = Surroundings(project="/srv/project", directory="/srv/project", variables={})
    call = JudgedCall(
        tool="WebFetch",
        tool_input={"url": url},
        kind=ToolKind.FETCHES,
        effects=effects_of("WebFetch", {"url": url}, around),
    )
    given = Rules(**{name: tuple(map(parse_rule, text.split())) for name, text in rules.items()})
    return decide(call, mode, given, merge(HookEvent.PRE_TOOL_USE, []), PLACES).answer.value


@rows(
    ("url", "mode", "rules", "answer"),
    [
        ("https://a.example/", "default", {}, "ask"),
        ("https://a.example/", "acceptEdits", {}, "ask"),
        ("https://a.example/", "plan", {}, "ask"),
        ("https://a.example/", "dontAsk", {}, "deny"),
        ("https://a.example/", "bypassPermissions", {}, "allow"),
        ("https://a.example/", "plan", {"allow": "Net(a.example)"}, "allow"),
        ("https://a.example/", "dontAsk", {"allow": "WebFetch(domain:a.example)"}, "allow"),
        ("https://b.example/", "dontAsk", {"allow": "WebFetch(domain:a.example)"}, "deny"),
        ("https://a.example/", "bypassPermissions", {"deny": "Net(a.example)"}, "deny"),
        ("https://a.example/", "bypassPermissions", {"deny": "WebFetch(domain:a.example)"}, "deny"),
        ("https://a.example/", "bypassPermissions", {"ask": "Net(*.example)"}, "ask"),
        ("https://a.example/", "default", {"deny": "Net(*)", "allow": "Net(a.example)"}, "deny"),
        ("https://a.example/", "default", {"deny": "Net(b.example)", "allow": "Net"}, "allow"),
        ("http://LOCALHOST:1/", "bypassPermissions", {"deny": "Net(127.0.0.1)"}, "deny"),
        # Other agents may make something of such a URL; here it is refused anyway.
        ("https://x\\@a.example/", "default", {"deny": "Net(a.example)", "allow": "WebFetch"}, "ask"),
    ],
)  # fmt: skip
def test_modes_and_rules_decide_together(url: str, mode: str, rules: dict[str, str], answer: str) -> None:
    assert judged(url, PermissionMode(mode), **rules) == answer


def test_the_narrowest_rule_is_offered_first() -> None:
    def offered(url: str) -> tuple[str, ...]:
        call = JudgedCall(tool="WebFetch", tool_input={"url": url}, kind=ToolKind.FETCHES)
        return suggestions(call, PLACES)

    assert offered("https://Docs.Example/x") == ("WebFetch(domain:docs.example)", "WebFetch")
    assert offered("http://[::1]/x") == ("Net(::1)", "WebFetch")
    assert offered("nonsense") == ("WebFetch",)


def test_allow_rules_that_name_hosts_open_the_sandbox_for_them() -> None:
    rules = tuple(map(parse_rule, ["Net(a.example)", "Net(*.b.example)", "Net(::1)", "Net", "WebFetch(c.example)"]))
    assert allowed_hosts(rules) == ("a.example", "*.b.example", "[::1]")


@rows(
    ("url", "offered"),
    [
        ("https://docs.example/a", ("WebFetch(domain:docs.example)",)),
        ("https://93.184.216.34/", ("WebFetch(domain:93.184.216.34)",)),
        ("http://127.0.0.1:8000/", ("Net(127.0.0.1)",)),
        ("http://localhost:8000/", ("Net(localhost)",)),
        ("http://app.localhost/", ("Net(app.localhost)",)),
        ("http://192.168.1.1/", ("Net(192.168.1.1)",)),
        (5, ()),
    ],
)
def test_the_rules_that_are_offered_would_permit_the_page(url: object, offered: tuple[str, ...]) -> None:
    assert page_rules(url) == offered
