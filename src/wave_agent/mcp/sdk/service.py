"""Serves the agent: requests come in over the socket, each is a task, and replies go back."""

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from mcp import Client
from mcp.client import session, sse

from wave_agent.mcp import wire
from wave_agent.mcp.host import CONNECT_DEADLINE, LOGIN_TIMEOUT
from wave_agent.mcp.sdk.connection import Flight, HostSurroundings, ServerConnection
from wave_agent.mcp.sdk.failures import ForgottenSessionError
from wave_agent.mcp.sdk.launching import Launcher
from wave_agent.mcp.sdk.oauth import LoopbackCallback, new_login
from wave_agent.mcp.sdk.oversized import LINE_LIMIT
from wave_agent.mcp.sdk.results import call_result, prompt_text, resource_result
from wave_agent.mcp.sdk.tokens import TokenFile
from wave_agent.mcp.values import (
    Elicitation,
    ElicitationAnswer,
    LoginNeededError,
    McpError,
    Server,
    ServerListing,
    ServerTransport,
)

_CHUNK = 1 << 18
_PROBE = 3.0
"""Seconds in which an old server may ignore a probe for the newer protocol. The SDK waits for longer than the agent
does; a server that only started slowly is asked again."""
_DESCRIPTORS = 8
_HIGH_WATER = 32 << 20
"""Bytes on their way to the agent before results wait."""


async def serve(sock: socket.socket) -> None:
    """Until the agent says so, or has gone."""
    session.DISCOVER_TIMEOUT_SECONDS = _PROBE
    # Nothing else lets an event of the older transport be larger than 1 MB.
    sse.sse_within_origin = partial(sse.sse_within_origin, max_event_size=LINE_LIMIT)  # pyright: ignore[reportPrivateImportUsage]
    line = _AgentLine(sock)
    setup = await line.receive()
    assert isinstance(setup, wire.Setup)
    service = _Service(setup, line)
    line.send(wire.Ready())
    try:
        while (message := await line.receive()) is not None and not isinstance(message, wire.CloseAll):
            service.take(message)
    finally:
        await service.close()


