"""A call in a few words, for those who read about several at once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.consequences import Operation, TellModel
from wave_agent.formats.readable import readable_text
from wave_agent.messages import HARNESS, TextBlock
from wave_agent.text import one_line

if TYPE_CHECKING:
    from wave_agent.agent.call_results import CallEnd, RequestedCall

_SUBJECTS = ("command", "file_path", "pattern", "path", "url", "query")
_SHOWN = 80
"""Characters of what a call is about, for the model, which has seen the whole call."""


def subject(parameters: Mapping[str, Any], project: str, limit: int = 120) -> str:
    """What a call is about, in a few words."""
    named = next((parameters[key] for key in _SUBJECTS if parameters.get(key)), None)
    if named is None:
        named = json.dumps(parameters, ensure_ascii=False, default=str) if parameters else ""
    return one_line(str(named).removeprefix(f"{project}/"), limit)


def naming_calls(calls: "Sequence[RequestedCall]", ends: "Sequence[CallEnd]", directory: str) -> list[Operation]:
    """What follows from these calls of one answer, where each text of a hook says which call it is about. A text that
    is the same for several calls comes once, and names them all."""
    names = _names(calls, directory)
    about: dict[TextBlock, list[str]] = {}
    for name, end in zip(names, ends, strict=False):
        for block in (block for one in end.later if isinstance(one, TellModel) for block in one.texts):
            about.setdefault(block, []).append(name)
    found: list[Operation] = []
    for operation in (operation for end in ends for operation in end.later):
        if isinstance(operation, TellModel):
            texts = tuple(_about(block, about.pop(block)) for block in operation.texts if block in about)
            found += [replace(operation, texts=texts)] if texts else []
        else:
            found.append(operation)
    return found


def _about(block: TextBlock, names: Iterable[str]) -> TextBlock:
    if block.origin is None or block.origin == HARNESS:
        return block
    return replace(block, origin=replace(block.origin, call="; ".join(dict.fromkeys(names))))


def _names(calls: "Sequence[RequestedCall]", directory: str) -> list[str]:
    """Different ones: calls that are alike are numbered."""
    names = [
        f"{call.name} {readable_text(subject(call.parameters or {}, directory, _SHOWN))}".strip() for call in calls
    ]
    return [
        f"{name} (call {at} of {len(names)})" if names.count(name) > 1 else name for at, name in enumerate(names, 1)
    ]
