"""The servers of one session: what they offer, who may use it, and what still waits for the user."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.cache import ListingCache
from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.definitions import OfferedTool
from wave_agent.mcp.pins import INSTRUCTIONS, SINCE, Offered, Pins, WaitingTool, offered
from wave_agent.mcp.server_status import ServerState, ServerStatus
from wave_agent.mcp.tools import McpTool, mcp_tool
from wave_agent.mcp.values import (
    Elicit,
    LoginNeededError,
    McpError,
    McpHost,
    McpResult,
    Progress,
    Server,
    ServerListing,
    ToolDefinition,
)
from wave_agent.permissions.decision import Rules
from wave_agent.rules.rule import Places
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import Tool

if TYPE_CHECKING:  # not needed for the first request, unless the user's text asks for it
    from wave_agent.hooks.runners.mcp_tool import ServerAnswer
    from wave_agent.mcp.mentions import PromptCommand, ResourceMention, Typed

CONNECT = 30.0
"""Seconds until a server that does not answer is given up."""
_OF_THE_PROJECT = (Layer.PROJECT, Layer.LOCAL)
_STANDING = (Layer.MANAGED, Layer.USER)
_NAMED = 5
"""Tools named in a notice."""


class _Known:
    """What is known about one server by now."""

    def __init__(self, server: Server, listing: ServerListing | None, pins: Pins | None) -> None:
        self.server = server
        self.listing = listing
        self.pins = pins
        self.offer: Offered | None = None
        self.reader: OfferedTool | None = None
        """Our own tool for its resources."""
        self.denied: tuple[str, ...] = ()
        self.state = ServerState.UNKNOWN if listing is None else ServerState.CACHED
        self.problem = ""
        self.connecting: asyncio.Task[None] | None = None
        self.is_accepted = True
        """It is known what the user has accepted of it."""
        self.told: set[tuple[str, str]] = set()
        """The waiting tools, as they were, and the notices that the user has been told."""

    @property
    def reader_name(self) -> str:
        """Empty if the model has no such tool."""
        return self.reader.name if self.reader is not None and self.reader.name not in self.denied else ""

    def all_tools(self) -> tuple[OfferedTool, ...]:
        """Sorted by name, the denied ones among them."""
        found = self.offer.tools if self.offer is not None else ()
        return found if self.reader is None else tuple(sorted((*found, self.reader), key=lambda one: one.name))


class McpSession:
    """Created only if servers are configured. All of it runs in the event loop."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        host: McpHost,
        store: ConsentStore,
        cache: ListingCache,
        rules: Rules,
        places: Places,
        notify: Callable[[str], None],
        patience: float,
    ) -> None:
        """`notify` tells the user. `patience`: seconds that the first request waits for servers whose tools are not
        known yet. Raises `SettingsError` if the pins cannot be relied on. Starts nothing."""
        self._host, self._store, self._cache = host, store, cache
        self._rules, self._places, self._notify, self._patience = rules, places, notify, patience
        cached, pins = cache.read(servers), store.pins(servers)
        # A server that had nothing to offer may have by now.
        cached = {name: one for name, one in cached.items() if one.tools or one.prompts or one.resources}
        self._known = {one.name: _Known(one, cached.get(one.name), pins.get(one.name)) for one in servers}
        self._tools: dict[str, Tool] = {}
        self.version = 0
        """Grows with every change of the tools."""
        self._waited_until: float | None = None
        host.listen(self._changed)
        for known in self._known.values():
            self._offer(known)
        self._renew()

    # ------------------------------------------------------------------------------------------ what the screen can ask

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that can be called now, by their names. The mapping changes while servers connect."""
        return self._tools

    def servers(self) -> tuple[ServerStatus, ...]:
        """Every server that may run in this session, in configuration order."""
        return tuple(self._status(known) for known in self._known.values())

    def waiting(self) -> tuple[tuple[Server, WaitingTool], ...]:
        """New and changed tools, which the user has to confirm."""
        return tuple(
            (known.server, tool) for known in self._known.values() if known.offer for tool in known.offer.waiting
        )

    def confirm(self, server: str, tools: Collection[str] | None = None) -> None:
        """Accepts these tools (default: all of the server) as they are now: the model gets them with its next request.
        Raises `McpError` for a server that is not connected, and `SettingsError`."""
        known = self._get(server)
        if known.listing is None:
            raise McpError(f'The MCP server "{server}" has not been connected, so there is nothing to confirm.')
        known.pins, known.is_accepted = self._store.confirm(known.server, known.listing, tools), True
        self._offer(known)
        self._renew()

    def prompts(self) -> "tuple[PromptCommand, ...]":
        """The prompts of all servers, as commands."""
        from wave_agent.mcp.mentions import prompt_commands  # lazy: see above

        return prompt_commands(self._listings())

    def resources(self) -> "tuple[ResourceMention, ...]":
        """Resources that can be mentioned; templates are not among them."""
        from wave_agent.mcp.mentions import resource_mentions  # lazy: see above

        return resource_mentions(self._listings())

    async def connect(self, name: str) -> ServerStatus:
        """Connects now, e.g. after a login. Never raises: the status says what is wrong."""
        known = self._get(name)
        await self._connected(known)
        return self._status(known)

    # -------------------------------------------------------------------------------------------------- for the agent

    def begin(self) -> None:
        """Starts to connect the servers that the first request has to know, without waiting."""
        if self._waited_until is None:
            self._waited_until = monotonic() + self._patience
            for known in self._known.values():
                self._tell_missing(known)
                if known.listing is None or not known.listing.tools or known.server.entry.always_load:
                    self._start(known)

    def load(self) -> None:
        """Starts what the first call would have to wait for."""
        self._host.begin()

    async def settle(self) -> None:
        """Waits for servers whose tools are not known, at most until the deadline. Call it before the first request."""
        self.begin()
        pending = [known.connecting for known in self._known.values() if known.listing is None and known.connecting]
        left = (self._waited_until or 0) - monotonic()
        if pending and left > 0:
            await asyncio.wait(pending, timeout=left)
        for known in self._known.values():
            if known.connecting is not None and known.listing is None:
                self._notify(
                    f'The MCP server "{known.server.name}" is not ready after {self._patience:g} s: continuing '
                    "without it. Its tools are added when it is."
                )

    async def expanded(self, text: str) -> str | None:
        """The text of the prompt that `/mcp__server__prompt arguments` stands for; None if it is no such command.
        Raises `McpError`."""
        if not text.startswith("/mcp__"):
            return None
        from wave_agent.mcp.mentions import typed_in  # lazy: see above

        await self.settle()
        call = typed_in(text, self.prompts())
        await self._ready(self._get(call.server))
        given = await self._host.get_prompt(self._get(call.server).server, call.prompt, call.arguments)
        from wave_agent.mcp.mentions import marked  # lazy: see above

        return marked(strip_controls(given), call.server, f' prompt="{one_line(call.prompt, 200)}"')

    async def mentioned(self, text: str) -> "tuple[Typed, ...]":
        """The resources that `@server:uri` in a text mentions, with their content or what went wrong. For text that the
        user typed, never for output of programs."""
        if "@" not in text:
            return ()
        from wave_agent.mcp.mentions import Typed  # lazy: see above
        from wave_agent.mcp.results import shown_content

        found: list[Typed] = []
        for name, uri in Typed.mentions(text, self._known):
            try:
                await self._ready(self._known[name])
                result = await self._host.read_resource(self._known[name].server, uri)
                found.append(Typed(name, uri, shown_content(result).text))
            except McpError as error:
                self._notify(_of_server(name, error))
                found.append(Typed(name, uri, "", one_line(str(error))))
        return tuple(found)

    async def ask_for_hook(
        self, server: str, tool: str, arguments: Mapping[str, Any], layer: Layer, traceparent: str = ""
    ) -> "ServerAnswer":
        """A call by an `mcp_tool` hook of this layer: no hooks fire for it. Raises `McpError`."""
        from wave_agent.hooks.runners.mcp_tool import ServerAnswer  # lazy: see above
        from wave_agent.mcp.results import shown_content

        known = self._get(server)
        if why := _why_foreign(known.server.layer, layer):
            raise McpError(f'the MCP server "{server}" {why}')
        await self._ready(known)
        wanted = known.offer and next((one for one in known.offer.tools if one.definition.name == tool), None)
        if not wanted:
            raise McpError(self._why_missing(known, tool))
        result = await self._host.call(known.server, tool, arguments, **_traced(traceparent))
        return ServerAnswer(shown_content(result).text, result.is_error)

    async def close(self) -> None:
        """Ends all servers. Never raises."""
        tasks = [known.connecting for known in self._known.values() if known.connecting is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._host.close()

    # ---------------------------------------------------------------------------------------------------------- inside

    def _get(self, name: str) -> _Known:
        known = self._known.get(name)
        if known is None:
            known = next((one for key, one in self._known.items() if key.casefold() == name.casefold()), None)
        if known is None:
            names = ", ".join(self._known) or "none"
            raise McpError(f'there is no MCP server "{name}" in this session; there are: {names}')
        return known

    def _listings(self) -> tuple[tuple[Server, ServerListing], ...]:
        return tuple((known.server, known.listing) for known in self._known.values() if known.listing is not None)

    def _start(self, known: _Known) -> asyncio.Task[None]:
        if known.connecting is None:
            known.state = ServerState.CONNECTING
            known.connecting = asyncio.create_task(self._work(known))
        return known.connecting

    async def _work(self, known: _Known) -> None:
        """Connects. The outcome is in `known`."""
        try:
            listing = await self._host.connect(known.server, deadline=CONNECT)
        except McpError as error:
            known.state = ServerState.NEEDS_LOGIN if isinstance(error, LoginNeededError) else ServerState.FAILED
            known.problem = str(error)
            self._cache.note_failure(known.server, error)
            self._tell_problem(known, error)
        except asyncio.CancelledError:
            known.state = ServerState.UNKNOWN if known.listing is None else ServerState.CACHED
            raise
        else:
            known.state, known.problem = ServerState.READY, ""
            self._take(known, listing)
        finally:
            known.connecting = None

    async def _connected(self, known: _Known) -> None:
        """The turn may be interrupted; connecting continues."""
        if known.state is not ServerState.READY:
            await asyncio.shield(self._start(known))

    async def _ready(self, known: _Known) -> None:
        """Raises `McpError`."""
        await self._connected(known)
        if known.state is not ServerState.READY:
            raise McpError(known.problem or f'The MCP server "{known.server.name}" is not connected.')

    def _changed(self, name: str, listing: ServerListing) -> None:
        """A server says that its tools have changed."""
        if (known := self._known.get(name)) is not None:
            self._take(known, listing)

    def _take(self, known: _Known, listing: ServerListing) -> None:
        """A server has said what it offers now."""
        known.listing = listing
        try:
            known.pins, known.is_accepted = self._store.pin_first(known.server, listing, known.pins), True
        except SettingsError as error:  # it is unknown what the user has accepted: nothing is offered
            known.pins, known.is_accepted = Pins(), False
            self._notify(f'No tool of the MCP server "{known.server.name}" is offered: {error}')
        self._cache.keep(known.server, listing)
        self._offer(known)
        self._renew()
        self._tell_missing(known)

    def _offer(self, known: _Known) -> None:
        if known.listing is None:
            return
        known.offer = offered(known.server, known.listing, known.pins)
        known.reader = self._resource_reader(known, known.listing)
        names = [(one.name, one.plain) for one in known.all_tools()]
        known.denied = tuple(name for name, plain in names if self._is_denied(name) or self._is_denied(plain))

    def _resource_reader(self, known: _Known, listing: ServerListing) -> OfferedTool | None:
        if not (known.is_accepted and listing.resources):
            return None
        from wave_agent.mcp.resource_reader import resource_reader  # lazy: many servers have no resources

        return resource_reader(known.server.name, listing)

    def _is_denied(self, name: str) -> bool:
        """A rule denies every call of it."""
        return any(rule.pattern is None and rule.matches(name, {}, self._places) for rule in self._rules.deny)

    def _renew(self) -> None:
        """The tools of all servers. Those that stay the same stay the same objects."""
        before, self.version = dict(self._tools), self.version + 1
        self._tools.clear()
        for known in self._known.values():
            for one in known.all_tools():
                old = before.get(one.name)
                if one.name not in known.denied:
                    same = isinstance(old, McpTool) and (old.offered, old.reader) == (one, known.reader_name)
                    call = self._read if one is known.reader else self._call
                    new = None if same else mcp_tool(known.server, one, call, known.reader_name)
                    self._tools[one.name] = new or before[one.name]

    async def _call(
        self,
        server: Server,
        tool: ToolDefinition,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None,
        elicit: Elicit | None,
        traceparent: str = "",
    ) -> McpResult:
        known = self._known[server.name]
        await self._ready(known)
        now = known.offer and next((one for one in known.offer.tools if one.definition.name == tool.name), None)
        if not now or now.definition != tool:  # connecting has shown that it is not what the model was offered
            raise McpError(self._why_missing(known, tool.name))
        try:
            return await self._host.call(
                known.server, tool.name, arguments, progress=progress, elicit=elicit, **_traced(traceparent)
            )
        except McpError as error:
            self._tell_problem(known, error)
            # It may have been restarted, or replaced: what it offers is compared again before the next call.
            known.state = ServerState.CACHED
            raise

    async def _read(self, server: Server, tool: ToolDefinition, arguments: Mapping[str, Any], **_: Any) -> McpResult:
        """A call of our own tool for resources."""
        known = self._known[server.name]
        await self._ready(known)
        if not (uri := str(arguments.get("uri") or "")):
            from wave_agent.mcp.resource_reader import listed_resources  # lazy: many servers have no resources

            return listed_resources(known.listing or ServerListing())
        try:
            return await self._host.read_resource(known.server, uri)
        except McpError as error:
            self._tell_problem(known, error)
            known.state = ServerState.CACHED  # as after a call that failed
            raise

    def protocol_of(self, server: str) -> str:
        """The version that was agreed on with this server; empty if it is not known."""
        known = self._known.get(server)
        return "" if known is None or known.listing is None else known.listing.protocol

    def _why_missing(self, known: _Known, tool: str) -> str:
        waiting = {one.name: one.why for one in (known.offer.waiting if known.offer else ())}
        server = known.server.name
        if tool in waiting:
            return (
                f'{tool} of the MCP server "{server}" was not called: it {SINCE[waiting[tool]]} since the user '
                "accepted the tools of this server, and waits for a review. Do without it, or tell the user "
                f"(wave mcp trust {server})."
            )
        return f'the MCP server "{server}" has no tool {tool}'

    def _tell_problem(self, known: _Known, error: McpError) -> None:
        """A call reports it to the model only; the user hears of it too, once."""
        if (str(error), "") not in known.told:
            known.told.add((str(error), ""))
            self._notify(_of_server(known.server.name, error))

    def _tell_missing(self, known: _Known) -> None:
        """Which tools are not offered: once for each state of each tool."""
        unusable = [one for one in (known.offer.left_out if known.offer else ()) if (one, "") not in known.told]
        known.told |= {(one, "") for one in unusable}
        for notice in unusable[:_NAMED]:
            self._notify(notice)
        if len(unusable) > _NAMED:
            self._notify(f"MCP server {known.server.name}: {len(unusable) - _NAMED} more tools are not offered.")
        waiting = known.offer.waiting if known.offer else ()
        news = [one for one in waiting if (one.name, one.now) not in known.told]
        known.told |= {(one.name, one.now) for one in news}
        if not news:
            return
        names = [f"{one_line(one.name, 60)} ({one.why})" for one in news if one.name != INSTRUCTIONS]
        names += ["its instructions"] if any(one.name == INSTRUCTIONS for one in news) else []
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        self._notify(
            f'The MCP server "{known.server.name}" has changed what it offers: {", ".join(names[:_NAMED])}{more}. The '
            f"model does not get it until you review it: wave mcp trust {known.server.name}"
        )

    def _status(self, known: _Known) -> ServerStatus:
        listing, offer = known.listing or ServerListing(), known.offer
        names = tuple(one.name for one in known.all_tools() if one.name not in known.denied)
        return ServerStatus(
            server=known.server,
            state=known.state,
            problem=known.problem,
            tools=names,
            waiting=() if offer is None else offer.waiting,
            denied=known.denied,
            notices=() if offer is None else offer.notices,
            instructions="" if offer is None else offer.instructions,
            prompts=listing.prompts,
            resources=listing.resources,
        )


def _traced(traceparent: str) -> dict[str, Any]:
    """How a server learns of the trace that a call belongs to. A host need not know of it if there is none."""
    return {"meta": {"traceparent": traceparent}} if traceparent else {}


def _why_foreign(server: Layer, hook: Layer) -> str:
    """Why a hook of one layer does not ask a server of another one; empty if it does. Whoever can put a server in the
    place of another one could answer for a guard."""
    if hook in _OF_THE_PROJECT:
        return ""
    if server in _OF_THE_PROJECT:
        return "belongs to the project; hooks of your own only ask servers of your own"
    if hook in _STANDING and server not in _STANDING:
        return "was only named for this run; hooks in your settings only ask servers in your settings"
    return ""


def _of_server(name: str, error: McpError) -> str:
    """What is wrong, with the name of the server: not every cause knows it, such as a program that is missing."""
    text = str(error)
    return text if f'"{name}"' in text or f"'{name}'" in text else f'The MCP server "{name}" failed: {text}'
