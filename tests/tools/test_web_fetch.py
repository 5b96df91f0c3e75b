"""WebFetch's promises: which pages are reached, at which addresses, and what the model gets of them."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from tests.tools.page_server import page, redirect, serving_pages
from wave_agent.permissions.decision import Rules
from wave_agent.rules.rule import parse_rule
from wave_agent.tools.base import ToolContext, ToolInputError, ToolResult
from wave_agent.tools.pages import LARGEST, FetchError, PageFetcher
from wave_agent.tools.web_fetch import WebFetch

LOCAL = ("Net(127.0.0.1)",)


def rules(allow: Sequence[str] = LOCAL, deny: Sequence[str] = (), ask: Sequence[str] = ()) -> Rules:
    return Rules(
        **{name: tuple(map(parse_rule, texts)) for name, texts in (("allow", allow), ("deny", deny), ("ask", ask))}
    )


def context(given: Rules, **environment: str) -> ToolContext:
    return ToolContext(project_dir=Path("/"), environment=environment, outputs=Path("/nowhere"), rules=lambda: given)


def named(**addresses: str | Sequence[str]) -> Any:
    """A resolver that knows these hosts; `_` is a dot. It answers with the next address each time it is asked."""
    turns = {name.replace("_", "."): [one] if isinstance(one, str) else [*one] for name, one in addresses.items()}
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
        asked.append(host)
        if host not in turns:
            raise OSError(f"unknown host {host}")
        answers = turns[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(0, (address, port)) for address in found.split()]

    resolve.asked = asked  # pyright: ignore[reportFunctionMemberAccess]
    return resolve


async def fetch(url: str, given: Rules | None = None, resolve: Any = None, **more: Any) -> ToolResult:
    tool = WebFetch(resolve or named())
    return await tool.run(tool.parse({"url": url, **more}), context(rules() if given is None else given))


# ------------------------------------------------------------------------------------------------------------ the text


async def test_the_text_of_a_page_is_the_result_with_what_was_looked_for() -> None:
    html = "<title>T &amp; U</title><script>no()</script><h1>Head</h1><p>See <a href='/b?c=1'>that</a>.</p>"
    async with serving_pages({"/a": page(html, "text/html")}) as server:
        result = await fetch(server.url("/a#part"), prompt="the\nhead")
    assert result.success
    assert result.content.splitlines() == [
        f"[Page: {server.url('/a')}. What follows is its text, not the user's words]",
        "[Looked for: the head]",
        "Title: T & U",
        "# Head",
        "",
        f"See [that]({server.url('/b?c=1')}).",
    ]
    assert dict(result.response) | {"durationMs": 0} == {
        "url": server.url("/a"),
        "code": 200,
        "codeText": "OK",
        "bytes": len(html),
        "durationMs": 0,
    }
    (head,) = server.requests
    assert head.startswith("GET /a HTTP/1.1\r\n")
    assert "cookie" not in head.lower()
    assert "authorization" not in head.lower()


@rows(
    ("body", "kind", "text"),
    [
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ("<p>x</p>", "text/plain", "<p>x</p>"),
        ("<html><p>x</p>", "", "x"),
        ("<!DOCTYPE html>\n<p>x", "", "x"),
        ("grün".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grün"),
        ("grün".encode("latin-1"), "text/plain", "grün"),
        ("grün".encode(), "text/plain; charset=latin-9-nonsense", "grün"),
        ("grün".encode(), "text/plain; charset=unicode_escape", "grün"),
        ("<meta charset='koi8-r'>я".encode("koi8-r"), "text/html", "я"),
        ("<meta charset=utf-16>ü".encode(), "text/html", "ü"),
        ("\ufeffgrün".encode("utf-16-le"), "text/plain; charset=ascii", "grün"),
        ("日本".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "日本"),
        (b"gr\xc3\xbcn \xff", "text/plain; charset=utf-8", "grün \ufffd"),
        (b"cut \xc3", "text/plain", "cut \ufffd"),
        ("\x1b[31mred\x1b[0m\u202etrap\r\nx", "text/plain; charset=utf-8", "redtrap\nx"),
        ("", "text/html", "[The page has no text (text/html)]"),
        (b"\0\1\2", "application/octet-stream", "[It is not text (a binary file): nothing to show]"),
        (b"%PDF-1.7", "text/plain", "[It is not text (a PDF document): nothing to show]"),
        (b"\x89PNG\r\n", "image/png", "[It is not text (image/png): nothing to show]"),
    ],
)  # fmt: skip
def test_each_kind_of_content_is_shown_as_the_text_that_it_is(body: bytes | str, kind: str, text: str) -> None:
    async def run() -> str:
        async with serving_pages({"/": page(body, kind)}) as server:
            return (await fetch(server.url("/"))).content.partition("\n")[2]

    assert asyncio.run(run()) == text


async def test_a_page_that_is_not_there_is_a_failed_call_with_the_servers_words() -> None:
    async with serving_pages({"/a": page("Gone fishing", status="404 Not Found")}) as server:
        result = await fetch(server.url("/a"))
    assert (result.success, result.ran) == (False, True)
    assert f"{server.url('/a')}, status 404 Not Found." in result.content
    assert result.content.endswith("Gone fishing")


# ---------------------------------------------------------------------------------------------------------- wrong input


@rows(
    ("url", "why"),
    [
        ("", "at `$.url`"),
        ("example.com/page", "not a URL"),
        ("ftp://example.com/x", "not ftp://"),
        ("file:///etc/passwd", "not file://"),
        ("https://", "the host is missing"),
        ("https:///path", "the host is missing"),
        ("https://user:secret@example.com/", "user name or a password"),
        ("https://user@example.com/", "user name or a password"),
        ("https://example.com:99999/", "99999 is not a port"),
        ("https://exa mple.com/", "U+0020 at position 12"),
        ("https://example.com\\@evil.org/", "U+005C"),
        ("https://example.com/\n", "nothing"),
        ("https://[fe80::1%25eth0]/", "expected something like"),
        ("https://a..b/", "is not a host"),
        ("https://example.com/" + "x" * 9000, "longer than 8,000"),
    ],
)
def test_a_url_that_is_not_one_is_refused_before_anything_is_asked(url: str, why: str) -> None:
    if why == "nothing":
        assert WebFetch().parse({"url": url})
        return
    with pytest.raises(ToolInputError) as refusal:
        WebFetch().parse({"url": url})
    assert why in str(refusal.value)
    assert "secret" not in str(refusal.value)


async def test_a_host_that_cannot_be_reached_is_named_with_the_reason() -> None:
    unknown = await fetch("https://nowhere.example/")
    assert unknown.content == "Could not connect to https://nowhere.example: unknown host nowhere.example."
    async with serving_pages({}) as server:
        pass
    refused = await fetch(server.url("/"))
    assert refused.content == f"Could not connect to http://127.0.0.1:{server.port}: Connection refused."
    assert not refused.ran


async def test_a_server_that_does_not_speak_http_is_a_failure_not_a_traceback() -> None:
    async with serving_pages({"/": b"220 smtp ready\r\n"}) as server:
        result = await fetch(server.url("/"))
    assert "does not answer properly" in result.content


async def test_https_at_a_port_with_plain_http_says_what_to_do() -> None:
    async with serving_pages({}) as server:
        result = await fetch(f"https://127.0.0.1:{server.port}/")
    assert "it does not speak TLS there. For plain HTTP, name the port: http://HOST:80/." in result.content


@rows(
    ("url", "asked"),
    [
        ("http://example.com/x", "https://example.com/x"),
        ("http://EXAMPLE.com", "https://example.com/"),
        ("http://example.com:80/x", "http://example.com/x"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("http://localhost/x", "http://localhost/x"),
        ("http://app.localhost/x", "http://app.localhost/x"),
        ("http://10.0.0.1/x", "http://10.0.0.1/x"),
        ("http://[::1]/x", "http://[::1]/x"),
        ("https://example.com/x", "https://example.com/x"),
    ],
)
def test_http_becomes_https_unless_a_port_or_a_host_without_certificates_is_named(url: str, asked: str) -> None:
    from wave_agent.effects.page_urls import parse_page_url, secured

    assert secured(parse_page_url(url)).text == asked


# ------------------------------------------------------------------------------------------------------------ addresses

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::",
    "fe80::1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "::ffff:10.0.0.1", "::10.0.0.1",
    "2002:a00:1::1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b:1::1", "2001:0:a00:1:0:0:f5ff:fffe",
    "2a00::5efe:10.0.0.1",
]  # fmt: skip


@rows("address", PRIVATE)
def test_a_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    result = asyncio.run(fetch("https://docs.example/", rules(allow=["WebFetch"]), named(docs_example=address)))
    assert result.content.startswith("docs.example must not be reached: it leads to the private address ")
    assert "the user can add the rule Net(docs.example) to permissions.allow" in result.content
    assert result.notice == f"WebFetch: {result.content}"


@rows("address", [one for one in PRIVATE if ":" not in one])
def test_a_private_address_is_refused_as_a_host_too(address: str) -> None:
    result = asyncio.run(fetch(f"http://{address}:1/", rules(allow=["WebFetch", "Net", "Net(*.example)"])))
    assert "it leads to the private address" in result.content


SPELLINGS = ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "\uff11\uff12\uff17.0.0.1"]


@rows("host", [*SPELLINGS, "[::ffff:127.0.0.1]", "[::1]", "[0:0::1]"])
def test_no_spelling_of_an_address_gets_around_the_check(host: str) -> None:
    result = asyncio.run(fetch(f"http://{host}:1/", rules(allow=["WebFetch"])))
    assert "it leads to the private address" in result.content


async def test_one_private_address_among_several_is_enough_to_refuse() -> None:
    result = await fetch("https://a.example/", rules(allow=[]), named(a_example="93.184.216.34 10.0.0.1"))
    assert "it leads to the private address 10.0.0.1" in result.content


async def test_a_host_that_a_net_rule_names_may_be_private_but_not_link_local() -> None:
    resolve = named(wiki_example="127.0.0.1", cloud_example="169.254.169.254", sub_wiki_example="127.0.0.1")
    async with serving_pages({"/": page("inside")}) as server:
        allowed = rules(allow=["Net(wiki.example)", "Net(cloud.example)", "Net(*.wiki.example)"])
        found = await fetch(server.url("/", "wiki.example"), allowed, resolve)
        assert found.content.endswith("inside")
        below = await fetch(server.url("/", "sub.wiki.example"), allowed, resolve)
    assert "private address 127.0.0.1" in below.content  # a wildcard names no host
    cloud = await fetch("http://cloud.example:80/", allowed, resolve)
    assert "the user can add the rule Net(169.254.169.254)" in cloud.content


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to() -> None:
    """A name that answers differently the second time: nobody asks twice."""
    async with serving_pages({"/": page("inside")}) as server:
        resolve = named(trap_example=["127.0.0.9", "127.0.0.1"])
        result = await fetch(server.url("/", "trap.example"), rules(allow=["Net(127.0.0.1)"]), resolve)
    assert "must not be reached: it leads to the private address 127.0.0.9" in result.content
    assert resolve.asked == ["trap.example"]
    assert server.requests == []


async def test_the_connection_goes_to_the_address_that_was_judged_whatever_the_name_leads_to_later() -> None:
    async with (
        serving_pages({"/": page("judged")}) as server,
        serving_pages({"/": page("other")}, "127.0.0.2") as other,
    ):
        resolve = named(flips_example=["127.0.0.1", "127.0.0.2"])
        given = rules(allow=["Net(127.0.0.1)", "Net(127.0.0.2)"])
        first = await fetch(server.url("/", "flips.example"), given, resolve)
        assert (first.content.endswith("judged"), resolve.asked, other.requests) == (True, ["flips.example"], [])
        second = await fetch(other.url("/", "flips.example"), given, resolve)
    assert (second.content.endswith("other"), len(server.requests)) == (True, 1)
    assert f"\r\nHost: flips.example:{server.port}\r\n" in server.requests[0]


async def test_if_one_address_does_not_answer_only_another_judged_one_is_tried() -> None:
    async with serving_pages({"/": page("second")}) as server:
        resolve = named(two_example=["127.0.0.3 127.0.0.1", "127.0.0.9"])
        given = rules(allow=["Net(127.0.0.1)", "Net(127.0.0.3)"])
        result = await fetch(server.url("/", "two.example"), given, resolve)
    assert (result.content.endswith("second"), resolve.asked) == (True, ["two.example"])


async def test_a_name_that_is_public_when_asked_first_and_private_after_a_redirect_is_refused() -> None:
    """A rule for the name permits it on loopback here, as if it were public; the metadata address is never."""
    for later in ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1"):
        async with serving_pages({"/a": redirect("/b"), "/b": page("inside")}) as server:
            resolve = named(rebind_example=["127.0.0.1", later])
            result = await fetch(server.url("/a", "rebind.example"), rules(allow=["Net(rebind.example)"]), resolve)
        assert "it leads to the private address" in result.content, later
        assert (server.paths, resolve.asked) == (["/a"], ["rebind.example"] * 2)


@rows("address", ["::ffff:127.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"])
def test_a_v4_address_in_a_v6_one_is_judged_as_both(address: str) -> None:
    """Allowing the one does not open the other, and neither is reached without a rule."""

    async def run() -> None:
        async with serving_pages({"/": page("inside")}) as server:
            for given in (
                rules(allow=["WebFetch"]),
                rules(allow=["Net(93.184.216.34)"]),
                rules(allow=["WebFetch"], deny=["Net(127.0.0.1)"]),
            ):
                result = await fetch(server.url("/", "mapped.example"), given, named(mapped_example=address))
                assert "must not be reached: it leads to" in result.content
                literal = await fetch(server.url("/", f"[{address}]"), given)
                assert not literal.success
            assert server.requests == []

    asyncio.run(run())


async def test_an_address_that_a_rule_denies_is_not_reached_under_another_name() -> None:
    resolve = named(alias_example="93.184.216.34")
    for given in (rules(deny=["Net(93.184.216.34)"]), rules(deny=["WebFetch(domain:93.184.216.34)"])):
        result = await fetch("https://alias.example/", given, resolve)
        assert "it leads to 93.184.216.34, which a permission rule Net(…) denies" in result.content
    asked = await fetch("https://alias.example/", rules(ask=["Net(93.184.216.34)"]), resolve)
    assert "it leads to 93.184.216.34" in asked.content


async def test_a_question_about_the_host_that_was_answered_is_not_asked_of_its_address() -> None:
    async with serving_pages({"/": page("here")}) as server:
        result = await fetch(server.url("/"), rules(ask=["Net(127.0.0.1)"]))
    assert result.content.endswith("here")


async def test_ipv6_literals_are_reached_like_any_address() -> None:
    try:
        async with serving_pages({"/": page("six")}, "::1") as server:
            result = await fetch(server.url("/", "[::1]"), rules(allow=["Net(::1)"]))
    except OSError:
        pytest.skip("no IPv6 here")
    assert result.content.endswith("six")
    assert f"\r\nHost: [::1]:{server.port}\r\n" in server.requests[0]


# ------------------------------------------------------------------------------------------------------------ redirects


async def test_redirects_on_the_same_host_are_followed() -> None:
    pages = {"/a": redirect("/b", "301 Moved"), "/b": redirect("c?d=é"), "/c?d=%C3%A9": page("found")}
    async with serving_pages(pages) as server:
        result = await fetch(server.url("/a"))
    assert result.content.endswith("found")
    assert f"(redirected from {server.url('/a')})" in result.content


async def test_a_loop_of_redirects_ends() -> None:
    async with serving_pages({"/a": redirect("/b"), "/b": redirect("/c"), "/c": redirect("/a")}) as server:
        result = await fetch(server.url("/a"))
    assert "stopped after 5 redirects" in result.content
    assert server.paths == ["/a", "/b", "/c", "/a", "/b", "/c"]


async def test_a_redirect_back_to_the_same_name_under_another_scheme_or_port_is_not_followed() -> None:
    async with serving_pages({"/": page("inside")}, "127.0.0.1") as inside, serving_pages({}) as server:
        for to in (inside.url("/", "same.example"), server.url("/", "same.example").replace("http:", "https:")):
            server.pages["/a"] = redirect(to)
            resolve = named(same_example="127.0.0.1")
            result = await fetch(server.url("/a", "same.example"), rules(allow=["Net", *LOCAL]), resolve)
            assert "which is another place. Nothing was fetched from there." in result.content
    assert inside.requests == []


async def test_the_sixth_redirect_is_the_end() -> None:
    async with serving_pages({"/a": redirect("/a")}) as server:
        result = await fetch(server.url("/a"))
    assert "stopped after 5 redirects" in result.content
    assert len(server.requests) == 6


@rows(
    ("to", "shown"),
    [
        ("http://169.254.169.254/latest", "http://169.254.169.254/latest"),
        ("//evil.example/x", "http://evil.example/x"),
        ("http://127.0.0.1:1/other-port", "http://127.0.0.1:1/other-port"),
        ("http://localhost:{port}/", "http://localhost:{port}/"),
        ("https://127.0.0.1:{port}/", "https://127.0.0.1:{port}/"),
    ],
)
def test_a_redirect_to_another_place_is_reported_and_not_followed(to: str, shown: str) -> None:
    async def run() -> tuple[ToolResult, int, int]:
        async with serving_pages({}) as server:
            server.pages["/a"] = redirect(to.format(port=server.port))
            return await fetch(server.url("/a"), rules(allow=["Net", *LOCAL])), server.port, len(server.requests)

    result, port, requests = asyncio.run(run())
    target = shown.format(port=port)
    assert (
        f"redirects to {target} (status 302), which is another place. Nothing was fetched from there." in result.content
    )
    assert result.response["redirect"] == target
    assert requests == 1


@rows(
    ("to", "why"),
    [
        ("ftp://127.0.0.1/x", "not ftp://"),
        ("javascript:alert(1)", "cannot be fetched"),
        ("http://user:secret@127.0.0.1/", "user name or password"),
        ("/\\evil.example/", "U+005C"),
        ("http://[", "cannot be fetched"),
    ],
)
def test_a_redirect_to_something_that_is_no_page_is_an_error(to: str, why: str) -> None:
    async def run() -> str:
        async with serving_pages({"/a": redirect(to)}) as server:
            return (await fetch(server.url("/a"))).content

    content = asyncio.run(run())
    assert why in content
    assert "secret" not in content


async def test_every_step_of_a_redirect_is_resolved_and_judged_again() -> None:
    async with serving_pages({"/a": redirect("/b"), "/b": page("inside")}) as server:
        resolve = named(turn_example=["127.0.0.1", "127.0.0.9"])
        result = await fetch(server.url("/a", "turn.example"), rules(allow=["Net(127.0.0.1)"]), resolve)
    assert "it leads to the private address 127.0.0.9" in result.content
    assert server.paths == ["/a"]


# -------------------------------------------------------------------------------------------------------------- limits


async def test_a_body_without_end_is_cut_at_the_limit() -> None:
    async def flood(writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"spam " * 20_000)
            await writer.drain()

    async with serving_pages({"/": flood}) as server:
        result = await fetch(server.url("/"))
        await server.left.wait()
    assert "[The page is very long: only its start is here, of at most 10,000,000 bytes]" in result.content
    assert result.response["bytes"] == LARGEST


@rows("encoding", ["gzip", "deflate", "raw deflate"])
def test_a_compressed_page_is_read(encoding: str) -> None:
    raw = zlib.compressobj(wbits=-15)
    packed = {"gzip": gzip.compress(b"text"), "deflate": zlib.compress(b"text")}
    packed["raw deflate"] = raw.compress(b"text") + raw.flush()

    async def run() -> str:
        answer = page(packed[encoding], Content_Encoding=encoding.rpartition(" ")[2])
        async with serving_pages({"/": answer}) as server:
            return (await fetch(server.url("/"))).content

    assert asyncio.run(run()).endswith("\ntext")


async def test_a_few_bytes_that_unpack_to_gigabytes_are_cut_at_the_limit() -> None:
    packer = zlib.compressobj(1, wbits=31)
    chunk = b" " * (1 << 20)
    bomb = b"".join(packer.compress(chunk) for _ in range(30)) + packer.flush()
    async with serving_pages({"/": page(bomb, Content_Encoding="gzip")}) as server:
        result = await fetch(server.url("/"))
    assert result.response["bytes"] == LARGEST
    assert "only its start is here" in result.content


@rows(
    ("encoding", "body", "why"),
    [
        ("br", b"x", "compressed in a way that was not requested (br)"),
        ("gzip, gzip", b"x", "not requested (gzip, gzip)"),
        ("gzip", b"\x1f\x8bnonsense", "The compressed page is damaged."),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_an_error(encoding: str, body: bytes, why: str) -> None:
    async def run() -> str:
        async with serving_pages({"/": page(body, Content_Encoding=encoding)}) as server:
            return (await fetch(server.url("/"))).content

    assert why in asyncio.run(run())


async def test_a_page_that_arrives_too_slowly_is_given_up_and_its_connection_closed() -> None:
    from wave_agent.effects.page_urls import parse_page_url

    async def trickle(writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999\r\n\r\n")
        while not server.left.is_set():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving_pages({"/": trickle}) as server:
        fetcher = PageFetcher(named(), {}, seconds=0.1)
        with pytest.raises(FetchError, match=r"did not arrive within 0.1 s"):
            await fetcher.fetch(parse_page_url(server.url("/")), lambda _: lambda _: None)


async def test_cancelling_closes_the_connection() -> None:
    began = asyncio.Event()

    async def never(writer: Any) -> None:
        began.set()

    async with serving_pages({"/": never}) as server:
        server.pages["/"] = never
        task = asyncio.ensure_future(fetch(server.url("/")))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


# --------------------------------------------------------------------------------------------------- memory and proxies


async def test_a_page_is_kept_for_fifteen_minutes() -> None:
    now = 0.0
    tool = WebFetch(named(), clock=lambda: now)

    async def call(url: str) -> str:
        return (await tool.run(tool.parse({"url": url}), context(rules()))).content

    async with serving_pages({"/a": page("one"), "/b": page("x", status="500 Oops")}) as server:
        assert (await call(server.url("/a"))).endswith("one")
        now = 899.0
        await call(server.url("/a#other-part"))
        assert server.paths == ["/a"]
        now = 901.0
        await call(server.url("/a"))
        assert server.paths == ["/a", "/a"]
        await call(server.url("/b"))
        await call(server.url("/b"))
        assert server.paths[2:] == ["/b", "/b"]  # a failure may be over


async def test_only_some_pages_are_kept() -> None:
    pages = {f"/{number}": page(str(number)) for number in range(40)}
    tool = WebFetch(named())
    async with serving_pages(pages) as server:
        for path in (*pages, "/39", "/0"):
            await tool.run(tool.parse({"url": server.url(path)}), context(rules()))
    assert server.paths == [*pages, "/0"]


async def test_a_proxy_of_the_environment_gets_the_request_and_private_addresses_stay_closed() -> None:
    async with serving_pages({"http://plain.example:80/x": page("by proxy")}) as proxy:
        proxy.pages["http://plain.example/x"] = proxy.pages["http://plain.example:80/x"]
        tool = WebFetch(named(inner_example="10.0.0.1"))
        around = context(rules(allow=[]), HTTP_PROXY=proxy.url(""))
        for url in ("http://plain.example:80/x", "http://inner.example:80/", "http://10.0.0.1/"):
            result = await tool.run(tool.parse({"url": url}), around)
            if "plain" in url:
                assert result.content.endswith("by proxy")  # this machine need not know the name
            else:
                assert "it leads to the private address 10.0.0.1" in result.content
    assert proxy.paths == ["http://plain.example/x"]


def test_what_the_model_is_told_is_short() -> None:
    spec = {"description": WebFetch.description, "parameters": WebFetch().schema()}
    assert len(json.dumps(spec)) < 700
