"""The turn: prompt → hooks → model → tools → hooks → … → stop."""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import FULL, Compaction, Compactor
from wave_agent.agent.consequences import (
    ErasePrompt,
    Operation,
    TellError,
    TellModel,
    consequences,
    context_blocks,
    perform,
)
from wave_agent.agent.loading_ahead import load_ahead
from wave_agent.agent.model_answer import BROKE_OFF, EMPTY, GO_ON, ONE_CALL, ModelAnswer, joined
from wave_agent.agent.outgoing import Draft
from wave_agent.agent.spending import RequestCount, Spending, requests_in_words
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.errors import ModelError
from wave_agent.events import Event, Notice, ReasoningDelta, TextDelta
from wave_agent.hooks.events import Decision, Flow, HookEvent, changed_files
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Blocks, Outcome
from wave_agent.messages import MessageManager, TextBlock
from wave_agent.models.base import Model, Reasoning, Retry, Text, Usage
from wave_agent.models.limits import AnswerLimits
from wave_agent.system.fairness import fairness

if TYPE_CHECKING:  # loaded with the first call
    from wave_agent.agent.call_batches import CallBatches
    from wave_agent.agent.call_results import RequestedCall
    from wave_agent.agent.expansion import ExpandedPrompt, RefusedPrompt

OVERLOADED = frozenset({429, 503, 529})
"""Statuses after which another model may be asked, once the client has given up repeating the request."""
CONTINUATIONS = 3
"""How often in a row a text that reached the output limit, or broke off, may be continued."""
LAST_WORDS = (
    "The limit of model requests is reached, so no more calls run. Call no tools, and report now: what you did, found, "
    "and left undone."
)
TOO_LATE = "Not run: the limit of model requests was reached before this call."
_SHORTENED = (
    "The conversation was too long for the model: some long texts were shortened for it. The transcript still has the "
    "full texts."
)


