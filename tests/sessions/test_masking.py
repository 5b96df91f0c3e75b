"""What looks like a secret does not leave the private transcript."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.rows import rows
from wave_agent.agent.telemetry import redact
from wave_agent.recipes import load_recipe
from wave_agent.sessions.masking import mask, masked, patterns, recipe_constant, table

AWS = "AKIA" + "ABCDEFGHIJ234567"
GITHUB = "ghp_" + "a1B2" * 9
SLACK = "xoxb-" + "1234567890-abc"
API = "sk-" + "proj-" + "x9" * 16
PASSWORD = "hunter2hunter2"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/+=\nAAAA\n-----END RSA PRIVATE KEY-----"
"""Put together here, so that no scanner takes this file for a leak."""

EXAMPLES = {
    "an AWS key": AWS,
    "a GitHub token": GITHUB,
    "a Slack token": SLACK,
    "a key of an API": API,
    "a private key": KEY,
    "a password": f'password = "{PASSWORD}"',
}


def test_there_is_an_example_of_each_kind_that_the_recipe_knows() -> None:
    assert set(EXAMPLES) == set(patterns())


def test_the_two_scripts_of_the_recipe_know_the_same_kinds() -> None:
    (listed,) = re.findall(r"const SECRETS = \{\n(.*?)\n\};", load_recipe("secret-scan").scripts["node"], re.DOTALL)
    node = load_recipe("secret-scan").scripts["node"]
    in_one = re.sub(r"` \+\s+String\.raw`", "", node)
    for name in ("START", "END"):
        (edge,) = re.findall(rf"const {name} =\s+String\.raw`(.*)`;", in_one)
        assert edge == recipe_constant(name)
    in_node = re.findall(r'^  "(.*?)": /(.*)/i?,$', listed, re.MULTILINE)
    in_python = {what: pattern.removeprefix("(?i)") for what, pattern in table().items()}
    assert {what: pattern.replace("\\/", "/") for what, pattern in in_node} == {
        what: pattern.replace('\\"', '"') for what, pattern in in_python.items()
    }


@pytest.mark.parametrize("what", EXAMPLES)
def test_each_kind_is_masked_in_the_middle_of_a_text(what: str) -> None:
    found = mask(f"before {EXAMPLES[what]} after")
    assert f"[masked: {what}]" in found
    assert found.startswith("before ")
    assert found.endswith(" after")
    secret = PASSWORD if what == "a password" else EXAMPLES[what]
    assert secret not in found
    assert mask(found) == found


@rows(
    ("text", "shown"),
    [
        (f"export API_KEY='{PASSWORD}'", "export API_KEY='[masked: a password]'"),
        (f'{{"db_password": "{PASSWORD}"}}', '{"db_password": "[masked: a password]"}'),
        (f'{{"out": "password = \\"{PASSWORD}\\"!"}}', '{"out": "password = \\"[masked: a password]\\"!"}'),
        ("secret='" + "\\" * 9 + "'", "secret='[masked: a password]'"),
        (f'token: "abc-{AWS}-def"', 'token: "[masked: a password]"'),
        (f"{AWS}\n{GITHUB}", "[masked: an AWS key]\n[masked: a GitHub token]"),
        (f"{AWS}{SLACK}", f"{AWS}{SLACK}"),
        (KEY.replace("\n", "\\n"), "[masked: a private key]"),
        (KEY[:44] + ", cut", "[masked: a private key], cut"),
        ("password = '<your password>'", "password = '<your password>'"),
        ("no secret here", "no secret here"),
        ("", ""),
    ],
)
def test_only_the_secret_is_masked(text: str, shown: str) -> None:
    assert mask(text) == shown


ESCAPES = [
    "\n",
    "\t",
    "\r",
    "\b",
    "\f",
    "\v",
    "\0",
    "\x1b[31m",
    "\x1b[01;31m\x1b[K",
    "\u2028",
    "\ud800",
    '"',
    "\\",
    "/",
    "é",
    "值",
    "🔑",
]
"""What JSON writes as an escape, and letters that are no part of a key."""
WRITTEN = ["%3D", "%0a", "=3D", "\\n", "\\x0a", "\\033", "\\033[0;31m", "\\e[1m", "\\u00e9", "&nbsp;", ":", "="]
"""The same as a shell, a URL or a mail writes it."""
SECRETS = [
    AWS,
    GITHUB,
    SLACK,
    API,
    KEY,
    KEY.replace("-----END", "---"),
    KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
]


def test_a_key_is_masked_after_whatever_json_or_a_program_escapes() -> None:
    for before in (*ESCAPES, *WRITTEN):
        for secret in SECRETS:
            for after in ("", "é", "\n", '"', " x", "%20", "\x1b[0m"):
                assert_masked(f"x{before}{secret}{after}", secret)


@given(st.text(max_size=5), st.sampled_from([*ESCAPES, *WRITTEN]), st.sampled_from(SECRETS), st.text(max_size=5))
def test_a_key_is_masked_in_json_in_json(text: str, before: str, secret: str, after: str) -> None:
    assert_masked(f"{text}{before}{secret}\n{after}", secret)


def assert_masked(text: str, secret: str) -> None:
    """As text, as a value, in telemetry, and as JSON in texts, as often as it is nested."""
    pieces = [secret] if "\n" not in secret else ["MIIEow/", "AAAA"]
    for _ in range(4):
        found = f"{mask(text)}\n{masked({'text': [text]})}\n{redact(text)}\n{redact({'text': text})}"
        assert not any(piece in found for piece in pieces), repr(text)
        text = json.dumps({"a": text}, ensure_ascii=len(text) % 2 == 0)


def test_the_headers_of_a_key_that_is_cut_off_do_not_keep_its_body() -> None:
    for headers in ("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", "Version: GnuPG v2\nComment: a\n\n"):
        text = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{headers}MIIEow/+=\nAAAA"
        for _ in range(3):
            assert "MIIEow" not in mask(text)
            assert "AAAA" not in mask(text)
            text = json.dumps(text)


class Inner(Struct, frozen=True):
    text: str
    number: int = 3


class Outer(Struct, frozen=True):
    inner: tuple[Inner, ...]
    facts: dict[str, Any]
    password: str = ""


def test_every_text_of_a_value_is_masked_and_the_rest_is_as_it_was() -> None:
    value = Outer((Inner(f"x {AWS}"),), {"list": [GITHUB, 5, None, True], AWS: "key"}, password=PASSWORD)

    assert masked(value) == Outer(
        (Inner("x [masked: an AWS key]"),),
        {"list": ["[masked: a GitHub token]", 5, None, True], "[masked: an AWS key]": "key"},
        password="[masked: a password]",
    )


@pytest.mark.parametrize("key", ["password", "api_key", "apikey", "API_KEY", "db_password", "access_token", "secret"])
def test_a_value_is_judged_by_its_key(key: str) -> None:
    assert masked({key: PASSWORD}) == {key: "[masked: a password]"}
    assert masked({f"{key}_file": PASSWORD}) == {f"{key}_file": PASSWORD}
    assert masked({key: "short"}) == {key: "short"}


def test_what_is_masked_is_still_json() -> None:
    value = {"command": f'curl -H "token: \\"{API}\\"" {KEY}', "password": f'{PASSWORD}\\"'}
    found = json.loads(json.dumps(masked(value)))
    assert API not in json.dumps(found)
    assert set(found) == set(value)
