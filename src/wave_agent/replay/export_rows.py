"""The tables of an export, and the rows of a session in them.

The names and meanings of columns are a contract, with the version below: queries of others depend on them. New columns
may be added at any time; anything else needs a new version.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from wave_agent.messages import BLOCKED, DENIED
from wave_agent.replay.facts import CallFact, TranscriptFacts
from wave_agent.replay.lines import result_text
from wave_agent.replay.tally import day_of
from wave_agent.sessions.masking import mask
from wave_agent.text import clip

VERSION = 1
SESSIONS, HOOK_RUNS, TOOL_CALLS = "sessions", "hook_runs", "tool_calls"
DAY = "day"
"""The column by which all tables are partitioned."""
_LONGEST = 100_000
"""Characters of a text."""


class ExportColumn(Struct, frozen=True):
    name: str
    type: str
    meaning: str


_SOURCE = (
    ExportColumn("source", "VARCHAR", "the WAVE_HOME it was exported from, as a random number"),
    ExportColumn("session_id", "VARCHAR", "the session"),
)
_WHO = (
    ExportColumn("user", "VARCHAR", "the user who ran the agent; NULL if not recorded"),
    ExportColumn("hostname", "VARCHAR", "the machine; NULL if not recorded"),
    ExportColumn("project", "VARCHAR", "the project's directory"),
    ExportColumn("repository", "VARCHAR", "the git remote without credentials, else the project's directory"),
)
TABLES: Mapping[str, tuple[ExportColumn, ...]] = {
    SESSIONS: (
        *_SOURCE,
        ExportColumn("started", "TIMESTAMP", "the first line, in UTC"),
        ExportColumn("ended", "TIMESTAMP", "the last line, in UTC"),
        *_WHO,
        ExportColumn("agent", "VARCHAR", "`wave`, or the agent whose session was guarded"),
        ExportColumn("prompts", "INTEGER", "prompts, including blocked ones"),
        ExportColumn("blocked_prompts", "INTEGER", "prompts that a hook blocked"),
        ExportColumn("tool_calls", "INTEGER", "calls of tools"),
        ExportColumn("hook_runs", "INTEGER", "runs of hooks"),
        ExportColumn("requests", "INTEGER", "requests to the model"),
        ExportColumn("input_tokens", "BIGINT", "tokens of all requests"),
        ExportColumn("output_tokens", "BIGINT", "tokens of all answers"),
        ExportColumn("cache_read_tokens", "BIGINT", "the part of `input_tokens` from the server's cache"),
        ExportColumn("cost_usd", "DOUBLE", "the cost; NULL if unknown"),
        ExportColumn("days", "DATE[]", "the days on which it has rows"),
        ExportColumn("transcript_mtime_ns", "BIGINT", "the transcript's time, to find out what has changed"),
        ExportColumn("transcript_size", "BIGINT", "its size"),
        ExportColumn("content", "BOOLEAN", "exported with `--content`"),
        ExportColumn("prompt_texts", "VARCHAR[]", "the prompts; only with `--content`"),
    ),
    HOOK_RUNS: (
        *_SOURCE,
        ExportColumn("run", "INTEGER", "its number in the session"),
        ExportColumn("started", "TIMESTAMP", "when it started, in UTC"),
        ExportColumn("event", "VARCHAR", "the event"),
        ExportColumn("name", "VARCHAR", "the hook"),
        ExportColumn("layer", "VARCHAR", "where it is configured"),
        ExportColumn("mode", "VARCHAR", "`enforce` or `shadow`"),
        ExportColumn("outcome", "VARCHAR", "as in the journal: `none`, `deny`, `failure` and so on"),
        ExportColumn("failure", "VARCHAR", "how it failed; NULL if it did not"),
        ExportColumn("let_through", "BOOLEAN", "it failed, and the agent continued as if it had said nothing"),
        ExportColumn("rewrote", "BOOLEAN", "it changed the tool's input"),
        ExportColumn("look", "INTEGER", "2: it saw an input that another hook had changed"),
        ExportColumn("exit_code", "INTEGER", "of its process"),
        ExportColumn("duration_ms", "DOUBLE", "how long it took"),
        ExportColumn("is_async", "BOOLEAN", "nothing waited for it"),
        ExportColumn("turn", "INTEGER", "the number of the prompt"),
        ExportColumn(
            "turn_ms", "DOUBLE", "how long the turn took; only in the first row of this hook on this event in it"
        ),
        ExportColumn("tool", "VARCHAR", "the tool of the call that it judged"),
        ExportColumn("tool_use_id", "VARCHAR", "that call"),
        ExportColumn("agent_id", "VARCHAR", "the subagent in which it ran"),
        ExportColumn("agent_type", "VARCHAR", "the kind of that subagent"),
        ExportColumn("model", "VARCHAR", "the model that it asked"),
        ExportColumn("tokens", "BIGINT", "the tokens of that"),
        *_WHO,
        ExportColumn("command", "VARCHAR", "its command; only with `--content`"),
        ExportColumn("reason", "VARCHAR", "what it said; only with `--content`"),
    ),
    TOOL_CALLS: (
        *_SOURCE,
        ExportColumn("started", "TIMESTAMP", "when it started, in UTC"),
        ExportColumn("tool", "VARCHAR", "the tool"),
        ExportColumn("tool_use_id", "VARCHAR", "the call"),
        ExportColumn("program", "VARCHAR", "the first word of a command, without its directory"),
        ExportColumn("success", "BOOLEAN", "NULL if it has no result"),
        ExportColumn("denied", "VARCHAR", "`hook`, or `rule` for anything else that denied it; NULL if nothing did"),
        ExportColumn("denied_by", "VARCHAR", "the hook that denied it"),
        ExportColumn("duration_ms", "DOUBLE", "how long the tool ran"),
        ExportColumn("changed_files", "INTEGER", "files that it changed"),
        ExportColumn("turn", "INTEGER", "the number of the prompt"),
        *_WHO,
        ExportColumn("input", "VARCHAR", "its input as JSON; only with `--content`"),
        ExportColumn("result", "VARCHAR", "its result; only with `--content`"),
    ),
}
_DENIED: Mapping[str | None, str] = {BLOCKED: "hook", DENIED: "rule"}


class RowOrigin(Struct, frozen=True):
    """Where rows come from."""

    source: str
    session_id: str
    mtime_ns: int
    size: int
    content: bool


def rows_of(facts: TranscriptFacts, origin: RowOrigin) -> dict[str, list[dict[str, Any]]]:
    """The rows of one session for each table, each with its day. Its own row is in `sessions`."""
    same = {"source": origin.source, "session_id": origin.session_id} | _who(facts)
    runs = [same | row for row in _runs(facts, content=origin.content)]
    calls = [same | row for row in _calls(facts, content=origin.content)]
    own = same | _session(facts, origin)
    own["days"] = sorted({row[DAY] for row in (own, *runs, *calls)})
    return {HOOK_RUNS: runs, TOOL_CALLS: calls, SESSIONS: [own]}


def _who(facts: TranscriptFacts) -> dict[str, Any]:
    head = facts.head
    project = head.project or head.cwd or None
    return {
        "user": head.user or None,
        "hostname": head.hostname or None,
        "project": project,
        "repository": head.repository or project,
    }


def _session(facts: TranscriptFacts, origin: RowOrigin) -> dict[str, Any]:
    return {
        DAY: day_of(facts.started),
        "started": _moment(facts.started),
        "ended": _moment(facts.ended),
        "agent": facts.head.host or "wave",
        "prompts": len(facts.prompts),
        "blocked_prompts": facts.blocked_prompts,
        "tool_calls": len(facts.calls),
        "hook_runs": len(facts.runs),
        **msgspec.to_builtins(facts.spent),
        "transcript_mtime_ns": origin.mtime_ns,
        "transcript_size": origin.size,
        "content": origin.content,
        "prompt_texts": [_text(one) for one in facts.prompts] if origin.content else None,
    }


def _runs(facts: TranscriptFacts, *, content: bool) -> Iterator[dict[str, Any]]:
    seen: set[tuple[str, str, str, int]] = set()
    for run in facts.runs:
        key = (run.event, run.name, run.layer, run.turn)
        turn = None if key in seen else facts.turns.get(run.turn)
        seen.add(key)
        call = facts.calls.get(run.tool_use_id or "")
        yield {
            DAY: day_of(run.at),
            "run": run.run,
            "started": _moment(run.at),
            "event": run.event,
            "name": _name(run.name),
            "layer": run.layer,
            "mode": run.mode,
            "outcome": run.outcome,
            "failure": run.failure,
            "let_through": run.let_through,
            "rewrote": run.rewrote,
            "look": run.look,
            "exit_code": run.exit_code,
            "duration_ms": run.duration_ms,
            "is_async": run.is_async,
            "turn": run.turn,
            "turn_ms": None if turn is None else round((turn[1] - turn[0]) * 1000, 3),
            "tool": None if call is None else call.tool,
            "tool_use_id": run.tool_use_id,
            "agent_id": run.agent_id,
            "agent_type": run.agent_type,
            "model": run.model or None,
            "tokens": run.tokens,
            "command": _text(run.command) if content else None,
            "reason": _text(run.reason) if content else None,
        }


def _calls(facts: TranscriptFacts, *, content: bool) -> Iterator[dict[str, Any]]:
    for call in facts.calls.values():
        denied = _DENIED.get(call.error)
        yield {
            DAY: day_of(call.at),
            "started": _moment(call.at),
            "tool": call.tool,
            "tool_use_id": call.id,
            "program": _program(call),
            "success": call.success,
            "denied": denied,
            "denied_by": _name(call.by) if denied and call.by else None,
            "duration_ms": call.duration_ms,
            "changed_files": call.changed_files,
            "turn": call.turn,
            "input": _text(bytes(call.input).decode(errors="replace")) if content else None,
            "result": _text(_result(call)) if content else None,
        }


def _program(call: CallFact) -> str | None:
    """`git` of `/usr/bin/git push`; None if the first word is not a plain name: it might be a secret."""
    command = call.arguments.get("command")
    words = command.split(maxsplit=1) if isinstance(command, str) else []
    name = words[0].rpartition("/")[2] if words else ""
    plain = name.replace("-", "").replace("_", "").replace(".", "").replace("+", "")
    is_plain = plain.isalnum() and plain.isascii() and len(name) <= 40
    return name if is_plain and mask(name) == name else None


def _result(call: CallFact) -> str:
    return result_text({"content": json.loads(bytes(call.result))})


def _moment(at: float) -> float | None:
    """Seconds since 1970."""
    return at or None


def _text(text: str) -> str:
    return clip(mask(text.encode("utf-8", "replace").decode()), _LONGEST)


@lru_cache(10_000)
def _name(name: str) -> str:
    """An unnamed hook is called by its command, which may contain a secret."""
    return _text(name)
