"""Hooks that ask a model, replayed: recorded answers are used, and nothing is guessed."""

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.replay.recorded import commands, record, wave_hooks
from tests.replay.test_backtest import backtest, new_hooks, totals
from wave_agent.models.base import Usage
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

OBJECTS = Reply(tool_calls=[call("verdict", ok=False, reason="Hands off.")])
AGREES = Reply(tool_calls=[call("verdict", ok=True)])
SESSION = [commands("touch a"), OBJECTS, commands("ls"), AGREES, "Done."]


def judging(prompt: str = "No touching.", **more: Any) -> list[dict[str, Any]]:
    return [{"type": "prompt", "prompt": prompt, "name": "judge", **more}]


def test_the_same_policy_gets_the_recorded_answers(project: Path, tmp_path: Path) -> None:
    record(project, SESSION, hooks={"PreToolUse": judging()})
    report = backtest(project, *new_hooks(tmp_path, PreToolUse=judging()), status=0)
    assert set(totals(report)) == {"unchanged"}
    assert report["judged"] == 2


def test_another_policy_has_no_recorded_answer_and_is_not_judged(project: Path, tmp_path: Path) -> None:
    record(project, SESSION, hooks={"PreToolUse": judging()})
    report = backtest(project, *new_hooks(tmp_path, PreToolUse=judging("No deleting.")), status=1)
    assert totals(report)["no recorded answer"] == 2
    assert "no recorded answer of a model to this policy; --ask-models asks one now" in report["findings"][0]["reason"]


def test_models_are_asked_again_on_demand(project: Path, tmp_path: Path) -> None:
    record(project, SESSION, hooks={"PreToolUse": judging()})
    new = new_hooks(tmp_path, PreToolUse=judging("No listing."))
    with RecordingModelServer.in_thread([AGREES, OBJECTS]) as server:
        environment = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m", "WAVE_API_KEY": "key"}
        report = backtest(project, *new, "--ask-models", status=1, **environment)
    found = totals(report)
    assert (found["newly allowed"], found["newly blocked"]) == (1, 1)
    assert len(server.requests) == 2
    assert report["notes"][0] == "The network was NOT cut: models were asked."


def test_the_model_of_an_agent_hook_is_asked_again_and_reads_the_copy_of_the_project(
    project: Path, tmp_path: Path
) -> None:
    (project / "rules.txt").write_text("never list")
    (project / ".env").write_text("canary-7f3a")
    record(project, [commands("ls"), "Done."])
    new = new_hooks(tmp_path, PreToolUse=judging("Follow rules.txt.", type="agent"))
    settings = Path(new[1])
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "permissions": {"deny": ["Read(.env)"]}}))
    outside = str(tmp_path / "home" / "settings.json")
    looks = Reply(tool_calls=[call("Read", file_path=path) for path in ("rules.txt", ".env", outside)])
    with RecordingModelServer.in_thread([looks, OBJECTS]) as server:
        environment = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m", "WAVE_API_KEY": "key"}
        report = backtest(project, *new, "--ask-models", status=1, **environment)
    assert totals(report)["newly blocked"] == 1
    assert report["findings"][0]["reason"] == "Hands off."
    seen = json.dumps(server.requests[1].body)
    assert "never list" in seen
    assert "canary-7f3a" not in seen
    assert seen.count("Not run: ") == 2


def test_trace_and_stats_name_the_model_and_its_tokens(project: Path) -> None:
    paid = replace(OBJECTS, usage=Usage(1200, 34))
    record(project, [commands("touch a"), paid, commands("ls"), AGREES, "Done."], hooks={"PreToolUse": judging()})
    traced = wave_hooks(project, "trace").stdout
    assert "deny (asked a model, 1,234 " in traced
    assert "none (asked a model)" in traced
    assert "1,234 tokens" in wave_hooks(project, "stats").stdout
