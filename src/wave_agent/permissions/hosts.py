"""The hosts that commands in a sandbox may reach: entries of `sandbox.network`, and the addresses behind names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.effects.hosts import normal_host
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.touched import host_matches

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

Network = bool | tuple[str, ...]
"""Everything, nothing, or the listed hosts."""

_ENTRY = lazy_regex(
    r"(?P<host>(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_DIGITS = lazy_regex(r"[0-9.]+|.*:.*")
_NAT64 = 0x64FF9B << 96
_HALF = 32
_EXPECTED = 'expected a host such as "api.example.com", "*.example.org", "localhost:8080" or "[::1]:8080"'


class HostEntry(Struct, frozen=True):
    """One entry of `sandbox.network`."""

    host: str
    """A name, `*.` and a name, or an address in its shortest form."""
    port: int | None = None
    """None: any."""

    def matches(self, host: str, port: int) -> bool:
        return self.port in (None, port) and self.covers_host(host)

    def covers_host(self, host: str) -> bool:
        """`*.example.com` covers every name below `example.com`, but not that name itself."""
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) >= len(self.host)
        return host == self.host

    @property
    def text(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def parse_entry(text: str) -> HostEntry:
    """Raises a `ValueError` that says what to write instead."""
    written = text.strip().lower()
    if written in ("*", "*:*"):
        raise ValueError('"*" is not a host; set sandbox.network to true to open the whole network')
    found = _ENTRY.fullmatch(written if written.count(":") < 2 or "[" in written else f"[{written}]")
    if found is None:
        hint = "; write it without scheme and path" if "/" in written else ""
        raise ValueError(f'"{text}" is not a host{hint}; {_EXPECTED}')
    port = None if found["port"] is None else int(found["port"])
    if port is not None and not 0 < port < 1 << 16:
        raise ValueError(f'"{text}": {port} is not a port')
    host = found["host"].strip("[]")
    if not _DIGITS.fullmatch(host):
        return HostEntry(host, port)
    try:
        _address(host)
    except ValueError:
        raise ValueError(f'"{text}" is not an address; {_EXPECTED}') from None
    return HostEntry(normal_host(host), port)


def narrower(outer: Network, inner: Network) -> Network:
    """What both permit."""
    if isinstance(outer, bool):
        return inner if outer else False
    if isinstance(inner, bool):
        return outer if inner else False
    both = [*(one for one in inner if _is_within(one, outer)), *(one for one in outer if _is_within(one, inner))]
    return tuple(dict.fromkeys(both))


def _is_within(text: str, others: Sequence[str]) -> bool:
    one = parse_entry(text)
    return any(
        other.port in (None, one.port) and (one.host == other.host or other.covers_host(one.host))
        for other in map(parse_entry, others)
    )


class HostList:
    """What may be reached: the listed hosts, except those that `Net` rules deny."""

    def __init__(self, entries: Sequence[str], denied: Sequence[str | None] = ()) -> None:
        """`denied` are the patterns of `Net` rules; None denies every host."""
        self.entries = tuple(map(parse_entry, entries))
        self._denied = tuple(denied)

    def __str__(self) -> str:
        return ", ".join(entry.text for entry in self.entries)

    def why_not(self, host: str, port: int) -> str | None:
        """Why this host must not be reached. None: it may, at the addresses for which `why_not_at` says so."""
        if any(rule is None or host_matches(rule, host) for rule in self._denied):
            return "a permission rule Net(…) denies it"
        if not any(entry.matches(host, port) for entry in self.entries):
            return f"it is not listed in the setting sandbox.network ({self})"
        return None

    def why_not_at(self, host: str, address: str, port: int) -> str | None:
        """Why a listed host must not be reached at this address.

        A name may lead anywhere: to this machine, its network, or the metadata service of a cloud.
        """
        forms = _forms(_address(address.partition("%")[0]))
        if any(rule is not None and host_matches(rule, str(form)) for rule in self._denied for form in forms):
            return f"it leads to {address}, which a permission rule Net(…) denies"
        if any(entry.matches(str(form), port) for entry in self.entries for form in forms):
            return None
        named = any(entry.host == host and entry.matches(host, port) for entry in self.entries)
        if all(form.is_global and not form.is_multicast for form in forms):
            return None
        if named and not any(form.is_link_local or form.is_multicast or form.is_unspecified for form in forms):
            return None
        missing = "the address" if named else "that host or address"
        return f"it leads to the private address {address}; to permit that, list {missing} in sandbox.network"

    def is_own(self, host: str) -> bool:
        """Whether programs must not ask the proxy for this host, because it means the sandbox itself."""
        return not any(entry.covers_host(host) for entry in self.entries)


def _address(text: str) -> "IPv4Address | IPv6Address":
    from ipaddress import ip_address  # lazy: only needed with a list of hosts

    return ip_address(text)


def _forms(address: "IPv4Address | IPv6Address") -> "list[IPv4Address | IPv6Address]":
    """The address, and the IPv4 address that it stands for."""
    from ipaddress import IPv4Address, IPv6Address  # lazy: see above

    found: list[IPv4Address | IPv6Address] = [address]
    if isinstance(address, IPv6Address):
        teredo = address.teredo
        inside = [address.ipv4_mapped, address.sixtofour, teredo[1] if teredo else None]
        if int(address) >> _HALF == _NAT64 >> _HALF:
            inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
        # A mapped address is the other one, written differently.
        found = [] if address.ipv4_mapped is not None else found
        found += [one for one in inside if one is not None]
    return found