class TurnStatus(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    STOP_LIMIT = "stop_limit"
    MAX_TURNS = "max_turns"
    MAX_COST = "max_cost"
    ERROR = "error"
    INTERRUPTED = "interrupted"


async def _as_typed(_: str) -> None:
    """No prompt stands for another one."""


class Parts(Struct, frozen=True, kw_only=True):
    """The parts a turn works with."""

    messages: MessageManager
    hooks: HookManager
    calls: CallRunner
    model: Model
    model_name: str
    briefing: Briefing
    """The system prompt, and later updates for the model."""
    count: RequestCount
    """The model requests of this prompt."""
    emit: Callable[[Event], None]
    draft: Draft
    """The conversation as the model gets it."""
    compactor: Compactor
    window: Callable[[], int | None]
    """The model's context window in tokens, if known."""
    spending: Spending
    """What all requests of the session used and cost."""
    fall_back: "Callable[[Parts], Parts] | None" = None
    """The same parts for another model, to use when this one is overloaded."""
    limits: AnswerLimits = AnswerLimits()
    """Size limits for one answer."""
    expand: "Callable[[str], Awaitable[ExpandedPrompt | RefusedPrompt | None]]" = _as_typed
    """What a prompt stands for that the user typed; None: itself."""
    interactive: bool = False
    """A person reads along and writes the prompts."""
    reports: Callable[[], Sequence[str]] = tuple
    """Messages from tools for the model that are not the result of a call."""


class _Prompt(Struct, frozen=True):
    text: str
    complete: Callable[[str], str] | None = None
    """Given if the user typed it."""


class Turn:
    """One prompt, from submission to the end of the agent's work on it."""

    def __init__(self, parts: Parts, deferred: "RequestedCall | None" = None) -> None:
        """`deferred`: a call of an earlier turn that is to be judged anew."""
        self._parts = parts
        self.deferred = deferred
        """The call that the turn leaves without a result, because a hook deferred it."""
        self.text: str | None = None
        """The model's last text."""
        self.error: str | None = None
        self.session_begun = False
        """The SessionStart hooks have run."""
        self.blocks = Blocks()
        """How often hooks have kept the turn from ending."""
        self.unmet: list[str] = []
        """What hooks still objected to when their limit was reached, each with its hook."""
        self._kept_working = False
        self.used = 0
        """Tokens of the window in use, according to the last answer."""
        self._cuts = parts.draft.cuts
        self._cuts_told = False
        self._smallest: int | None = None
        """The size of the last request that was repeated because the one before was too long."""
        self._has_begun = False
        """The last request failed after some text of its answer was shown."""
        self._useless = 0
        """Consecutive answers without usable content."""
        self._continued = 0
        self._unfinished = ""
        """The text so far that the model was asked to continue."""
        self._batches: CallBatches | None = None

    async def run(
        self, prompt: str | None, *, session_source: str | None = None, complete: Callable[[str], str] | None = None
    ) -> TurnStatus:
        """`session_source` is passed with the first prompt of a session: how the session started.

        `complete` is given if the user typed the prompt, which is then expanded; it adds what they did not type.

        Without a prompt, the turn continues with what is left to do: a deferred call, what a background hook reported,
        or the prompt of a SessionStart hook.
        """
        prompts = [] if prompt is None else [_Prompt(prompt, complete)]
        if session_source is not None:
            begun = await self._fire(HookEvent.SESSION_START, source=session_source, model=self._parts.model_name)
            self.session_begun = True
            if begun.flow is Flow.END_TURN:
                return TurnStatus.STOPPED
            prompts = [*self._initial_prompt(begun), *prompts]
        if prompts:
            return await self._answer(prompts)
        if self.deferred is not None or self._parts.hooks.wakes:
            if await self._ends_with_deferred():
                return TurnStatus.STOPPED
            await self._parts.briefing.catch_up(self._parts.calls.mode)
            return await self._until_done()
        self.error = (
            "There is nothing to continue: no call waits, no hook has reported anything, and none gave a prompt."
        )
        self._parts.messages.add_error_block(self.error)
        return TurnStatus.ERROR

    def _initial_prompt(self, begun: Outcome) -> list[_Prompt]:
        """What SessionStart hooks want a session to begin with that runs unattended."""
        said = begun.initial_prompts
        if not said:
            return []
        names = ", ".join(dict.fromkeys(one.hook for one in said))
        if self._parts.interactive:
            self._parts.messages.add_notice_block(
                f"Hook {names}: initialUserMessage is ignored: you write the prompts."
            )
            return []
        self._parts.messages.add_notice_block(f"Hook {names} begins this session with a prompt.", "info")
        return [_Prompt("\n\n".join(one.text for one in said))]

    async def _answer(self, prompts: Sequence[_Prompt]) -> TurnStatus:
        """One prompt after another. A blocked one is erased; whatever else ends the work ends it for all."""
        status = TurnStatus.COMPLETED
        for prompt in prompts:
            if status not in (TurnStatus.COMPLETED, TurnStatus.BLOCKED):
                break
            status = await self._submit(prompt.text, prompt.complete)
        return status

    async def _submit(self, prompt: str, complete: Callable[[str], str] | None) -> TurnStatus:
        self.blocks, self._kept_working = Blocks(), False
        await self._parts.briefing.catch_up(self._parts.calls.mode)
        self._parts.messages.add_prompt(prompt)
        self._parts.hooks.begin_prompt()
        before: list[Operation] = []
        if complete is not None:
            expanded = await self._expand(prompt, before)
            if isinstance(expanded, TurnStatus):
                return expanded
            typed, prompt = prompt, complete(expanded)
            if prompt != typed:
                self._parts.messages.expand_prompt(prompt)
        judged = await self._hooks(HookEvent.USER_PROMPT_SUBMIT, prompt=prompt)
        if judged.prompt_erased:
            self._apply(judged)
            return TurnStatus.STOPPED if judged.flow is Flow.END_TURN else TurnStatus.BLOCKED
        self._parts.messages.accept_prompt()
        perform(before, self._parts.messages)
        perform(consequences(judged, waiting=self._waiting_context()), self._parts.messages)
        if judged.flow is Flow.END_TURN or await self._ends_with_deferred():
            return TurnStatus.STOPPED
        return await self._until_done()

    async def _ends_with_deferred(self) -> bool:
        """Takes up the call that waits, if there is one: not before the prompt is accepted that comes with it. True:
        the turn ends with it."""
        if self.deferred is None:
            return False
        call, self.deferred = self.deferred, None
        return await self._run_batch([call])

    async def _expand(self, prompt: str, later: list[Operation]) -> str | TurnStatus:
        """What the prompt stands for; or how the turn ends, if it is not sent. `later` gets what is to be done once it
        is accepted."""
        found = await self._parts.expand(prompt)
        if found is None:
            return prompt
        from wave_agent.agent.expansion import ExpandedPrompt  # lazy: loaded by the expansion itself

        if isinstance(found, ExpandedPrompt):
            later += (*(consequences(found.judged) if found.judged else ()), *found.later)
            return found.text
        if found.judged is not None:
            # Context for a prompt that is not sent goes with it.
            told = [one for one in consequences(found.judged) if not isinstance(one, TellModel)]
            perform(told, self._parts.messages)
            self._parts.messages.drop_unjudged_prompt("stopped by a hook")
        else:
            self.error = None if found.by_hook else found.reason
            perform([ErasePrompt(found.reason), TellError(found.reason)], self._parts.messages)
        if found.ends_turn:
            return TurnStatus.STOPPED
        return TurnStatus.BLOCKED if found.by_hook else TurnStatus.ERROR

    def _waiting_context(self) -> tuple[TextBlock, ...]:
        """Context from async hooks that have finished since."""
        return tuple(
            block for one in self._parts.hooks.take_deferred() for block in context_blocks(one.event, [one.said])
        )

    async def _until_done(self) -> TurnStatus:
        count = self._parts.count
        await self._parts.briefing.settle(self._parts.calls.mode)
        while count.exhausted is None:
            if self._parts.spending.is_used_up:
                self._parts.messages.add_notice_block(self._parts.spending.why_used_up)
                return TurnStatus.MAX_COST
            try:
                ended = await self._step()
            except ModelError as error:
                ended = await self._recover(error)
            if ended is not None:
                return ended
        requests = requests_in_words(count.exhausted)
        self._parts.messages.add_notice_block(f"Stopped after {requests}: the limit is reached.")
        return TurnStatus.MAX_TURNS

    async def report(self) -> None:
        """Asks for one more answer, which ends the work whatever it contains: no call of it is run. For when a limit
        was reached. If it fails, the last text so far is all there is."""
        if self._parts.spending.is_used_up:
            return
        self._parts.messages.tell_model(LAST_WORDS)
        try:
            if await self._make_room():
                return
            # The request starts like all others, so a prompt cache can serve it.
            answer = await self._ask_model()
            for call in answer.asked:
                self._parts.calls.refuse(call, TOO_LATE)
            if answer.asked and not answer.text.strip() and not self._parts.spending.is_used_up:
                # Some models answer a request that has tools with a call, whatever they are told.
                self._parts.count.add(-1)
                answer = await self._ask_model(tools=False)
                for call in answer.asked:
                    self._parts.calls.refuse(call, TOO_LATE)
        except ModelError as error:
            self._parts.messages.add_error_block(str(error))

    async def _step(self) -> TurnStatus | None:
        """One request, and what follows from its answer. None: there is more to do."""
        await self._parts.calls.settle()
        self._tell_news()
        if await self._make_room():
            return TurnStatus.STOPPED
        await fairness().breathe()
        answer = await self._ask_model()
        await fairness().breathe()
        if self._goes_on_after(answer):
            return None
        if answer.asked:
            ended = await self._run_batch(answer.asked)
            if answer.is_reduced and not ended:
                self._parts.messages.tell_model(ONE_CALL)
            return TurnStatus.STOPPED if ended else None
        return await self._try_to_stop()

    def _tell_news(self) -> None:
        """Adds what has happened since the last request that the model should know."""
        parts = self._parts
        if waiting := self._waiting_context():
            perform([TellModel(waiting)], parts.messages)
        if reports := parts.reports():
            parts.messages.tell_model(*reports)
        parts.briefing.tell_tools()
        parts.briefing.tell_mode(parts.calls.mode)

    async def _recover(self, error: ModelError) -> TurnStatus | None:
        """None: the request is repeated, in a form the server may accept, or the rest of the answer asked for."""
        if self._continues_after(error):
            return None
        if self._parts.draft.form.adapts_to(error):
            self._parts.count.add(-1)
            return None
        if self._falls_back_after(error):
            self._parts.count.add(-1)
            return None
        room = await self._make_room_after(error)
        if room.done and not room.ends_turn:
            self._parts.count.add(-1)  # the request that was too long is repeated
            return None
        if room.ends_turn:
            return TurnStatus.STOPPED
        self.error = str(error)
        self._parts.messages.add_error_block(self.error)
        await self._fire(HookEvent.STOP_FAILURE, error=error.kind, error_details=self.error)
        return TurnStatus.ERROR

    def _continues_after(self, error: ModelError) -> bool:
        """Asks for the rest of an answer if it was lost on its way. The text that has arrived is not repeated."""
        if not (error.unfinished and self._has_begun) or self._continued == CONTINUATIONS:
            return False
        self._continued += 1
        self._unfinished = self.text or ""
        self._parts.messages.add_notice_block(f"{error} The model is asked for the rest.")
        self._parts.messages.tell_model(BROKE_OFF)
        return True

    def _falls_back_after(self, error: ModelError) -> bool:
        """Continues with another model if this one is overloaded and has not begun to answer."""
        parts = self._parts
        if parts.fall_back is None or error.status not in OVERLOADED or self._has_begun:
            return False
        self._parts = parts.fall_back(parts)
        self._cuts = self._parts.draft.cuts
        parts.messages.add_notice_block(
            f"{parts.model_name} is overloaded: {self._parts.model_name} takes over for the rest of this session. "
            f"({error})"
        )
        return True

    @property
    def requests(self) -> int:
        """Model requests, including those of subagents."""
        return self._parts.count.made

    @property
    def parts(self) -> Parts:
        """Those it ended with: another model may have taken over."""
        return self._parts

    # ------------------------------------------------------------------------------------------------------------ room

    async def _make_room(self) -> bool:
        """Summarises older turns when the window is nearly full. True: a hook ended the turn."""
        draft, window = self._parts.draft, self._parts.window()
        room = draft.room(window)
        if room is None:
            return False
        if max(self.used, draft.size()) > FULL * room:
            compaction = await self._parts.compactor.compact(room)
            if compaction.done:
                self.used = 0
            if compaction.ends_turn:
                return True
        draft.make_fit(window)
        self._tell_cuts()
        return False

    async def _make_room_after(self, error: ModelError) -> Compaction:
        """Sends a shorter conversation if the server finds it too long, as long as it can get any shorter."""
        draft = self._parts.draft
        if not draft.too_long(error):
            return Compaction()
        size = draft.size()
        goal = draft.goal(size, error)
        try:
            compaction = await self._parts.compactor.compact(goal)
        except ModelError:
            compaction = Compaction()
        if compaction.ends_turn:
            return compaction
        # An answer that keeps breaking off adds to the conversation: only a new smallest size is progress.
        smaller = draft.shrinks(size, goal) and (self._smallest is None or draft.size() < self._smallest)
        self._smallest = draft.size()
        self._tell_cuts()
        self.used = 0
        return Compaction(done=smaller)

    def _tell_cuts(self) -> None:
        """Notifies the user, once per turn."""
        if self._cuts == self._parts.draft.cuts:
            return
        self._cuts, self.used = self._parts.draft.cuts, 0
        if not self._cuts_told:
            self._cuts_told = True
            self._parts.messages.add_notice_block(_SHORTENED, "info")

    # ----------------------------------------------------------------------------------------------------------- model

    async def _ask_model(self, *, tools: bool = True) -> ModelAnswer:
        """One request. What has arrived is kept, even if the stream breaks or the turn is interrupted."""
        parts = self._parts
        request = await parts.draft.request(tools=tools)
        parts.count.add()
        answer = ModelAnswer(parts.limits)
        stop_loading = load_ahead(parts.calls.prepare)
        try:
            async for delta in parts.model.stream(request):
                stop_loading()
                match delta:
                    case Usage():
                        answer.usage += delta
                        self.used = delta.input_tokens + delta.output_tokens
                        continue
                    case Retry(reason=reason, seconds=seconds):
                        parts.emit(Notice(content=f"{reason}; trying again in {seconds:.1f} s", level="info"))
                        answer.begin_again()
                        continue
                    case Text(text=text) if text:
                        parts.emit(TextDelta(text=text))
                    case Reasoning(text=text) if text:
                        parts.emit(ReasoningDelta(text=text))
                    case _:
                        pass
                answer.take(delta)
        except BaseException:
            stop_loading()
            self._has_begun = bool(answer.texts)
            self._spend(answer, is_whole=False)
            answer.calls.clear()  # the calls of an answer that broke off do not run
            self._keep(answer)
            raise
        self._smallest = None
        self._spend(answer, is_whole=True)
        try:
            answer.read_calls(parts.briefing.tools, parts.messages, one_call=parts.briefing.is_small)
        except ModelError:
            answer.calls.clear()
            self._keep(answer)
            raise
        self._keep(answer)
        return answer

    def _spend(self, answer: ModelAnswer, *, is_whole: bool) -> None:
        parts = self._parts
        if answer.usage.input_tokens:
            parts.spending.add(parts.model_name, answer.usage)
        elif is_whole or answer.texts or answer.thoughts:  # not every server says how many tokens it used
            parts.spending.add_unreported(parts.model_name, lambda: Usage(parts.draft.size(), answer.tokens))

    def _keep(self, answer: ModelAnswer) -> None:
        if blocks := answer.blocks():
            self._parts.messages.add_assistant_message(*blocks)
        if text := answer.text:
            self.text = joined(self._unfinished, text) if self._unfinished else text

    def _goes_on_after(self, answer: ModelAnswer) -> bool:
        """True: the turn is not over, and the model was told what is wrong or to continue. Raises `ModelError`."""
        messages = self._parts.messages
        if notice := answer.notice():
            messages.add_notice_block(notice)
        if problem := answer.problem(self._parts.briefing.tools):
            self._useless += 1
            if answer.is_filtered:
                raise ModelError("The server's content filter withheld the answer.")
            if self._useless > 1:
                what = "was empty" if problem == EMPTY else "had no usable content"
                raise ModelError(f"The model's answer {what}, twice in a row.")
            messages.tell_model(problem)
            return True
        self._useless, self._unfinished = 0, ""
        if answer.asked or not answer.is_limited or self._continued == CONTINUATIONS:
            self._continued = 0
            return False
        self._continued += 1
        self._unfinished = self.text or ""
        messages.tell_model(GO_ON)
        return True

    # ----------------------------------------------------------------------------------------------------------- tools

    async def _run_batch(self, calls: "Sequence[RequestedCall]") -> bool:
        """All calls of one answer. True: the turn ends."""
        self.blocks = replace(self.blocks, in_a_row=0)
        if self._batches is None:
            from wave_agent.agent.call_batches import CallBatches  # lazy: many answers call no tool

            self._batches = CallBatches(self._parts.messages, self._parts.hooks, self._parts.calls)
        end = await self._batches.run(calls)
        self.deferred = end.deferred or self.deferred
        return end.ends_turn

    # ------------------------------------------------------------------------------------------------------------ stop

    async def _try_to_stop(self) -> TurnStatus | None:
        """None: hooks keep the agent working."""
        before, calls, hooks = self.blocks, self._parts.calls, self._parts.hooks
        await calls.settle()
        outcome = await self._fire(
            HookEvent.STOP,
            blocks=before,
            stop_hook_active=self._kept_working,
            stop_block_count=before.total,
            last_assistant_message=self.text or "",
            **changed_files(calls.changes.changed() if hooks.hears(HookEvent.STOP) else ()),
        )
        if outcome.flow is Flow.KEEP_WORKING:
            self._kept_working = True
            counted = 0 if outcome.only_broken_block else 1
            self.blocks = Blocks(
                total=before.total + counted,
                in_a_row=before.in_a_row + counted,
                spent=before.spent | outcome.broken,
            )
            return None
        if outcome.limit_reached:
            self.error = outcome.error or None
            self.unmet = _objections(outcome)
            return TurnStatus.STOP_LIMIT
        return TurnStatus.STOPPED if outcome.flow is Flow.END_TURN else TurnStatus.COMPLETED

    # ----------------------------------------------------------------------------------------------------------- hooks

    async def _hooks(self, event: HookEvent, *, blocks: Blocks | None = None, **facts: Any) -> Outcome:
        return await self._parts.hooks.run(event, facts, permission_mode=self._parts.calls.mode.value, blocks=blocks)

    def _apply(self, outcome: Outcome) -> None:
        perform(consequences(outcome), self._parts.messages)

    async def _fire(self, event: HookEvent, *, blocks: Blocks | None = None, **facts: Any) -> Outcome:
        outcome = await self._hooks(event, blocks=blocks, **facts)
        self._apply(outcome)
        return outcome


def _objections(outcome: Outcome) -> list[str]:
    said = outcome.reasons.get(Decision.BLOCK, ())
    silent = [name for name in outcome.unmet if name not in {one.hook for one in said}]
    return [*(f"Hook {one.hook}: {one.text}" for one in said), *(f"Hook {name} did not pass." for name in silent)]
