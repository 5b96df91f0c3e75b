"""One model answer: what it contains, and the calls it requests."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from wave_agent.formats.readable import readable_text, why_unreadable
from wave_agent.lazy_regex import lazy_regex
from wave_agent.messages import Block, Kept, MessageManager, ReasoningBlock, TextBlock, ToolBlock
from wave_agent.models.base import CutShort, Reasoning, Text, ToolCall, ToolSpec, Usage
from wave_agent.models.limits import AnswerLimits, Meter
from wave_agent.models.windows import estimate_tokens
from wave_agent.text import NAME_LIMIT

if TYPE_CHECKING:  # loaded with the first call
    from wave_agent.agent.call_results import RequestedCall

CUT_CALL = (
    "Not run: your answer reached the output limit before this call was complete, so nothing was done. Make the call "
    "again in smaller parts: write a long file with Write up to some point, then add to it with Edit."
)
_CUT = {
    "length": "The answer reached the model's output limit.",
    "content_filter": "The server's content filter stopped the answer.",
}
GO_ON = (
    "Your answer reached the output limit and was cut off. Continue exactly where it ends: start with the next "
    "character, repeat nothing, and do not mention this."
)
BROKE_OFF = (
    "Your answer broke off on its way: no tool call in it has arrived. If you were about to make one, make it now; "
    "otherwise continue exactly where your text ends. Repeat nothing, and do not mention this."
)
EMPTY = (
    "Your answer was empty. Go on with the user's task: make the next tool call now or, if the task is done, report "
    "the result to the user."
)
CUT_THINKING = (
    "Your answer reached the output limit before it had any text or tool call. Think less, then answer or call a tool."
)
CUT_TEXT_CALL = (
    "Your answer reached the output limit in the middle of a tool call, so nothing was run. Make the call again in "
    "smaller parts."
)
UNREADABLE = (
    "Your answer looks like a tool call, but it could not be parsed as one, so nothing was run. Use the tool "
    "interface, with arguments that are one valid JSON object. The tools are: {}."
)
ONLY_RESULT = (
    "Your answer was written as a tool's result, and only tools give results. Go on with the user's task: make the "
    "next tool call now or, if the task is done, tell the user so in plain text."
)
ONE_CALL = (
    "Your answer made several calls. Only the first was run; the others were dropped. Make one call in an answer, and "
    "look at its result before the next."
)
_ALIASES = {"Agent": "Task"}
_NO_NAME = (
    f"Not run: this is not a valid tool name. Names have at most {NAME_LIMIT} characters, without NUL and without "
    "lone surrogates. Make the call again with the name of one of your tools."
)
_WITHOUT = "Make the call again with plain text in its place."
_ID_LIMIT = 256
_MARKS = ("<", "{", "```", "[TOOL_CALLS]", "Action:", ">>>")
"""Every call that is written as text contains one of these."""
_RESULT = lazy_regex(
    r"\s*<(?P<tag>tool_(?:response|result|output)s?)>(?:(?!</?(?P=tag)>).)*(?:</(?P=tag)>)?\s*", re.DOTALL
)
"""A whole answer in the marks that servers' templates put around results."""


