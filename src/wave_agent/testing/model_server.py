"""A model server for tests: real HTTP on loopback, scripted replies, recorded requests.

In an asynchronous test:

    async with RecordingModelServer(["Hello!"]) as server:
        agent = await Agent.create(base_url=server.base_url, model="any")
        await agent.send_message("Hi")
    assert server.requests[0].body["messages"][-1]["content"] == "Hi"

It speaks all APIs of the agent: a POST to `…/chat/completions`, `…/messages` or `…/responses` gets the next reply in
the form of that API.

In a synchronous test, or one that starts `wave` as a process:

    with RecordingModelServer.in_thread(["Hello!"]) as server:
        subprocess.run(["wave", "-p", "Hi"], env={**os.environ, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"})

Each request gets the next reply:

    "text"                    this answer, streamed word by word
    Reply(...)                reasoning, text, calls in fragments, usage; `gate` delays it, `error` breaks it,
                              `cut` says why it ends early: "length" or "content_filter"
    Status(429, "slow down")  this status, body and headers
    Events([...])             a hand-made stream: fragments, invalid data, pauses, a broken connection
    Whole("text")             one JSON body, even if the request asked for a stream
    Hang()                    no answer, ever
    an exception              its text as a server error: status 500, or the `status` of a `ModelError`
    a function                called with the `RecordedRequest`; returns one of the above

If no reply is left, a request gets status 400, which clients show and do not retry.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct

from wave_agent.errors import ModelError
from wave_agent.models import anthropic_replies, chat_replies, responses_replies
from wave_agent.models.chat_replies import delta
from wave_agent.models.scripted import Reply, as_reply, out_of_replies

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Events", "Hang", "RecordedRequest", "RecordingModelServer", "Reply", "Status", "Whole", "delta"]


class Status(Struct, frozen=True):
    """A plain HTTP response. A body that is neither text nor bytes is sent as JSON."""

    code: int
    body: Any = ""
    headers: Mapping[str, str] = {}


class Events(Struct, frozen=True):
    """A stream, event by event.

    A mapping is sent as JSON (`delta()` creates one), a string verbatim, bytes without event framing. An
    `asyncio.Event` is awaited. `end` is `"done"` to end normally, `"cut"` to break the connection, or `"bare"` to
    omit the final `[DONE]`.
    """

    events: Sequence[Mapping[str, Any] | str | bytes | asyncio.Event]
    end: Literal["done", "bare", "cut"] = "done"


class Whole(Struct, frozen=True):
    """The reply as one JSON body, regardless of the request."""

    reply: Reply | str


class Hang(Struct, frozen=True):
    """Accepts the request and never answers."""


class RecordedRequest(Struct):
    """A request from a client."""

    method: str
    path: str
    headers: dict[str, str]
    """Names are lower-case."""
    body: dict[str, Any]
    """The body as a JSON object; empty if it is not one."""
    connection: int
    """The number of its connection, from 1: requests with the same number shared one."""
    api: str = ""
    """The API that the client speaks, as in `--api`; empty for requests to another path."""
    disconnected: bool = False
    """The client disconnected before the response was complete."""


ServerAnswer = str | Reply | Status | Events | Whole | Hang | Exception
ServerScript = ServerAnswer | Callable[[RecordedRequest], ServerAnswer]


APIS: Mapping[str, str] = {
    "/chat/completions": "openai-chat",
    "/messages": "anthropic",
    "/responses": "openai-responses",
}
"""By the end of the path."""


class RecordingModelServer:
    """Speaks the agent's APIs on an ephemeral port of 127.0.0.1. See the module docstring for usage."""

    def __init__(
        self,
        replies: Iterable[ServerScript],
        *,
        tls: "SSLContext | None" = None,
        elsewhere: Mapping[str, Any] | None = None,
    ) -> None:
        """With `tls` it speaks https; `replies` may be infinite. `elsewhere` maps other requests, by method and path
        without the query (`"GET /v1/models"`), to JSON responses, a `Status` or `Hang()`; anything else gets status
        404."""
        self._replies = iter(replies)
        self._elsewhere = elsewhere or {}
        self._tls = tls
        self._port = 0
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._connection_count = 0
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping = asyncio.Event()
        self.requests: list[RecordedRequest] = []
        """Requests to the model, in order."""
        self.other_requests: list[RecordedRequest] = []
        """All other requests, in order."""

    @property
    def base_url(self) -> str:
        """The base URL for clients. Still available after the server has stopped."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        loop = self._loop = asyncio.get_running_loop()

        def protocol() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(_RequestReader(), self._accept)

        self._server = await loop.create_server(protocol, "127.0.0.1", 0, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task, writer in self._connections.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports notice that they are closed

    def start(self) -> None:
        """Start the server in a separate thread. `stop()` ends it; `in_thread` does both."""
        listening = threading.Event()

        async def serve() -> None:
            async with self:
                listening.set()
                await self._stopping.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),), name="model-server", daemon=True)
        self._thread.start()
        if not listening.wait(20):
            raise RuntimeError("the model server did not start")

    def stop(self) -> None:
        """Stop a server started with `start()` and close its connections."""
        if self._thread is not None:
            self.release(self._stopping)
            self._thread.join()
            self._thread = None

    @classmethod
    @contextmanager
    def in_thread(
        cls,
        replies: Iterable[ServerScript],
        *,
        tls: "SSLContext | None" = None,
        elsewhere: Mapping[str, Any] | None = None,
    ) -> "Generator[Self]":
        """Run the server in a separate thread for the duration of the block."""
        server = cls(replies, tls=tls, elsewhere=elsewhere)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def release(self, gate: asyncio.Event) -> None:
        """Open a gate that a reply waits for. Unlike `gate.set()`, this works from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(gate.set)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _RequestReader)
        self._connection_count += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer, self._connection_count))
        self._connections[task] = writer
        task.add_done_callback(self._connections.pop)

    async def _serve(self, reader: "_RequestReader", writer: asyncio.StreamWriter, connection: int) -> None:
        """Serve all requests of one connection."""
        wire = _Wire(reader, writer)
        try:
            while (request := await _read_request(reader, connection)) is not None:
                try:
                    await self._answer(request, wire)
                except (_ClientGone, ConnectionError):
                    request.disconnected = True
                    break
        except (_Cut, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort() if wire.cut else writer.close()

    async def _answer(self, request: RecordedRequest, wire: "_Wire") -> None:
        path = request.path.partition("?")[0]
        request.api = next((api for end, api in APIS.items() if request.method == "POST" and path.endswith(end)), "")
        if not request.api:
            self.other_requests.append(request)
            none = Status(404, _error(f"there is no {request.method} {request.path} here"))
            answer = self._elsewhere.get(f"{request.method} {path}", none)
            if isinstance(answer, Hang):
                await wire.hold(asyncio.Event())
            await wire.status(answer if isinstance(answer, Status) else Status(200, answer))
            return
        self.requests.append(request)
        if (refused := self.refusal(request)) is not None:
            await wire.status(refused)
            return
        answer = self._next_answer(request)
        streamed = bool(request.body.get("stream"))
        match answer:
            case Status():
                await wire.status(answer)
            case Hang():
                await wire.hold(asyncio.Event())
            case Events():
                await wire.stream(answer)
            case Whole():
                await wire.reply(as_reply(answer.reply), request, streamed=False)
            case Exception():
                status = (isinstance(answer, ModelError) and answer.status) or 500
                await wire.status(Status(status, _error(str(answer))))
            case _:
                await wire.reply(as_reply(answer), request, streamed=streamed)

    def refusal(self, request: RecordedRequest) -> Status | None:
        """For subclasses: a response to this request that takes no reply from the script."""
        return None

    def _next_answer(self, request: RecordedRequest) -> ServerAnswer:
        try:
            script = next(self._replies)
        except StopIteration:
            problem = out_of_replies(len(self.requests), request.body.get("messages", []))
            return Status(400, _error(str(problem)))
        try:
            return script(request) if callable(script) else script
        except Exception as error:  # an exception from a test's function becomes an error response
            return Status(400, _error(f"the script raised {error!r}"))


class _ClientGone(Exception):  # noqa: N818
    """The client closed the connection before it got a response."""


class _Cut(Exception):  # noqa: N818
    """The script breaks the connection here."""


class _RequestReader(asyncio.StreamReader):
    """A reader that notices a client's disconnect immediately, even while nothing is reading."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 20)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.ended.set()


async def _read_request(reader: _RequestReader, connection: int) -> RecordedRequest | None:
    """The next request on a connection, or None."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).partition(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    return RecordedRequest(method, path, headers, parsed if isinstance(parsed, dict) else {}, connection)  # pyright: ignore[reportUnknownArgumentType]


class _Wire(Struct):
    """Writes responses to one connection."""

    reader: _RequestReader
    writer: asyncio.StreamWriter
    cut: bool = False

    async def hold(self, gate: asyncio.Event) -> None:
        """Wait for the gate, or for the client to disconnect."""
        waits = [asyncio.ensure_future(event.wait()) for event in (gate, self.reader.ended)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.reader.ended.is_set() and not gate.is_set():
            raise _ClientGone

    async def send(self, data: bytes) -> None:
        if self.reader.ended.is_set():
            raise _ClientGone
        self.writer.write(data)
        await self.writer.drain()

    @staticmethod
    def head(code: int, headers: Mapping[str, str]) -> bytes:
        phrase = next((status.phrase for status in HTTPStatus if status == code), "")
        lines = [f"HTTP/1.1 {code} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    async def status(self, status: Status) -> None:
        plain = isinstance(status.body, str | bytes)
        text = status.body if plain else json.dumps(status.body)
        body: bytes = text if isinstance(text, bytes) else text.encode()
        kind = "text/plain" if plain else "application/json"
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **status.headers}
        await self.send(self.head(status.code, headers) + body)

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def stream(self, script: Events) -> None:
        await self.send(self.head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))
        for event in script.events:
            if isinstance(event, asyncio.Event):
                await self.hold(event)
            elif isinstance(event, bytes):
                await self.chunk(event)
            else:
                text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
                named = "" if isinstance(event, str) or "type" not in event else f"event: {event['type']}\n"
                await self.chunk(f"{named}data: {text}\n\n".encode())
        if script.end == "cut":
            self.cut = True
            raise _Cut
        await self.send((b"e\r\ndata: [DONE]\n\n\r\n" if script.end == "done" else b"") + b"0\r\n\r\n")

    async def reply(self, reply: Reply, request: RecordedRequest, *, streamed: bool) -> None:
        if reply.gate is not None:
            await self.hold(reply.gate)
        if not streamed:
            await self.status(Status(200, _WHOLE[request.api](reply)))
        elif request.api == "openai-chat":
            await self.stream(Events(chat_replies.chunks(reply), "cut" if reply.error else "done"))
        else:
            await self.stream(Events(_STREAMED[request.api](reply), "cut" if reply.error else "bare"))


_STREAMED = {"anthropic": anthropic_replies.events, "openai-responses": responses_replies.events}
_WHOLE = {
    "openai-chat": chat_replies.whole,
    "anthropic": anthropic_replies.whole,
    "openai-responses": responses_replies.whole,
}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted", "code": None}}
