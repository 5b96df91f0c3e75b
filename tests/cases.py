"""Plays one case of a recipe on real processes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wave_agent.hooks.events import EVENTS, Decision, HookEvent
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.verdicts import Outcome
from wave_agent.replay.recorded_events import tool_facts
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.tools.base import ToolContext

SAMPLES = {"tool_use_id": "call_1", "tool_response": {"success": True, "content": ""}, "trigger": "manual"}
EMPTY = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
SHORT = {"tool": "tool_name", "input": "tool_input", "response": "tool_response", "prompt": "prompt"}


async def play(
    case: Mapping[str, Any], groups: Mapping[str, Any], project: Path, environment: Mapping[str, str]
) -> Outcome:
    """What the hooks, as they stand in settings, say to the event of this case. No run of them may have failed."""
    event = HookEvent(case["event"])
    fields = EVENTS[event].stdin
    given = {SHORT[key]: case[key] for key in SHORT if key in case}
    facts = {field.name: SAMPLES.get(field.name, EMPTY[field.type]) for field in fields if not field.computed}
    config = load_hooks([hooks_in_code(groups)])
    assert config.issues == ()
    manager = HookManager(
        config.hooks,
        runner=ProcessRunner(),
        session=SessionFacts(
            session_id="s-1",
            transcript_path=str(project / "transcript.jsonl"),
            project_dir=str(project),
            home=str(project.parent),
        ),
        environment=environment,
    )
    facts |= {**case.get("payload", {}), **given}
    context = ToolContext(project_dir=project, environment=environment, outputs=project)
    outcome = await manager.run(event, facts, tool=tool_facts(str(facts.get("tool_name")), context))
    await manager.close()
    assert [(run.name, run.failure, run.reason) for run in manager.journal if run.failure] == []
    return outcome


def check(case: Mapping[str, Any], outcome: Outcome) -> None:
    wanted = case["expect"]
    wanted = {"outcome": wanted} if isinstance(wanted, str) else wanted
    said = outcome.decision.name.lower() if outcome.decision is not Decision.NONE else "none"
    contexts = "\n".join(one.text for one in outcome.contexts)
    assert ("context" if said == "none" and contexts else said) == wanted["outcome"], outcome
    assert wanted.get("reason", "") in outcome.reason
    assert wanted.get("context", "") in contexts
