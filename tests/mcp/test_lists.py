"""`allowedMcpServers` and `deniedMcpServers`."""

from typing import Any

from tests.rows import rows
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.lists import read_lists
from wave_agent.mcp.values import ServerEntry, ServerTransport
from wave_agent.settings.hook_entries import SettingsSource

LOCAL = ServerEntry(transport=ServerTransport.STDIO, command="npx", args=("-y", "pkg"))


def remote(url: str) -> ServerEntry:
    return ServerEntry(transport=ServerTransport.HTTP, url=url)


def source(settings: dict[str, Any], layer: Layer = Layer.MANAGED) -> SettingsSource:
    return SettingsSource(layer, f"{layer}.json", Document(settings, {}))


@rows(
    ("item", "entry", "allowed", "denied"),
    [
        ({"serverName": "SRV"}, LOCAL, True, True),
        ({"serverName": "other"}, LOCAL, False, False),
        ({"serverCommand": ["npx", "-y", "pkg"]}, LOCAL, True, True),
        ({"serverCommand": ["/usr/bin/npx", "-y", "pkg"]}, LOCAL, False, True),
        ({"serverCommand": ["npx", "-y"]}, LOCAL, False, False),
        ({"serverUrl": "https://*"}, LOCAL, False, False),
        ({"serverUrl": "https://x.example/*"}, remote("https://x.example/mcp"), True, True),
        ({"serverUrl": "https://*.example/*"}, remote("https://x.example/mcp"), True, True),
        ({"serverUrl": "https://*.example/*"}, remote("https://evil.test/x.example/"), False, False),
        ({"serverUrl": "https://*.example/*"}, remote("https://evil.test/?a=https://x.example/"), False, False),
        ({"serverUrl": "https://*.example/*"}, remote("https://x.example@evil.test/"), False, False),
        ({"serverUrl": "https://evil.test/*"}, remote("https://x.example@evil.test/"), False, True),
        ({"serverUrl": "https://x.example/*"}, remote("HTTPS://X.EXAMPLE./mcp"), True, True),
        ({"serverUrl": "https://x.example/*"}, remote("https://x.example:443/mcp"), True, True),
        ({"serverUrl": "https://x.example/*"}, remote("https://x.example:8443/mcp"), False, True),
        ({"serverUrl": "https://x.example/*"}, remote("http://x.example/mcp"), False, True),
        ({"serverUrl": "http://localhost:*/*"}, remote("http://localhost:3000/mcp"), True, True),
        ({"serverUrl": "https://x.example/a/*"}, remote("https://x.example/b"), False, False),
        ({"serverUrl": "https://x.example/a/*"}, remote("https://x.example/a/../b"), False, True),
        ({"serverUrl": "https://x.example/a/*"}, remote("https://x.example/%61/b"), False, True),
        ({"serverUrl": "https://x.example"}, remote("https://x.example/mcp"), False, True),
        ({"serverUrl": "https://xn--bcher-kva.example/*"}, remote("https://bücher.example/"), False, True),
    ],
)
def test_what_an_item_covers(item: dict[str, Any], entry: ServerEntry, allowed: bool, denied: bool) -> None:
    allow = read_lists([source({"allowedMcpServers": [item]})])
    deny = read_lists([source({"deniedMcpServers": [item]})])
    assert (allow.issues, deny.issues) == ((), ())
    assert (allow.why_not("srv", entry, Layer.USER) is None) is allowed
    assert (deny.why_not("srv", entry, Layer.USER) is not None) is denied


def test_a_name_does_not_allow_another_command() -> None:
    lists = read_lists([source({"allowedMcpServers": [{"serverName": "srv"}, {"serverCommand": ["other"]}]})])
    assert lists.why_not("srv", LOCAL, Layer.USER) == "not among allowedMcpServers in managed.json"
    assert lists.why_not("srv", remote("https://x.example/"), Layer.USER) is None


def test_no_list_widens_another_one() -> None:
    managed = source({"allowedMcpServers": [{"serverName": "srv"}]})
    user = source({"allowedMcpServers": [{"serverName": "srv"}, {"serverName": "other"}]}, Layer.USER)
    nothing = source({"allowedMcpServers": []}, Layer.USER)
    assert read_lists([managed, user]).why_not("srv", LOCAL, Layer.USER) is None
    assert read_lists([managed, user]).why_not("other", LOCAL, Layer.USER)
    assert read_lists([managed, nothing]).why_not("srv", LOCAL, Layer.USER)
    assert read_lists([managed, nothing]).why_not("srv", LOCAL, Layer.MANAGED) is None


def test_a_projects_list_only_restricts_its_own_servers() -> None:
    project = source({"deniedMcpServers": [{"serverName": "srv"}], "allowedMcpServers": []}, Layer.PROJECT)
    for layer in (Layer.MANAGED, Layer.USER, Layer.FLAG, Layer.CODE):
        assert read_lists([project]).why_not("srv", LOCAL, layer) is None
    for layer in (Layer.PROJECT, Layer.LOCAL):
        assert read_lists([project]).why_not("srv", LOCAL, layer)


def test_managed_settings_can_reserve_the_list() -> None:
    user = source({"allowedMcpServers": []}, Layer.USER)
    managed = source({"allowManagedMcpServersOnly": True, "allowedMcpServers": [{"serverName": "srv"}]})
    assert read_lists([managed, user]).why_not("srv", LOCAL, Layer.USER) is None
    alone = source({"allowManagedMcpServersOnly": True})
    assert "only managed servers" in (read_lists([alone]).why_not("srv", LOCAL, Layer.FLAG) or "")
    assert read_lists([alone]).why_not("srv", LOCAL, Layer.MANAGED) is None
    ignored = read_lists([source({"allowManagedMcpServersOnly": True}, Layer.USER)])
    assert ignored.why_not("srv", LOCAL, Layer.USER) is None
    assert "only managed settings" in str(ignored.issues[0])


@rows(
    "given",
    [
        "x", [1], [{}], [{"serverName": ""}], [{"serverNam": "x"}], [{"serverName": "a", "serverUrl": "b"}],
        [{"serverCommand": "npx"}], [{"serverUrl": "x.example"}],
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_read_must_not_be_skipped(given: Any) -> None:
    for layer in (Layer.MANAGED, Layer.USER):
        assert [one.fatal for one in read_lists([source({"deniedMcpServers": given}, layer)]).issues] == [True]
    found = read_lists([source({"allowedMcpServers": given}, Layer.USER)])
    assert found.why_not("srv", LOCAL, Layer.USER)
