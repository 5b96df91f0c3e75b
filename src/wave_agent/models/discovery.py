"""Finds servers on this machine and the models that a server lists."""

import asyncio
import socket
from collections.abc import Awaitable, Mapping
from http.client import HTTPException
from math import isfinite
from typing import Any, Literal, cast
from urllib.error import URLError
from urllib.parse import urlsplit

from msgspec import Struct

from wave_agent.errors import ModelError
from wave_agent.models.apis import client_for
from wave_agent.models.nearby import ModelServer, local_servers
from wave_agent.models.prices import as_count
from wave_agent.models.probe import Probe, ProbeRefusedError
from wave_agent.text import one_line

_SECONDS = 2.0
"""For a server on this machine to list its models."""
_HOSTED_SECONDS = 15.0
_LONGEST_NAME = 500
MOST_MODELS = 5000
"""Models that are read from one list."""
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
_MILLION = 1_000_000

ListingProblem = Literal["", "unreachable", "key", "silent", "refused", "strange"]
"""Why there is no list: nothing listens there, a key is missing or wrong, no answer in time, another error status, or
something other than a list of models."""


class ListedModel(Struct, frozen=True):
    """A model, as its server lists it."""

    name: str
    window: int | None = None
    """Its context window in tokens, if the list says so."""
    prices: Mapping[str, float] | None = None
    """US dollars per million tokens: `input` and `output`."""


class Listing(Struct, frozen=True):
    """What one server said when asked for its models."""

    server: ModelServer
    models: tuple[ListedModel, ...] = ()
    problem: ListingProblem = ""
    detail: str = ""
    """The problem in words."""
    more: int = 0
    """Models left out of a list that is too long."""

    @property
    def needs_key(self) -> bool:
        return self.problem == "key"


async def find_local_servers(environment: Mapping[str, str], *, seconds: float = _SECONDS) -> list[Listing]:
    """Asks each usual port of this machine at the same time. Only those on which something listens."""
    asked = [list_models(one, seconds=seconds) for one in local_servers(environment)]
    return [found for found in await asyncio.gather(*asked) if found.problem != "unreachable"]


async def list_models(
    server: ModelServer, key: str | None = None, *, bearer: bool = False, seconds: float | None = None
) -> Listing:
    """The models that a server lists. `bearer`: the key is a token. Never raises for anything that a server does."""
    near = urlsplit(server.base_url).hostname in ("127.0.0.1", "::1", "localhost")
    seconds = seconds or (_SECONDS if near else _HOSTED_SECONDS)
    try:
        client = client_for(server.api, base_url=server.base_url, api_key=key, bearer=bearer, environment={})
    except ModelError as error:
        return Listing(server, problem="key" if key else "unreachable", detail=f"it was not asked: {error}")
    url, headers = client.listing_request()
    fetch = Probe(key, headers, through_proxy=not near)
    first = await _listing(server, fetch("GET", url, None, seconds), seconds, "data", "id")
    if first.problem not in ("refused", "strange") or not near:
        return first
    tags = f"{url.removesuffix('/models').removesuffix('/v1')}/api/tags"
    second = await _listing(server, fetch("GET", tags, None, seconds), seconds, "models", "name")
    return first if second.problem else second  # older versions of Ollama list their models only there


async def _listing(
    server: ModelServer, asking: Awaitable[tuple[int, Any]], seconds: float, rows: str, name: str
) -> Listing:
    try:
        async with asyncio.timeout(seconds):
            _, answer = await asking
        models = _models(answer, rows, name)
    except ProbeRefusedError as refusal:
        problem = "key" if refusal.status in (401, 403) else "refused"
        return Listing(server, problem=problem, detail=f"it answered {refusal.status} when asked for its models")
    except TimeoutError:
        return Listing(server, problem="silent", detail=f"it did not list its models within {seconds:g} s")
    except (HTTPException, ValueError, RecursionError):
        return Listing(server, problem="strange", detail="it answered with something other than a list of models")
    except OSError as error:
        return _unreachable(server, error)
    return Listing(server, models[:MOST_MODELS], more=max(0, len(models) - MOST_MODELS))


def _unreachable(server: ModelServer, error: OSError) -> Listing:
    why = error.reason if isinstance(error, URLError) else error
    if isinstance(why, TimeoutError):
        return Listing(server, problem="silent", detail="it did not answer in time")
    if isinstance(why, ConnectionResetError | BrokenPipeError):
        return Listing(server, problem="strange", detail="it closed the connection without an answer")
    name = "its name cannot be resolved" if isinstance(why, socket.gaierror) else ""
    said = name or (why.strerror if isinstance(why, OSError) else "") or str(why)
    return Listing(server, problem="unreachable", detail=f"it cannot be reached: {one_line(said, 200).lower()}")


def _models(answer: object, rows: str, name: str) -> tuple[ListedModel, ...]:
    """Raises `ValueError` if the answer is not a list of models."""
    listed = _mapping(answer).get(rows)
    if not isinstance(listed, list):
        raise ValueError("not a list of models")
    found: dict[str, ListedModel] = {}
    for row in map(_mapping, cast(list[object], listed)):
        called = row.get(name)
        if isinstance(called, str) and 0 < len(called) <= _LONGEST_NAME and called.isprintable():
            found.setdefault(called, ListedModel(called, _window(row), _prices(row)))
    if listed and not found:
        raise ValueError("none of the entries has a name")
    return tuple(found.values())


def _window(row: Mapping[str, Any]) -> int | None:
    return next(filter(None, (as_count(row.get(key)) for key in _WINDOWS)), None)


def _prices(row: Mapping[str, Any]) -> Mapping[str, float] | None:
    """OpenRouter's list has prices per token, as text."""
    stated = _mapping(row.get("pricing"))
    try:
        prices = {kind: float(stated[key]) * _MILLION for kind, key in (("input", "prompt"), ("output", "completion"))}
    except (KeyError, TypeError, ValueError):
        return None
    sound = all(isfinite(price) and price >= 0 for price in prices.values())
    return {kind: round(price, 6) for kind, price in prices.items()} if sound else None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}
