"""The client of a model server: requests, retries and deadlines, whatever API the server implements."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from wave_agent.errors import ModelError
from wave_agent.http.refusals import (
    Refusal,
    advice,
    hiding,
    is_too_long,
    read_refusal,
    refusal_in,
    says_no_images,
)
from wave_agent.http.retries import RETRIED_STATUSES, Backoff, RequestFailure, asked_wait
from wave_agent.http.routes import proxy_for
from wave_agent.models.base import Api, Delta, ModelRequest, Reader, Retry, Text
from wave_agent.models.encoded_messages import EncodedMessages
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.window_memory import WindowMemory
from wave_agent.models.windows import Window
from wave_agent.system.credentials import public_url, query_values
from wave_agent.text import one_line

if TYPE_CHECKING:  # imported on the first request, to keep start-up fast
    from wave_agent.http.transport import Response, Transport
    from wave_agent.models.probe import Probe

_GRACE = 5.0
"""Seconds to wait for data after the end of an answer (its usage), or for the text of an error."""
_DRAIN = 0.25
"""Seconds to wait for the last bytes of a response, so that the connection can be reused."""
_MAX_ERROR_BODY = 64 << 10
_MAX_DRAIN = 64 << 10
_KEY_REFUSED = frozenset({401, 403})
_WRONG_PLACE = _KEY_REFUSED | {404}
ABSENT = frozenset({404, 405, 501})
"""The statuses by which a server says that it does not have a path; 404 may also be about the model."""


class Deadlines(msgspec.Struct, frozen=True):
    """Seconds after which to give up on a server."""

    connect: float = 15
    idle: float = 300
    """Without receiving a byte, before or during the answer."""
    total: float = 3600
    """For a request, including all retries."""


class KeySource(Protocol):
    async def key(self, refused: str = "") -> str:
        """The key; a new one if the server has `refused` this one. Raises `ModelError` if there is none."""
        ...


class ModelClient:
    """A `Model` that streams from a server.

    Transient failures are retried: a broken connection, 408, 409, 425, 429 and 5xx. A `Retry` is yielded before each
    wait, which grows, or is as long as the server asks for. A refused connection is retried only if this server has
    answered before; otherwise the address is probably wrong.

    An answer that breaks off after some of its text was shown is not retried, since the new text would repeat or
    contradict what was already read. It raises `ModelError`; the text stays visible, and the caller may ask for the
    rest of an `unfinished` one. Calls are yielded only when the answer is complete, so a partial call never runs.
    Reasoning that was shown does not prevent a retry.

    The environment sets proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`) and trusted certificates
    (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `SSL_CERT_DIR`).
    """

    def __init__(
        self,
        api: Api,
        *,
        base_url: str,
        api_key: str | None = None,
        key_source: KeySource | None = None,
        environment: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines | None = None,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] | None = None,
        now: Callable[[], float] = time.time,
        needs_name: bool = False,
        key_name: str = "WAVE_API_KEY",
        hint: str = "",
        limits: Mapping[str, AnswerLimits] | None = None,
        memory: WindowMemory | None = None,
        other_api: Callable[[str, str], Awaitable[Api | None]] | None = None,
    ) -> None:
        """`key_source` is asked for the key if there is no `api_key`. `headers` are sent with each request. `sleep`,
        `chance` and `now` let tests run without waiting. `limits` maps model names to limits on their answers.
        `memory` has what the server said about its windows before. `other_api` is called once if the server does not
        have the API's path, with the API's name and the key, and finds the API to use instead, if any.

        With `needs_name`, a request that names no model is refused before it is sent. `key_name` says where the
        key comes from, `hint` is added when it is refused.
        """
        self._api = api
        self._needs_name = needs_name
        self._limits = limits or {}
        self._memory = memory
        self._other_api = other_api
        self._encoded = EncodedMessages()
        self._base_url = base_url
        self._endpoint = api.endpoint(base_url)
        self._proxy = proxy_for(self._endpoint.place, environment)
        self._environment = environment
        self._key = _plain_key(api_key or "")
        self._key_source = None if self._key else key_source
        self._key_name, self._hint = key_name, hint
        self._headers = dict(headers or {})
        self._deadlines = deadlines or Deadlines()
        self._backoff = backoff or Backoff()
        self._sleep, self._chance, self._now = sleep, chance, now
        self._transport: Transport | None = None
        self._secrets = [place.password for place in (self._endpoint.place, self._proxy) if place is not None]
        self._secrets += query_values(base_url)
        self._hide = hiding([self._key, *self._secrets])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._endpoint.shown!r})"

    @property
    def api(self) -> str:
        """The name of the API in use."""
        return self._api.name

    def why_not_ready(self, model: str) -> str:
        """Why a request to this model would fail before it is sent; empty if it would not."""
        if model or not self._needs_name:
            return ""
        return "No model is set: run wave setup, set WAVE_MODEL or use --model."

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if unready := self.why_not_ready(request.model):
            raise ModelError(unready)
        ends = time.monotonic() + self._deadlines.total
        failures = 0
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(request, ends)) as deltas:
                    async for delta in deltas:
                        begun = begun or isinstance(delta, Text)
                        yield delta
                return
            except RequestFailure as failure:
                failures += 1
                retry = self._retry(failure, failures, begun=begun, ends=ends)
            yield retry
            await self._sleep(retry.seconds)

    async def prepare(self) -> None:
        """Import what a request needs and start connecting. Nothing is sent."""
        transport = self._transport = self._transport or self._new_transport()
        transport.prepare()

    async def context_window(self, model: str) -> Window | None:
        """The context window of this model, if the server reports it."""
        server, memory = public_url(self._base_url), self._memory
        if memory is not None and (known := memory.recall(server, model)) is not None:
            return known.value
        try:
            await self._need_key()
        except ModelError:  # the request will report it
            return None
        probe, api = self._probe(), self._api
        found = await api.context_window(self._base_url, model, probe)
        if memory is not None and probe.all_answered and api is self._api:
            memory.keep(server, model, found)
        return found

    def _probe(self) -> "Probe":
        from wave_agent.models.probe import Probe  # lazy: what is remembered is not asked

        return Probe(self._key, self._api.headers(self._key))

    def listing_request(self) -> tuple[str, Mapping[str, str]]:
        """The URL at which the server lists its models, and the headers for it."""
        return self._api.models_url(self._base_url), self._api.headers(self._key)

    async def models(self) -> list[str]:
        """The names of the models that the server lists. Raises `OSError` or `ValueError` if it lists none."""
        await self._need_key()
        status, listing = await self._probe()("GET", self._api.models_url(self._base_url), None, 10)
        if status != 200:
            raise OSError(f"the server answered {status}")
        try:
            return [str(row["id"]) for row in listing["data"]]
        except (TypeError, KeyError):
            raise ValueError("the answer is not a list of models") from None

    async def close(self) -> None:
        """Close all connections; a running request fails. The model can be used again."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    def _retry(self, failure: RequestFailure, failures: int, *, begun: bool, ends: float) -> Retry:
        """The wait before the next attempt. Raises `ModelError` if there will be none."""
        import random  # lazy: few requests fail

        chance = self._chance or random.random
        seconds = self._backoff.seconds(failures, failure.wait, chance())
        late = time.monotonic() + seconds >= ends
        reason = self._hide(failure.reason)
        if failure.again and not begun and failures < self._backoff.attempts and not late:
            asked = failure.wait or 0
            more = f" (the server asked for {asked:,.0f} s)" if asked > seconds else ""
            return Retry(reason + more, seconds)
        if begun:
            message = f"The answer broke off: {reason}. Only what was shown arrived."
        else:
            capital = reason if reason.startswith("http") else f"{reason[:1].upper()}{reason[1:]}"
            message = capital + (f" (tried {failures} times)." if failures > 1 else ".")
        unfinished = begun and failure.again
        raise ModelError(f"{message} {failure.advice}".strip(), status=failure.status, unfinished=unfinished) from None

    async def _attempt(self, request: ModelRequest, ends: float) -> AsyncGenerator[Delta]:
        await self._need_key()
        transport = self._transport = self._transport or self._new_transport()
        refreshed = False
        so_far: Sequence[Mapping[str, Any]] = ()
        while True:
            body = self._api.body(request, so_far)
            # Without streaming, the server is silent for as long as the model works.
            patience = self._deadlines.idle if body.get("stream") else self._deadlines.total
            async with transport.post(self._as_json(body), patience, ends) as response:
                if 200 <= response.status < 300:
                    reader = self._api.reader(request, self._limits.get(request.model, AnswerLimits()))
                    async with aclosing(self._answer(response, reader)) as deltas:
                        async for delta in deltas:
                            yield delta
                    so_far = (*so_far, *reader.unfinished) if reader.unfinished else ()
                    if not so_far:
                        return
                    continue
                refusal = read_refusal(await response.body(_GRACE, _MAX_ERROR_BODY, broken=True))
            if response.status in _KEY_REFUSED and self._key_source is not None and not refreshed:
                refreshed = True
                await self._need_key(refused=self._key)
            elif (named := self._api.instead(response.status, refusal)) is not None:
                await self._use(named)
                transport = self._transport = self._new_transport()
            elif self._api.adapts_to(response.status, refusal):
                pass
            elif await self._finds_other_api(response.status):
                transport = self._transport = self._new_transport()
            else:
                raise self._refused(response, refusal, request.model)

    async def _finds_other_api(self, status: int) -> bool:
        """Whether another API is used from now on, since the server does not have the assumed one."""
        if status not in ABSENT or self._other_api is None:
            return False
        ask, self._other_api = self._other_api, None
        found = await ask(self._api.name, self._key)
        if found is None:
            return False
        await self._use(found)
        return True

    async def _use(self, api: Api) -> None:
        """Speak this API from now on."""
        await self.close()
        self._api, self._endpoint = api, api.endpoint(self._base_url)

    def _as_json(self, body: Mapping[str, Any]) -> bytes:
        conversation = self._api.conversation
        try:
            encoded = {conversation: self._encoded.encode(body[conversation])}
            return msgspec.json.encode({**body, **encoded}, enc_hook=dict)
        except UnicodeEncodeError:  # lone surrogates, as in some file names: servers reject them
            return json.dumps(body, ensure_ascii=False, default=dict).encode("utf-8", "replace")

    async def _need_key(self, refused: str = "") -> None:
        if self._key_source is not None and (refused or not self._key):
            self._key = _plain_key(await self._key_source.key(refused))
            self._secrets.append(self._key)
            self._hide = hiding(self._secrets)
            if self._transport is not None:  # it may have been connecting since before there was a key
                self._transport.replace_headers(self._authorization())

    async def _answer(self, response: "Response", answer: Reader) -> AsyncGenerator[Delta]:
        if encoding := response.unasked_encoding:
            raise RequestFailure(f"{self._endpoint.shown} compressed its response ({encoding}), unasked", again=False)
        limit = answer.limits.body
        first = await response.read(self._deadlines.idle)
        kind = response.headers.get("content-type", "").lower()
        if "json" in kind or first.lstrip()[:1] in (b"{", b"<"):
            body = first + await response.body(self._deadlines.idle, limit)
            if len(body) > limit:
                raise RequestFailure(
                    f"{self._endpoint.shown} sent more than {limit >> 20} MB in one piece", again=False
                )
            for delta in answer.read(body):
                yield delta
            self._check(answer, whole=True)
        else:
            async with aclosing(self._events(response, first, answer)) as deltas:
                async for delta in deltas:
                    yield delta
        for delta in answer.end():
            yield delta
        await response.body(_DRAIN, _MAX_DRAIN, broken=True)

    async def _events(self, response: "Response", data: bytes, answer: Reader) -> AsyncGenerator[Delta]:
        """Read a streamed answer. Raises `RequestFailure` if it ends before the model has finished."""
        from wave_agent.http.sse import EventReader  # lazy: not needed to send a request

        reader = EventReader()
        done = False
        seen, since = 0, time.monotonic()
        while not done:
            try:
                events = reader.feed(data) if data else reader.finish()
            except ValueError as error:
                raise RequestFailure(f"{self._endpoint.shown} sent {error}", again=False) from None
            last = next((at for at, event in enumerate(events) if event.strip() == "[DONE]"), None)
            done = last is not None
            for delta in answer.read_all(events[:last]):
                yield delta
            if answer.error:
                raise self._error_in_stream(answer.error)
            if done or not data:
                break
            if reader.lines > seen:
                seen, since = reader.lines, time.monotonic()
            elif time.monotonic() - since > self._deadlines.idle:
                raise RequestFailure(f"the server has not ended a line for {self._deadlines.idle:g} s", again=True)
            try:
                data = await response.read(_GRACE if answer.finished else self._deadlines.idle)
            except RequestFailure:
                if answer.finished:
                    break
                raise
        self._check(answer, whole=done)

    def _check(self, answer: Reader, *, whole: bool) -> None:
        if answer.error:
            raise self._error_in_stream(answer.error)
        where = self._endpoint.shown
        if answer.pieces == 0 and answer.unreadable:
            page = answer.unreadable.lstrip().startswith("<")
            sent = "a web page" if page else f'"{one_line(answer.unreadable, 100)}"'
            hint = "Check the base URL." if page else ""
            raise RequestFailure(f"{where} sent {sent} instead of an answer", again=not page, advice=hint)
        if not answer.finished and (not whole or answer.pieces == 0):
            raise RequestFailure(f"{where} ended the stream before the answer was complete", again=True)

    def _error_in_stream(self, error: Any) -> RequestFailure:
        refusal = refusal_in({"error": error})
        status = int(refusal.code) if refusal.code.isdigit() else self._api.statuses.get(refusal.code)
        clause = _clause(refusal)
        again = (status is None or status in RETRIED_STATUSES) and not is_too_long(clause, status)
        return RequestFailure(f"{self._endpoint.shown} reported an error: {clause}", again=again, status=status)

    def _refused(self, response: "Response", refusal: Refusal, model: str) -> RequestFailure:
        status = response.status
        clause = _clause(refusal)
        reason = f"{self._endpoint.shown} answered {status}: {clause}"
        if 300 <= status < 400:
            target = one_line(response.headers.get("location", "elsewhere"), 300)
            return RequestFailure(f"{reason} (it points to {target})", again=False, advice="Check the base URL.")
        final = refusal.code == "insufficient_quota" or says_no_images(refusal.message)  # llama.cpp: with status 500
        again = status in RETRIED_STATUSES and not final and not is_too_long(clause, status)
        hint = advice(status, model, has_key=bool(self._key), key_name=self._key_name)
        if status in _WRONG_PLACE and self._hint:
            hint = f"{hint} {self._hint}"
        if status == 404 and self._endpoint.is_bare:
            hint = f"{hint} Most servers have it below {self._endpoint.shown}/v1."
        wait = asked_wait(response.headers, self._now())
        return RequestFailure(reason, again=again, advice=hint, status=status, wait=wait)

    def _new_transport(self) -> "Transport":
        from wave_agent.http.transport import Transport  # lazy: not every session asks a model over HTTP

        headers = {
            "User-Agent": "wave-agent",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        all_headers = [*(headers | self._authorization() | self._headers).items()]
        return Transport(self._endpoint, self._proxy, self._environment, all_headers, self._deadlines.connect)

    def _authorization(self) -> dict[str, str]:
        if not self._key and self._endpoint.place.authorization:
            return {**self._api.headers(""), "Authorization": self._endpoint.place.authorization}
        return dict(self._api.headers(self._key))


def _plain_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelError("The API key contains invalid characters: set WAVE_API_KEY again.")
    return key


def _clause(refusal: Refusal) -> str:
    clause = refusal.message.rstrip(" .") or "no reason given"
    # Some servers say it only in the code.
    coded = is_too_long(refusal.code) and not is_too_long(clause)
    return f"{clause} ({refusal.code})" if coded else clause
