"""Runs our MCP host against the official conformance suite. `make test-mcp-conformance` installs the suite first.

    python -m tests.mcp_conformance NODE SUITE              every client scenario
    python -m tests.mcp_conformance NODE SUITE -k tools     those with these letters in their name

Each scenario runs in every revision of the protocol it applies to. Exits with 1 if one of the core fails, or if OAuth
and the extensions fail anywhere else than `expected.toml` says, with a reason for each.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

EXPECTED = Path(__file__).with_name("expected.toml")
REVISIONS = ("2025-11-25", "2026-07-28")
CLIENT = "-m tests.mcp_conformance.client"
TIMEOUT = 90
_SCENARIO = re.compile(r"^  - (\S+) \[(\S+)\]$", re.MULTILINE)


class Run(Struct, frozen=True):
    """One scenario in one revision."""

    scenario: str
    revision: str
    """Empty: the scenario belongs to no revision that we ask for, and the suite chooses."""
    group: str


class Outcome(Struct, frozen=True):
    run: Run
    result: str
    """`pass`, `fail`, or `skip` if nothing was checked."""
    checks: str
    """How many of the checks passed."""
    problem: str
    """The first thing that is wrong, if it failed."""
    output: str


class Suite:
    """The installed suite."""

    def __init__(self, node: str, directory: Path, results: Path) -> None:
        self._command = [node, str(directory / "node_modules/@modelcontextprotocol/conformance/dist/index.js")]
        self._results = results
        self._client = results / "client"  # the suite splits the command at blanks, and Python's path may have some
        self._client.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {CLIENT} "$@"\n')
        self._client.chmod(0o755)

    def runs(self) -> Iterator[Run]:
        listed = subprocess.run([*self._command, "list", "--client"], check=True, capture_output=True, text=True)
        for scenario, revisions in _SCENARIO.findall(listed.stdout):
            group = "OAuth" if scenario.startswith("auth/") else "core" if revisions != "extension" else "extensions"
            wanted = [one for one in REVISIONS if one in revisions.split(",")]
            yield from (Run(scenario, one, group) for one in wanted or [""])

    def outcome(self, run: Run) -> Outcome:
        with tempfile.TemporaryDirectory(dir=self._results) as directory:
            command = [*self._command, "client", "--scenario", run.scenario, "--command", str(self._client)]
            command += ["--timeout", str(TIMEOUT * 1000), "--output-dir", directory]
            command += ["--spec-version", run.revision] if run.revision else []
            ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT + 30)
            checks = [one for file in Path(directory).rglob("checks.json") for one in json.loads(file.read_bytes())]
        good = [one for one in checks if one["status"] == "SUCCESS"]
        bad = [one for one in checks if one["status"] in ("FAILURE", "WARNING")]
        problem = (
            f"{bad[0]['id']}: {bad[0].get('errorMessage') or bad[0]['description']}" if bad else "the client failed"
        )
        result = "fail" if ended.returncode else "pass" if good else "skip"
        return Outcome(run, result, f"{len(good)}/{len(good) + len(bad)}", problem, ended.stdout + ended.stderr)


def expected() -> dict[str, str]:
    """Scenarios that fail, and why."""
    return tomllib.loads(EXPECTED.read_text())["fails"]


def complaint(outcome: Outcome, reasons: dict[str, str]) -> str:
    """Why this run makes ours fail; empty if it does not."""
    is_expected = outcome.run.scenario in reasons
    if outcome.run.group == "core":
        return "" if outcome.result == "pass" else outcome.problem
    if outcome.result == "pass":
        return "expected.toml says that it does not pass" if is_expected else ""
    return "" if is_expected else outcome.problem


def show(outcome: Outcome, reasons: dict[str, str], *, verbose: bool) -> None:
    run, wrong = outcome.run, complaint(outcome, reasons)
    result = outcome.result.upper() if wrong else outcome.result
    why = wrong or ("" if outcome.result == "pass" else reasons.get(run.scenario, ""))
    print(f"{result}  {run.scenario:42} {run.revision or '-':10} {outcome.checks:>6}  {why}".rstrip(), flush=True)
    if verbose and outcome.result == "fail":
        print(outcome.output)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mcp_conformance")
    parser.add_argument("node", help="the program")
    parser.add_argument("suite", type=Path, help="where npm has installed the suite")
    parser.add_argument("-k", default="", metavar="LETTERS", help="only scenarios with these letters in their name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="show what the suite says about failures")
    given = parser.parse_args()
    reasons = expected()
    with tempfile.TemporaryDirectory() as results:
        suite = Suite(given.node, given.suite, Path(results))
        runs = [run for run in suite.runs() if given.k in run.scenario]
        outcomes: dict[Run, Outcome] = {}
        with ThreadPoolExecutor(given.workers) as pool:
            for one in pool.map(suite.outcome, runs):
                outcomes[one.run] = one
                show(one, reasons, verbose=given.verbose)
        if again := [one.run for one in outcomes.values() if complaint(one, reasons)]:
            # Some scenarios measure time, and may fail only because others run beside them.
            print("\nOnce more, one at a time:")
            for run in again:
                outcomes[run] = suite.outcome(run)
                show(outcomes[run], reasons, verbose=given.verbose)
    print()
    for group in dict.fromkeys(run.group for run in runs):
        of_it = [one for one in outcomes.values() if one.run.group == group]
        scenarios = {one.run.scenario for one in of_it}
        others = {one.run.scenario for one in of_it if one.result != "pass"}
        print(
            f"{group}: {sum(one.result == 'pass' for one in of_it)} of {len(of_it)} runs pass, "
            f"{len(scenarios - others)} of {len(scenarios)} scenarios"
        )
    sys.exit(1 if not runs or any(complaint(one, reasons) for one in outcomes.values()) else 0)


if __name__ == "__main__":
    main()
