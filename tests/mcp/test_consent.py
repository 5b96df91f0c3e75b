"""What the user has agreed to is kept where no project and no agent can change it."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tests.mcp.configuration import Place
from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.identity import Binding
from wave_agent.mcp.values import Server, ServerEntry, ServerListing, ServerTransport, ToolDefinition

ENTRY = ServerEntry(transport=ServerTransport.STDIO, command="x")
LISTING = ServerListing(tools=(ToolDefinition(name="read"), ToolDefinition(name="write")), instructions="be nice")


def server(name: str = "srv", project: str = "/p", scope: str = "/p") -> Server:
    return Server(name=name, entry=ENTRY, layer=Layer.PROJECT, source="f", directory=project, scope=scope)


def test_the_file_is_private(place: Place) -> None:
    place.store.grant(server(), Binding(entry="e"))
    assert stat.S_IMODE(place.store.file.stat().st_mode) == 0o600
    assert place.store.consents("/p") == {"srv": Binding(entry="e")}
    assert place.store.consents("/q") == {}


def test_consent_can_be_withdrawn(place: Place) -> None:
    store = place.store
    assert store.revoke("/p") == ()
    for name in ("A", "b", "c"):
        store.grant(server(name), Binding(entry=name))
    store.pin_first(server("A"), LISTING)
    assert store.revoke("/p", ["a", "nope"]) == ("a",)
    assert set(store.consents("/p")) == {"b", "c"}
    assert store.pins([server("A")])  # what comes back under this name is compared with what it was
    assert store.revoke("/p") == ("b", "c")
    store.forget(server("A"))
    assert store.pins([server("A")]) == {}


def test_pins_do_not_depend_on_the_entry(place: Place) -> None:
    """A changed entry or a rotated variable would otherwise make every tool look accepted."""
    place.store.grant(server(), Binding(entry="e"))
    first = place.store.pin_first(server(), LISTING)
    changed = Server(
        name="SRV", entry=ServerEntry(transport=ServerTransport.HTTP, url="https://x"), layer=Layer.LOCAL, source="g",
        identity="other", directory="/p", scope="/p",
    )  # fmt: skip
    assert place.store.pin_first(changed, ServerListing()) == first
    assert place.store.pins([server(scope="user")]) == {}


def test_pins_of_a_projects_server_are_stored_only_with_consent(place: Place) -> None:
    """`--trust` starts it for one run; its tools are still new to whoever reviews it later."""
    first = place.store.pin_first(server(), LISTING)
    assert set(first.tools) == {"read", "write", ""}
    assert place.store.pins([server()]) == {}
    assert place.store.pin_first(server(), ServerListing(), first) == first  # in the same session
    own = msgspec.structs.replace(server(scope="user"), layer=Layer.USER)
    assert place.store.pins([own]) == {}
    assert place.store.pin_first(own, LISTING) == place.store.pins([own])["srv"]


def test_confirmed_tools_are_added_to_the_others(place: Place) -> None:
    store = place.store
    store.grant(server(), Binding(entry="e"))
    store.pin_first(server(), ServerListing(tools=(ToolDefinition(name="read"), ToolDefinition(name="gone"))))
    before = store.pins([server()])["srv"]
    after = store.confirm(server(), LISTING, ["write"])
    assert set(after.tools) == {"read", "gone", "write"}
    assert after.tools["read"] == before.tools["read"]
    assert store.pins([server()]) == {"srv": after}
    everything = store.confirm(server(), LISTING)
    assert set(everything.tools) == {"read", "write", ""}


def test_a_program_of_an_agent_cannot_agree(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_PARENT", "{}")
    for change in (
        lambda: place.store.grant(server(), Binding(entry="e")),
        lambda: place.store.confirm(server(), LISTING),
        lambda: place.store.forget(server()),
    ):
        with pytest.raises(SettingsError, match="only a person can agree"):
            change()
    assert set(place.store.pin_first(server(), LISTING).tools) == {"read", "write", ""}
    assert not place.store.file.exists()


@pytest.mark.parametrize("content", ["{", '{"consents": 1}', '{"version": 99}', ""])
def test_a_damaged_store_trusts_nothing(place: Place, content: str) -> None:
    place.store.file.write_text(content)
    for use in (
        lambda: place.store.consents("/p"),
        lambda: place.store.pins([server()]),
        lambda: place.store.pin_first(server(), LISTING),
        lambda: place.store.grant(server(), Binding()),
    ):
        with pytest.raises(SettingsError, match=r"mcp\.json"):
            use()
    assert place.store.file.read_text() == content


def test_a_store_that_others_can_write_is_not_believed(place: Place) -> None:
    place.store.grant(server(), Binding(entry="e"))
    place.store.file.chmod(0o666)
    with pytest.raises(SettingsError, match="writable by other users"):
        place.store.consents("/p")


def test_two_sessions_do_not_lose_each_others_changes(place: Place) -> None:
    def work(at: int) -> None:
        ConsentStore(place.home).grant(server(f"s{at}"), Binding(entry=str(at)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert len(place.store.consents("/p")) == 12


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_a_home_that_cannot_be_written_still_has_pins_for_the_session(place: Place) -> None:
    place.home.chmod(0o500)
    assert place.store.pin_first(server(), LISTING).tools
    place.home.chmod(0o700)


def test_what_an_unattended_session_changed_is_undone(place: Place) -> None:
    store, own = place.store, msgspec.structs.replace(server("own", scope="user"), layer=Layer.USER)
    store.grant(server(), Binding(entry="e"))
    for one in (server(), own):
        store.pin_first(one, LISTING)
    before, agreed = store.file.read_bytes(), store.consents("/p")
    pins = store.pins([server(), own])
    assert store.look_back("/p", before) == ""

    new = msgspec.structs.replace(own, name="new")
    first = store.pin_first(new, LISTING)  # what a session does by itself
    assert store.look_back("/p", before) == ""
    forged = ServerListing(tools=(ToolDefinition(name="read", description="evil"),))
    for attempt in (
        lambda: store.grant(server("evil"), Binding(entry="e")),
        lambda: store.grant(server(), Binding(entry="another")),
        lambda: store.confirm(own, forged),
        lambda: store.confirm(server(), forged),
        lambda: store.forget(own),
    ):
        attempt()
        assert "while a session ran unattended" in store.look_back("/p", before)
        assert (store.consents("/p"), store.pins([server(), own])) == (agreed, pins)
        assert store.pins([new]) == {"new": first}
    for content in (None, "{", '{"version": 9}'):
        store.file.unlink() if content is None else store.file.write_text(content)
        assert "while a session ran unattended" in store.look_back("/p", before)
        assert (store.consents("/p"), store.pins([server(), own])) == (agreed, pins)


def test_consents_to_other_projects_are_none_of_its_business(place: Place) -> None:
    place.store.grant(server(), Binding(entry="e"))
    before = place.store.file.read_bytes()
    place.store.grant(server(project="/q"), Binding(entry="e"))
    assert place.store.look_back("/p", before) == ""
    assert place.store.consents("/q")
