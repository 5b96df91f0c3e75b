"""Who follows a session: its transcript, the caller of `stream`, and the callbacks of the embedding program."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wave_agent.agent.result import Callbacks
from wave_agent.events import Error, Event, HookFinished, Notice, ToolFinished
from wave_agent.messages import AsideUpdated, BlockAdded, Change, MessageManager, NoticeBlock, ToolUpdated
from wave_agent.sessions.log import SessionLog
from wave_agent.system.reentrancy import Inside

if TYPE_CHECKING:  # loaded if telemetry is on
    from wave_agent.telemetry.agent_trace import AgentTrace


class Listeners:
    """The transcript comes first: everything that is shown is already on disk."""

    def __init__(
        self, log: SessionLog, callbacks: Callbacks, inside: Inside, trace: "AgentTrace | None" = None
    ) -> None:
        """`trace` is telemetry's view of the agent, if telemetry is on."""
        self._log = log
        self._trace = trace
        self._callbacks = callbacks
        self._inside = inside
        self.stream: asyncio.Queue[Event | None] | None = None
        """Also gets the events, while a turn is streamed."""

    def emit(self, event: Event) -> None:
        if isinstance(event, HookFinished):
            self._log.hook_run(event.run)
        if self._trace is not None:
            self._trace.see(event)
        if self.stream is not None:
            self.stream.put_nowait(event)
        self._call("on_event", event)

    def changed(self, change: Change, messages: MessageManager) -> None:
        """The conversation has changed."""
        self._log.change(change)
        if self._trace is not None:
            self._trace.change(change)
        if isinstance(change, ToolUpdated | AsideUpdated):
            block = change.block
            self.emit(ToolFinished(id=block.id, success=bool(block.success), result=block.result or ""))
        elif isinstance(change, BlockAdded):
            shown = change.block
            is_notice = isinstance(shown, NoticeBlock)
            self.emit(Notice(content=shown.content, level=shown.level) if is_notice else Error(content=shown.content))
        if self._callbacks.on_messages_change:
            self._call("on_messages_change", messages.messages)

    def loading(self, loading: bool) -> None:
        self._call("on_loading_change", loading)

    def _call(self, name: str, what: object) -> None:
        callback: Callable[[Any], object] | None = getattr(self._callbacks, name)
        if callback is None:
            return
        with self._inside.left():
            returned = callback(what)
        if asyncio.iscoroutine(returned):
            from wave_agent.agent.arguments import returned_coroutine  # lazy: a rare mistake

            returned.close()
            raise returned_coroutine(name)
