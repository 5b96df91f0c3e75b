"""The URL of a page: whoever judges it and whoever requests it see the same host."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.effects.page_urls import PageUrlError, page_host, parse_page_url


@rows(
    ("text", "usual"),
    [
        ("https://example.com", "https://example.com/"),
        (" HTTPS://Example.COM:443/a b ".replace(" b", "%20b"), "https://example.com/a%20b"),
        ("http://example.com:8080?q=ü#x", "http://example.com:8080/?q=%C3%BC"),
        ("https://example.com/{a}|[b]", "https://example.com/%7Ba%7D%7C[b]"),
        ("https://user@example.com/", "https://example.com/"),
        ("https://example.com:/x", "https://example.com/x"),
        ("http://[::FFFF:1.2.3.4]/", "http://1.2.3.4/"),
    ],
)
def test_a_url_has_one_usual_form(text: str, usual: str) -> None:
    parsed = parse_page_url(text)
    assert parsed.text == usual
    assert parse_page_url(usual).text == usual


@given(st.text(alphabet="htps:/@\\[]#?.%1a \t\u3002\uff0e\u2100é-", max_size=40).map("https://".__add__))
def test_the_host_is_the_one_that_is_in_the_usual_form(text: str) -> None:
    try:
        parsed = parse_page_url(text)
    except PageUrlError:
        assert page_host(text) == "*"
        return
    assert page_host(text) == parsed.host
    assert urlsplit(parsed.text).hostname == parsed.host
    assert parsed.text.isascii()
    assert parsed.text.isprintable()


def test_what_is_not_text_has_no_host() -> None:
    assert page_host(5) == "*"
    with pytest.raises(PageUrlError, match="not a URL"):
        parse_page_url("mailto:a@b")
