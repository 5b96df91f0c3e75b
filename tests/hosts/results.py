"""What was found out about the hosts, kept in `results.json`; `docs/hosts.md` is generated from it."""

from pathlib import Path

import msgspec

from tests.hosts.checks import Outcome
from tests.hosts.measure import Overhead, Tally

FILE = Path(__file__).with_name("results.json")


class Pair(msgspec.Struct, omit_defaults=True):
    """One situation in one host."""

    alone: Outcome | None = None
    guarded: Outcome | None = None


class HostResults(msgspec.Struct, omit_defaults=True):
    version: str
    taken: str
    """The date of the last run."""
    trouble: str = ""
    """Why it could not be installed."""
    situations: dict[str, Pair] = {}
    alone: Tally | None = None
    guarded: Tally | None = None
    overhead: Overhead | None = None


class Results(msgspec.Struct):
    system: str = ""
    hosts: dict[str, HostResults] = {}


def read() -> Results:
    return msgspec.json.decode(FILE.read_bytes(), type=Results) if FILE.exists() else Results()


def keep(name: str, found: HostResults, system: str) -> None:
    """Replaces the results of one host, and leaves those of the others."""
    results = read()
    results.system = system
    results.hosts[name] = found
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
