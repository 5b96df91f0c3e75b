"""A client for any server that implements OpenAI's `/chat/completions`."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

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
from wave_agent.http.routes import chat_endpoint, proxy_for
from wave_agent.http.sse import EventReader
from wave_agent.models.base import Delta, ModelRequest, Retry, Text
from wave_agent.models.chat_stream import AnswerReader
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.probe import Probe
from wave_agent.models.windows import Window, context_window
from wave_agent.text import one_line

if TYPE_CHECKING:  # imported on the first request, to keep start-up fast
    from wave_agent.http.transport import Response, Transport

_GRACE = 5.0
"""Seconds to wait for data after the end of an answer (its usage), or for the text of an error."""
_DRAIN = 0.25
"""Seconds to wait for the last bytes of a response, so that the connection can be reused."""
_MAX_ERROR_BODY = 64 << 10
_MAX_DRAIN = 64 << 10


class Deadlines(msgspec.Struct, frozen=True):
    """Seconds after which to give up on a server."""

    connect: float = 15
    idle: float = 300
    """Without receiving a byte, before or during the answer."""
    total: float = 3600
    """For a request, including all retries."""


class _ServerSupport(msgspec.Struct, frozen=True):
    """What this server supports. Assumed to be everything; features it refuses are no longer used."""

    stream: bool = True
    usage: bool = True

    def without_refused(self, status: int, refusal: Refusal) -> "_ServerSupport | None":
        """What to try instead, if the server refused an optional feature."""
        message = refusal.message.lower()
        if status not in {400, 422} or "stream" not in message or not self.stream:
            return None
        if self.usage and ("stream_options" in message or "include_usage" in message):
            return _ServerSupport(usage=False)
        return _ServerSupport(stream=False, usage=False)


class OpenAIChatModel:
    """A `Model` that streams from OpenAI, vLLM, Ollama, llama.cpp, LM Studio, OpenRouter and similar servers.

    Transient failures are retried: a broken connection, 408, 409, 425, 429 and 5xx. A `Retry` is yielded before each
    wait, which grows, or is as long as the server asks for. A refused connection is retried only if this server has
    answered before; otherwise the address is probably wrong.

    An answer that breaks off after some of its text was shown is not retried, since the new text would repeat or
    contradict what was already read. It raises `ModelError`; the text stays visible. Calls are yielded only when the
    answer is complete, so a partial call never runs. Reasoning that was shown does not prevent a retry.

    The environment sets proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`) and trusted certificates
    (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `SSL_CERT_DIR`).
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        environment: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines | None = None,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] | None = None,
        now: Callable[[], float] = time.time,
        needs_name: bool = False,
        limits: Mapping[str, AnswerLimits] | None = None,
    ) -> None:
        """`headers` are sent with each request. `sleep`, `chance` and `now` let tests run without waiting. `limits`
        maps model names to limits on their answers.

        With `needs_name`, a request that names no model is refused before it is sent.
        """
        self._needs_name = needs_name
        self._limits = limits or {}
        self._base_url = base_url
        self._endpoint = chat_endpoint(base_url)
        self._proxy = proxy_for(self._endpoint.place, environment)
        self._environment = environment
        self._key = (api_key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelError("The API key contains invalid characters: set WAVE_API_KEY again.")
        self._headers = dict(headers or {})
        self._deadlines = deadlines or Deadlines()
        self._backoff = backoff or Backoff()
        self._sleep, self._chance, self._now = sleep, chance, now
        self._dialect = _ServerSupport()
        self._transport: Transport | None = None
        passwords = [place.password for place in (self._endpoint.place, self._proxy) if place is not None]
        self._hide = hiding([self._key, *passwords])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._endpoint.shown!r})"

    def why_not_ready(self, model: str) -> str:
        """Why a request to this model would fail before it is sent; empty if it would not."""
        return "No model is set: set WAVE_MODEL or use --model." if self._needs_name and not model else ""

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
        return await context_window(self._base_url, model, Probe(self._key))

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
        raise ModelError(f"{message} {failure.advice}".strip(), status=failure.status) from None

    async def _attempt(self, request: ModelRequest, ends: float) -> AsyncGenerator[Delta]:
        transport = self._transport = self._transport or self._new_transport()
        dialect = self._dialect
        while True:
            # Without streaming, the server is silent for as long as the model works.
            patience = self._deadlines.idle if dialect.stream else self._deadlines.total
            async with transport.post(_body(request, dialect), patience, ends) as response:
                if 200 <= response.status < 300:
                    self._dialect = dialect
                    limits = self._limits.get(request.model, AnswerLimits())
                    async with aclosing(self._answer(response, limits)) as deltas:
                        async for delta in deltas:
                            yield delta
                    return
                refusal = read_refusal(await response.body(_GRACE, _MAX_ERROR_BODY, broken=True))
                simpler = dialect.without_refused(response.status, refusal)
                if simpler is None:
                    raise self._refused(response, refusal, request.model)
                dialect = simpler

    async def _answer(self, response: "Response", limits: AnswerLimits) -> AsyncGenerator[Delta]:
        if encoding := response.unasked_encoding:
            raise RequestFailure(f"{self._endpoint.shown} compressed its response ({encoding}), unasked", again=False)
        answer = AnswerReader(limits)
        first = await response.read(self._deadlines.idle)
        kind = response.headers.get("content-type", "").lower()
        if "json" in kind or first.lstrip()[:1] in (b"{", b"<"):
            body = first + await response.body(self._deadlines.idle, limits.body)
            if len(body) > limits.body:
                raise RequestFailure(
                    f"{self._endpoint.shown} sent more than {limits.body >> 20} MB in one piece", again=False
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

    async def _events(self, response: "Response", data: bytes, answer: AnswerReader) -> AsyncGenerator[Delta]:
        """Read a streamed answer. Raises `RequestFailure` if it ends before the model has finished."""
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

    def _check(self, answer: AnswerReader, *, whole: bool) -> None:
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
        status = int(refusal.code) if refusal.code.isdigit() else None
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
        hint = advice(status, model, has_key=bool(self._key))
        wait = asked_wait(response.headers, self._now())
        return RequestFailure(reason, again=again, advice=hint, status=status, wait=wait)

    def _new_transport(self) -> "Transport":
        from wave_agent.http.transport import Transport

        headers = {
            "User-Agent": "wave-agent",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        authorization = f"Bearer {self._key}" if self._key else self._endpoint.place.authorization
        if authorization:
            headers["Authorization"] = authorization
        all_headers = [*(headers | self._headers).items()]
        return Transport(self._endpoint, self._proxy, self._environment, all_headers, self._deadlines.connect)


def _clause(refusal: Refusal) -> str:
    clause = refusal.message.rstrip(" .") or "no reason given"
    # Some servers say it only in the code.
    coded = is_too_long(refusal.code) and not is_too_long(clause)
    return f"{clause} ({refusal.code})" if coded else clause


def _body(request: ModelRequest, dialect: _ServerSupport) -> bytes:
    body: dict[str, Any] = {"model": request.model, "messages": request.messages, "stream": dialect.stream}
    if dialect.stream and dialect.usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
    try:
        return msgspec.json.encode(body, enc_hook=dict)
    except UnicodeEncodeError:  # lone surrogates, as in some file names: servers reject them
        return json.dumps(body, ensure_ascii=False, default=dict).encode("utf-8", "replace")
