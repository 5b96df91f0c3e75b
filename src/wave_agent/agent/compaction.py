"""Long conversations: when the window is nearly full, older turns are summarised and the conversation continues.

The model writes the summary. Facts that must not depend on its memory are added to it: the user's own words, the todo
list, and the files that were read or changed.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from msgspec import Struct

from wave_agent.agent.consequences import consequences, perform
from wave_agent.agent.outgoing import Draft, message_tokens
from wave_agent.agent.shortening import cut_text
from wave_agent.errors import ModelError
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import Message, MessageManager, ToolBlock
from wave_agent.models.base import Model, ModelRequest, Text, Usage

FULL = 0.8
"""The share of the window above which older turns are summarised."""
KEPT = 0.3
"""The share of the window that the latest messages may take afterwards."""
PROMPT_LIMIT = 4000
"""Characters of an earlier prompt kept verbatim."""
_OLDER_LIMIT = 1000
"""Characters kept of a prompt that was already part of an earlier summary."""
_PROMPTS_SHARE = 0.2
"""The share of the window that all earlier prompts may take, at four characters per token."""
_SHORTEST = 200
_BROKEN = 2
"""How often a summary is asked for again that broke off on its way."""
_MOST_FILES = 50

INSTRUCTIONS = """\
Summarise the conversation so far for yourself: you will continue the work from your summary alone. Keep what the user
wants; decisions and their reasons; what you found in files, with paths; commands and their results; what is still to
be done. The user's own words, the todo list, file paths and what runs in the background are stored with your summary:
do not repeat them. Omit what no longer matters. Write only the summary, and call no tools."""


def cut_at(messages: Sequence[Message], window: int, first: int) -> int:
    """The first message that is kept as it is: as much of the end as fits, and always the last message.

    A call and its result are in one message, so every cut leaves a valid conversation.
    """
    left, at = int(window * KEPT), len(messages)
    while at > first and (at == len(messages) or left - message_tokens(messages[at - 1]) >= 0):
        at -= 1
        left -= message_tokens(messages[at])
    return at


def words_of(messages: Sequence[Message], first: int, upto: int, window: int) -> str:
    """The user's prompts before message `upto`.

    Prompts from message `first` on are kept verbatim; long ones, and all that an earlier summary already had, are cut
    in the middle as much as needed. The latest, which the agent is working on, is never cut.
    """
    prompts = [at for at, message in enumerate(messages[:upto]) if message.is_prompt]
    latest = max((at for at, message in enumerate(messages) if message.is_prompt), default=-1)
    older = [messages[at].text for at in prompts if at < first and at != latest]
    earlier = [messages[at].text for at in prompts if at >= first and at != latest]
    budget = int(4 * _PROMPTS_SHARE * window)
    earlier = _within(earlier, PROMPT_LIMIT, budget)
    older = _within(older, _OLDER_LIMIT, max(budget - sum(map(len, earlier)), _SHORTEST))
    parts = ["What the user said before that, shortened:", *older] if older else []
    parts += ["What the user said, word for word:", *earlier] if earlier else []
    if 0 <= latest < upto:
        parts += ["The user's latest prompt, word for word, which you are working on:", messages[latest].text]
    return "\n\n".join(parts)


def _within(texts: Sequence[str], limit: int, budget: int) -> list[str]:
    """Each at most `limit` long, and together within the budget: the first and the latest of them."""
    while limit > _SHORTEST and sum(min(len(text), limit) for text in texts) > budget:
        limit //= 2
    cut = [cut_text(text, limit) for text in texts]
    if sum(map(len, cut)) <= budget:
        return cut
    most = max(budget // (2 * _SHORTEST), 1)
    return cut[:1] + cut[max(len(cut) - most, 1) :]


def _is_kept_anyway(message: Message) -> bool:
    return message.is_prompt and len(message.text) <= PROMPT_LIMIT


def facts_of(messages: Sequence[Message], edits: Collection[str], standing: Sequence[str] = ()) -> str:
    """The current todo list, the files that calls have read or changed, and `standing`.

    `edits` are the tools that change files.
    """
    calls = [
        block for message in messages for block in message.blocks if isinstance(block, ToolBlock) and block.success
    ]
    todo = next((block.result for block in reversed(calls) if block.name == "TodoWrite"), None)
    changed = _paths(block for block in calls if block.name in edits)
    read = [path for path in _paths(block for block in calls if block.name not in edits) if path not in changed]
    parts = [
        f"Your todo list:\n{todo}" if todo else "",
        "Files that you changed:\n" + "\n".join(changed[-_MOST_FILES:]) if changed else "",
        "Files that you read:\n" + "\n".join(read[-_MOST_FILES:]) if read else "",
        *standing,
    ]
    return "\n\n".join(filter(None, parts))


def _paths(calls: Iterable[ToolBlock]) -> list[str]:
    """Each path once, in order of last use."""
    paths = [str(block.parameters["file_path"]) for block in calls if block.parameters.get("file_path")]
    return list(reversed(dict.fromkeys(reversed(paths))))


class Compaction(Struct, frozen=True):
    """The result of a compaction."""

    done: bool = False
    ends_turn: bool = False
    """A hook ended the turn."""


class Compactor:
    """Summarises, using the model itself."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        model: Model,
        draft: Draft,
        window: Callable[[], int | None],
        edits: Collection[str],
        standing: Callable[[], Sequence[str]] = tuple,
        permission_mode: Callable[[], str],
        renew: Callable[[], Awaitable[None]],
        spend: Callable[[str, Usage], None],
    ) -> None:
        """`draft` is the conversation as it is sent, `edits` are the names of the tools that change files. `standing`
        returns facts that outlast a call, such as commands in the background. `renew` brings system prompt and tools up
        to date: no prompt cache can serve the next request anyway. `spend` gets the model and what it used."""
        self._messages = messages
        self._hooks = hooks
        self._model = model
        self._draft = draft
        self._window = window
        self._edits = edits
        self._standing = standing
        self._permission_mode = permission_mode
        self._renew = renew
        self._spend = spend

    def with_draft(self, draft: Draft, window: Callable[[], int | None]) -> "Compactor":
        """The same, for another model."""
        return Compactor(
            messages=self._messages,
            hooks=self._hooks,
            model=self._model,
            draft=draft,
            window=window,
            edits=self._edits,
            standing=self._standing,
            permission_mode=self._permission_mode,
            renew=self._renew,
            spend=self._spend,
        )

    async def compact(self, window: int, trigger: str = "auto", instructions: str = "") -> Compaction:
        """Does nothing if there is nothing to summarise or a hook vetoes it. Raises `ModelError`."""
        first = self._messages.compacted_upto
        upto = cut_at(self._messages.messages, window, first)
        older = self._messages.messages[first:upto]
        if not older or (trigger == "auto" and all(map(_is_kept_anyway, older))):
            return Compaction()
        before = await self._fire(HookEvent.PRE_COMPACT, trigger=trigger, custom_instructions=instructions)
        if before.flow in (Flow.SKIP_COMPACTION, Flow.END_TURN):
            return Compaction(ends_turn=before.flow is Flow.END_TURN)
        wishes = [instructions, *(said.text for said in before.contexts)]
        summary = await self._summary(upto, "\n\n".join(wish for wish in wishes if wish))
        if not summary:
            return Compaction()
        messages = self._messages.messages
        words, facts = words_of(messages, first, upto, window), facts_of(messages[:upto], self._edits, self._standing())
        self._messages.compact(summary, upto, words=words, facts=facts)
        await self._renew()
        self._messages.add_notice_block("The older part of the conversation was summarised for the model.", "info")
        ended = await self._fire(HookEvent.POST_COMPACT, trigger=trigger, compact_summary=summary)
        # Context that hooks added at session start may have been summarised away.
        begun = await self._fire(HookEvent.SESSION_START, source="compact", model=self._draft.form.model)
        return Compaction(done=True, ends_turn=Flow.END_TURN in (ended.flow, begun.flow))

    async def _fire(self, event: HookEvent, **facts: str) -> Outcome:
        outcome = await self._hooks.run(event, facts, permission_mode=self._permission_mode())
        perform(consequences(outcome), self._messages)
        return outcome

    async def _summary(self, upto: int, wishes: str) -> str:
        """Empty if the model returns none. The request starts like all others, so a prompt cache can serve it."""
        kept = len(self._messages.messages) - upto
        older = self._messages.for_model[:-kept] if kept else self._messages.for_model
        draft = self._draft.part(older, f"{INSTRUCTIONS}\n\n{wishes}" if wishes else INSTRUCTIONS)
        draft.make_fit(self._window())
        # Some models answer a request that has tools with a call, whatever the instructions say.
        return await self._ask(draft) or await self._ask(draft, tools=False)

    async def _ask(self, draft: Draft, *, tools: bool = True) -> str:
        broken = 0
        while True:
            size = draft.size()
            try:
                return await self._text(await draft.request(tools=tools))
            except ModelError as error:
                if draft.too_long(error):
                    if not draft.shrinks(size, draft.goal(size, error)):
                        return ""
                elif error.unfinished and broken < _BROKEN:  # nobody has read the beginning, so all is asked for again
                    broken += 1
                elif not draft.form.adapts_to(error):
                    raise

    async def _text(self, request: ModelRequest) -> str:
        """The text of the answer. Calls in it are ignored."""
        text = ""
        async for delta in self._model.stream(request):
            if isinstance(delta, Text):
                text += delta.text
            elif isinstance(delta, Usage):
                self._spend(request.model, delta)
        return text.strip()
