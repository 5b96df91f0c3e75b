"""Ten hooks on every event, many events at once: no wrong verdict, nothing left behind."""

import asyncio
import gc
import os
from pathlib import Path
from time import monotonic

import pytest

from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import Decision, HookEvent
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.settings.hook_entries import load_hooks, parse_settings

SETTINGS = """{"hooks": {"PreToolUse": [
  {"hooks": [{"command": "true", "name": "calm"}, {"command": "cat >/dev/null; echo noise", "name": "noisy"},
             {"command": "echo '{\\"decision\\": \\"approve\\"}'", "name": "eager"},
             {"command": "exit 1", "name": "broken"}, {"command": "kill -9 $$", "name": "dying"},
             {"command": "sleep 0.01 & true", "name": "parent"}, {"command": "echo '{oops'", "name": "odd"}]},
  {"sequential": true, "hooks": [{"command": "true", "name": "first"}, {"command": "true", "name": "second"}]},
  {"hooks": [{"command": "case $(cat) in *deny-me*) echo caught >&2; exit 2;; esac", "name": "guard"}]}]}}"""

AT_ONCE = (1, 8, 32)


def children() -> list[str]:
    """Processes whose parent we are: a zombie would be among them."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[1] == str(os.getpid()):
            found.append(entry.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts processes and descriptors in /proc")
@pytest.mark.parametrize(
    ("events", "at_once"),
    [
        *(pytest.param(100, number, id=f"a tenth, {number} at once") for number in AT_ONCE),
        *(pytest.param(1000, number, marks=[pytest.mark.soak, pytest.mark.timeout(900)]) for number in AT_ONCE),
    ],
)
async def test_no_verdict_is_wrong_and_nothing_is_left(
    tmp_path: Path, events: int, at_once: int, capsys: pytest.CaptureFixture[str]
):
    config = load_hooks([parse_settings(SETTINGS, Layer.PROJECT, "settings.json")])
    assert config.issues == ()
    session = SessionFacts(
        session_id="soak", transcript_path=str(tmp_path / "t"), project_dir=str(tmp_path), home=str(tmp_path)
    )
    manager = HookManager(config.hooks, runner=ProcessRunner(), session=session, environment=dict(os.environ))
    gate = asyncio.Semaphore(at_once)
    wrong: list[int] = []

    async def one(number: int) -> None:
        denied = number % 3 == 0
        facts = {
            "tool_name": "Bash",
            "tool_input": {"command": "deny-me" if denied else "fine"},
            "tool_use_id": f"call_{number}",
        }
        async with gate:
            outcome = await manager.run(HookEvent.PRE_TOOL_USE, facts)
        expected = (Decision.BLOCK, "caught") if denied else (Decision.ALLOW, "")
        if (outcome.decision, outcome.reason) != expected or outcome.failed_open != 2:
            wrong.append(number)

    began = monotonic()
    before, family = len(os.listdir("/proc/self/fd")), children()
    await asyncio.gather(*(one(number) for number in range(events)))
    await manager.close()
    gc.collect()
    assert wrong == []
    assert len(manager.journal) == events * 10
    assert len(os.listdir("/proc/self/fd")) <= before
    assert set(children()) <= set(family)
    with capsys.disabled():
        if events == 1000:
            told = "0 wrong verdicts, 0 descriptors and 0 processes left"
            print(f"\n  10 hooks on {events:,} events, {at_once} at once: {told}, {monotonic() - began:.0f} s")
