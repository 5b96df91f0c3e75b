"""Runs the situations in both agents and prints where they differ. `make test-claude` installs the original first.

    python -m tests.claude DIR                    all situations; npm has installed the original in DIR
    python -m tests.claude DIR -k "exit 2"        those with these words in their name
    python -m tests.claude DIR --record           and keep what the original did, for `make test`
    python -m tests.claude                        ours alone, against what was kept

Exits with 1 if this agent is looser anywhere and the data does not say so with a reason, if a difference has no reason,
or if an agent did nothing or did not end in time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import get_args

import msgspec

from tests.claude.agents import Agent, Seen, original, ours
from tests.claude.comparison import Facts, facts, in_words, judge
from tests.claude.situations import Result, Situation, load

RECORDED = Path(__file__).with_name("recorded.json")
REPORT = Path("build/claude")


class Recorded(msgspec.Struct):
    """What the original did when it was last asked."""

    version: str
    facts: dict[str, Facts]


class Row(msgspec.Struct):
    situation: Situation
    there: Facts
    here: Facts
    result: Result
    trouble: str = ""
    """Why an agent's side of it shows nothing."""

    @property
    def complaint(self) -> str:
        """Why this row makes the run fail; empty if it does not."""
        if self.trouble:
            return self.trouble
        if self.result == "same":
            return ""
        if self.situation.result != self.result:
            return f"{self.result} here, and the data says {self.situation.result}"
        return "" if self.situation.reason else "no reason in the data"


def recorded() -> Recorded:
    return msgspec.json.decode(RECORDED.read_bytes(), type=Recorded)


def observe(agent: Agent, name: str, situation: Situation) -> tuple[Facts, Seen]:
    """The facts of a situation, and everything they were taken from, which is also written below `build/claude`."""
    with tempfile.TemporaryDirectory(prefix="wave-claude-", ignore_cleanup_errors=True) as directory:
        arena = Path(directory).resolve() / "arena"
        arena.mkdir()
        seen = agent(situation, arena)
        found = facts(situation, seen, arena)
    report = REPORT / situation.name.replace("/", " ") / f"{name}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_bytes(msgspec.json.format(msgspec.json.encode(seen), indent=1))
    return found, seen


def table(rows: list[Row]) -> str:
    """The rows as Markdown, section by section."""
    lines: list[str] = []
    for about in dict.fromkeys(row.situation.about for row in rows):
        lines += [f"\n## {about}\n", "| situation | the original | here | |", "| --- | --- | --- | --- |"]
        for row in rows:
            if row.situation.about != about:
                continue
            here = "the same" if row.result == "same" else in_words(row.here, row.there)
            reason = f": {row.situation.reason}" if row.result != "same" and row.situation.reason else ""
            cells = [row.situation.name, in_words(row.there, row.here), here, f"**{row.result}**{reason}"]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def compare(situations: list[Situation], there: Agent | None, workers: int) -> list[Row]:
    kept = recorded().facts if there is None else {}

    def row(situation: Situation) -> Row:
        here, seen = observe(ours, "ours", situation)
        trouble = _trouble("this agent", seen)
        if there is None:
            theirs = kept[situation.name]
        else:
            theirs, their_seen = observe(there, "original", situation)
            trouble = trouble or _trouble("the original", their_seen)
        print(".", end="", file=sys.stderr, flush=True)
        return Row(situation, theirs, here, judge(theirs, here), trouble)

    with ThreadPoolExecutor(workers) as pool:
        rows = list(pool.map(row, situations))
    print(file=sys.stderr)
    return rows


def _trouble(agent: str, seen: Seen) -> str:
    """A call that was never made did not run either: an agent that did nothing must not pass for a careful one."""
    if seen.exit_code is None:
        return f"{agent} did not end in time"
    if not seen.requests and not seen.runs:
        return f"{agent} neither asked the model nor ran a hook: {seen.stderr[-200:].strip()}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.claude")
    parser.add_argument("directory", nargs="?", type=Path, help="where npm has installed the original")
    parser.add_argument("-k", dest="words", default="", help="only situations with these words in their name")
    parser.add_argument("--record", action="store_true", help="keep what the original did")
    parser.add_argument("--workers", type=int, default=2, help="situations at once")
    arguments = parser.parse_args()
    situations = [situation for situation in load() if arguments.words in situation.name]
    there = version = None
    if arguments.directory:
        program, version = find(arguments.directory)
        there = original(program)
    rows = compare(situations, there, arguments.workers)
    print(table(rows))
    before = recorded()
    counts = ", ".join(f"{sum(row.result == result for row in rows)} {result}" for result in get_args(Result))
    print(f"\n{len(rows)} situations beside Claude Code {version or before.version}: {counts}.")
    for row in rows:
        if version == before.version and row.there != before.facts.get(row.situation.name, row.there):
            print(f"{row.situation.name}: the original did something else than recorded")
        if row.result == "same" and row.situation.result != "same":
            print(f"{row.situation.name}: the same now, and the data says {row.situation.result}")
    if arguments.record and version:
        record(version, rows)
    complaints = [f"{row.situation.name}: {row.complaint}" for row in rows if row.complaint]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


def find(directory: Path) -> tuple[Path, str]:
    """The binary of the original for this machine, and its version."""
    for program in sorted(directory.resolve().glob("node_modules/@anthropic-ai/claude-code-*/claude")):
        with suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
            return program, said.split()[0]
    sys.exit(f"No Claude Code in {directory} runs on this machine.")


def record(version: str, rows: list[Row]) -> None:
    """Keeps what the original did. Situations that did not run this time keep what they have."""
    kept = {**recorded().facts, **{row.situation.name: row.there for row in rows}}
    facts = {situation.name: kept[situation.name] for situation in load() if situation.name in kept}
    RECORDED.write_text(json.dumps({"version": version, "facts": facts}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
