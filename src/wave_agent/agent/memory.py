"""`#` on the screen: adds a line to the project's AGENTS.md, by calls that hooks and permissions judge. Loaded on first
use."""

import os
from collections.abc import Mapping
from uuid import uuid4

from wave_agent.agent.call_results import RequestedCall
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.messages import NOT_RUN, MessageManager, ToolBlock
from wave_agent.permissions.decision import INSTEAD
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.text import one_line

FILE = "AGENTS.md"
_LARGEST = 256 << 10
"""Bytes of the file."""


async def remember(line: str, project: str, calls: CallRunner, messages: MessageManager) -> str:
    """Adds the line at the end. Returns what happened, for the user; starts with "Not " if nothing was written."""
    file = os.path.join(project, FILE)
    entry = f"- {one_line(line)}\n"
    try:
        content = read_project_file(file, project, _LARGEST)
        before = None if content is None else content.decode()
    except (NotReadError, UnicodeDecodeError) as error:
        return f"Not added: {file} {error}."
    if not before:
        steps: list[tuple[str, Mapping[str, str]]] = [("Write", {"file_path": file, "content": entry})]
    else:
        whole = before if before.endswith("\n") else f"{before}\n"
        change = {"file_path": file, "old_string": before, "new_string": whole + entry}
        steps = [("Read", {"file_path": file}), ("Edit", change)]
    for name, parameters in steps:
        call = ToolBlock(f"memory-{uuid4().hex[:12]}", name, dict(parameters))
        messages.add_aside(call)
        await calls.run(RequestedCall(call.id, name, dict(parameters), question=f"Add this line to {FILE}?"))
        done = messages.aside(call.id)
        if done is None or not done.success:
            return f"Not added to {FILE}: {'it did not run.' if done is None else _for_user(done.result or '')}"
    return f"Added to {FILE}: {entry.strip()}"


def _for_user(result: str) -> str:
    """Why a call did not run, without what is meant for a model."""
    return result.removeprefix(NOT_RUN).removesuffix(INSTEAD).strip()
