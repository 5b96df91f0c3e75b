"""The turn: prompt → hooks → model → tools → hooks → … → stop."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.briefing import Briefing
from wave_agent.calls import Asked, CallEnd, CallRunner
from wave_agent.compaction import FULL, Compaction, Compactor, tokens_of
from wave_agent.consequences import Operation, TellModel, consequences, context_blocks, perform
from wave_agent.errors import ModelError
from wave_agent.events import Event, Notice, ReasoningDelta, TextDelta
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Blocks, Outcome
from wave_agent.messages import Block, EachOnce, MessageManager, ReasoningBlock, TextBlock, ToolBlock
from wave_agent.models.base import Model, ModelRequest, Reasoning, Retry, Text, ToolCall, ToolSpec, Usage
from wave_agent.models.conversion import Converter, has_images
from wave_agent.models.refusals import refuses_images
from wave_agent.models.windows import estimate_tokens
from wave_agent.strictjson import out_of_range
from wave_agent.waiting import together_or_none

_ALTERNATE = re.compile(r"roles? must alternate|alternate user/assistant", re.IGNORECASE)
_TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|too (long|many tokens)|maximum.{0,20}tokens", re.IGNORECASE)


class Status(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    STOP_LIMIT = "stop_limit"
    MAX_TURNS = "max_turns"
    ERROR = "error"
    INTERRUPTED = "interrupted"


class Parts(Struct, frozen=True, kw_only=True):
    """What a turn works with."""

    messages: MessageManager
    hooks: HookManager
    calls: CallRunner
    model: Model
    model_name: str
    tools: Sequence[ToolSpec]
    tools_size: int
    """About how many tokens they take."""
    briefing: Briefing
    """The system prompt, and what the model is told later on."""
    max_turns: int | None
    emit: Callable[[Event], None]
    compactor: Compactor
    converter: Converter
    sizes: EachOnce[int]
    """About how many tokens each message takes."""
    fold_user_messages: bool = False
    window: Callable[[], int | None]
    """How many tokens the model can take in, if anybody knows."""
    takes_images: Callable[[], Awaitable[bool]]
    refuse_images: Callable[[], None]
    """To be called when the server has refused one: from then on they are left out."""
    reports: Callable[[], Sequence[str]] = tuple
    """What tools have to tell the model, though no call asked for it."""


class Turn:
    """One prompt from its submission to the end of the agent's work on it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.requests = 0
        self.usage = Usage()
        self.text: str | None = None
        """The model's last text."""
        self.error: str | None = None
        self.session_begun = False
        """The hooks of SessionStart have had their say."""
        self._blocks = Blocks()
        """How often hooks have kept the turn from ending."""
        self._kept_working = False
        self.used = 0
        """Tokens of the window that the last answer says are taken."""
        self._overflowed = False
        self._fold = parts.fold_user_messages
        self._sent_images = False

    async def run(self, prompt: str, *, session_source: str | None = None) -> Status:
        """`session_source` is given with the first prompt of a session: how the session began."""
        if session_source is not None:
            begun = await self._fire(HookEvent.SESSION_START, source=session_source, model=self._parts.model_name)
            self.session_begun = True
            if begun.flow is Flow.END_TURN:
                return Status.STOPPED
        self._parts.messages.add_prompt(prompt)
        judged = await self._hooks(HookEvent.USER_PROMPT_SUBMIT, prompt=prompt)
        if judged.prompt_erased:
            self._apply(judged)
            return Status.STOPPED if judged.flow is Flow.END_TURN else Status.BLOCKED
        self._parts.messages.accept_prompt()
        perform(consequences(judged, waiting=self._waiting_context()), self._parts.messages)
        return Status.STOPPED if judged.flow is Flow.END_TURN else await self._work()

    def _waiting_context(self) -> tuple[TextBlock, ...]:
        """What hooks have said since that nobody waited for."""
        return tuple(
            block for one in self._parts.hooks.take_deferred() for block in context_blocks(one.event, [one.said])
        )

    async def _work(self) -> Status:
        limit = self._parts.max_turns
        await self._parts.briefing.settle(self._parts.calls.mode)
        while limit is None or self.requests < limit:
            if waiting := self._waiting_context():
                perform([TellModel(waiting)], self._parts.messages)
            try:
                self._tell_reports()
                if await self._make_room():
                    return Status.STOPPED
                calls = await self._ask_model()
            except ModelError as error:
                if self._folds_after(error) or self._drops_images_after(error):
                    continue
                room = await self._make_room_after(error)
                if room.ends_turn:
                    return Status.STOPPED
                if room.done:
                    continue
                self.error = str(error)
                self._parts.messages.add_error_block(self.error)
                await self._fire(HookEvent.STOP_FAILURE, error=error.kind, error_details=self.error)
                return Status.ERROR
            if calls:
                if await self._run_batch(calls):
                    return Status.STOPPED
            elif (ended := await self._try_to_stop()) is not None:
                return ended
        requests = "1 request" if limit == 1 else f"{limit} requests"
        self._parts.messages.add_notice_block(f"Stopped after {requests} to the model, the most that are allowed.")
        return Status.MAX_TURNS

    def _tell_reports(self) -> None:
        if reports := self._parts.reports():
            self._parts.messages.tell_model(*reports)

    # ------------------------------------------------------------------------------------------------------------ room

    async def _make_room(self) -> bool:
        """Has older turns summarised when the window is nearly full. True: a hook ended the turn."""
        window = self._parts.window()
        if window is None:
            return False
        overhead = estimate_tokens(self._parts.briefing.text) + self._parts.tools_size
        used = max(self.used, overhead + sum(self._parts.sizes(self._parts.messages.for_model)))
        if used <= FULL * window:
            return False
        room = await self._parts.compactor.compact(window)
        if room.done:
            self.used = 0
        return room.ends_turn

    def _folds_after(self, error: ModelError) -> bool:
        """A template that wants user and assistant to take turns gets user messages folded, from now on."""
        if self._fold or not _ALTERNATE.search(str(error)):
            return False
        self._fold = True
        self.requests -= 1
        return True

    def _drops_images_after(self, error: ModelError) -> bool:
        """A server that refuses images gets the conversation without them, from now on."""
        too_long = _TOO_LONG.search(str(error)) and error.status != 413
        if not self._sent_images or too_long or not refuses_images(error):
            return False
        self._parts.refuse_images()
        self._parts.messages.add_notice_block(
            f"The server refused a request with images, so they are left out from now on. {error}"
        )
        self.requests -= 1
        return True

    async def _make_room_after(self, error: ModelError) -> Compaction:
        """A server that says that the conversation is too long gets a shorter one, once."""
        if self._overflowed or not _TOO_LONG.search(str(error)):
            return Compaction()
        self._overflowed = True
        size = tokens_of(self._parts.messages.for_model)
        try:
            room = await self._parts.compactor.compact(min(self._parts.window() or size, size))
        except ModelError:
            return Compaction()
        self.requests -= room.done  # the request that was too long is made again
        return room

    # ----------------------------------------------------------------------------------------------------------- model

    async def _ask_model(self) -> list[Asked]:
        """One request. What has arrived is kept, also when the stream breaks or the turn is interrupted."""
        parts = self._parts
        parts.briefing.tell_mode(parts.calls.mode, parts.messages)
        messages = parts.messages.for_model
        self._sent_images = has_images(messages) and await parts.takes_images()
        request = ModelRequest(
            model=parts.model_name,
            messages=parts.converter.convert(
                messages, system=parts.briefing.text, fold=self._fold, images=self._sent_images
            ),
            tools=parts.tools,
        )
        self.requests += 1
        answer = _Answer()
        try:
            async for delta in parts.model.stream(request):
                match delta:
                    case Text(text=text):
                        answer.texts.append(text)
                        parts.emit(TextDelta(text=text))
                    case Reasoning(text=text):
                        answer.thoughts.append(text)
                        parts.emit(ReasoningDelta(text=text))
                    case ToolCall():
                        answer.calls.append(delta)
                    case Usage():
                        self.usage += delta
                        self.used = delta.input_tokens + delta.output_tokens
                    case Retry(reason=reason, seconds=seconds):
                        parts.emit(Notice(content=f"{reason}; trying again in {seconds:.1f} s", level="info"))
        except BaseException:
            answer.calls.clear()  # an answer that broke off asks for nothing
            self._keep(answer, [])
            raise
        if not answer.calls:
            self._find_calls(answer)
        asked = [_asked(call) for call in _distinct(answer.calls, parts.messages)]
        self._keep(answer, asked)
        return asked

    def _find_calls(self, answer: "_Answer") -> None:
        """Small models sometimes write their calls into the text."""
        known = [tool.name for tool in self._parts.tools]
        text = answer.text
        if not any(name in text for name in known):
            return
        from wave_agent.models.repair import calls_in_text  # lazy: large, and most answers do without

        required = {tool.name: tool.schema.get("required", ()) for tool in self._parts.tools}
        rest, found = calls_in_text(text, known, required, seen=self._parts.messages.results())
        answer.texts = [rest]
        answer.calls += [ToolCall("", name, json.dumps(arguments)) for name, arguments in found]

    def _keep(self, answer: "_Answer", asked: Sequence[Asked]) -> None:
        blocks: list[Block] = []
        if reasoning := "".join(answer.thoughts):
            blocks.append(ReasoningBlock(reasoning))
        if text := answer.text:
            blocks.append(TextBlock(text, "model"))
            self.text = text
        blocks += [ToolBlock(call.id, call.name, call.parameters or {}) for call in asked]
        if blocks:
            self._parts.messages.add_assistant_message(*blocks)

    # ----------------------------------------------------------------------------------------------------------- tools

    async def _run_batch(self, calls: Sequence[Asked]) -> bool:
        """All calls of one answer: those that only read side by side, the others one by one. True: the turn ends."""
        runner = self._parts.calls
        self._blocks = replace(self._blocks, in_a_row=0)
        ends: list[CallEnd] = []
        for _, group in groupby(enumerate(calls), key=lambda pair: "reads" if runner.reads_only(pair[1]) else pair[0]):
            together = [call for _, call in group]
            if any(end.ends_turn for end in ends):
                for call in together:
                    runner.skip(call)
                continue
            ends += await together_or_none([runner.run(call) for call in together])
        later: list[Operation] = [operation for end in ends for operation in end.later]
        perform(later, self._parts.messages)
        return any(end.ends_turn for end in ends)

    # ------------------------------------------------------------------------------------------------------------ stop

    async def _try_to_stop(self) -> Status | None:
        """None: hooks keep the agent working."""
        before = self._blocks
        outcome = await self._fire(
            HookEvent.STOP,
            blocks=before,
            stop_hook_active=self._kept_working,
            stop_block_count=before.total,
            last_assistant_message=self.text or "",
        )
        if outcome.flow is Flow.KEEP_WORKING:
            self._kept_working = True
            counted = 0 if outcome.only_broken_block else 1
            self._blocks = Blocks(
                total=before.total + counted,
                in_a_row=before.in_a_row + counted,
                spent=before.spent | outcome.broken,
            )
            return None
        if outcome.limit_reached:
            self.error = outcome.error or None
            return Status.STOP_LIMIT
        return Status.STOPPED if outcome.flow is Flow.END_TURN else Status.COMPLETED

    # ----------------------------------------------------------------------------------------------------------- hooks

    async def _hooks(self, event: HookEvent, *, blocks: Blocks | None = None, **facts: Any) -> Outcome:
        return await self._parts.hooks.run(event, facts, permission_mode=self._parts.calls.mode.value, blocks=blocks)

    def _apply(self, outcome: Outcome) -> None:
        perform(consequences(outcome), self._parts.messages)

    async def _fire(self, event: HookEvent, *, blocks: Blocks | None = None, **facts: Any) -> Outcome:
        outcome = await self._hooks(event, blocks=blocks, **facts)
        self._apply(outcome)
        return outcome


