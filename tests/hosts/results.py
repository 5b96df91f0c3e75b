"""What was found out about the hosts, kept in `results.json`; `docs/hosts.md` is generated from it."""

import os
import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec

from tests.hosts.checks import Outcome
from tests.hosts.install import InstalledHost
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


def keep(host: InstalledHost, change: Callable[[HostResults], object]) -> None:
    """Changes the results of one host, and leaves everything else in the file, which another run may write as well."""
    results = read()
    results.system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    found = results.hosts.get(host.name)
    if found is None or found.version != host.version:
        found = results.hosts[host.name] = HostResults(host.version, "")
    found.taken, found.trouble = date.today().isoformat(), host.trouble
    change(found)
    new = FILE.with_suffix(".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    new.replace(FILE)
