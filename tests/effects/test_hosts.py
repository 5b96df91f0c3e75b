"""One spelling for each host."""

from tests.effects.arena import effects
from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.hosts import normal_host
from wave_agent.effects.surroundings import Surroundings
from wave_agent.rules.rule import Places, parse_rule

AROUND = Surroundings(directory="/p", project="/p")


@rows(
    ("name", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("localhos%74", "localhost"),
        ("%6c%6F%63alhost", "localhost"),
        ("\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54", "localhost"),
        ("127\u30020\uff0e0\uff611", "127.0.0.1"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("local\u00adhost", "localhost"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("0x", "0.0.0.0"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.0.0.%31", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("256.1.1.1", "256.1.1.1"),
        ("4294967296", "4294967296"),
        ("09.1.1.1", "09.1.1.1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("[fe80::1%25eth0]", "fe80::1"),
        ("[::x]", "*"),
        ("x%zz", "*"),
        ("%ff", "*"),
        ("a\\b", "*"),
        ("a..b", "*"),
        ("ü" * 70, "*"),
        ("*", "*"),
        ("", "*"),
    ],
)
def test_normal_form(name: str, expected: str) -> None:
    assert normal_host(name) == expected


@rows(
    ("line", "hosts"),
    [
        ("curl http:/localhost", ("localhost",)),
        ("curl HTTP:///localhost", ("localhost",)),
        ("curl http://localhost/@ok.example", ("localhost",)),
        ("curl http://localhost?@ok.example", ("localhost",)),
        ("curl http://me@x@localhost/", ("localhost",)),
        ("curl 'http://[::ffff:7f00:1]:80/'", ("127.0.0.1",)),
        ("curl localhost:/x", ("localhost",)),
        ("git -c url.https://evil.example/.insteadOf=gh: ls-remote gh:i", ("*", "evil.example", "gh")),
    ],
)
def test_addresses(line: str, hosts: tuple[str, ...]) -> None:
    assert effects(line, AROUND).hosts == hosts


def test_settings_that_put_another_address_in_place() -> None:
    settings = {"url.https://evil.example/.insteadof": "gh:", "url.https://x.example/.insteadof": "gh:i"}
    one = Surroundings(directory="/p", project="/p", git_settings=lambda _: dict(list(settings.items())[:1]))
    both = Surroundings(directory="/p", project="/p", git_settings=lambda _: settings)
    assert effects("git ls-remote gh:i", one).hosts == ("evil.example",)
    assert effects("git ls-remote gh:i", both).hosts == ("*", "x.example")
    assert effects("git ls-remote other:i", one).hosts == ("other",)


@rows(
    ("rule", "host", "covered"),
    [
        ("Net(localhost)", "127.0.0.1", True),
        ("Net(127.0.0.1)", "0", True),
        ("Net(::1)", "[0:0:0:0:0:0:0:1]", True),
        ("Net(localhost)", "a.localhost", True),
        ("Net(localhost)", "10.0.0.1", False),
        ("Net(bücher.example)", "xn--bcher-kva.example", True),
        ("Net(*.bücher.example)", "a.xn--bcher-kva.example", True),
        ("Net(127.0.0.1)", "2130706433", True),
    ],
)
def test_rules_know_the_same_forms(rule: str, host: str, covered: bool) -> None:
    found = effects(f"curl 'http://{host}/'", AROUND)
    assert (parse_rule(rule).touched(found, Places("/p", "/h")) is not None) is covered


def test_fetches_too() -> None:
    assert effects_of("WebFetch", {"url": "http://2130706433/"}, AROUND).hosts == ("127.0.0.1",)
    assert not effects_of("WebFetch", {"url": "http://x%zz/"}, AROUND).complete
