"""The URL of a page, read in one way by whoever judges a call and by whoever makes the request.

Programs disagree about odd URLs: a backslash, a blank or a second `@` may move the host. Such a URL is refused, so that
no rule sees another host than the one that is reached.
"""

import re
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.effects.hosts import normal_host
from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex

_PORTS = {"http": 80, "https": 443}
_URL = lazy_regex(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = lazy_regex(r"(?:(?P<user>.*)@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]@]+)(?::(?P<port>[0-9]{0,5}))?")
_ODD = lazy_regex("[\x00-\x20\x7f\\\\\ud800-\udfff]")
_SAFE = "/%?&=+:@!$'()*,;~-._[]"
"""Characters of a path or query that are sent as they are."""
LONGEST = 8_000
"""Characters. Servers refuse longer ones, and users do not read them before they consent."""


class PageUrlError(ValueError):
    """Why this is not the URL of a page, and what to write instead."""


class PageUrl(Struct, frozen=True):
    """Where a page is."""

    scheme: str
    host: str
    """In its usual form: see `normal_host`."""
    given_port: int | None
    """None: the scheme's own."""
    target: str
    """Path and query, as they are sent."""
    has_user: bool = False
    """It contains a user name, and possibly a password."""

    @property
    def port(self) -> int:
        return _PORTS[self.scheme] if self.given_port is None else self.given_port

    @property
    def text(self) -> str:
        """The URL in its usual form, without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.given_port in (None, _PORTS[self.scheme]) else f":{self.given_port}"
        return f"{self.scheme}://{host}{port}{self.target}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def parse_page_url(text: str) -> PageUrl:
    """Raises `PageUrlError`."""
    url = text.strip()
    if len(url) > LONGEST:
        raise PageUrlError(f"the URL is longer than {LONGEST:,} characters")
    if odd := _ODD.search(url):
        raise PageUrlError(f"the URL contains U+{ord(odd[0]):04X} at position {odd.start() + 1}; percent-encode it")
    found = _URL.fullmatch(url)
    if found is None:
        raise PageUrlError("not a URL; expected something like https://example.com/page")
    scheme = found["scheme"].lower()
    if scheme not in _PORTS:
        raise PageUrlError(f"only http:// and https:// pages can be fetched, not {scheme}://")
    authority = _AUTHORITY.fullmatch(found["authority"])
    if authority is None:
        missing = "" if found["authority"] else "the host is missing; "
        raise PageUrlError(f"{missing}expected something like https://example.com/page")
    host = normal_host(authority["host"])
    if host == ANY_HOST:
        raise PageUrlError(f'"{authority["host"]}" is not a host')
    port = int(authority["port"]) if authority["port"] else None
    if port is not None and not 0 < port < 1 << 16:
        raise PageUrlError(f"{port} is not a port")
    target = found["target"] if found["target"].startswith("/") else f"/{found['target']}"
    return PageUrl(scheme, host, port, quote(target, safe=_SAFE), authority["user"] is not None)


def secured(url: PageUrl) -> PageUrl:
    """With https instead of http, unless the URL names a port, or a host that hardly has a certificate: an address, or
    a name without a dot."""
    named = "." in url.host and ":" not in url.host and not url.host.replace(".", "").isdigit()
    if url.scheme != "http" or url.given_port is not None or not named or url.host.endswith(".localhost"):
        return url
    return replace(url, scheme="https")


def page_host(url: object) -> str:
    """The host of a page; `*` if it cannot be told."""
    try:
        return parse_page_url(url).host if isinstance(url, str) else ANY_HOST
    except PageUrlError:
        return ANY_HOST
