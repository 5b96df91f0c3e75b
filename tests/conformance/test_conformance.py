"""Our own engine under the cases that we publish, with real processes."""

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import agent_adapter, check
from tests.conformance.wave_adapter import observe
from wave_agent.hooks.events import EVENTS, HookEvent

CASES = check.load_cases()
HERE = Path(__file__).parent


FILES = sorted({case["file"] for case in CASES})


@pytest.mark.parametrize(
    "third", [0, pytest.param(1, marks=pytest.mark.thorough), pytest.param(2, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("file", FILES)
async def test_every_case_of(file: str, third: int, tmp_path: Path):
    wrong: dict[str, list[str]] = {}
    for number, case in enumerate([one for one in CASES if one["file"] == file][third::3]):
        directory = tmp_path / str(number)
        directory.mkdir()
        observed = await observe(check.materialise(case, directory))
        wrong[case["name"]] = check.differences(case, observed)
        wrong[case["name"]] += await asyncio.to_thread(check.leftovers, directory)
    assert {name: found for name, found in wrong.items() if found} == {}


DRIVABLE = [case for case in CASES if agent_adapter.drivable(case)]


def sample(cases: list[dict[str, Any]]) -> set[str]:
    """One case for each result of each event, and one of each file. The engine has all of them above."""
    first: dict[object, str] = {}
    for case in cases:
        expected = case["expect"]
        result = (case["event"], expected.get("flow"), expected.get("permission"), expected.get("refused"))
        first.setdefault(result, case["name"])
    covered = {case["file"] for case in cases if case["name"] in first.values()}
    for case in cases:
        if case["file"] not in covered:
            first.setdefault(case["file"], case["name"])
    return set(first.values())


SAMPLE = sample(DRIVABLE)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"], marks=[] if case["name"] in SAMPLE else pytest.mark.thorough)
        for case in DRIVABLE
    ],
)
async def test_case_through_the_agent(case: dict[str, Any], tmp_path: Path):
    observed = await agent_adapter.observe(check.materialise(case, tmp_path))
    assert check.differences(agent_adapter.comparable(case, observed), observed) == []


INSIDE = [case for case in CASES if agent_adapter.drivable(case, inside=True)]
INSIDE_SAMPLE = {
    case["name"] for case in INSIDE if case["name"] in SAMPLE or case["event"] in agent_adapter.OF_SUBAGENTS
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"], marks=[] if case["name"] in INSIDE_SAMPLE else pytest.mark.thorough)
        for case in INSIDE
    ],
)
async def test_case_inside_a_subagent(case: dict[str, Any], tmp_path: Path):
    observed = await agent_adapter.observe(check.materialise(case, tmp_path), inside=True)
    assert check.differences(agent_adapter.comparable(case, observed), observed) == []


def test_nearly_every_case_of_an_event_that_happens_in_subagents_runs_in_one():
    happening = [case for case in CASES if EVENTS[HookEvent(case["event"])].in_subagent == "same"]
    assert len(INSIDE) > 0.9 * len(happening)


def test_the_sample_has_every_file_and_every_event():
    chosen = [case for case in DRIVABLE if case["name"] in SAMPLE]
    for field in ("file", "event"):
        assert {case[field] for case in chosen} == {case[field] for case in DRIVABLE}


def test_nearly_every_case_can_be_driven_through_an_agent():
    assert len({case["name"] for case in (*DRIVABLE, *INSIDE)}) > 0.95 * len(CASES)


def test_the_corpus_covers_every_event_and_every_known_bug():
    assert len(CASES) >= 200
    assert {case["event"] for case in CASES} == set(check.PAYLOADS)
    assert len({case["bug"] for case in CASES if "bug" in case}) >= 9


def test_the_stand_alone_checker_runs_an_adapter_and_tells_differences(tmp_path: Path):
    adapter = shlex.join([sys.executable, str(HERE / "wave_adapter.py")])
    command = [sys.executable, str(HERE / "check.py"), "--agent"]
    good = subprocess.run([*command, adapter, "--only", "exit-2"], capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert " passed, 0 failed" in good.stdout
    lying = tmp_path / "lying.py"
    lying.write_text('import sys\nfor line in sys.stdin: print(\'{"flow": "allow"}\', flush=True)\n')
    bad = subprocess.run(
        [*command, shlex.join([sys.executable, str(lying)]), "--only", "exit-2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 1
    assert 'expected "block", got "allow"' in bad.stdout
    dead = subprocess.run([*command, "false", "--only", "exit-2"], capture_output=True, text=True, check=False)
    assert dead.returncode == 1
    assert "Traceback" not in dead.stderr
