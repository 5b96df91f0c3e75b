"""What the model knows about its session: the system prompt, fixed with the first request, and later changes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from wave_agent.agent.surroundings import ProjectSurroundings
from wave_agent.agent.system_prompt import mode_in
from wave_agent.messages import HARNESS, MessageManager, TextBlock
from wave_agent.permissions.decision import PermissionMode
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread


class Briefing:
    """The system prompt never changes after the first request, so a prompt cache can serve it: changes are messages."""

    def __init__(
        self,
        compose: Callable[[PermissionMode, ProjectSurroundings], str],
        news: Callable[[PermissionMode], str],
        look: Callable[[], ProjectSurroundings] | None = None,
    ) -> None:
        """`look` runs in a thread, and the first request waits for it; `news` announces a changed mode."""
        self._compose = compose
        self._news = news
        self._look = look
        self._looking: Delivery[ProjectSurroundings] | None = None
        self._text: str | None = None
        self._first_mode = PermissionMode.DEFAULT
        self._told = PermissionMode.DEFAULT
        self._told_upto = -1
        """How much was summarised when that was determined: a summary may have swallowed the message."""

    @property
    def text(self) -> str:
        """The system prompt."""
        assert self._text is not None, "the system prompt is not fixed yet"
        return self._text

    def begin(self) -> None:
        """Starts looking at the project in the background."""
        if self._looking is not None or self._look is None:
            return
        looking = Delivery[ProjectSurroundings](asyncio.get_running_loop(), Mailbox())
        with suppress(RuntimeError):  # no thread available: do without
            start_in_thread(_delivering(self._look, looking))
            self._looking = looking

    async def settle(self, mode: PermissionMode) -> None:
        """Fixes the system prompt, with the current mode. Later calls do nothing."""
        if self._text is not None:
            return
        self.begin()
        around = ProjectSurroundings()
        if self._looking is not None:
            around = await self._looking.wait()
        self._first_mode = mode
        self._text = self._compose(mode, around)

    def tell_mode(self, mode: PermissionMode, messages: MessageManager) -> None:
        """Tells the model about a mode change it does not know yet. Call it right before a request."""
        if self._told_upto != messages.compacted_upto:
            self._told_upto = messages.compacted_upto
            self._told = self._known(messages)
        if mode is not self._told:
            self._told = mode
            messages.tell_model(self._news(mode))

    def _known(self, messages: MessageManager) -> PermissionMode:
        """The mode according to what the model can still read: a session may have been resumed, or summarised."""
        for message in reversed(messages.for_model):
            for block in message.blocks:
                if isinstance(block, TextBlock) and block.origin == HARNESS and (mode := mode_in(block.content)):
                    return mode
        return self._first_mode


def _delivering(look: Callable[[], ProjectSurroundings], delivery: Delivery[ProjectSurroundings]) -> Callable[[], None]:
    def work() -> None:
        found = ProjectSurroundings()
        with suppress(Exception):  # none of this is worth failing for, and the waiter must get a result
            found = look()
        delivery.send(found)

    return work
