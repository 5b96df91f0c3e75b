"""The agent's side of the process that speaks the protocol: see `host_program` for the other one."""

import asyncio
import importlib.util
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wave_agent.errors import SandboxError
from wave_agent.mcp import wire
from wave_agent.mcp.host_line import HostLine
from wave_agent.mcp.host_process import PATIENCE, HostProcess
from wave_agent.mcp.secrets import without_secrets
from wave_agent.mcp.values import (
    EXTRA_MISSING,
    Elicit,
    ElicitationAnswer,
    LoginNeededError,
    McpError,
    McpResult,
    Progress,
    Server,
    ServerEntry,
    ServerListing,
    ServerTransport,
)
from wave_agent.system.credentials import without_credentials
from wave_agent.system.processes import Ledger, no_ledger
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

if TYPE_CHECKING:
    from wave_agent.permissions.network_proxy import WayOut
    from wave_agent.permissions.sandbox import Sandbox

_RESTARTS = 1
CONNECT_DEADLINE = 30.0
"""Seconds to connect, if a call has to do that first."""
REMOTE_TIMEOUT = 300.0
STDIO_TIMEOUT = 1800.0
LOGIN_TIMEOUT = 300.0
_SLACK = 10.0
"""Seconds after which a process that keeps no deadline is taken for hung."""


def call_timeout(server: Server) -> float:
    """Seconds for one call, connecting not included."""
    default = STDIO_TIMEOUT if server.entry.transport == ServerTransport.STDIO else REMOTE_TIMEOUT
    return server.entry.timeout or default