class ModelAnswer:
    """An answer as received so far."""

    def __init__(self, limits: AnswerLimits | None = None) -> None:
        """Raises `ModelError` once the answer is larger than `limits` allow."""
        self._meter = Meter(limits or AnswerLimits())
        self.texts: list[str] = []
        self.thoughts: list[Reasoning] = []
        self.calls: list[ToolCall] = []
        self.asked: list[RequestedCall] = []
        """The parsed calls; see `read_calls`."""
        self.is_reduced = False
        """It made several calls, and only the first was kept."""
        self.cut: CutShort | None = None
        self.usage = Usage()
        self._arrived: list[Text | Reasoning | ToolCall] = []
        """In order, if the API wants some of it back in that order."""

    @property
    def text(self) -> str:
        return readable_text("".join(self.texts))

    def take(self, delta: Text | Reasoning | ToolCall | CutShort) -> None:
        match delta:
            case Text(text=text):
                self._meter.text(text)
                self.texts.append(text)
            case Reasoning(text=text):
                self._meter.text(text)
                self.thoughts.append(delta)
            case ToolCall():
                self._meter.call()
                self._meter.arguments(delta.id, delta.name, delta.arguments)
                self.calls.append(delta)
            case CutShort():
                self.cut = delta
                return
        if delta.kept is not None:
            self._meter.text(str(delta.kept.data))
        self._arrived.append(delta)

    @property
    def tokens(self) -> int:
        """Roughly how many tokens it took."""
        texts = [*self.texts, *(thought.text for thought in self.thoughts), *(call.arguments for call in self.calls)]
        return estimate_tokens("".join(texts))

    def begin_again(self) -> None:
        """The request is repeated: what has arrived stays visible, but does not go back to the API."""
        self._arrived = [replace(delta, kept=None) for delta in self._arrived]

    def read_calls(self, tools: Sequence[ToolSpec], messages: MessageManager, *, one_call: bool = False) -> None:
        """In an answer that was cut short, only what is certainly complete is read: nothing is repaired. With
        `one_call`, only the first call is kept."""
        if not self.calls and not self.cut:
            self._find_calls(tools, messages)
        if one_call and len(self.calls) > 1:
            self.is_reduced = True
            del self.calls[1:]
            calls = [at for at, delta in enumerate(self._arrived) if isinstance(delta, ToolCall)]
            self._arrived = [delta for at, delta in enumerate(self._arrived) if at not in calls[1:]]
        distinct = _renamed(_distinct(self.calls, messages), {tool.name for tool in tools})
        self.asked = [
            _asked(call, given.id, repair=not self.cut) for given, call in zip(self.calls, distinct, strict=True)
        ]

    def _find_calls(self, tools: Sequence[ToolSpec], messages: MessageManager) -> None:
        """Small models sometimes write their calls as text."""
        known = [tool.name for tool in tools]
        text = self.text
        if not any(name in text for name in known):
            return
        from wave_agent.models.repair import calls_in_text  # lazy: large, and most answers do not need it

        required = {tool.name: tool.schema.get("required", ()) for tool in tools}
        rest, found = calls_in_text(text, known, required, seen=messages.results())
        if found:
            self.texts = [rest]
            self._arrived = [*(delta for delta in self._arrived if not isinstance(delta, Text)), Text(rest)]
        for name, arguments in found:
            self.take(ToolCall("", name, json.dumps(arguments)))

    def blocks(self) -> list[Block]:
        """The blocks stored for this answer."""
        if any(delta.kept for delta in self._arrived):
            return list(_in_order(self._arrived, self.asked))
        blocks: list[Block] = []
        if reasoning := readable_text("".join(thought.text for thought in self.thoughts)):
            blocks.append(ReasoningBlock(reasoning, self.thoughts[0].field))
        if text := self.text:
            blocks.append(TextBlock(text, "model"))
        return [*blocks, *map(_tool_block, self.asked)]

    @property
    def is_limited(self) -> bool:
        """It reached the output limit."""
        return self.cut is not None and self.cut.reason == "length"

    @property
    def is_filtered(self) -> bool:
        return self.cut is not None and self.cut.reason == "content_filter"

    def notice(self) -> str:
        """What the user should know about how it ended."""
        if self.cut is None:
            return ""
        incomplete = any(call.problem == CUT_CALL for call in self.asked)
        return _CUT[self.cut.reason] + (" A tool call in it was incomplete and was not run." if incomplete else "")

    def problem(self, tools: Sequence[ToolSpec]) -> str:
        """What is wrong with a useless answer, addressed to the model; empty for any other."""
        if self.asked:
            return ""
        if not self.text.strip():
            return CUT_THINKING if self.is_limited else EMPTY
        if not any(mark in self.text for mark in _MARKS):
            return ""
        if _RESULT.fullmatch(self.text):
            return ONLY_RESULT
        from wave_agent.models.repair import is_call_attempt  # lazy: large, and most answers do not need it

        known = [tool.name for tool in tools]
        if not is_call_attempt(self.text, known, cut=self.cut is not None):
            return ""
        return CUT_TEXT_CALL if self.is_limited else UNREADABLE.format(", ".join(known))


