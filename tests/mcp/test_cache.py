"""Listings are kept between sessions, for servers that are still the same."""

import stat

from msgspec.structs import replace

from tests.mcp.configuration import Place
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.cache import ListingCache
from wave_agent.mcp.values import (
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    Server,
    ServerEntry,
    ServerListing,
    ServerTransport,
    ToolDefinition,
)

OWN = Server(
    name="own",
    entry=ServerEntry(transport=ServerTransport.STDIO, command="x"),
    layer=Layer.PROJECT,
    source="f",
    identity="1",
)
USER = replace(OWN, name="user", layer=Layer.USER)
LISTING = ServerListing(
    tools=(ToolDefinition(name="t", input_schema={"a": [1, None]}, annotations={"x": True}, meta={"y": 1.5}),),
    resources=(ResourceDefinition(uri="x://y", is_template=True),),
    prompts=(PromptDefinition(name="p", arguments=(PromptArgument(name="a", is_required=True),)),),
    instructions="i",
    server="s 1",
    protocol="2026-07-28",
)


def test_a_listing_comes_back_for_the_same_server_only(place: Place) -> None:
    cache = ListingCache(place.home, "/p")
    assert cache.read([OWN, USER]) == {}
    cache.keep(OWN, LISTING)
    cache.keep(USER, replace(LISTING, instructions="u"))
    again = ListingCache(place.home, "/p")
    assert again.read([OWN, USER]) == {"own": LISTING, "user": replace(LISTING, instructions="u")}
    assert again.read([replace(OWN, identity="2")]) == {}
    assert again.read([replace(OWN, identity="")]) == {}
    elsewhere = ListingCache(place.home, "/q")
    assert set(elsewhere.read([OWN, USER])) == {"user"}
    assert set(elsewhere.read([replace(USER, layer=Layer.PROJECT)])) == set()
    again.forget("USER")
    assert set(again.read([OWN, USER])) == {"own"}


def test_the_cache_is_private_and_never_in_the_way(place: Place) -> None:
    cache = ListingCache(place.home, "/p")
    cache.keep(OWN, LISTING)
    directory = place.home / "mcp-cache"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    (file,) = directory.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for content in ("", "{", "[]", '{"version": 2}', '{"servers": {"own": {"identity": 1}}}'):
        file.write_text(content)
        assert cache.read([OWN]) == {}
    cache.keep(OWN, LISTING)
    assert cache.read([OWN]) == {"own": LISTING}
    cache.keep(OWN, replace(LISTING, instructions="half \ud800"))  # cannot be written
    blocked = ListingCache(place.home / "mcp-cache" / file.name, "/p")
    blocked.keep(OWN, LISTING)
    assert blocked.read([OWN]) == {}
