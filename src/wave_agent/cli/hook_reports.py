"""Hook messages that `wave -p` prints to stderr: which hook blocked, stopped or failed, and why."""

from collections.abc import Mapping

from wave_agent.events import HookRun, SubagentStarted, ToolStarted
from wave_agent.hooks.events import BLOCK_WORDS, EVENTS, FAILURE_WORD, Audience, Decision, EventRow, Flow, HookEvent
from wave_agent.text import clip

_DID: Mapping[Flow, str] = {
    Flow.SKIP_TOOL: "denied {call}",
    Flow.REFUSE_CALL: "denied {call}",
    Flow.ERASE_PROMPT: "blocked the prompt",
    Flow.FEEDBACK: "objected to {call}",
    Flow.KEEP_WORKING: "kept the turn going",
    Flow.SKIP_COMPACTION: "prevented the conversation from being summarised",
    Flow.DECLINE: "declined what an MCP server asked",
    Flow.REFUSE_TASK: "refused a change of the todo list",
    Flow.END_TURN: "ended the turn",
}
"""What a block does on events with this flow. On other events it has no effect and is not mentioned."""

_NOT_DONE: Mapping[Flow, str] = {
    Flow.SKIP_TOOL: ", so the call was not run",
    Flow.REFUSE_CALL: ", so the call was not run",
    Flow.ERASE_PROMPT: ", so the prompt was not sent",
    Flow.SKIP_COMPACTION: ", so nothing was summarised",
    Flow.DECLINE: ", so what an MCP server asked was declined",
}
"""What a blocking failure prevented. On other events the consequence is reported separately."""

_CALL = 80
"""Maximum length of a call within a line."""
UNEXPLAINED = "Hook execution failed"


class HookReports:
    """Adds the hook's name to each reason, once. Reasons reach the user as plain text, or reach only the model."""

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}
        self._waiting: list[HookRun] = []
        self._told: set[str] = set()
        self._subagents: dict[str, str] = {}

    def started(self, call: ToolStarted) -> str:
        """Remember the call, and return how to show it."""
        parameters = call.parameters
        what = parameters.get("command") or parameters.get("file_path") or parameters.get("pattern") or ""
        line = " ".join(str(what).split())
        line = line if len(line) <= _CALL else f"{line[:_CALL]}…"
        self._calls[call.id] = f"{call.name} ({line})" if line else call.name
        return f"{call.name} {what}".rstrip()

    def subagent(self, started: SubagentStarted) -> None:
        """Remember its type, to name it."""
        self._subagents[started.agent_id] = started.agent_type

    def finished(self, run: HookRun) -> str:
        """What to print now. Empty if there is nothing to say, or if the reason arrives separately."""
        row = EVENTS[HookEvent(run.event)]
        if run.outcome == FAILURE_WORD:
            self._waiting.append(run)
        elif run.mode == "shadow" or run.is_async or run.is_late:
            return ""
        elif run.outcome == "stop" or (_blocks(run) and row.reason_reader is Audience.USER):
            self._waiting.append(run)
        elif _blocks(run) and row.flow[Decision.BLOCK] in _DID:
            self._told.add(run.reason)
            return self._line(run, row)
        return ""

    def lines(self, content: str, agent_id: str | None = None) -> list[str]:
        """A message for the user, with the name of the hook or subagent it comes from."""
        reason = clip(content)
        if reason in self._told:
            return []
        refused = sorted((run for run in self._waiting if _blocks(run)), key=lambda run: run.position)
        found = [run for run in self._waiting if run.reason == reason][:1]
        if not found and len(refused) > 1 and "\n".join(run.reason for run in refused) == content:
            found = refused  # one error block holds all their reasons
        for run in found:
            self._waiting.remove(run)
        lines = [self._line(run, EVENTS[HookEvent(run.event)]) for run in found]
        self._told.update(lines)  # what ends the turn in a subagent is a message of both agents
        whose = self._subagents.get(agent_id or "")
        return lines or [f"Subagent {whose}: {content}" if whose else content]

    def _line(self, run: HookRun, row: EventRow) -> str:
        if run.outcome == FAILURE_WORD:
            return _failed(run, row)
        did = "ended the turn" if run.outcome == "stop" else _DID.get(row.flow[Decision.BLOCK], "blocked")
        why = run.reason
        for default in (f"Blocked by hook {run.name}", f"Stopped by hook {run.name}"):
            why = why.removeprefix(default).lstrip("\n")
        did = did.format(call=self._calls.get(run.tool_use_id or "", "the call"))
        return f'Hook "{run.name}" {did}{_where(run)}{_because(why)}'


def _blocks(run: HookRun) -> bool:
    return run.outcome in BLOCK_WORDS


def _where(run: HookRun) -> str:
    return f" in the subagent {run.agent_type}" if run.agent_type else ""


def _because(why: str) -> str:
    return f": {why}" if why else ""


def _failed(run: HookRun, row: EventRow) -> str:
    """`Hook "guard" on PreToolUse timed out after 5 s, so the call was not run`"""
    own = f"Hook {run.name} "
    if run.reason == UNEXPLAINED and run.exit_code is not None:
        how, why = f"failed with exit code {run.exit_code}", ""
    elif run.reason.startswith(own):
        line, _, more = run.reason.removeprefix(own).partition("\n")
        how, _, why = line.partition(": ")
        why = "\n".join(filter(None, (why, more)))
    else:
        how, why = "failed", run.reason.removeprefix(f"hook {run.name}: ")
    return f'Hook "{run.name}" on {run.event}{_where(run)} {how}{_came_of(run, row)}{_because(why)}'


def _came_of(run: HookRun, row: EventRow) -> str:
    if run.let_through:
        return " and was let through"
    if run.mode == "shadow" or run.is_async or run.is_late:
        return ", which has no effect"
    return _NOT_DONE.get(row.flow[Decision.BLOCK], "")