def _in_order(arrived: Iterable[Text | Reasoning | ToolCall], asked: "Sequence[RequestedCall]") -> Iterator[Block]:
    """The blocks of an answer as they arrived: an API that signs its answers notices another order."""
    calls = iter(asked)
    texts: list[str] = []
    open_kind: type[Text | Reasoning | ToolCall] = ToolCall
    for delta in arrived:
        if texts and type(delta) is not open_kind:
            yield from _block(open_kind, texts, None)
        open_kind = type(delta)
        if isinstance(delta, ToolCall):
            yield from (_tool_block(call) for call in [next(calls, None)] if call is not None)
            continue
        texts.append(delta.text)
        if delta.kept is not None:
            yield from _block(open_kind, texts, delta.kept)
    if texts:
        yield from _block(open_kind, texts, None)


def _block(kind: type[Text | Reasoning | ToolCall], texts: list[str], kept: Kept | None) -> Iterator[Block]:
    content = readable_text("".join(texts))
    texts.clear()
    if kind is Reasoning and (content or kept):
        yield ReasoningBlock(content, kept=kept)
    elif kind is Text and content:
        yield TextBlock(content, "model", kept=kept)


def _tool_block(call: "RequestedCall") -> ToolBlock:
    return ToolBlock(call.id, call.name, call.parameters or {}, kept=call.kept)


def joined(before: str, after: str) -> str:
    """A text that was cut off and its continuation. Words repeated at the seam appear once."""
    longest = min(len(before), len(after), 400)
    overlap = next((size for size in range(longest, 11, -1) if before.endswith(after[:size])), 0)
    rest = after[overlap:]
    space = " " if before[-1:] in ".!?:;," and rest[:1].isalnum() and not overlap else ""
    return before + space + rest


def _distinct(calls: Sequence[ToolCall], messages: MessageManager) -> list[ToolCall]:
    """Some servers give every call the same id, or none; each result must find its own call. An id longer than any
    server generates is not stored: it would be sent back with every request."""
    distinct: dict[str, ToolCall] = {}
    for call in calls:
        given = call.id if 0 < len(call.id) <= _ID_LIMIT and not why_unreadable(call.id) else "call"
        name, number = given, max(1, messages.number_of_calls)  # otherwise long sessions would count up each time
        while name in distinct or messages.has_call(name):
            number += 1
            name = f"{given}-{number}"
        distinct[name] = replace(call, id=name)
    return list(distinct.values())


def _name(name: str) -> str:
    return readable_text(name[:NAME_LIMIT])


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _renamed(calls: Sequence[ToolCall], known: Collection[str]) -> list[ToolCall]:
    """With our names for tools that other agents call differently, so that hooks and rules see no other name."""
    return [
        replace(call, name=ours) if call.name not in known and (ours := _ALIASES.get(call.name)) in known else call
        for call in calls
    ]


def _asked(call: ToolCall, given_id: str, *, repair: bool) -> "RequestedCall":
    """`repair`: the arguments are complete, though perhaps not quite JSON."""
    from wave_agent.agent.call_results import RequestedCall  # lazy: an answer without calls needs none of it

    if call.name != (name := _name(call.name)):
        return RequestedCall(call.id, name, None, _NO_NAME)
    if wrong := why_unreadable(given_id):
        return RequestedCall(
            call.id, call.name, None, f"Not run: in the id of this call, {wrong}. Make the call again."
        )
    return replace(_read(call, repair=repair), kept=call.kept)


def _read(call: ToolCall, *, repair: bool) -> "RequestedCall":
    from wave_agent.agent.call_results import RequestedCall  # lazy: an answer without calls needs none of it

    try:
        parameters: object = json.loads(call.arguments or ("{}" if repair else ""), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if not repair:
            return RequestedCall(call.id, call.name, None, CUT_CALL)
        from wave_agent.models.repair import repair_arguments  # lazy: most arguments are JSON

        parameters = repair_arguments(call.arguments)
        if parameters is None:
            return RequestedCall(call.id, call.name, None, f"The arguments of {call.name} are not valid JSON: {error}")
    if not isinstance(parameters, Mapping):
        return RequestedCall(call.id, call.name, None, f"The arguments of {call.name} must be a JSON object.")
    found = cast(Mapping[str, Any], parameters)
    if wrong := why_unreadable(found):  # guards must not have to judge input they cannot read
        return RequestedCall(call.id, call.name, None, f"Not run: in the arguments of {call.name}, {wrong}. {_WITHOUT}")
    return RequestedCall(call.id, call.name, found)
