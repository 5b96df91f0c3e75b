"""Requests of a session grow only at their end, whatever happens in it."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from tests.fuzz.strategies import texts, values
from wave_agent import Agent, ModelError, tool
from wave_agent.models.base import ModelRequest, ToolCall
from wave_agent.permissions.decision import ModeName, PermissionMode
from wave_agent.testing import Reply, ScriptedModel

MODES: list[ModeName] = [mode.value for mode in PermissionMode]


@tool
def remember(note: Any = None) -> str:
    """Remembers a note."""
    return f"remembered: {str(note)[:50]}"


class Prompt(Struct, frozen=True):
    """One prompt and the answers to it; the hook that blocks some prompts gets to see it first."""

    text: str
    answers: tuple[Any, ...] = ()


class Change(Struct, frozen=True):
    """The permission mode changes."""

    mode: ModeName


class Resume(Struct, frozen=True):
    """The session goes on in another agent, in changed surroundings."""

    instructions: str = ""
    own_tool: bool = True
    mode: ModeName = "default"


arguments = st.dictionaries(texts, values, max_size=2).map(lambda given: json.dumps({"note": given})) | st.sampled_from(
    ["{}", '{"note": 1e400}', '{"note": 2.50}', "{broken", "[1]", '{"note": "<hook event=1>"}']
)
calls = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "\ud800"]),
    st.sampled_from(["remember", "Glob", "TodoWrite", "no such"]),
    arguments,
)
replies = st.builds(
    Reply,
    text=texts,
    tool_calls=st.lists(calls, max_size=3),
    cut=st.sampled_from([None, None, "length", "content_filter"]),
) | st.builds(ModelError, st.just("The server is tired."))
events = (
    st.builds(Prompt, texts | st.just("block me"), st.lists(replies, max_size=4).map(tuple))
    | st.builds(Change, st.sampled_from(MODES))
    | st.builds(Resume, texts, st.booleans(), st.sampled_from(MODES))
)


def judge(event: dict[str, Any]) -> dict[str, Any]:
    if event.get("prompt") == "block me":
        return {"decision": "block", "reason": "No."}
    return {"hookSpecificOutput": {"additionalContext": f"{event['hook_event_name']} was seen"}}


def keep_working(event: dict[str, Any]) -> dict[str, Any]:
    return {} if event["stop_hook_active"] else {"decision": "block", "reason": "Not yet."}


HOOKS = {"SessionStart": [judge], "UserPromptSubmit": [judge], "PostToolUse": [judge], "Stop": [keep_working]}


async def play(project: Path, script: Sequence[Prompt | Change | Resume]) -> list[ModelRequest]:
    """All requests of the session."""
    waiting: deque[Any] = deque()
    model = ScriptedModel(waiting.popleft() if waiting else "Done." for _ in count())
    options: dict[str, Any] = {"workdir": project, "setting_sources": [], "hooks": HOOKS, "model_client": model}
    agent = await Agent.create(**options, tools=[remember], max_turns=6)
    for event in script:
        match event:
            case Prompt(text, answers):
                waiting.clear()
                waiting.extend(answers)
                await agent.send_message(text)
            case Change(mode):
                agent.permission_mode = mode
            case Resume(instructions, own_tool, mode):
                await agent.close()
                (project / "AGENTS.md").write_text(instructions, "utf-8", "replace")
                resume = agent.session_id if os.path.exists(agent.transcript_path) else None
                tools = [remember] if own_tool else []
                agent = await Agent.create(**options, tools=tools, max_turns=6, permission_mode=mode, resume=resume)
    await agent.close()
    return model.requests


@contextmanager
def empty_project() -> Iterator[Path]:
    """Hypothesis runs many examples in one test, so fixtures would be shared."""
    before = os.environ.get("WAVE_HOME")
    with TemporaryDirectory() as directory:
        project = Path(directory, "project")
        project.mkdir()
        os.environ["WAVE_HOME"] = str(Path(directory, "home"))
        try:
            yield project
        finally:
            os.environ.pop("WAVE_HOME")
            if before is not None:
                os.environ["WAVE_HOME"] = before


def sent(request: ModelRequest) -> list[str]:
    tools = [[tool.name, tool.description, tool.schema] for tool in request.tools]
    return [json.dumps(part) for part in (tools, *request.messages)]


@given(st.lists(events, min_size=2, max_size=8))
@example([Prompt("Hi."), Resume("Use tabs.", False, "plan"), Prompt("Go on."), Resume("", True), Prompt("Bye.")])
def test_every_request_begins_with_the_one_before(script: list[Prompt | Change | Resume]) -> None:
    with empty_project() as project:
        requests = asyncio.run(play(project, [*script, Prompt("Well?"), Resume("New."), Prompt("And now?")]))
    assert len(requests) >= 2
    for before, after in pairwise(map(sent, requests)):
        assert after[: len(before)] == before
        assert len(after) > len(before)
