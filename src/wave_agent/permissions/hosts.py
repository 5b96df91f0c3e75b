"""The hosts that commands in a sandbox and WebFetch may reach: lists of hosts, and the addresses behind names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.effects.hosts import normal_host
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.rule import FETCH, NET, Rule
from wave_agent.rules.touched import covers_host, host_matches

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
_ISATAP = (0x00005EFE, 0x02005EFE)
_NOT_PUBLIC = ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")
"""Networks that some versions of Python take for public ones."""
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
        return covers_host(self.host, host)

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

    def __init__(self, entries: Sequence[str | HostEntry], denied: Sequence[str | None] = ()) -> None:
        """`denied` are the patterns of `Net` rules; None denies every host."""
        self.entries = tuple(one if isinstance(one, HostEntry) else parse_entry(one) for one in entries)
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
        if all(map(_is_public, forms)):
            return None
        if named and not any(form.is_link_local or form.is_multicast or form.is_unspecified for form in forms):
            return None
        how = self._how_to_permit(host, address, named=named)
        return f"it leads to the private address {address}; to permit that, {how}"

    def _how_to_permit(self, host: str, address: str, *, named: bool) -> str:
        return f"list {'the address' if named else 'that host or address'} in sandbox.network"

    def is_own(self, host: str) -> bool:
        """Whether programs must not ask the proxy for this host, because it means the sandbox itself."""
        return not any(entry.covers_host(host) for entry in self.entries)


class PageHosts(HostList):
    """Where the pages of one host may come from: addresses of the public network, and others if an allow rule
    `Net(…)` names the host or the address."""

    def __init__(self, host: str, *, restricting: Sequence[Rule], allowing: Sequence[Rule]) -> None:
        """`restricting` are the rules that deny or ask. A call to `host` was permitted in spite of them: those that
        mean its name have been answered, all others may still mean its addresses."""
        named = [rule.pattern for rule in allowing if rule.tool == NET and rule.pattern is not None]
        about_hosts = [rule.pattern for rule in restricting if rule.tool in (NET, FETCH) and rule.pattern is not None]
        super().__init__(
            [HostEntry(pattern) for pattern in named],
            [pattern for pattern in about_hosts if not host_matches(pattern, host)],
        )

    def _how_to_permit(self, host: str, address: str, *, named: bool) -> str:
        return f"the user can add the rule Net({address if named else host}) to permissions.allow"


def allowed_hosts(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The hosts that allow rules name, in the form of `sandbox.network`."""
    return tuple(HostEntry(rule.pattern).text for rule in rules if rule.tool == NET and rule.pattern is not None)


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
        if int(address) >> _HALF & 0xFFFFFFFF in _ISATAP:
            inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
        # A mapped address is the other one, written differently.
        found = [] if address.ipv4_mapped is not None else found
        found += [one for one in inside if one is not None]
    return found


def _is_public(form: "IPv4Address | IPv6Address") -> bool:
    """Whether it is in the network that everyone shares. What Python calls global includes some that are not."""
    from ipaddress import ip_network  # lazy: see above

    is_nat64 = form.version == 6 and int(form) >> _HALF == _NAT64 >> _HALF  # the address inside is judged as well
    odd = form.is_multicast or (form.is_reserved and not is_nat64) or getattr(form, "is_site_local", False)
    return form.is_global and not odd and not any(form in ip_network(one) for one in _NOT_PUBLIC)
