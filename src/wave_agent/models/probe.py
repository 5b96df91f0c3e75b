"""Small requests to a model's server besides the chat: off the event loop, with a short deadline, never blocking."""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from wave_agent.http.routes import basic_authorization
from wave_agent.system.credentials import without_userinfo
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

MAX_ANSWER = 4 << 20
LOCAL_SERVERS = {11434: "Ollama", 8000: "vLLM", 8080: "llama.cpp", 1234: "LM Studio"}


class Probe:
    """Queries one server. A server on the public internet is only asked for its list of models."""

    def __init__(self, api_key: str | None) -> None:
        self._key = api_key

    async def __call__(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, Any]:
        """The status and the JSON of the response. Raises `OSError` or `ValueError` if there is nothing usable."""
        if not url.endswith("/models") and not is_near(urlsplit(url).hostname or ""):
            raise OSError("not asked of a public server")
        # A server that sends one byte at a time keeps its thread busy; the program must be able to exit anyway.
        answer = Delivery[tuple[int, Any] | Exception](asyncio.get_running_loop(), Mailbox())

        def ask() -> None:
            try:
                answer.send(self._ask(method, url, body, seconds))
            except Exception as error:
                answer.send(error)

        start_in_thread(ask)
        found = await answer.wait()
        if isinstance(found, Exception):
            raise found
        return found

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, Any]:
        from urllib.error import HTTPError  # lazy: half a megabyte of modules for one question
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class Stay(HTTPRedirectHandler):
            """Never follows redirects: only the configured server is contacted."""

            def redirect_request(self, *_: Any, **__: Any) -> None:
                return None

        headers = {"Content-Type": "application/json", "User-Agent": "wave-agent"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(without_userinfo(url), data=data, headers=headers, method=method)
        if authorization := f"Bearer {self._key}" if self._key else basic_authorization(urlsplit(url)):
            request.add_unredirected_header("Authorization", authorization)
        ends = monotonic() + seconds
        content = bytearray()
        try:
            opened = build_opener(Stay).open(request, timeout=seconds)
        except HTTPError as refusal:
            refusal.close()
            raise OSError(f"the server answered {refusal.code}") from None
        with opened as answer:
            while len(content) < MAX_ANSWER and (part := answer.read1(64 << 10)):
                content += part
                if monotonic() > ends:
                    raise TimeoutError("the answer did not end in time")
            return answer.status, json.loads(content)


def is_near(host: str) -> bool:
    """Whether the host is on this machine or its local network, judging by its name."""
    if host == "localhost" or host.endswith((".local", ".internal", ".lan")) or "." not in host.replace(":", "."):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private or address.is_loopback


def advice() -> str:
    """Where to get a model: a local server if one listens on a usual port, otherwise the demo."""
    for port, name in LOCAL_SERVERS.items():
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return f"Something is listening on {name}'s usual port: try WAVE_BASE_URL=http://127.0.0.1:{port}/v1"
    return "wave demo works without a model."
