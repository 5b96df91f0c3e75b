"""Requests pages of other machines: every address is judged before it is connected to, in every step of a redirect.

Loaded with the first page.
"""

import asyncio
import os
import ssl
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from urllib.parse import urljoin

from msgspec import Struct

from wave_agent.effects.page_urls import PageUrl, PageUrlError, parse_page_url
from wave_agent.errors import ModelError
from wave_agent.http.connections import Connection, ProxyRefusedError, connect
from wave_agent.http.retries import BrokenConnectionError, InvalidRequestError
from wave_agent.http.routes import Address, Headers, proxy_for, tls_context
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.network_proxy import Resolve
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread
from wave_agent.text import one_line

LARGEST = 10_000_000
"""Bytes of a page that are read, and that remain when they are decompressed."""
SECONDS = 30.0
"""For everything: names, connections, redirects and the body."""
_CONNECT_SECONDS = 10.0
_NEXT_ADDRESS_SECONDS = 4.0
"""How long an address may take if there is another one."""
_ADDRESSES = 8
_REDIRECTS = 5
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_NO_TEXT = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/gzip")
"""Types of content that is not even read."""
_LITERAL = lazy_regex(r"[0-9.]+|.*:.*")
_HEADERS: Headers = [
    ("User-Agent", "wave-agent (fetches single pages for a user)"),
    ("Accept", "text/markdown, text/html, text/plain;q=0.9, */*;q=0.5"),
    ("Accept-Encoding", "gzip, deflate"),
    ("Connection", "close"),
]

Judge = Callable[[str], str | None]
"""Address → why it must not be connected to. None: it may."""


class FetchError(Exception):
    """Why there is no page, and what to do."""


class ForbiddenAddressError(FetchError):
    """The host may be reached, but not at its address, unless the user permits that too."""


class FetchedPage(Struct, frozen=True, kw_only=True):
    """The answer of a server."""

    url: PageUrl
    """Where it is from, after redirects on the same host."""
    status: int
    reason: str
    content_type: str
    body: bytes | None
    """None: not text, by its type, so it was not read."""
    is_cut: bool = False
    """There was more of it."""
    moved_to: PageUrl | None = None
    """The server says that the page is elsewhere, on another host, port or scheme. Nothing was fetched from there."""


