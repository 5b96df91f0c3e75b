"""Finds the route to a URL: which host, through which proxy, trusting which certificates."""

import os.path
import ssl
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from wave_agent.errors import ModelError
from wave_agent.system.credentials import public_url

_PORTS = {"http": 80, "https": 443}
_PLAIN = "/%?&=+:@!$'()*,;~-._"
"""Characters of a path or query that are not escaped."""
_SYSTEM_BUNDLES = ("/etc/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")

Headers = list[tuple[str, str]]


class Address(Struct, frozen=True):
    """A host and port to connect to."""

    scheme: str
    host: str
    port: int
    authorization: str | None = None
    """The Authorization header for the user and password in the URL."""
    password: str | None = None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Safe to show: without user and password."""
        return f"{self.scheme}://{self.authority}"


class Endpoint(Struct, frozen=True):
    """Where requests go."""

    place: Address
    target: str
    """Path and query of a request."""
    shown: str
    """The base URL without secrets."""

    @property
    def is_bare(self) -> bool:
        """The base URL has no path."""
        return self.shown == self.place.origin


REQUEST_PATHS = ("/chat/completions", "/responses", "/messages")
"""Ends of URLs that people copy from a provider's documentation: the base URL is what comes before."""


def chat_endpoint(base_url: str) -> Endpoint:
    """The endpoint for a base URL such as `https://api.openai.com/v1`. Raises `ModelError` if it is not a URL."""
    return endpoint_below(base_url, "/chat/completions")


def endpoint_below(base_url: str, path: str, version: str = "") -> Endpoint:
    """The endpoint at `path` below a base URL, which may end with it already, or with any other request path.

    `version` is a part of the path, such as `/v1`, that the base URL may have or omit. Raises `ModelError`.
    """
    url = base_url.strip()
    try:
        parts = urlsplit(url)
        place = _place(parts)
    except ValueError:
        place, parts = None, urlsplit("")
    if place is None or any(ord(character) <= 32 for character in url):
        raise ModelError(f'"{public_url(url)}" is not a base URL; expected something like http://127.0.0.1:11434/v1')
    base = base_path(parts.path)
    if version:
        base = base.removesuffix(version) + version
    target = f"{base}{path}" + (f"?{parts.query}" if parts.query else "")
    return Endpoint(place, quote(target, safe=_PLAIN), place.origin + base)


def url_below(base_url: str, path: str, version: str = "") -> str:
    """The URL at `path` below a base URL, as `endpoint_below` finds it; user and password stay in it."""
    parts = urlsplit(base_url.strip())
    base = base_path(parts.path)
    return f"{parts.scheme}://{parts.netloc}{base.removesuffix(version) + version}{path}"


def base_path(path: str) -> str:
    """The path of a base URL, without a request path at its end."""
    base = path.rstrip("/")
    return next((base.removesuffix(end) for end in REQUEST_PATHS if base.endswith(end)), base)


def endpoint_at(url: str) -> Endpoint:
    """The endpoint at exactly this URL. Raises `ModelError` if it is not a URL."""
    try:
        parts = urlsplit(url)
        place = _place(parts)
    except ValueError:
        place, parts = None, urlsplit("")
    if place is None:
        raise ModelError(f'"{public_url(url)}" is not a URL; expected something like https://policy.example.com/decide')
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(place, quote(target, safe=_PLAIN), place.origin + parts.path)


def proxy_for(place: Address, environment: Mapping[str, str]) -> Address | None:
    """The proxy for `place`, if the environment sets one and does not exclude this host."""

    def value(name: str) -> str:
        return (environment.get(name.lower()) or environment.get(name) or "").strip()

    name = next((name for name in (f"{place.scheme.upper()}_PROXY", "ALL_PROXY") if value(name)), None)
    if name is None or _excepted(place, value("NO_PROXY")):
        return None
    url = value(name) if "://" in value(name) else f"http://{value(name)}"
    try:
        proxy = _place(urlsplit(url))
    except ValueError:
        proxy = None
    if proxy is None:
        shown = public_url(url)
        raise ModelError(f'{name} is "{shown}"; only http:// and https:// proxies are supported. Change or unset it.')
    return proxy


def tls_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """A context that trusts the bundle set in the environment, or else what the system trusts."""
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        if bundle := environment.get(name):
            return _trusting(name, bundle)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath:  # Python was built for another location, like python.org's on macOS
        found = next((bundle for bundle in _SYSTEM_BUNDLES if os.path.isfile(bundle)), None)
        if found:
            context.load_verify_locations(found)
    return context


def _trusting(name: str, bundle: str) -> ssl.SSLContext:
    try:
        if os.path.isdir(bundle):
            return ssl.create_default_context(capath=bundle)
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # ssl.SSLError too, raised if the file contains no certificate
        raise ModelError(f"{name} is {bundle}, which cannot be used: {error.strerror or error}") from None


def _place(parts: SplitResult) -> Address | None:
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    # An ordinary name is its own encoding, and the tables for all others take a while to load.
    plain = parts.hostname.isascii() and all(0 < len(label) < 64 for label in parts.hostname.split("."))
    host = parts.hostname if plain or ":" in parts.hostname else parts.hostname.encode("idna").decode()
    port = parts.port or _PORTS[parts.scheme]
    password = None if parts.username is None else unquote(parts.password or "")
    return Address(parts.scheme, host, port, basic_authorization(parts), password)


def basic_authorization(parts: SplitResult) -> str | None:
    """The Authorization header for the user and password in a URL."""
    if parts.username is None:
        return None
    user, password = unquote(parts.username), unquote(parts.password or "")
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _excepted(place: Address, no_proxy: str) -> bool:
    """`NO_PROXY`: hosts, domains (with or without a leading dot) or networks, each with an optional port, or `*`."""
    return any(_matches(place, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(place: Address, entry: str) -> bool:
    if entry == "*":
        return True
    host, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.endswith("]")):
        if int(port) != place.port:
            return False
        entry = host
    entry = entry.strip("[]")
    if "/" in entry:
        return _in_network(place.host, entry)
    domain = entry.removeprefix("*").removeprefix(".")
    return place.host == domain or place.host.endswith(f".{domain}")


def _in_network(host: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network  # lazy: few people put networks in NO_PROXY

    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
