"""A conversation from before, as entries."""

from collections.abc import Iterable, Iterator
from functools import partial

from wave_agent.cli.tui.answer import Answer, pieces_of
from wave_agent.cli.tui.conversation import Maker
from wave_agent.cli.tui.entries import Error, HookLine, HookText, Info, Reasoning, UserPrompt, Warning_
from wave_agent.cli.tui.tool_card import ToolCard
from wave_agent.cli.tui.verdicts import mattered
from wave_agent.events import HookRun
from wave_agent.messages import Block, ErrorBlock, Message, NoticeBlock, ReasoningBlock, TextBlock, ToolBlock


def entries_of(messages: Iterable[Message], runs: Iterable[HookRun], project: str) -> list[Maker]:
    """Runs of hooks stand by the call that they were about."""
    by_call: dict[str, list[HookRun]] = {}
    for run in runs:
        if run.tool_use_id and mattered(run):
            by_call.setdefault(run.tool_use_id, []).append(run)
    blocks = (block for message in messages if not _between_us(message) for block in message.blocks)
    return [maker for block in blocks for maker in _makers(block, by_call, project)]


def _between_us(message: Message) -> bool:
    """What the agent itself told the model, in the user's role: a notice told the user."""
    return message.role == "user" and all(isinstance(b, TextBlock) and b.source == "model" for b in message.blocks)


def _makers(block: Block, by_call: dict[str, list[HookRun]], project: str) -> Iterator[Maker]:
    match block:
        case TextBlock(content=content, source="user"):
            yield partial(UserPrompt, content)
        case TextBlock(content=content, source="model"):
            yield from (partial(Answer, piece) for piece in pieces_of(content))
        case TextBlock(content=content, origin=origin):
            name = f"+ {origin.hook} on {origin.event} told the model: " if origin else "+ a hook told the model: "
            yield partial(HookText, content, name)
        case ToolBlock(id=name):
            yield partial(ToolCard, block, project)
            yield from (partial(HookLine, run) for run in by_call.get(name, ()))
        case ErrorBlock(content=content):
            yield partial(Error, content)
        case NoticeBlock(content=content, level=level):
            yield partial(Info if level == "info" else Warning_, content)
        case ReasoningBlock(content=content):
            yield partial(Reasoning, content)
