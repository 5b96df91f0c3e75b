"""Runs the hosts, one after another, and keeps what they did. `make test-hosts` runs all of it, in an hour or two.

    python -m tests.hosts                          everything
    python -m tests.hosts --host qwen -k timeout   one host, and the situations with this word in their name
    python -m tests.hosts --only overhead          only one part: situations, runs or overhead

Results are kept host by host and situation by situation, in `results.json`; `make docs` then writes `docs/hosts.md`.
Exits with 1 if a host could not be installed, or a run showed nothing, or a denied command was executed under the
guard.
"""

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import date

from tests.hosts import results
from tests.hosts.adapters import ADAPTERS, Adapter
from tests.hosts.arena import observe
from tests.hosts.checks import Outcome, outcome
from tests.hosts.install import InstalledHost, install
from tests.hosts.measure import Tally, overhead, tally
from tests.hosts.results import HostResults, Pair
from tests.hosts.situations import Situation, inexpressible, load

PARTS = ("situations", "runs", "overhead")


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
        kept = results.read().hosts.get(name)
        if kept is None or kept.version != host.version:
            kept = HostResults(host.version, "")
        kept.taken, kept.trouble = date.today().isoformat(), host.trouble
        if host.trouble:
            self.complaints.append(f"{name} {host.version} could not be installed: {host.trouble}")
        else:
            for part in PARTS:
                if self._arguments.only in (None, part):
                    getattr(self, f"_{part}")(host, adapter, kept)
        self._keep(name, kept)

    def _keep(self, name: str, kept: HostResults) -> None:
        results.keep(name, kept, f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores")

    def _situations(self, host: InstalledHost, adapter: Adapter, kept: HostResults) -> None:
        every = load()
        for situation in every:
            if self._arguments.words not in situation.name:
                continue
            pair = kept.situations.setdefault(situation.name, Pair())
            for guarded in (False, True):
                if self._arguments.side not in (None, "guarded" if guarded else "alone"):
                    continue
                found = put(host, adapter, situation, guarded=guarded)
                where = f"{host.name}, {'wave guard' if guarded else 'alone'}: {situation.name}"
                say(f"{where}: {in_words(found)} ({found.seconds:g} s)")
                if found.trouble:
                    self.complaints.append(f"{where}: {found.trouble}")
                if guarded:
                    pair.guarded = found
                else:
                    pair.alone = found
            self._keep(host.name, kept)
        names = [situation.name for situation in every]
        kept.situations = {name: kept.situations[name] for name in names if name in kept.situations}

    def _runs(self, host: InstalledHost, adapter: Adapter, kept: HostResults) -> None:
        for guarded in (True, False):
            if self._arguments.side not in (None, "guarded" if guarded else "alone"):
                continue
            found = tally(host, adapter, self._arguments.runs, guarded=guarded)
            say(f"{host.name}, {'wave guard' if guarded else 'alone'}: executed in {found.runs} runs: {found.executed}")
            self._judge(host.name, found, guarded=guarded)
            if guarded:
                kept.guarded = found
            else:
                kept.alone = found
            self._keep(host.name, kept)

    def _judge(self, name: str, found: Tally, *, guarded: bool) -> None:
        if guarded and any(found.executed.values()):
            self.complaints.append(f"{name}: a denied command was executed: {found.executed}")
        if found.broken:
            self.complaints.append(f"{name}: {found.broken} of {found.runs} runs did not get to the end")

    def _overhead(self, host: InstalledHost, adapter: Adapter, kept: HostResults) -> None:
        kept.overhead = overhead(host, adapter)
        say(f"{host.name}, milliseconds per call: {kept.overhead}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hosts")
    parser.add_argument("--host", action="append", choices=list(ADAPTERS), help="only this one; can be repeated")
    parser.add_argument("-k", dest="words", default="", help="only situations with these words in their name")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument("--side", choices=("alone", "guarded"), help="only this column")
    parser.add_argument("--runs", type=int, default=20, help="runs in which denied commands are counted")
    arguments = parser.parse_args(words)
    runner = Runner(arguments)
    for name in arguments.host or list(ADAPTERS):
        runner.run(name)
    for complaint in runner.complaints:
        say(complaint)
    return 1 if runner.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
