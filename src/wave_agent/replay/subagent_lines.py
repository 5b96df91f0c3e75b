"""Finds the transcripts of the subagents of a session: `<session>/subagents/<agent_id>.jsonl`, beside the session's."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wave_agent.errors import SessionError
from wave_agent.replay.lines import TranscriptLines, lines_of

_DIRECTORY = "subagents"
_PREFIX = "agent-"
"""Other agents put it before the id."""


class SubagentLines(Struct, frozen=True, kw_only=True):
    """What one subagent did."""

    agent_id: str
    agent_type: str
    call_id: str
    """The Task call that started it; empty if its transcript does not say."""
    path: Path
    lines: TranscriptLines

    @property
    def start(self) -> float:
        return self.lines.lines[0].at if self.lines.lines else 0.0


def subagents_in(session: TranscriptLines) -> tuple[SubagentLines, ...]:
    """Those of a session, in the order of their start. A transcript that cannot be read is left out."""
    if session.path is None:
        return ()
    types = _types(session)
    found: list[SubagentLines] = []
    for path in sorted((session.path.with_suffix("") / _DIRECTORY).glob("*.jsonl")):
        try:
            lines = lines_of(path)
        except SessionError:
            continue
        head = lines.lines[0].record if lines.lines else {}
        agent_id = path.stem.removeprefix(_PREFIX)
        found.append(
            SubagentLines(
                agent_id=agent_id,
                agent_type=str(head.get("agent_type") or types.get(agent_id, "")),
                call_id=str(head.get("tool_use_id") or ""),
                path=path,
                lines=lines,
            )
        )
    return tuple(sorted(found, key=lambda one: one.start))


def is_of_subagent(transcript: Path) -> bool:
    """Whether it is read along with the session it belongs to."""
    return transcript.parent.name == _DIRECTORY and transcript.parent.parent.with_suffix(".jsonl").is_file()


def _types(session: TranscriptLines) -> Mapping[str, str]:
    """As hooks saw them: transcripts of older versions do not name their type."""
    runs = (line.record for line in session.lines if line.kind == "hook_run")
    return {str(run["agent_id"]): str(run.get("agent_type") or "") for run in runs if run.get("agent_id")}