class _Answer:
    """What has come of an answer so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []

    @property
    def text(self) -> str:
        return "".join(self.texts)


def _distinct(calls: Sequence[ToolCall], messages: MessageManager) -> list[ToolCall]:
    """Some servers give every call the same id, or none; a result must find its own call."""
    distinct: dict[str, ToolCall] = {}
    for call in calls:
        name, number = call.id or "call", max(1, messages.number_of_calls)  # or long sessions would count up each time
        while name in distinct or messages.has_call(name):
            number += 1
            name = f"{call.id or 'call'}-{number}"
        distinct[name] = ToolCall(name, call.name, call.arguments)
    return list(distinct.values())


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _asked(call: ToolCall) -> Asked:
    try:
        parameters: object = json.loads(call.arguments or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        from wave_agent.models.repair import repair_arguments  # lazy: most arguments are JSON

        parameters = repair_arguments(call.arguments)
        if parameters is None:
            return Asked(call.id, call.name, None, f"The arguments of {call.name} are not valid JSON: {error}")
    if not isinstance(parameters, Mapping):
        return Asked(call.id, call.name, None, f"The arguments of {call.name} must be a JSON object.")
    found = cast(Mapping[str, Any], parameters)
    if out_of_range(found):  # it reads as infinity, and hooks would be shown null
        return Asked(call.id, call.name, None, f"The arguments of {call.name} hold a number that is out of range.")
    return Asked(call.id, call.name, found)
