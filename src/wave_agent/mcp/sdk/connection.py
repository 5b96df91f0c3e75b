"""One server: connected once, kept, and closed with everything that belongs to it."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost
from msgspec import Struct
from pydantic import FileUrl

from wave_agent.mcp.host import call_timeout
from wave_agent.mcp.sdk.failures import (
    ForgottenSessionError,
    ended,
    explained,
    first_of,
    is_closed,
    too_late,
    unanswered,
)
from wave_agent.mcp.sdk.launching import Launcher, ServerProcess
from wave_agent.mcp.sdk.listings import listing_of
from wave_agent.mcp.sdk.oauth import login_needed, stored_login
from wave_agent.mcp.sdk.progress import ProgressReports, Report
from wave_agent.mcp.sdk.raw_results import read_raw_results
from wave_agent.mcp.sdk.remote import HttpStatus, headers_of, remote_transport
from wave_agent.mcp.sdk.results import plain
from wave_agent.mcp.sdk.stdio import stdio_transport
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

_DYING = 0.1
"""Seconds in which a process that has closed its output usually ends."""
_RELIST_INTERVAL = 1.0
"""Seconds between two readings of a list that keeps changing."""
_LISTEN_AGAIN = (1, 2, 4, 8, 16)
_CLOSING = 3.0
_MOST_QUESTIONS = 20
"""What one call may ask the user; the rest is declined unseen."""


class HostSurroundings(Struct, frozen=True, kw_only=True):
    """What a connection needs of its process."""

    roots: tuple[str, ...]
    version: str
    launcher: Launcher
    tokens: TokenFile
    changed: Callable[[str, ServerListing], None]
    ask: Callable[[int, Elicitation], Awaitable[ElicitationAnswer]]
    """Asks whoever made this call."""


class Flight:
    """A call under way."""

    def __init__(self, number: int, *, elicits: bool, report: Report) -> None:
        self.number = number
        self.elicits = elicits
        self.scope = anyio.CancelScope()
        self.progress = ProgressReports(report)
        self._asked = 0
        self._open = 0
        self._left = 0.0

    def may_ask(self) -> bool:
        """Counts the questions: a server that asks for ever would never run out of time."""
        self._asked += 1
        return self.elicits and self._asked <= _MOST_QUESTIONS

    @contextmanager
    def question(self) -> Generator[None]:
        """The clock stops while a question is open: a person may take as long as they like."""
        if not self._open:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self.scope.deadline = anyio.current_time() + self._left

    def again(self) -> "Flight":
        """The same call at another connection."""
        return Flight(self.number, elicits=self.elicits, report=self.progress.report)


_flight: ContextVar[Flight | None] = ContextVar("flight", default=None)


class ServerConnection:
    """Opened by `open`; lost when `is_lost`, and then never used again."""

    def __init__(self, server: Server, around: HostSurroundings, auth: httpx2.Auth | None = None) -> None:
        """`auth` logs in; without it, a stored login is used."""
        self.server = server
        self._around = around
        self._auth = auth
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._status = HttpStatus(server.entry.url)
        self._has_login = False
        self._opened: asyncio.Future[ServerListing] = asyncio.get_running_loop().create_future()
        self._over = anyio.Event()
        self._stale = asyncio.Event()
        self._listing = ServerListing()
        self._flights: dict[int, Flight] = {}
        self._task: asyncio.Task[None] | None = None
        self._scope = anyio.CancelScope()

    @property
    def is_lost(self) -> bool:
        return self._over.is_set() or (self._task is not None and self._task.done())

    async def open(self, deadline: float) -> ServerListing:
        """Connects, or waits until it is connected. Raises `McpError`."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(deadline))
        return await asyncio.shield(self._opened)

    async def relist(self) -> ServerListing:
        """Raises `McpError`."""
        assert self._client is not None
        try:
            with anyio.fail_after(call_timeout(self.server)):
                self._listing = await listing_of(self._client, self.server.name)
        except Exception as error:
            raise await self._why(error) from None
        return self._listing

    async def use(self, flight: Flight, work: Callable[[Client], Awaitable[Any]]) -> Any:
        """Does one thing at the server. Raises `McpError`."""
        assert self._client is not None
        seconds = call_timeout(self.server)
        said = 0 if self._process is None else self._process.tail.length
        token = _flight.set(flight)
        self._flights[flight.number] = flight
        try:
            with flight.scope:
                flight.scope.deadline = anyio.current_time() + seconds
                return await work(self._client)
        except Exception as error:
            why = await self._why(error, during_call=True)
            is_broken = is_closed(first_of(error)) and len(self._flights) == 1
            if is_broken or isinstance(why, ForgottenSessionError | LoginNeededError):
                self._over.set()
            raise why from None
        finally:
            flight.progress.finish()
            _flight.reset(token)
            del self._flights[flight.number]
        printed = "" if self._process is None else self._process.tail.text(said)
        raise unanswered(self.server, seconds, flight.progress.last, printed)

    async def close(self) -> None:
        self._over.set()
        if self._task is None:
            return
        self._scope.cancel()
        await asyncio.wait([self._task], timeout=_CLOSING)

    # -------------------------------------------------------------------------------------------------------- its life

    async def _run(self, deadline: float) -> None:
        failure: McpError | None = None
        try:
            with self._scope as scope:
                scope.deadline = anyio.current_time() + deadline
                await self._live(scope)
            if scope.cancelled_caught and not self._over.is_set():
                failure = too_late(self.server, deadline, self._process)
        except Exception as error:
            failure = await self._why(error, wait=False)
        finally:
            self._over.set()
            if not self._opened.done():
                self._opened.set_exception(failure or ended(self.server, self._process, during_call=False))
                self._opened.exception()  # There may be no waiter left.

    async def _live(self, scope: anyio.CancelScope) -> None:
        async with AsyncExitStack() as stack:
            client = Client(
                await self._transport(),
                mode="legacy" if self.server.entry.transport == ServerTransport.SSE else "auto",
                client_info=types.Implementation(name="wave-agent", version=self._around.version),
                list_roots_callback=self._roots if self._around.roots else None,
                elicitation_callback=self._elicit,
                message_handler=self._hear,
                cache=None,
            )
            await stack.enter_async_context(client)
            # The SDK would check results with patterns of the server's choice, which can take forever.
            client.session.validate_tool_result = _unchecked
            read_raw_results(client)
            self._client = client
            self._listing = await listing_of(client, self.server.name)
            scope.deadline = math.inf
            self._opened.set_result(self._listing)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow)
                tasks.start_soon(self._subscribe, client)
                await self._over.wait()
                tasks.cancel_scope.cancel()

    async def _transport(self) -> Any:
        entry = self.server.entry
        if entry.transport == ServerTransport.STDIO:
            argv = (entry.command, *entry.args)
            self._process = await self._around.launcher.start(argv, self.server)
            return stdio_transport(self._process, self._over)
        headers = await headers_of(self.server, self._around.launcher)
        self._has_login = any(name.lower() == "authorization" for name in headers)
        auth = self._auth
        if auth is None and not self._has_login:
            auth = stored_login(self._around.tokens, self.server, refused=self._status.require_login)
        timeout = call_timeout(self.server)
        return remote_transport(self.server, headers, auth, self._status, patience=timeout)

    async def _why(self, error: Exception, *, during_call: bool = False, wait: bool = True) -> McpError:
        if self._status.needs_login and self._auth is None:
            if self._has_login:
                return McpError(
                    f"The MCP server {self.server.name!r} refused the credentials in its headers (HTTP 401)"
                )
            return login_needed(self.server)
        if is_closed(first_of(error)):
            if wait and self._process is not None:
                await self._process.wait(_DYING)
            return ended(self.server, self._process, during_call=during_call)
        return explained(error, self.server, self._status.last, is_new=not self._opened.done())

    # ---------------------------------------------------------------------------------------------- what servers say

    async def _hear(self, message: object) -> None:
        changes = (
            types.ToolListChangedNotification,
            types.PromptListChangedNotification,
            types.ResourceListChangedNotification,
        )
        if isinstance(message, changes):
            self._stale.set()

    async def _follow(self) -> None:
        """Reports each new listing, however often the server says that there is one."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            before = self._listing
            with suppress(McpError):
                after = await self.relist()
                if after != before:
                    self._around.changed(self.server.name, after)
            await asyncio.sleep(_RELIST_INTERVAL)

    async def _subscribe(self, client: Client) -> None:
        """In the newer protocol, changes of lists have to be asked for."""
        can = client.server_capabilities
        tools = can.tools is not None and bool(can.tools.list_changed)
        prompts = can.prompts is not None and bool(can.prompts.list_changed)
        resources = can.resources is not None and bool(can.resources.list_changed)
        if client.session.discover_result is None or not (tools or prompts or resources):
            return
        for seconds in _LISTEN_AGAIN:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as events:
                    async for _ in events:
                        self._stale.set()
            await asyncio.sleep(seconds)
            self._stale.set()  # Something may have been missed.

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(Path(root).as_uri()), name=Path(root).name) for root in self._around.roots]
        )

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        # In the older protocol, a question does not say which call it belongs to: the latest one can be answered.
        flight = _flight.get() or next((one for one in reversed(self._flights.values()) if one.elicits), None)
        if flight is None or not flight.may_ask():
            return types.ElicitResult(action="decline")
        raw = plain(params)
        question = Elicitation(
            server=self.server.name,
            message=params.message,
            mode=params.mode,
            url=str(raw.get("url", "")),
            schema=raw.get("requestedSchema", {}),
        )
        with flight.question():
            answer = await self._around.ask(flight.number, question)
        if answer.action not in ("accept", "cancel"):
            return types.ElicitResult(action="decline")
        content = dict(answer.content) if answer.action == "accept" and params.mode == "form" else None
        return types.ElicitResult.model_validate({"action": answer.action, "content": content})


async def _unchecked(name: str, result: types.CallToolResult) -> None:
    pass
