"""What the model knows about its session: how all requests begin, and later changes."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from hashlib import sha256
from typing import Any, Protocol

from msgspec.structs import replace

from wave_agent.agent.surroundings import ProjectSurroundings
from wave_agent.agent.system_prompt import DATE, SystemPrompt, mode_in
from wave_agent.marks import without_tags
from wave_agent.messages import HARNESS, MessageManager, Opening, TextBlock
from wave_agent.models.base import ToolSpec
from wave_agent.models.profiles import Profile
from wave_agent.permissions.decision import PermissionMode
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

_TOOLS = "Tools"
_CHANGED = "This has changed since you were last told:"
_GONE = "No longer applies: {}."
_GONE_TOOLS = "No longer available, so that calls to them fail: {}."
_BACK = "All your tools are available again."
_ADDED_TOOLS = "Available now, from MCP servers: {}."
_NEW_TOOLS = (
    "New tools in this session: {}. The model gets them with the next summary of the conversation (/compact), because "
    "a different list of tools would invalidate the server's prompt cache."
)


class OpeningLog(Protocol):
    """Where the start of the requests is recorded."""

    def opening(self, opening: Opening) -> None: ...

    def known(self, known: Mapping[str, str]) -> None: ...


class ToolServers(Protocol):
    """Servers that may add tools while the session runs."""

    @property
    def version(self) -> int:
        """Another one after each change of the tools."""
        ...

    def begin(self) -> None:
        """Starts to connect, without waiting."""
        ...

    async def settle(self) -> None:
        """Waits for them, not for long."""
        ...


class _Nowhere:
    def opening(self, opening: Opening) -> None: ...

    def known(self, known: Mapping[str, str]) -> None: ...


class Briefing:
    """System prompt and tools never change after the first request, so a prompt cache can serve them: changes are
    messages. Only a summary of the conversation, which no cache can serve anyway, brings them up to date; and a server
    that was slow to start adds its tools at the end of the list, once."""

    def __init__(
        self,
        compose: Callable[[PermissionMode, ProjectSurroundings], SystemPrompt],
        news: Callable[[PermissionMode, PermissionMode], str],
        look: Callable[[], ProjectSurroundings] | None = None,
        *,
        messages: MessageManager | None = None,
        tools: Callable[[], Sequence[ToolSpec]] = tuple,
        profile: Callable[[], Profile] = lambda: Profile.FULL,
        opening: Opening | None = None,
        log: OpeningLog | None = None,
        servers: ToolServers | None = None,
        today: Callable[[], date] = date.today,
    ) -> None:
        """`look` runs in a thread, and the first request waits for it; `news` announces a mode, and gets the one
        that the model knew before. `opening` is
        that of a resumed session. `servers` are waited for before the first request, and may add tools later."""
        self._compose = compose
        self._news = news
        self._look = look
        self._looking: Delivery[ProjectSurroundings] | None = None
        self._messages = MessageManager() if messages is None else messages
        self._current_tools = tools
        self._current_profile = profile
        self._opening = opening
        self._offered = None if opening is None else _specs(opening)
        self._log = log or _Nowhere()
        self._servers = servers
        self._version = -1
        self._available: frozenset[str] = frozenset()
        """The tools that the model knows to be there, or will know after the next summary."""
        self._today = today
        self._is_settled = False
        self._told = PermissionMode.DEFAULT
        self._told_upto = -1
        """How much was summarised when that was determined: a summary may have swallowed the message."""

    @property
    def text(self) -> str:
        """The system prompt."""
        return self._fixed.system

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools as the model knows them."""
        return self._current_tools() if self._offered is None else self._offered

    @property
    def is_small(self) -> bool:
        """The requests begin in the way that suits small models."""
        return self._opening is not None and self._opening.profile == Profile.SMALL

    def begin(self) -> None:
        """Starts looking at the project in the background."""
        if self._servers is not None:
            self._servers.begin()
        if self._looking is not None or self._look is None:
            return
        looking = Delivery[ProjectSurroundings](asyncio.get_running_loop(), Mailbox())
        with suppress(RuntimeError):  # no thread available: do without
            start_in_thread(_delivering(self._look, looking))
            self._looking = looking

    async def catch_up(self, mode: PermissionMode) -> None:
        """Tells the model what has changed since an earlier prompt: in a resumed session everything, later only the
        date. Call it before a prompt is added, so that the prompt stays the last thing the model reads."""
        if self._opening is None:
            return
        if not self._is_settled:
            await self.settle(mode)
        elif DATE in self._opening.known:
            today = self._today().isoformat()
            self._tell({**self._opening.known, DATE: _digest(today)}, {DATE: today})

    async def settle(self, mode: PermissionMode) -> None:
        """Fixes how all requests begin, with the current mode; or catches up, in a resumed session. Call it before a
        request. Later calls do nothing."""
        if self._is_settled:
            return
        if self._servers is not None:
            await self._servers.settle()
            self._version = self._servers.version
        prompt = await self._current(mode)
        self._available = frozenset(tool.name for tool in self._current_tools())
        if self._opening is None:
            self._fix(prompt, mode)
        else:
            parts = self._parts(prompt)
            self._tell(_digests(parts), parts)
        self._is_settled = True

    async def renew(self, mode: PermissionMode) -> None:
        """Brings the start of the requests up to date, after the conversation was summarised."""
        self._looking = None
        prompt = await self._current(mode)
        if (prompt.text, [_plain(tool) for tool in self._current_tools()]) != (self.text, [*self._fixed.tools]):
            self._fix(prompt, mode)

    async def _current(self, mode: PermissionMode) -> SystemPrompt:
        self.begin()
        around = ProjectSurroundings() if self._looking is None else await self._looking.wait()
        prompt = self._compose(mode, around)
        # File names, branches, instructions and descriptions are other people's text.
        return replace(prompt, text=without_tags(prompt.text))

    @property
    def _fixed(self) -> Opening:
        assert self._opening is not None, "the system prompt is not fixed yet"
        return self._opening

    def _parts(self, prompt: SystemPrompt) -> dict[str, str]:
        return {**prompt.parts, _TOOLS: ", ".join(tool.name for tool in self._current_tools())}

    def _fix(self, prompt: SystemPrompt, mode: PermissionMode) -> None:
        self._opening = Opening(
            system=prompt.text,
            tools=tuple(_plain(tool) for tool in self._current_tools()),
            profile=self._current_profile().value,
            mode=mode.value,
            known=_digests(self._parts(prompt)),
        )
        self._offered = _specs(self._opening)
        self._log.opening(self._opening)

    # --------------------------------------------------------------------------------------------------------- changes

    def _tell(self, known: Mapping[str, str], parts: Mapping[str, str]) -> None:
        """Tells the model what it does not know yet; `known` is what it knows afterwards."""
        before = self._fixed.known
        if known == before:
            return
        changed = [name for name in parts if known[name] != before.get(name)]
        news = [_part(name, parts[name]) for name in changed if name != _TOOLS]
        news += [_GONE.format(name) for name in before if name not in known]
        news += self._tool_news() if _TOOLS in changed else []
        if news:
            self._messages.tell_model("\n".join([_CHANGED, *news]))
        self._opening = replace(self._fixed, known=known)
        self._log.known(known)

    def _tool_news(self) -> list[str]:
        offered, current = [[tool.name for tool in tools] for tools in (self.tools, self._current_tools())]
        if new := [name for name in current if name not in offered]:
            self._messages.add_notice_block(_NEW_TOOLS.format(", ".join(new)), "info")
        gone = [name for name in offered if name not in current]
        news = [_GONE_TOOLS.format(", ".join(gone))] if gone else []
        known = self._fixed.known.get(_TOOLS)
        were_gone = known is not None and known != _digest(", ".join(offered))
        return [_BACK] if were_gone and not gone and not new else news

    def tell_tools(self) -> None:
        """Adds tools that servers have made available since, and tells the model about those that are gone. Call it
        right before a request."""
        if self._servers is None or self._version == self._servers.version:
            return
        self._version = self._servers.version
        current = {tool.name: tool for tool in self._current_tools()}
        offered = {tool.name for tool in self.tools}
        before, self._available = self._available, frozenset(current)
        if self._available == before:
            return
        new = [tool for name, tool in current.items() if name not in offered and name not in before]
        back = [name for name in current if name in offered and name not in before]
        gone = [name for name in before if name not in current]
        if new:
            known = {**self._fixed.known, _TOOLS: _digest(", ".join(current))}
            self._opening = replace(self._fixed, tools=(*self._fixed.tools, *map(_plain, new)), known=known)
            self._offered = _specs(self._opening)
            self._log.opening(self._opening)
        news = [_ADDED_TOOLS.format(", ".join([*(tool.name for tool in new), *back]))] if new or back else []
        news += [_GONE_TOOLS.format(", ".join(sorted(gone)))] if gone else []
        if news:
            self._messages.tell_model("\n".join([_CHANGED, *news]))

    def tell_mode(self, mode: PermissionMode) -> None:
        """Tells the model about a mode change it does not know yet. Call it right before a request."""
        messages = self._messages
        if self._told_upto != messages.compacted_upto:
            self._told_upto = messages.compacted_upto
            self._told = self._known_mode()
        if mode is not self._told:
            before, self._told = self._told, mode
            messages.tell_model(self._news(mode, before))

    def _known_mode(self) -> PermissionMode:
        """The mode according to what the model can still read: a session may have been resumed, or summarised."""
        for message in reversed(self._messages.for_model):
            for block in message.blocks:
                if isinstance(block, TextBlock) and block.origin == HARNESS and (mode := mode_in(block.content)):
                    return mode
        first = self._fixed.mode
        return PermissionMode(first) if first in set(PermissionMode) else PermissionMode.DEFAULT


def _digests(parts: Mapping[str, str]) -> dict[str, str]:
    return {name: _digest(text) for name, text in parts.items()}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _part(name: str, text: str) -> str:
    return f"\n{name}:\n\n{text}\n" if "\n" in text else f"{name}: {text}"


def _plain(tool: ToolSpec) -> dict[str, Any]:
    """As read back from a transcript."""
    fields = {"name": tool.name, "description": without_tags(tool.description), "schema": tool.schema}
    return json.loads(without_tags(json.dumps(fields, default=dict, ensure_ascii=False)))


def _specs(opening: Opening) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool["name"], tool["description"], tool["schema"]) for tool in opening.tools)


def _delivering(look: Callable[[], ProjectSurroundings], delivery: Delivery[ProjectSurroundings]) -> Callable[[], None]:
    def work() -> None:
        found = ProjectSurroundings()
        with suppress(Exception):  # none of this is worth failing for, and the waiter must get a result
            found = look()
        delivery.send(found)

    return work
