"""Entries of `sandbox.network`, and the addresses that names may lead to."""

import pytest

from wave_agent.permissions.hosts import HostEntry, HostList, narrower, parse_entry


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("api.example.com", HostEntry("api.example.com")),
        (" API.Example.com ", HostEntry("api.example.com")),
        ("*.example.org", HostEntry("*.example.org")),
        ("localhost:8080", HostEntry("localhost", 8080)),
        ("10.0.0.1", HostEntry("10.0.0.1")),
        ("10.0.0.1:80", HostEntry("10.0.0.1", 80)),
        ("::1", HostEntry("::1")),
        ("[0:0::1]:443", HostEntry("::1", 443)),
        ("xn--bcher-kva.example", HostEntry("xn--bcher-kva.example")),
        ("my_host", HostEntry("my_host")),
    ],
)
def test_an_entry_is_a_host_with_or_without_a_port(text: str, entry: HostEntry) -> None:
    assert parse_entry(text) == entry
    assert parse_entry(entry.text) == entry


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a host"),
        ("*", "set sandbox.network to true"),
        ("https://example.com", "without scheme and path"),
        ("example.com/path", "without scheme and path"),
        ("a*.example.com", "is not a host"),
        ("*.*.example.com", "is not a host"),
        ("*example.com", "is not a host"),
        ("example.com.", "is not a host"),
        ("exa mple.com", "is not a host"),
        ("bücher.example", "is not a host"),
        ("user@example.com", "is not a host"),
        ("example.com:0", "is not a port"),
        ("example.com:70000", "is not a port"),
        ("10.0.0.256", "is not an address"),
        ("127.1", "is not an address"),
        ("[::1", "is not a host"),
        ("1::2::3", "is not an address"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_entry(text)


@pytest.mark.parametrize(
    ("host", "port", "listed"),
    [
        ("api.example.com", 443, True),
        ("api.example.com", 22, True),
        ("example.com", 443, False),
        ("xapi.example.com", 443, False),
        ("api.example.com.evil.example", 443, False),
        ("a.example.org", 80, True),
        ("a.b.example.org", 80, True),
        ("example.org", 80, False),
        (".example.org", 80, False),
        ("evilexample.org", 80, False),
        ("localhost", 8080, True),
        ("localhost", 8081, False),
    ],
)
def test_only_listed_hosts_may_be_reached(host: str, port: int, listed: bool) -> None:
    hosts = HostList(["api.example.com", "*.example.org", "localhost:8080"])
    why = hosts.why_not(host, port)
    assert (why is None) is listed
    assert listed or "sandbox.network (api.example.com, *.example.org, localhost:8080)" in str(why)


def test_a_rule_beats_the_list() -> None:
    hosts = HostList(["*.example.org", "api.example.com"], ["bad.example.org", "192.0.2.7"])
    assert "Net" in str(hosts.why_not("bad.example.org", 443))
    assert hosts.why_not("good.example.org", 443) is None
    assert "Net" in str(hosts.why_not_at("good.example.org", "192.0.2.7", 443))
    assert "Net" in str(HostList(["api.example.com"], [None]).why_not("api.example.com", 443))


def test_a_command_reaches_itself_unless_the_list_names_this_machine() -> None:
    assert HostList(["api.example.com"]).is_own("localhost")
    assert not HostList(["localhost:8080"]).is_own("localhost")
    assert HostList(["localhost:8080"]).is_own("127.0.0.1")


PRIVATE = ["10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "fd00::1"]
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
NOWHERE = ["169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:169.254.169.254"]


@pytest.mark.parametrize("address", [*PRIVATE, *LOOPBACK, *NOWHERE])
def test_a_wildcard_leads_to_no_private_address(address: str) -> None:
    assert "private address" in str(HostList(["*.example.org"]).why_not_at("a.example.org", address, 80))


@pytest.mark.parametrize("address", [*PRIVATE, "127.0.0.1", "::1"])
def test_a_host_that_is_named_may_be_on_this_network(address: str) -> None:
    assert HostList(["intranet.example"]).why_not_at("intranet.example", address, 80) is None


@pytest.mark.parametrize("address", NOWHERE)
def test_but_not_at_addresses_such_as_that_of_a_metadata_service(address: str) -> None:
    assert "list the address" in str(HostList(["intranet.example"]).why_not_at("intranet.example", address, 80))


def test_an_address_that_is_listed_may_be_reached_by_any_listed_name() -> None:
    hosts = HostList(["*.example.org", "169.254.169.254:80"])
    assert hosts.why_not_at("a.example.org", "169.254.169.254", 80) is None
    assert hosts.why_not_at("a.example.org", "::ffff:169.254.169.254", 80) is None
    assert hosts.why_not_at("a.example.org", "169.254.169.254", 81) is not None


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111"])
def test_public_addresses_are_fine(address: str) -> None:
    assert HostList(["*.example.org"]).why_not_at("a.example.org", address, 80) is None


def test_a_rule_for_one_name_of_this_machine_covers_its_addresses() -> None:
    hosts = HostList(["127.0.0.1", "api.example.com"], denied=["localhost"])
    assert "denies it" in str(hosts.why_not("127.0.0.1", 80))
    assert "denies" in str(hosts.why_not_at("api.example.com", "127.0.0.1", 80))


def test_an_address_is_listed_in_any_spelling() -> None:
    assert HostList(["[::ffff:10.0.0.7]"]).why_not("10.0.0.7", 80) is None


@pytest.mark.parametrize(
    ("outer", "inner", "both"),
    [
        (True, ("a.example",), ("a.example",)),
        (False, ("a.example",), False),
        (("a.example",), True, ("a.example",)),
        (("a.example",), False, False),
        (True, True, True),
        (("*.example", "b.test"), ("a.example", "c.test"), ("a.example",)),
        (("a.example",), ("*.example",), ("a.example",)),
        (("a.example:80",), ("a.example",), ("a.example:80",)),
        (("*.a.example",), ("*.example",), ("*.a.example",)),
        (("*.example",), ("*.example",), ("*.example",)),
        ((), ("a.example",), ()),
    ],
)
def test_an_inner_directory_can_only_narrow_it(
    outer: bool | tuple[str, ...], inner: bool | tuple[str, ...], both: bool | tuple[str, ...]
) -> None:
    assert narrower(outer, inner) == both
