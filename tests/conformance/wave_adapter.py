"""The adapter that puts this project under its own conformance cases: one request a line in, one answer a line out."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from wave_agent.agent.hook_runners import hook_runner_for
from wave_agent.errors import SettingsError, WaveError
from wave_agent.events import Event, Notice
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect, has_failed, heard_by
from wave_agent.hooks.events import Decision, Flow, HookEvent
from wave_agent.hooks.execution import HookRunner, Opinion
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.opinions import OpinionError, opinion_in, opinion_of
from wave_agent.hooks.questions import PolicyQuestion
from wave_agent.hooks.runners.thinking import ThoughtNotes
from wave_agent.hooks.stage import ToolFacts
from wave_agent.hooks.verdicts import Blocks, Outcome
from wave_agent.permissions.decision import JudgedCall, PermissionMode, Rules, ToolKind, decide
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.layers import Settings, merge_settings

KINDS = {"Read": ToolKind.READS, "Glob": ToolKind.READS, "Grep": ToolKind.READS, "TodoWrite": ToolKind.READS}
KINDS |= {"Write": ToolKind.EDITS, "Edit": ToolKind.EDITS}
FLOWS = {
    Flow.END_TURN: "stop",
    Flow.CONFIRM: "ask",
    Flow.DEFER_CALL: "defer",
    Flow.PROCEED: "proceed",
    Flow.JUDGE: "proceed",
}


class GivenAnswers:
    """Stands for the models of a case: each policy gets the answer that the case has for it."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        if question.policy not in self._answers:
            raise WaveError("no model is configured")
        notes.used("scripted", 7)
        try:
            answer = self._answers[question.policy]
            return opinion_in(answer) if isinstance(answer, str) else opinion_of(answer)
        except OpinionError as error:
            raise WaveError(f"the answer is not valid: {error}") from None

    async def close(self) -> None:
        pass


def runner_for(request: Mapping[str, Any], settings: Settings) -> HookRunner:
    answers = request.get("options", {}).get("answers", {})
    return hook_runner_for(settings, os.environ, open_thinker=lambda: GivenAnswers(answers))


async def observe(request: dict[str, Any]) -> dict[str, Any]:
    """What this implementation does with one case."""
    options = request.get("options", {})
    try:
        settings = load(request, strict=options.get("strict_hooks", False))
    except SettingsError as error:
        return {"refused": True, "issues": [str(error)]}
    config = settings.hooks
    issues = [str(issue) for issue in settings.issues]
    if any(issue.fatal for issue in settings.issues):
        return {"refused": True, "issues": issues}
    notices: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.content)

    project = request["project_dir"]
    session = SessionFacts(
        session_id="conformance", transcript_path=f"{project}/transcript.jsonl", project_dir=project, home=project
    )
    manager = HookManager(
        config.hooks,
        runner=runner_for(request, settings),
        session=session,
        environment=dict(os.environ),
        on_event=hear,
        outputs=Path(project) / "outputs",
        settings_env=settings.env,
        max_stop_blocks=settings.max_stop_blocks,
    )
    outcome = await manager.run(
        HookEvent(request["event"]),
        request["payload"],
        tool=ToolFacts(
            nullable=frozenset(options.get("nullable", [])),
            why_invalid=lambda tool_input: why_invalid(tool_input, options.get("required", [])),
        ),
        blocks=blocks_before(request, len(config.hooks)),
        dialects=heard_by(
            HookEvent(request["event"]),
            failed=has_failed(request["payload"]),
            attended=not options.get("unattended", False),
        ),
    )
    await manager.close()
    if not options.get("unattended"):
        outcome = outcome.as_ask()
    runs = sorted(manager.journal, key=lambda run: (run.position, run.look))
    late = [waiting.said.text for waiting in manager.deferred if waiting.said not in outcome.contexts]
    return {
        "refused": False,
        "issues": issues,
        "flow": "allow" if outcome.decision is Decision.ALLOW else FLOWS.get(outcome.flow, "block"),
        "prompt_erased": outcome.prompt_erased,
        "model": [*outcome.for_model(), *late],
        "user": [*(note.text for note in outcome.for_user()), *notices],
        "input": outcome.tool_input,
        "output": outcome.replacement,
        "answer": None if outcome.answer is None else to_builtins(outcome.answer),
        "permission": permission(request, outcome, project),
        "journal": [{name: getattr(run, name) for name in run.__struct_fields__} for run in runs],
        "failed_open": outcome.failed_open,
    }


def why_invalid(tool_input: Mapping[str, Any], required: Sequence[str]) -> str:
    return next((f"{field} is missing" for field in required if field not in tool_input), "")


def blocks_before(request: dict[str, Any], hooks: int) -> Blocks:
    """What had happened to the prompt's stop before."""
    options, total = request.get("options", {}), request["payload"].get("stop_block_count", 0)
    spent = frozenset(range(hooks)) if options.get("stop_failure_spent") else frozenset[int]()
    return Blocks(total=total, in_a_row=options.get("stop_blocks_in_a_row", total), spent=spent)


def load(request: dict[str, Any], *, strict: bool) -> Settings:
    sources = []
    for layer, groups in request["layers"].items():
        if isinstance(groups, dict) and "text" in groups:
            text = groups["text"]
        else:
            text = json.dumps(groups["raw"] if isinstance(groups, dict) else {"hooks": {request["event"]: groups}})
        source = parse_settings(text, Layer(layer), f"{layer}.json")
        sources.append(replace(source, dialect=Dialect(request.get("dialect", "wave"))))
    return merge_settings(sources, strict=strict)


def permission(request: dict[str, Any], outcome: Outcome, project: str) -> str | None:
    rules = request.get("options", {}).get("permissions")
    if rules is None:
        return None
    tool = request["payload"]["tool_name"]
    parsed = {key: tuple(map(parse_rule, rules.get(key, []))) for key in ("deny", "ask", "allow")}
    call = JudgedCall(tool=tool, tool_input=outcome.tool_input or {}, kind=KINDS.get(tool, ToolKind.ACTS))
    return decide(
        call, PermissionMode(rules.get("mode", "default")), Rules(**parsed), outcome, Places(project, project)
    ).answer


async def main() -> None:
    for line in sys.stdin:
        print(json.dumps(await observe(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
