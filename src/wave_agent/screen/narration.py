"""Turns agent events into conversation entries as they happen."""

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any

from wave_agent.events import Error as ErrorEvent
from wave_agent.events import (
    Event,
    HookFinished,
    HookRun,
    HookStarted,
    Notice,
    ReasoningDelta,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from wave_agent.messages import ToolBlock
from wave_agent.screen.activity import Activity
from wave_agent.screen.answer import AnswerStream
from wave_agent.screen.conversation import Conversation
from wave_agent.screen.entries import Entry, ErrorEntry, HookLine, Info, ReasoningEntry, UserPrompt, Warning_
from wave_agent.screen.run_looks import is_told, mattered
from wave_agent.screen.todo_card import TodoCard, card_of
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.text import clip

LEVELS: Mapping[str, type[Info | Warning_]] = {"info": Info, "warning": Warning_}


_ON_CARDS = (TextDelta, ReasoningDelta, ToolStarted, ToolOutput, ToolFinished)


class Narration:
    """`find_call` returns a call from the conversation, `find_context` the context a hook added."""

    def __init__(
        self,
        conversation: Conversation,
        activity: Activity,
        *,
        project: str,
        find_call: Callable[[str], ToolBlock | None],
        find_context: Callable[[HookRun], list[str]],
        every_hook: bool = False,
    ) -> None:
        self._conversation = conversation
        self._activity = activity
        self._project = project
        self._find_call = find_call
        self._find_context = find_context
        self._every_hook = every_hook
        self._answer: AnswerStream | None = None
        self._reasoning: ReasoningEntry | None = None
        self._cards: dict[str, ToolCard] = {}
        self._todos: TodoCard | None = None
        self._on_cards: list[str] = []  # why hooks failed, if the call's card will show it
        self._subagents: dict[str, str] = {}  # their types
        self._began = monotonic()
        self.prompt: UserPrompt | None = None
        """The prompt of the current turn."""
        self.trace: list[tuple[float, HookRun]] = []
        """Hook runs and when they ended, in seconds since the screen opened."""
        self._show: Mapping[type, Callable[[Any], Awaitable[None]]] = {
            TurnStarted: self._turn_started,
            TextDelta: self._text,
            ReasoningDelta: self._thought,
            ToolStarted: self._tool_started,
            ToolOutput: self._tool_output,
            ToolFinished: self._tool_finished,
            HookStarted: self._hook_started,
            HookFinished: self._hook_finished,
            Notice: self._notice,
            ErrorEvent: self._error,
            SubagentStarted: self._subagent_started,
            TurnEnded: self._turn_ended,
        }

    async def tell(self, event: Event) -> None:
        """Events not in the table are shown elsewhere or by a later event."""
        show = self._show.get(type(event))
        if isinstance(event, _ON_CARDS) and event.agent_id is not None:  # the card of its Task call shows it
            return
        if show is not None:
            await show(event)

    async def add(self, entry: Entry) -> None:
        await self._end_texts()
        await self._conversation.add(entry)

    async def _turn_started(self, event: TurnStarted) -> None:
        if event.prompt:  # a turn that a background hook started has none
            self.prompt = UserPrompt(event.prompt)
            await self.add(self.prompt)

    async def _text(self, event: TextDelta) -> None:
        self._end_reasoning()
        if self._answer is None:
            self._answer = AnswerStream(self._conversation)
        self._answer.feed(event.text)

    async def _thought(self, event: ReasoningDelta) -> None:
        if self._reasoning is None:
            await self._end_texts()
            self._reasoning = ReasoningEntry(streaming=True)
            await self._conversation.add(self._reasoning)
        self._conversation.latest(self._reasoning).feed(event.text)

    async def _tool_started(self, event: ToolStarted) -> None:
        card = self._cards[event.id] = card_of(ToolBlock(event.id, event.name, event.parameters), self._project)
        await self.add(card)

    async def _tool_output(self, event: ToolOutput) -> None:
        if card := self._card(event.id):
            card.output(event.text)

    def waited(self, call_id: str, seconds: float) -> None:
        """The call waited for the user, which is not part of its duration."""
        if card := self._card(call_id):
            card.waited(seconds)

    def _card(self, call_id: str) -> ToolCard | None:
        card = self._cards.get(call_id)
        return card and self._conversation.latest(card)

    async def _tool_finished(self, event: ToolFinished) -> None:
        block = self._find_call(event.id)
        card = self._card(event.id)
        if block is None:
            return
        if card is None:  # a call that never started, since a hook ended the turn
            await self.add(card_of(block, self._project))
            return
        card.finish(block)
        if isinstance(card, TodoCard) and card.state is State.DONE:
            self._show_list(card)

    def _show_list(self, card: TodoCard) -> None:
        """The latest list replaces the previous one and shows what the agent is working on."""
        if self._todos is not None:
            self._conversation.latest(self._todos).replace()
        self._todos = card
        self._activity.tell(card.doing or "Working")

    async def _hook_started(self, event: HookStarted) -> None:
        self._activity.hook_started(event)

    async def _hook_finished(self, event: HookFinished) -> None:
        run = event.run
        self._activity.hook_finished(run)
        self.trace.append((monotonic() - self._began, run))
        if run.outcome == "failure" and is_told(run) and run.tool_use_id in self._cards:
            self._on_cards.append(run.reason)
        if mattered(run) or self._every_hook:
            await self.add(HookLine(run, self._find_context))

    async def _subagent_started(self, event: SubagentStarted) -> None:
        self._subagents[event.agent_id] = event.agent_type

    async def _notice(self, event: Notice) -> None:
        await self.add(LEVELS.get(event.level, Warning_)(self._named(event)))

    async def _error(self, event: ErrorEvent) -> None:
        if (reason := clip(event.content)) in self._on_cards:
            self._on_cards.remove(reason)
            return
        await self.add(ErrorEntry(self._named(event)))

    def _named(self, event: Notice | ErrorEvent) -> str:
        """With the subagent that it comes from."""
        whose = self._subagents.get(event.agent_id or "")
        return f"Subagent {whose}: {event.content}" if whose else event.content

    async def _turn_ended(self, event: TurnEnded) -> None:
        await self._end_texts()
        self._cards.clear()
        self._on_cards.clear()

    async def _end_texts(self) -> None:
        self._end_reasoning()
        if self._answer is not None:
            answer, self._answer = self._answer, None
            await answer.finish()

    def _end_reasoning(self) -> None:
        if self._reasoning is not None:
            self._conversation.latest(self._reasoning).finish()
            self._reasoning = None
