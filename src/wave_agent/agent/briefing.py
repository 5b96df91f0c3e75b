"""What the model knows of its session: the system prompt, settled with the first request, and what changes after it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from wave_agent.agent.surroundings import Surroundings
from wave_agent.agent.system_prompt import mode_in
from wave_agent.messages import HARNESS, MessageManager, TextBlock
from wave_agent.permissions.decision import PermissionMode
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread


class Briefing:
    """The system prompt stays as it was first sent, so that a prompt cache can serve it: changes are messages."""

    def __init__(
        self,
        compose: Callable[[PermissionMode, Surroundings], str],
        news: Callable[[PermissionMode], str],
        look: Callable[[], Surroundings] | None = None,
    ) -> None:
        """`look` is called in a thread, and the first request waits for it; `news` says that the mode has changed."""
        self._compose = compose
        self._news = news
        self._look = look
        self._looking: Delivery[Surroundings] | None = None
        self._text: str | None = None
        self._first_mode = PermissionMode.DEFAULT
        self._told = PermissionMode.DEFAULT
        self._told_upto = -1
        """What was summarised when that was found out: a summary may have swallowed the message."""

    @property
    def text(self) -> str:
        """The system prompt."""
        assert self._text is not None, "the system prompt is not settled yet"
        return self._text

    def begin(self) -> None:
        """Looks at the project beside other work."""
        if self._looking is not None or self._look is None:
            return
        looking = Delivery[Surroundings](asyncio.get_running_loop(), Mailbox())
        with suppress(RuntimeError):  # no thread is left: then nobody looks
            start_in_thread(_delivering(self._look, looking))
            self._looking = looking

    async def settle(self, mode: PermissionMode) -> None:
        """Fixes the system prompt, with the mode as it is now. From the second time on it does nothing."""
        if self._text is not None:
            return
        self.begin()
        around = Surroundings()
        if self._looking is not None:
            around = await self._looking.wait()
        self._first_mode = mode
        self._text = self._compose(mode, around)

    def tell_mode(self, mode: PermissionMode, messages: MessageManager) -> None:
        """Tells the model of a mode that is not the one it knows. To be called right before a request."""
        if self._told_upto != messages.compacted_upto:
            self._told_upto = messages.compacted_upto
            self._told = self._known(messages)
        if mode is not self._told:
            self._told = mode
            messages.tell_model(self._news(mode))

    def _known(self, messages: MessageManager) -> PermissionMode:
        """From what the model can still read: a session may have been resumed, or summarised."""
        for message in reversed(messages.for_model):
            for block in message.blocks:
                if isinstance(block, TextBlock) and block.origin == HARNESS and (mode := mode_in(block.content)):
                    return mode
        return self._first_mode


def _delivering(look: Callable[[], Surroundings], delivery: Delivery[Surroundings]) -> Callable[[], None]:
    def work() -> None:
        found = Surroundings()
        with suppress(Exception):  # nothing of it is worth a failure, and whoever waits must hear something
            found = look()
        delivery.send(found)

    return work