class PageFetcher:
    """Fetches pages for one session."""

    def __init__(self, resolve: Resolve, environment: Mapping[str, str], seconds: float = SECONDS) -> None:
        """`environment` says which proxy to use, and which certificates to trust."""
        self._resolve = resolve
        self._environment = environment
        self._seconds = seconds

    async def fetch(self, url: PageUrl, judge: Callable[[PageUrl], Judge]) -> FetchedPage:
        """Raises `FetchError`. Cancelling closes the connection."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(url, judge)
        except TimeoutError:
            raise FetchError(f"{url.text} did not arrive within {self._seconds:g} s.") from None

    async def _follow(self, url: PageUrl, judge: Callable[[PageUrl], Judge]) -> FetchedPage:
        for _ in range(_REDIRECTS + 1):
            page, location = await self._get(url, judge(url))
            if page.status not in _REDIRECTING or not location:
                return page
            target = _target(url, location)
            if not _is_same_place(url, target):
                return FetchedPage(
                    url=url, status=page.status, reason=page.reason, content_type="", body=None, moved_to=target
                )
            url = target
        raise FetchError(f"{url.text}: stopped after {_REDIRECTS} redirects.")

    async def _get(self, url: PageUrl, judge: Judge) -> tuple[FetchedPage, str]:
        """The answer, and where it redirects to."""
        try:
            connection = await self._connect(url, judge)
        except (OSError, TimeoutError, BrokenConnectionError, ProxyRefusedError, ModelError) as error:
            raise FetchError(f"Could not connect to {_place(url).origin}: {_explained(error)}") from None
        try:
            place, proxy = _place(url), self._proxy(url)
            is_plain = proxy is not None and url.scheme == "http"
            passed = proxy.authorization if is_plain and proxy is not None else None
            headers = [("Host", place.authority), *_HEADERS]
            headers += [("Proxy-Authorization", passed)] if passed else []
            await connection.get(place.origin + url.target if is_plain else url.target, headers, None)
            return await self._answer(url, connection), connection.headers.get("location", "")
        except (BrokenConnectionError, InvalidRequestError, OSError) as error:
            raise FetchError(f"{_place(url).origin} does not answer properly: {one_line(str(error), 200)}.") from None
        finally:
            connection.abort()

    async def _answer(self, url: PageUrl, connection: Connection) -> FetchedPage:
        headers = connection.headers
        kind = headers.get("content-type", "")
        skipped = kind.lower().startswith(_NO_TEXT) or connection.status in _REDIRECTING
        body, is_cut = (None, False) if skipped else await _body(connection)
        return FetchedPage(
            url=url,
            status=connection.status,
            reason=one_line(connection.reason, 100),
            content_type=one_line(kind, 200),
            body=body,
            is_cut=is_cut,
        )

    # ------------------------------------------------------------------------------------------------------- connecting

    async def _connect(self, url: PageUrl, judge: Judge) -> Connection:
        proxy, place = self._proxy(url), _place(url)
        addresses = await self._addresses(url, required=proxy is None)
        for address in addresses:
            if why := judge(address):
                raise ForbiddenAddressError(f"{url.host} must not be reached: {why}.")
        if proxy is not None:  # it resolves the name itself
            return await connect(place, proxy, self._tls, _CONNECT_SECONDS)
        *others, last = addresses
        for address in others:
            with suppress(OSError, TimeoutError):
                return await connect(place, None, self._tls, _NEXT_ADDRESS_SECONDS, at=address)
        return await connect(place, None, self._tls, _CONNECT_SECONDS, at=last)

    async def _addresses(self, url: PageUrl, *, required: bool) -> Sequence[str]:
        """All of the host. Raises `OSError` if there are none and they are `required`."""
        if _LITERAL.fullmatch(url.host):
            return [url.host]
        found = await self._resolved(url)
        if isinstance(found, OSError):
            if required:
                raise found
            return []
        return list(dict.fromkeys(found))[:_ADDRESSES]

    async def _resolved(self, url: PageUrl) -> Sequence[str] | OSError:
        """In a daemon thread: a name server that does not answer must not delay the end of the program."""
        delivery = Delivery[Sequence[str] | OSError](asyncio.get_running_loop(), Mailbox())

        def work() -> None:
            try:
                addresses = [str(address[0]) for _, address in self._resolve(url.host, url.port)]
                delivery.send(addresses or OSError("it has no address"))
            except (OSError, UnicodeError) as error:
                delivery.send(error if isinstance(error, OSError) else OSError("it is not a valid name"))

        start_in_thread(work)
        return await delivery.wait()

    def _proxy(self, url: PageUrl) -> Address | None:
        return proxy_for(_place(url), self._environment)

    def _tls(self) -> ssl.SSLContext:
        return self._context

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return tls_context(self._environment)


def _place(url: PageUrl) -> Address:
    return Address(url.scheme, url.host, url.port)


def _target(url: PageUrl, location: str) -> PageUrl:
    """Where a redirect leads. Raises `FetchError`."""
    shown = one_line(location, 200)
    try:
        # Headers arrive as Latin-1; servers that send other characters unescaped mean UTF-8.
        written = location.encode("latin-1", "replace").decode("utf-8", "replace")
        target = parse_page_url(urljoin(url.text, written))
    except (PageUrlError, ValueError) as error:
        raise FetchError(f"{url.text} redirects to {shown}, which cannot be fetched: {error}.") from None
    if target.has_user:
        raise FetchError(f"{url.text} redirects to a URL with a user name or password, which is not followed.")
    return target


def _is_same_place(url: PageUrl, target: PageUrl) -> bool:
    """The same host, port and scheme; or the same host with https instead of http, each at its usual port."""
    secured = (url.scheme, url.port, target.scheme, target.port) == ("http", 80, "https", 443)
    return url.origin == target.origin or (url.host == target.host and secured)


def _explained(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message})."
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS there. For plain HTTP, name the port: http://HOST:80/."
    if isinstance(error, TimeoutError):
        return "it does not answer."
    if isinstance(error, OSError):
        number = error.errno or 0
        known = os.strerror(number) if number > 0 else error.strerror or str(error)
        return f"{one_line(known, 200)}."
    return f"{one_line(str(error), 200)}."


# ------------------------------------------------------------------------------------------------------------ the body


async def _body(connection: Connection) -> tuple[bytes, bool]:
    """What arrives, decompressed, up to a limit; and whether there is more. Raises `FetchError`."""
    expand = _expander(connection.headers.get("content-encoding", ""))
    found, received = bytearray(), 0
    while part := await connection.read(None):
        received += len(part)
        found += expand(part, LARGEST + 1 - len(found))
        if len(found) > LARGEST or received > LARGEST:
            return bytes(found[:LARGEST]), True
    return bytes(found), False


def _expander(encoding: str) -> Callable[[bytes, int], bytes]:
    """(bytes, the most that may come out) → decompressed bytes. Never produces more: a few bytes may stand for
    gigabytes."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda data, most: data[:most]
    if name not in ("gzip", "x-gzip", "deflate"):
        raise FetchError(f"The page is compressed in a way that was not requested ({one_line(name, 40)}).")
    return _Inflating().expand


class _Inflating:
    """Decompresses gzip and deflate; the latter with or without the header it should have."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=47)
        self._is_first = True

    def expand(self, data: bytes, most: int) -> bytes:
        """Raises `FetchError`."""
        try:
            return self._expanded(data, most)
        except zlib.error:
            raise FetchError("The compressed page is damaged.") from None

    def _expanded(self, data: bytes, most: int) -> bytes:
        first, self._is_first = self._is_first, False
        try:
            return self._inflate.decompress(data, most)
        except zlib.error:
            if not first:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            return self._inflate.decompress(data, most)