class _Waiting:
    """A request without a reply yet, and who hears of it meanwhile."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.reply: asyncio.Future[wire.Reply] = asyncio.get_running_loop().create_future()
        self.progress: Progress | None = None
        self.elicit: Elicit | None = None
        self.show_url: Callable[[str], None] | None = None
        self.asked = False
        """Whether the user was asked: then there is no telling how long it takes."""
        self.tasks: set[asyncio.Task[None]] = set()

    def hear(self, message: wire.Reply | wire.Progressed | wire.LoginUrl) -> None:
        match message:
            case wire.Progressed(done=done, total=total, message=text):
                if self.progress is not None:
                    self.progress(done, total, text)
            case wire.LoginUrl(url=url):
                if self.show_url is not None:
                    self.show_url(url)
            case _:
                if not self.reply.done():
                    self.reply.set_result(message)


class SdkHost:
    """Implements `McpHost` with the official SDK, in a process of its own."""

    def __init__(
        self,
        *,
        home: Path,
        session_id: str,
        environment: Mapping[str, str],
        roots: Sequence[str],
        ledger: Ledger = no_ledger,
        sandbox: "Sandbox | None" = None,
        why_not: Callable[[str], str | None] | None = None,
    ) -> None:
        """`home` is WAVE_HOME, for the OAuth tokens. `environment` is the agent's: the process gets it without
        credentials, and the servers get their own. `roots` are the directories that a server may ask for: the project
        first. `ledger` notes the process and its servers, so that they end even if the agent is killed. With a
        `sandbox`, stdio servers run inside it. `why_not` is asked, in a thread, right before a server's program is
        started, at whatever time: a reason keeps it from starting. Starts nothing."""
        self._home = home
        self._session_id = session_id
        self._environment = environment
        self._roots = tuple(roots)
        self._ledger = ledger
        self._sandbox = sandbox
        self._why_not = why_not
        self._process: HostProcess | None = None
        self._line: HostLine | None = None
        self._refusal = ""
        """Why there is no process, and will be none."""
        self._restarts = 0
        self._is_ready = False
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._listeners: list[Callable[[str, ServerListing], None]] = []
        self._known_tools: dict[str, str] = {}
        """Of each server, the digest of the tools that were reported last."""
        self._known_entries: dict[str, ServerEntry] = {}
        """The entry that they belong to."""
        self._ways_out: dict[int, WayOut] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._mailbox = Mailbox()

    def begin(self) -> None:
        if self._process is not None or self._refusal:
            return
        if importlib.util.find_spec("mcp") is None:
            self._refusal = EXTRA_MISSING
            return
        try:
            process = HostProcess(
                without_credentials(self._environment), session_id=self._session_id, ledger=self._ledger
            )
        except OSError as error:
            self._refusal = f"The process for MCP servers cannot be started: {error}"
            return
        self._process = process
        self._is_ready = False
        self._line = HostLine(process.socket, receive=self._receive, lost=self._lost)
        self._line.send(
            wire.Setup(
                home=str(self._home),
                roots=self._roots,
                marks=process.marks,
                is_confined=self._sandbox is not None or self._why_not is not None,
            )
        )

    async def connect(self, server: Server, *, deadline: float) -> ServerListing:
        request = wire.ConnectServer(id=next(self._numbers), server=server, deadline=deadline)
        reply = await self._ask(request, limit=deadline)
        assert isinstance(reply, wire.Listed)
        self._known_tools[server.name] = wire.tools_digest(reply.listing)
        self._known_entries[server.name] = server.entry
        return reply.listing

    async def call(
        self,
        server: Server,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> McpResult:
        request = wire.CallTool(
            id=next(self._numbers),
            server=server,
            tool=tool,
            arguments=arguments,
            elicits=elicit is not None,
            meta=meta or {},
            expected=self._known_tools[server.name] if self._known_entries.get(server.name) == server.entry else "",
        )
        limit = CONNECT_DEADLINE + call_timeout(server)
        reply = await self._ask(request, limit=limit, progress=progress, elicit=elicit)
        assert isinstance(reply, wire.Finished)
        return reply.result

    async def read_resource(self, server: Server, uri: str) -> McpResult:
        request = wire.ReadResource(id=next(self._numbers), server=server, uri=uri)
        reply = await self._ask(request, limit=CONNECT_DEADLINE + call_timeout(server))
        assert isinstance(reply, wire.Finished)
        return reply.result

    async def get_prompt(self, server: Server, name: str, arguments: Mapping[str, str]) -> str:
        request = wire.GetPrompt(id=next(self._numbers), server=server, name=name, arguments=arguments)
        reply = await self._ask(request, limit=CONNECT_DEADLINE + call_timeout(server))
        assert isinstance(reply, wire.Texted)
        return reply.text

    async def login(self, server: Server, *, show_url: Callable[[str], None]) -> None:
        request = wire.LogIn(id=next(self._numbers), server=server)
        await self._ask(request, limit=LOGIN_TIMEOUT + CONNECT_DEADLINE, show_url=show_url)

    def listen(self, changed: Callable[[str, ServerListing], None]) -> None:
        self._listeners.append(changed)

    async def close(self) -> None:
        self._refusal = self._refusal or "The session has ended"
        process, line = self._process, self._line
        self._process = self._line = None
        for task in list(self._tasks):
            task.cancel()
        self._fail_waiting("The session has ended")
        if process is None or line is None:
            return
        with suppress(Exception):
            line.attach()
            line.send(wire.CloseAll())
        line.detach()
        # One that was still loading has started nothing that could need time to end.
        await self._end(process, PATIENCE if self._is_ready else 0)

    # --------------------------------------------------------------------------------------------------------- asking

    async def _ask(
        self,
        request: wire.Request,
        *,
        limit: float,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
        show_url: Callable[[str], None] | None = None,
    ) -> wire.Reply:
        self.begin()
        line = self._line
        if line is None:
            raise McpError(self._refusal or "The process for MCP servers is not running")
        line.attach()
        waiting = self._waiting[request.id] = _Waiting(request.server.name)
        waiting.progress, waiting.elicit, waiting.show_url = progress, elicit, show_url
        line.send(request)
        try:
            reply = await self._reply(waiting, limit + _SLACK)
        except asyncio.CancelledError:
            if line is self._line:
                line.send(wire.CancelRequest(id=request.id))
            raise
        finally:
            self._waiting.pop(request.id, None)
            for task in waiting.tasks:
                task.cancel()
        if isinstance(reply, wire.Failed):
            message = without_secrets(reply.message, request.server.entry)
            raise LoginNeededError(message) if reply.needs_login else McpError(message)
        return reply

    async def _reply(self, waiting: _Waiting, limit: float) -> wire.Reply:
        """The process keeps the deadlines itself; one that no longer does is ended."""
        while True:
            done, _ = await asyncio.wait([waiting.reply], timeout=limit)
            if done:
                return waiting.reply.result()
            if not waiting.asked:
                break
        if self._process is not None:
            await self._drop("it stopped answering")
        if waiting.reply.done():
            return waiting.reply.result()
        raise McpError(f"The MCP server {waiting.server!r} did not answer")

    # ------------------------------------------------------------------------------------------------------ receiving

    def _receive(self, message: wire.FromHost) -> None:
        match message:
            case wire.Ready():
                self._is_ready = True
            case wire.Changed(server=name, listing=listing):
                self._known_tools[name] = wire.tools_digest(listing)
                for changed in self._listeners:
                    changed(name, listing)
            case wire.Confine():
                self._start(self._confine(message), self._tasks)
            case wire.Spawned(group=group):
                if self._process is not None:
                    self._process.note_group(group)
            case wire.Exited(question=question):
                self._release(question)
            case wire.ElicitationAsked():
                self._elicit(message)
            case _:
                if (waiting := self._waiting.get(message.id)) is not None:
                    waiting.hear(message)

    def _start(self, work: Any, tasks: "set[asyncio.Task[None]]") -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _elicit(self, asked: wire.ElicitationAsked) -> None:
        waiting = self._waiting.get(asked.id)
        if waiting is None or waiting.elicit is None:
            self._answer(asked.question, ElicitationAnswer())
            return
        waiting.asked = True
        self._start(self._ask_user(waiting.elicit, asked), waiting.tasks)

    async def _ask_user(self, elicit: Elicit, asked: wire.ElicitationAsked) -> None:
        answer = ElicitationAnswer(action="cancel")
        try:
            answer = await elicit(asked.elicitation)
        finally:
            self._answer(asked.question, answer)

    def _answer(self, question: int, answer: ElicitationAnswer) -> None:
        if self._line is not None:
            self._line.send(wire.ElicitationAnswered(question=question, answer=answer))

    # -------------------------------------------------------------------------------------------------------- sandbox

    async def _confine(self, asked: wire.Confine) -> None:
        line = self._line
        assert line is not None
        delivery = Delivery[wire.Confined](asyncio.get_running_loop(), self._mailbox)
        start_in_thread(lambda: delivery.send(self._confined(asked)))
        confined = await delivery.wait()
        way_out = self._ways_out.get(asked.question)
        line.send(confined, () if way_out is None else (way_out.descriptor,))

    def _confined(self, asked: wire.Confine) -> wire.Confined:
        """In a thread: it may have to search the project. Never raises."""
        try:
            why = self._why_not(asked.server) if self._why_not is not None else None
        except Exception as error:
            why = f"The MCP server {asked.server!r} is not started: {error}"
        if why:
            return wire.Confined(question=asked.question, error=why)
        sandbox = self._sandbox
        if sandbox is None:
            return wire.Confined(question=asked.question, argv=asked.argv, environment=asked.environment)
        try:
            way_out = sandbox.way_out()
            if way_out is not None:
                self._ways_out[asked.question] = way_out
            argv = sandbox.command(asked.argv, asked.environment, cwd=asked.directory, way_out=way_out)
        except (SandboxError, OSError) as error:
            self._release(asked.question)
            return wire.Confined(question=asked.question, error=f"The sandbox cannot run it: {error}")
        return wire.Confined(
            question=asked.question,
            argv=tuple(argv),
            environment={**sandbox.outside(asked.environment), **(way_out.variables if way_out else {})},
            descriptor=way_out.descriptor if way_out else None,
        )

    def _release(self, question: int) -> None:
        if (way_out := self._ways_out.pop(question, None)) is not None:
            start_in_thread(way_out.close)

    # ---------------------------------------------------------------------------------------------------------- ending

    def _lost(self) -> None:
        """The process has ended without being asked to."""
        self._start(self._drop("it ended unexpectedly"), self._tasks)

    async def _drop(self, why: str) -> None:
        """Ends the process. The next request starts another one, once; nothing that may have run is repeated."""
        process, line = self._process, self._line
        self._process = self._line = None
        if process is None or line is None:
            return
        line.detach()
        words = process.last_words().splitlines()
        detail = f": {words[-1][:500]}" if words else ""
        message = f"The process for MCP servers was lost ({why}){detail}"
        self._restarts += 1
        if self._restarts > _RESTARTS:
            self._refusal = self._refusal or f"{message}. It is not started again in this session"
        self._fail_waiting(f"{message}. The call may have run")
        await self._end(process, 0)

    def _fail_waiting(self, message: str) -> None:
        for number, waiting in self._waiting.items():
            if not waiting.reply.done():
                waiting.reply.set_result(wire.Failed(id=number, message=message))

    async def _end(self, process: HostProcess, patience: float) -> None:
        """In a thread, to the end, however often this is cancelled."""
        delivery = Delivery[None](asyncio.get_running_loop(), self._mailbox)

        def end() -> None:
            try:
                process.end(patience)
            finally:
                delivery.send(None)

        start_in_thread(end)
        await delivery.wait_out()
        for question in list(self._ways_out):
            self._release(question)
