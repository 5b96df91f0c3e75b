"""A recorded conversation as updates, for an editor that loads a session."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from acp.helpers import SessionUpdate, update_agent_message_text, update_agent_thought_text, update_user_message_text

from wave_agent.acp.narration import notice, own_facts, plan_of, start, told
from wave_agent.acp.tool_calls import ShownCall, outcome
from wave_agent.events import HookRun
from wave_agent.messages import NO_RESULT, Block, ErrorBlock, Message, NoticeBlock, ReasoningBlock, TextBlock, ToolBlock


def updates_of(
    messages: Iterable[Message], runs: Iterable[HookRun], *, cwd: str, project: str
) -> Iterator[SessionUpdate]:
    """Texts that hooks gave the model are not shown: the runs that gave them are with the calls they were about."""
    by_call: defaultdict[str, list[HookRun]] = defaultdict(list)
    for run in runs:
        if run.tool_use_id and run.agent_id is None:
            by_call[run.tool_use_id].append(run)
    blocks = [block for message in messages for block in message.blocks]
    for block in blocks:
        yield from _updates(block, by_call, cwd, project)
    lists = [one for one in blocks if isinstance(one, ToolBlock) and one.name == "TodoWrite" and one.success]
    if lists:
        yield plan_of(lists[-1].parameters)


def _updates(block: Block, by_call: dict[str, list[HookRun]], cwd: str, project: str) -> Iterator[SessionUpdate]:
    match block:
        case TextBlock(content=content, source="user"):
            yield update_user_message_text(content)
        case TextBlock(content=content, source="model"):
            yield update_agent_message_text(content)
        case ReasoningBlock(content=content) if content:
            yield update_agent_thought_text(content)
        case ToolBlock():
            yield _call(block, by_call.get(block.id, ()), cwd, project)
        case ErrorBlock(content=content):
            yield notice(content, "error")
        case NoticeBlock(content=content, level=level):
            yield notice(content, level)
        case _:
            pass


def _call(block: ToolBlock, runs: Sequence[HookRun], cwd: str, project: str) -> SessionUpdate:
    """The whole call in one update."""
    call = ShownCall(name=block.name, parameters=block.parameters, cwd=cwd, project=project)
    changes = call.changes(lambda _: None) if block.success else ()
    result = NO_RESULT if block.result is None else block.result
    shown = outcome(call, result, success=bool(block.success), images=block.images, changes=changes)
    facts = own_facts(hooks=[told(run) for run in runs], **({"error": block.error} if block.error else {}))
    return start(block.id, call, shown).model_copy(
        update={"status": "completed" if block.success else "failed", "field_meta": facts}
    )
