"""Which API a server speaks, found out by asking it with requests that no model has to answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

from wave_agent.http.routes import url_below
from wave_agent.models.apis import api_for
from wave_agent.models.client import ABSENT
from wave_agent.models.probe import Probe, ProbeRefusedError

_SECONDS = 3.0
"""Per request."""
_TOTAL_SECONDS = 8.0
_CHAT = "openai-chat"
_PATHS: Mapping[str, tuple[str, str]] = {
    _CHAT: ("/chat/completions", ""),
    "openai-responses": ("/responses", ""),
    "anthropic": ("/messages", "/v1"),
}
"""Where each API is asked, with the version that its base URL may omit."""
_UNDERSTOOD = frozenset({400, 401, 403, 415, 422, 429})
"""Those by which it refuses an empty request at a path that it has."""


async def spoken_api(base_url: str, key: str, *, bearer: bool = False) -> str | None:
    """The API that the server at this URL speaks; `openai-chat` if that is among several. None: it does not say.

    Each is asked with an empty request, which every server refuses, in its own way only where it speaks the API.
    """
    try:
        async with asyncio.timeout(_TOTAL_SECONDS):
            return await _spoken(base_url, key, bearer=bearer)
    except (TimeoutError, ValueError):
        return None


async def _spoken(base_url: str, key: str, *, bearer: bool) -> str | None:
    if await _status(_CHAT, base_url, key, bearer=bearer) not in ABSENT:
        return _CHAT
    if await _status("openai-responses", base_url, key, bearer=bearer) in _UNDERSTOOD:
        return "openai-responses"
    if await _status("anthropic", base_url, key, bearer=bearer) not in _UNDERSTOOD:
        return None
    below = url_below(base_url, "", "/v1")
    if below != url_below(base_url, "") and await _status(_CHAT, below, key, bearer=bearer) in _UNDERSTOOD:
        return None  # the URL lacks its /v1, as an error should say; it only happens that this API adds it
    return "anthropic"


async def _status(api: str, base_url: str, key: str, *, bearer: bool) -> int | None:
    """The status of an empty request; None if there was no response."""
    path, version = _PATHS[api]
    headers = api_for(api, bearer=bearer).headers(key)
    ask = Probe(key, headers, anywhere=True)
    body: Mapping[str, Any] = {}
    try:
        status, _ = await ask("POST", url_below(base_url, path, version), body, _SECONDS)
    except ProbeRefusedError as refusal:
        return refusal.status
    except (OSError, ValueError):  # no connection, or not JSON
        return None
    return status
