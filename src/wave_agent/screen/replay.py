"""Turns a recorded conversation into entries."""

from collections.abc import Iterable, Iterator
from functools import partial

from wave_agent.events import HookRun
from wave_agent.messages import HARNESS, Block, ErrorBlock, Message, NoticeBlock, ReasoningBlock, TextBlock, ToolBlock
from wave_agent.screen.answer import AnswerText, pieces_of
from wave_agent.screen.conversation import Maker
from wave_agent.screen.entries import ErrorEntry, HookLine, HookText, Info, ReasoningEntry, UserPrompt, Warning_
from wave_agent.screen.run_looks import mattered
from wave_agent.screen.todo_card import TodoCard, card_of
from wave_agent.screen.tool_card import ToolCard


def entries_of(messages: Iterable[Message], runs: Iterable[HookRun], project: str) -> list[Maker]:
    """Hook runs are shown with the call they were about."""
    by_call: dict[str, list[HookRun]] = {}
    for run in runs:
        if run.tool_use_id and mattered(run):
            by_call.setdefault(run.tool_use_id, []).append(run)
    blocks = [block for message in messages for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolBlock)]
    lists = [call.id for call in calls if call.name == "TodoWrite" and call.success]
    shown = {(run.event, run.name, run.reason) for own in by_call.values() for run in own}
    return [
        maker
        for block in blocks
        if not _is_in(shown, block)
        for maker in _makers(block, by_call, project, replaced=frozenset(lists[:-1]))
    ]


def _is_in(shown: set[tuple[str, str, str]], block: Block) -> bool:
    """Whether it is a hook's message about a call, which the hook's own line already shows."""
    by = block.origin if isinstance(block, TextBlock) else None
    return by is not None and isinstance(block, TextBlock) and (by.event, by.hook, block.content) in shown


def _makers(block: Block, by_call: dict[str, list[HookRun]], project: str, replaced: frozenset[str]) -> Iterator[Maker]:
    match block:
        case TextBlock(content=content, source="user"):
            yield partial(UserPrompt, content)
        case TextBlock(content=content, source="model"):
            yield from (partial(AnswerText, piece) for piece in pieces_of(content))
        case TextBlock(content=content, origin=origin) if origin == HARNESS:
            yield partial(Info, content)
        case TextBlock(content=content, origin=origin):
            name = (
                f"+ {origin.hook} on {origin.event} sent to the model: " if origin else "+ a hook sent to the model: "
            )
            yield partial(HookText, content, name)
        case ToolBlock(id=name):
            yield partial(_card, block, project, replaced=name in replaced)
            yield from (partial(HookLine, run) for run in by_call.get(name, ()))
        case ErrorBlock(content=content):
            yield partial(ErrorEntry, content)
        case NoticeBlock(content=content, level=level):
            yield partial(Info if level == "info" else Warning_, content)
        case ReasoningBlock(content=content):
            yield from (partial(ReasoningEntry, one) for one in [content] if one)


def _card(block: ToolBlock, project: str, *, replaced: bool) -> ToolCard:
    card = card_of(block, project)
    if isinstance(card, TodoCard):
        card.replaced = replaced
    return card