class _AgentLine:
    """This end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._messages: asyncio.Queue[wire.FromAgent | None] = asyncio.Queue()
        self._descriptors: list[int] = []
        self._lines = wire.LineSplitter()
        self._unsent = bytearray()
        self._is_drained = asyncio.Event()
        self._is_drained.set()
        self._loop.add_reader(sock.fileno(), self._read)

    async def receive(self) -> wire.FromAgent | None:
        return await self._messages.get()

    def take_descriptor(self) -> int | None:
        """The oldest that came along with a message."""
        return self._descriptors.pop(0) if self._descriptors else None

    def send(self, message: wire.FromHost) -> None:
        is_idle = not self._unsent
        self._unsent += wire.encode(message)
        if is_idle:
            self._write()

    async def drained(self) -> None:
        """Waits while there is too much on its way."""
        await self._is_drained.wait()

    def _write(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(memoryview(self._unsent)[:_CHUNK])
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._socket.fileno(), self._write)
        except OSError:  # The agent has gone: the reader finds out.
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._socket.fileno())
        if len(self._unsent) > _HIGH_WATER:
            self._is_drained.clear()
        else:
            self._is_drained.set()

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _CHUNK, _DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors += descriptors
        if not data:
            self._loop.remove_reader(self._socket.fileno())
            self._messages.put_nowait(None)
        for line in self._lines.feed(data):
            self._messages.put_nowait(wire.decode_from_agent(line))


class _Service:
    def __init__(self, setup: wire.Setup, line: _AgentLine) -> None:
        self._line = line
        self._questions = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._connections: dict[str, ServerConnection] = {}
        self._around = HostSurroundings(
            roots=setup.roots,
            version=_version(),
            launcher=Launcher(
                setup.marks,
                confine=self._confine if setup.is_confined else None,
                spawned=lambda group: line.send(wire.Spawned(group=group)),
                exited=lambda question: line.send(wire.Exited(question=question)),
            ),
            tokens=TokenFile(Path(setup.home)),
            changed=self._changed,
            ask=self._ask,
        )

    def take(self, message: wire.FromAgent) -> None:
        match message:
            case wire.CancelRequest(id=number):
                if (task := self._tasks.get(number)) is not None:
                    task.cancel()
            case wire.ElicitationAnswered(question=question, answer=answer):
                self._settle(question, answer)
            case wire.Confined(question=question):
                descriptor = self._line.take_descriptor() if message.descriptor is not None else None
                self._settle(question, (message, descriptor))
            case wire.Setup() | wire.CloseAll():
                pass
            case _:
                task = asyncio.create_task(self._reply(message))
                self._tasks[message.id] = task
                task.add_done_callback(lambda _: self._tasks.pop(message.id, None))

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        work = [connection.close() for connection in self._connections.values()]
        await asyncio.gather(*work, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------------- requests

    async def _reply(self, request: wire.Request) -> None:
        reply: wire.Reply
        try:
            reply = await self._work(request)
        except McpError as error:
            needs_login = isinstance(error, LoginNeededError)
            reply = wire.Failed(id=request.id, message=str(error), needs_login=needs_login)
        except Exception as error:
            reply = wire.Failed(id=request.id, message=f"The MCP server {request.server.name!r} failed: {error!r:.500}")
        await self._line.drained()
        self._line.send(reply)

    async def _work(self, request: wire.Request) -> wire.Reply:
        server = request.server
        if isinstance(request, wire.LogIn):
            await self._log_in(request)
            return wire.Texted(id=request.id)
        if isinstance(request, wire.ConnectServer):
            connection, listing = await self._connected(server, request.deadline)
            return wire.Listed(id=request.id, listing=listing or await connection.relist())
        flight = Flight(
            request.id,
            elicits=isinstance(request, wire.CallTool) and request.elicits,
            report=lambda done, total, text: self._line.send(
                wire.Progressed(id=request.id, done=done, total=total, message=text[:1000])
            ),
        )
        match request:
            case wire.CallTool(tool=tool, arguments=arguments, expected=expected, meta=meta):
                result = await self._use(
                    server,
                    flight,
                    lambda client: client.call_tool(
                        tool, dict(arguments), None, flight.progress.hear, meta=cast(Any, dict(meta)) if meta else None
                    ),
                    expected=expected,
                )
                return wire.Finished(id=request.id, result=call_result(result))
            case wire.ReadResource(uri=uri):
                result = await self._use(server, flight, lambda client: client.read_resource(uri))
                return wire.Finished(id=request.id, result=resource_result(result))
            case wire.GetPrompt(name=name, arguments=arguments):
                result = await self._use(server, flight, lambda client: client.get_prompt(name, dict(arguments)))
                return wire.Texted(id=request.id, text=prompt_text(result))

    async def _use(
        self, server: Server, flight: Flight, work: Callable[[Client], Awaitable[Any]], *, expected: str = ""
    ) -> Any:
        """`expected`: see `wire.CallTool`."""
        connection = await self._unchanged(server, expected)
        try:
            return await connection.use(flight, work)
        except ForgottenSessionError:
            connection = await self._unchanged(server, expected)
            return await connection.use(flight.again(), work)

    async def _unchanged(self, server: Server, expected: str) -> ServerConnection:
        """Raises `McpError` if it has to be connected anew, and offers other tools than before: the agent has to look
        at them first."""
        connection, listing = await self._connected(server, CONNECT_DEADLINE)
        if expected and listing is not None and wire.tools_digest(listing) != expected:
            self._line.send(wire.Changed(server=server.name, listing=listing))
            raise McpError(
                f"The MCP server {server.name!r} was restarted, and its tools have changed: the call was not sent"
            )
        return connection

    async def _connected(self, server: Server, deadline: float) -> tuple[ServerConnection, ServerListing | None]:
        """With the listing, if it was connected just now."""
        connection = self._connections.get(server.name)
        if connection is not None and (connection.is_lost or connection.server != server):
            del self._connections[server.name]
            await connection.close()
            connection = self._connections.get(server.name)  # Another request may have been faster.
        is_new = connection is None
        if connection is None:
            connection = self._connections[server.name] = ServerConnection(server, self._around)
        try:
            listing = await connection.open(deadline)
        except McpError:
            if self._connections.get(server.name) is connection:
                del self._connections[server.name]
            raise
        return connection, listing if is_new else None

    async def _log_in(self, request: wire.LogIn) -> None:
        server = request.server
        if server.entry.transport == ServerTransport.STDIO:
            raise McpError(f"The MCP server {server.name!r} is a program on this machine: it needs no login")
        if (old := self._connections.pop(server.name, None)) is not None:
            await old.close()

        def show(url: str) -> None:
            self._line.send(wire.LoginUrl(id=request.id, url=url))

        shown: list[str] = []
        async with LoopbackCallback(server.entry.oauth.callback_port if server.entry.oauth else None) as callback:
            provider = await new_login(
                self._around.tokens, server, callback, lambda url: (shown.append(url), show(url))[1]
            )
            connection = ServerConnection(server, self._around, provider)
            try:
                await connection.open(LOGIN_TIMEOUT)
            finally:
                await connection.close()
        if not shown:
            raise McpError(f"The MCP server {server.name!r} does not ask for a login")

    # --------------------------------------------------------------------------------------- questions to the agent

    def _settle(self, question: int, answer: object) -> None:
        if (asked := self._asked.get(question)) is not None and not asked.done():
            asked.set_result(answer)

    async def _question(self, question: int, message: wire.FromHost) -> Any:
        asked = self._asked[question] = asyncio.get_running_loop().create_future()
        self._line.send(message)
        try:
            return await asked
        finally:
            del self._asked[question]

    async def _ask(self, number: int, elicitation: Elicitation) -> ElicitationAnswer:
        question = next(self._questions)
        return await self._question(
            question, wire.ElicitationAsked(id=number, question=question, elicitation=elicitation)
        )

    async def _confine(
        self, server: str, argv: Any, environment: Any, directory: str
    ) -> tuple[wire.Confined, int | None]:
        question = next(self._questions)
        message = wire.Confine(
            question=question, server=server, argv=argv, environment=environment, directory=directory
        )
        return await self._question(question, message)

    def _changed(self, name: str, listing: ServerListing) -> None:
        self._line.send(wire.Changed(server=name, listing=listing))


def _version() -> str:
    try:
        return version("wave-agent")
    except PackageNotFoundError:  # Run from its sources.
        return "0"
