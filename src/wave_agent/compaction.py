"""Long conversations: when the window nears its end, older turns are summarised and the conversation goes on."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from wave_agent.consequences import consequences, perform
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import Message, MessageManager, ToolBlock
from wave_agent.models.base import Model, ModelRequest, Text, Usage
from wave_agent.models.conversion import convert_messages_for_api
from wave_agent.models.windows import estimate_tokens

FULL = 0.8
"""The share of the window from which on older turns are summarised."""
KEPT = 0.3
"""The share that the latest messages may take after it."""
RESULT_LIMIT = 2000
"""Characters of one tool result that the summary is made from."""

INSTRUCTIONS = """\
Summarise the conversation so far for yourself: you will go on with the work from your summary alone. Keep what the
user wants, in their words where they matter; decisions and their reasons; files that were read or changed, with paths;
commands and what came of them; what is still to be done. Leave out what no longer matters. Write only the summary."""


def tokens_of(messages: Sequence[Message], overhead: int = 0) -> int:
    """About how much of the window these messages take."""
    return overhead + sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    calls = [block for block in message.blocks if isinstance(block, ToolBlock)]
    texts = [str(block.parameters) + (block.result or "") for block in calls]
    images = sum(image.tokens for block in calls for image in block.images)
    return 4 + images + sum(map(estimate_tokens, (message.text, *texts)))


def cut_at(messages: Sequence[Message], window: int, first: int) -> int:
    """From which message on the conversation is kept as it is: as much of its end as fits, and always the last message.

    A call and its result stand in one message, so that every cut leaves a valid conversation.
    """
    left, at = int(window * KEPT), len(messages)
    while at > first and (at == len(messages) or left - message_tokens(messages[at - 1]) >= 0):
        at -= 1
        left -= message_tokens(messages[at])
    return at


class Compaction(Struct, frozen=True):
    """What came of it."""

    done: bool = False
    ends_turn: bool = False
    """A hook ended the turn."""


class Compactor:
    """Summarises, with the model itself."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        model: Model,
        model_name: str,
        permission_mode: Callable[[], str],
    ) -> None:
        self._messages = messages
        self._hooks = hooks
        self._model = model
        self._model_name = model_name
        self._permission_mode = permission_mode
        self.usage = Usage()

    async def compact(self, window: int, trigger: str = "auto", instructions: str = "") -> Compaction:
        """Does nothing if there is nothing to summarise or a hook is against it. Raises `ModelError`."""
        upto = cut_at(self._messages.messages, window, self._messages.compacted_upto)
        if upto <= self._messages.compacted_upto:
            return Compaction()
        before = await self._fire(HookEvent.PRE_COMPACT, trigger=trigger, custom_instructions=instructions)
        if before.flow in (Flow.SKIP_COMPACTION, Flow.END_TURN):
            return Compaction(ends_turn=before.flow is Flow.END_TURN)
        wishes = [instructions, *(said.text for said in before.contexts)]
        summary = await self._summary(upto, "\n\n".join(wish for wish in wishes if wish))
        if not summary:
            return Compaction()
        self._messages.compact(summary, upto)
        self._messages.add_notice_block(
            "The conversation was long; its older part was summarised for the model.", "info"
        )
        told = await self._fire(HookEvent.POST_COMPACT, trigger=trigger, compact_summary=summary)
        # What hooks told the model when the session began may be among what was left out.
        begun = await self._fire(HookEvent.SESSION_START, source="compact", model=self._model_name)
        return Compaction(done=True, ends_turn=Flow.END_TURN in (told.flow, begun.flow))

    async def _fire(self, event: HookEvent, **facts: str) -> Outcome:
        outcome = await self._hooks.run(event, facts, permission_mode=self._permission_mode())
        perform(consequences(outcome), self._messages)
        return outcome

    async def _summary(self, upto: int, wishes: str) -> str:
        kept = len(self._messages.messages) - upto
        older = self._messages.for_model[:-kept] if kept else self._messages.for_model
        asked = convert_messages_for_api([_shortened(message) for message in older])
        question = f"{INSTRUCTIONS}\n\n{wishes}" if wishes else INSTRUCTIONS
        request = ModelRequest(model=self._model_name, messages=[*asked, {"role": "user", "content": question}])
        text = ""
        async for delta in self._model.stream(request):
            if isinstance(delta, Text):
                text += delta.text
            elif isinstance(delta, Usage):
                self.usage += delta
        return text.strip()


def _shortened(message: Message) -> Message:
    """The message with long results cut: the summary needs to know what came of them, not every line."""
    blocks = [
        _with_result(block, block.result[:RESULT_LIMIT] + " […]")
        if isinstance(block, ToolBlock) and block.result and len(block.result) > RESULT_LIMIT
        else block
        for block in message.blocks
    ]
    return Message(message.role, tuple(blocks))


def _with_result(block: ToolBlock, result: str) -> ToolBlock:
    return ToolBlock(block.id, block.name, block.parameters, result, block.success, block.error, block.origin)
