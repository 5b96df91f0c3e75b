"""HTML as readable text: what a reader sees, in time proportional to the length of the page."""

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.html_text import readable_page
from wave_agent.formats.html_tokens import HtmlTag, html_tokens

HERE = "https://a.example/docs/page"


@rows(
    ("html", "text"),
    [
        ("plain &amp; simple", "plain & simple"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("a\n  <b>b</b>\tc", "a b c"),
        ("<h2>Head</h2>text", "## Head\n\ntext"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<ul><li>a<li>b<ol><li>c</li><li>d</ol></ul>e", "- a\n- b\n  1. c\n  2. d\n\ne"),
        ("<li>alone", "- alone"),
        ("</ul></ol></li></pre></blockquote></a></tr>x", "x"),
        ("<blockquote>q<p>r</blockquote>s", "> q\n\n> r\n\ns"),
        ("<pre>  a &lt;\n   b</pre>c", "```\n  a <\n   b\n```\n\nc"),
        ("<pre>a<pre>b<br>c</pre></pre>d", "```\nab\nc\n```\n\nd"),
        ("<pre>open", "```\nopen\n```"),
        ("use <code>x  y</code> now", "use `x y` now"),
        ("<pre><code>a</code></pre>", "```\na\n```"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "| a | b |"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</tr></table>", "| a | b\n| --- | --- |\n| 1 | 2 |"),
        ("<a href='/x'>up</a>", "[up](https://a.example/x)"),
        ("<a href=sub>down </a>.", "[down](https://a.example/docs/sub)."),
        ("<a href='x'><p>card</p></a>tail", "[card](https://a.example/docs/x)tail"),
        ("<a href='x'>one<a href='y'>two", "[one](https://a.example/docs/x)[two](https://a.example/docs/y)"),
        ("<a href='x'></a>rest", "rest"),
        ("<a href='#top'>top</a> <a href='javascript:x()'>js</a>", "top js"),
        ("<a href='http://['>bad</a> <a>none</a>", "bad none"),
        ("<a href='x y(1)'>odd</a>", "[odd](https://a.example/docs/x%20y%281%29)"),
        (f"<a href='{'x' * 3000}'>long</a>", "long"),
        ("<base href='/other/'><a href=x>b</a>", "[b](https://a.example/other/x)"),
        ("<head><base href='/other/'></head><body><a href=x>b</a>", "[b](https://a.example/other/x)"),
        ("<head><title>t</title><body>left open", "left open"),
        ("<img src=x alt='a  cat'><img src=y>", "[image: a cat]"),
        ("<script>if (a</b/.test(c)) '</p>'</script>x<style>p{}</style>", "x"),
        ("<script>never closed <p>x", ""),
        ("<svg><text>no</text><svg/><svg></svg></svg>yes", "yes"),
        ("<svg/>yes", "yes"),
        ("<noscript>enable</noscript><textarea>typed</textarea>", "typed"),
        ("a<!-- no <p> -->b<!-->c<!doctype x>d<?php ?>e</ >f", "abcdef"),
        ("a<!-- open", "a"),
        ("a<p open", "a"),
        ("a</p open", "a"),
        ("a<p title='open", "a"),
        ("1 < 2 <3 <", "1 < 2 <3 <"),
        ("<p title=it's>x</p>", "x"),
        ("<P CLASS=\"a>b\" =x / y = 'z'>x", "x"),
        ("&#99999999999999999999;&#x41;&bogus;&", "\ufffdA&bogus;&"),
        ("", ""),
    ],
)  # fmt: skip
def test_html_is_shown_as_a_reader_sees_it(html: str, text: str) -> None:
    assert readable_page(html, HERE).text == text


def test_the_title_is_apart_and_the_first_one() -> None:
    page = readable_page("<title> A\n&lt;b&gt; </title><svg><title>not this</title></svg><title>nor this</title>x")
    assert (page.title, page.text) == ("A <b>", "x")


@given(st.lists(st.sampled_from([
    "<", ">", "</", "/>", "<!--", "-->", "<a href='x'>", "</a>", "<ul><li>", "<pre>", "</pre>", "<td>", "<tr>", "</tr>",
    "<svg>", "</svg>", "<script>", "</script>", "&#", "&amp", "'", '"', "=", " ", "\n", "x", "<blockquote>", "<head>",
    "<body>", "<title>", "<br>", "<code>", "<base href=//b/>", "é", "\0",
]), max_size=60).map("".join))  # fmt: skip
def test_no_page_is_an_error(html: str) -> None:
    page = readable_page(html, HERE)
    assert len(page.text) <= 60 * len(html)
    assert "<script>" not in page.text


@rows("piece", ["<a ", "<!--", "<a b='", "</a ", "<div>", "<a href=x>", "<title>", "<ul><li>", "<pre>", "<td>x", "<"])
def test_hostile_nesting_takes_time_in_proportion(piece: str) -> None:
    """It takes some hundredths of a second; `html.parser` would need minutes for some of these."""
    started = process_time()
    readable_page(piece * (30_000 // len(piece)), HERE)
    assert process_time() - started < 10


def test_a_page_that_is_too_long_is_cut() -> None:
    page = readable_page(f"<p>{'word ' * 210_000}<p>end")
    assert not page.is_whole
    assert len(page.text) < 1_100_000


def test_tokens_are_texts_and_tags() -> None:
    assert list(html_tokens("a<b c=1 c=2>d</B x>")) == ["a", HtmlTag("b", {"c": "1"}), "d", HtmlTag("b", closes=True)]
