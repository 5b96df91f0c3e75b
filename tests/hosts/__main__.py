"""Runs the hosts, one after another, and keeps what they did. `make test-hosts` runs all of it, in an hour or two.

    python -m tests.hosts                          everything
    python -m tests.hosts --host qwen -k timeout   one host, and the situations with this word in their name
    python -m tests.hosts --only overhead          only one part: situations, runs or overhead

Results are kept host by host and situation by situation, in `results.json`; `make docs` then writes `docs/hosts.md`.
Exits with 1 if a host could not be installed, or a run showed nothing, or a denied command was executed under the
guard.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from functools import partial

from tests.hosts import results
from tests.hosts.adapters import ADAPTERS, Adapter
from tests.hosts.arena import observe
from tests.hosts.checks import Outcome, outcome
from tests.hosts.install import InstalledHost, install
from tests.hosts.measure import Tally, overhead, tally
from tests.hosts.results import HostResults, Pair
from tests.hosts.situations import Situation, inexpressible, load

PARTS = ("situations", "runs", "overhead")
SIDES = ("alone", "guarded")


def say(text: str) -> None:
    print(text, flush=True)


def put(host: InstalledHost, adapter: Adapter, situation: Situation, *, guarded: bool) -> Outcome:
    """One cell of the page."""
    cannot = inexpressible(situation, adapter, guarded=guarded)
    if cannot:
        return Outcome(cannot=cannot)
    return outcome(situation, observe(host, adapter, situation, guarded=guarded), guarded=guarded)


def in_words(found: Outcome) -> str:
    return found.cannot or found.trouble or ", ".join(found.faults) or "good"


class Runner:
    """Runs what was asked for, and writes the results after each step: an hour's work is not lost."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self.complaints: list[str] = []

    def run(self, name: str) -> None:
        host, adapter = install(name), ADAPTERS[name]
        results.keep(host, lambda _: None)
        if host.trouble:
            self.complaints.append(f"{name} {host.version} could not be installed: {host.trouble}")
            return
        for part in PARTS:
            if self._arguments.only in (None, part):
                getattr(self, f"_{part}")(host, adapter)

    def _sides(self) -> list[bool]:
        """Whether with the guard."""
        return [guarded for guarded in (False, True) if self._arguments.side in (None, SIDES[guarded])]

    def _situations(self, host: InstalledHost, adapter: Adapter) -> None:
        names = [situation.name for situation in load()]
        for situation in load():
            if self._arguments.words not in situation.name:
                continue
            for guarded in self._sides():
                found = put(host, adapter, situation, guarded=guarded)
                where = f"{host.name}, {'wave guard' if guarded else 'alone'}: {situation.name}"
                say(f"{where}: {in_words(found)} ({found.seconds:g} s)")
                if found.trouble:
                    self.complaints.append(f"{where}: {found.trouble}")
                results.keep(host, partial(_add, names, situation.name, SIDES[guarded], found))

    def _runs(self, host: InstalledHost, adapter: Adapter) -> None:
        for guarded in self._sides():
            found = tally(host, adapter, self._arguments.runs, guarded=guarded)
            say(f"{host.name}, {'wave guard' if guarded else 'alone'}: executed in {found.runs} runs: {found.executed}")
            self._judge(host.name, found, guarded=guarded)
            results.keep(host, lambda kept: setattr(kept, SIDES[guarded], found))  # noqa: B023 - called at once

    def _judge(self, name: str, found: Tally, *, guarded: bool) -> None:
        if guarded and any(found.executed.values()):
            self.complaints.append(f"{name}: a denied command was executed: {found.executed}")
        if found.broken:
            self.complaints.append(f"{name}: {found.broken} of {found.runs} runs did not get to the end")

    def _overhead(self, host: InstalledHost, adapter: Adapter) -> None:
        found = overhead(host, adapter)
        say(f"{host.name}, milliseconds per call: {found}")
        results.keep(host, lambda kept: setattr(kept, "overhead", found))


def _add(names: Sequence[str], name: str, side: str, found: Outcome, kept: HostResults) -> None:
    """Adds a cell. Situations are in the order of the table, and those that it no longer has are dropped."""
    setattr(kept.situations.setdefault(name, Pair()), side, found)
    kept.situations = {name: kept.situations[name] for name in names if name in kept.situations}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hosts")
    parser.add_argument("--host", action="append", choices=list(ADAPTERS), help="only this one; can be repeated")
    parser.add_argument("-k", dest="words", default="", help="only situations with these words in their name")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument("--side", choices=SIDES, help="only this column")
    parser.add_argument("--runs", type=int, default=20, help="runs in which denied commands are counted")
    arguments = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that hosts are ended and their directories removed
    runner = Runner(arguments)
    for name in arguments.host or list(ADAPTERS):
        runner.run(name)
    for complaint in runner.complaints:
        say(complaint)
    return 1 if runner.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
