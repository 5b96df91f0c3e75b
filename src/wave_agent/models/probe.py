"""Small requests to a model's server besides the chat: off the event loop, with a short deadline, never blocking."""

import asyncio
import ipaddress
import json
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from wave_agent.http.routes import basic_authorization
from wave_agent.system.credentials import without_userinfo
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

MAX_ANSWER = 4 << 20


class ProbeRefusedError(OSError):
    """The server answered, but not with what it was asked for."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status


class Probe:
    """Queries one server. A server on the public internet is only asked for its list of models."""

    def __init__(
        self,
        api_key: str | None,
        headers: Mapping[str, str] | None = None,
        *,
        through_proxy: bool = True,
        anywhere: bool = False,
    ) -> None:
        """`headers` are those by which the server's API gets the key. `through_proxy`: if the environment sets one.
        `anywhere`: a public server is asked for other things too."""
        self._through_proxy = through_proxy
        self._anywhere = anywhere
        self._authorization = headers or ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._unanswered = 0

    @property
    def all_answered(self) -> bool:
        """Whether the server has answered every question, no matter what."""
        return self._unanswered == 0

    async def __call__(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, Any]:
        """The status and the JSON of the response. Raises `OSError` or `ValueError` if there is nothing usable."""
        if not (self._anywhere or _about_models(url) or is_near(urlsplit(url).hostname or "")):
            raise OSError("not asked of a public server")
        # A server that sends one byte at a time keeps its thread busy; the program must be able to exit anyway.
        answer = Delivery[tuple[int, Any] | Exception](asyncio.get_running_loop(), Mailbox())

        def ask() -> None:
            try:
                answer.send(self._ask(method, url, body, seconds))
            except Exception as error:
                answer.send(error)

        self._unanswered += 1
        start_in_thread(ask)
        found = await answer.wait()
        if not isinstance(found, OSError) or isinstance(found, ProbeRefusedError):
            self._unanswered -= 1
        if isinstance(found, Exception):
            raise found
        return found

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, Any]:
        from urllib.error import HTTPError  # lazy: half a megabyte of modules for one question
        from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

        class Stay(HTTPRedirectHandler):
            """Never follows redirects: only the configured server is contacted."""

            def redirect_request(self, *_: Any, **__: Any) -> None:
                return None

        headers = {"Content-Type": "application/json", "User-Agent": "wave-agent"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(without_userinfo(url), data=data, headers=headers, method=method)
        inside = basic_authorization(urlsplit(url))
        secrets = self._authorization or ({"Authorization": inside} if inside else {})
        for name, value in secrets.items():
            request.add_unredirected_header(name, value)
        opener = build_opener(Stay) if self._through_proxy else build_opener(Stay, ProxyHandler({}))
        ends = monotonic() + seconds
        content = bytearray()
        try:
            opened = opener.open(request, timeout=seconds)
        except HTTPError as refusal:
            refusal.close()
            raise ProbeRefusedError(refusal.code) from None
        with opened as answer:
            while len(content) < MAX_ANSWER and (part := answer.read1(64 << 10)):
                content += part
                if monotonic() > ends:
                    raise TimeoutError("the answer did not end in time")
            return answer.status, json.loads(content)


def _about_models(url: str) -> bool:
    return "models" in urlsplit(url).path.split("/")[-2:]


def is_near(host: str) -> bool:
    """Whether the host is on this machine or its local network, judging by its name."""
    if host == "localhost" or host.endswith((".local", ".internal", ".lan")) or "." not in host.replace(":", "."):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private or address.is_loopback
