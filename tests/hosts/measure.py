"""Repeated runs: how often a denied command is executed, and what a guard costs per tool call."""

import os
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from tests.hosts.adapters import Adapter
from tests.hosts.arena import arena, look
from tests.hosts.dialects import AFTER, BEFORE
from tests.hosts.install import InstalledHost
from tests.hosts.model import serving
from tests.hosts.situations import Call, Expected, Hook, Situation

CALLS = 14
"""Tool calls of a session whose time is taken."""
WARM_UP = 3
"""Its first calls, which are left out."""
SESSIONS = 2

DENIED = ("a deny rule", "a guard that crashes", "a guard that hangs")
_FILES = ("by-rule", "by-crash", "by-hang")
_CONTROL = "allowed"
_RULE = Hook(script='grep -q by-rule "$STDIN" && { echo reason-7 >&2; exit 2; }; exit 0')
_CRASH = Hook(script='grep -q by-crash "$STDIN" && kill -9 $$; exit 0')
_HANG = Hook(script='grep -q by-hang "$STDIN" && exec sleep 60; exit 0', timeout=2)


class Tally(msgspec.Struct):
    """How often denied commands were executed, in sessions that make one call of each kind."""

    runs: int = 0
    executed: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(DENIED, 0))
    broken: int = 0
    """Sessions that did not execute an allowed command either, or did not end: they show nothing."""


class Overhead(msgspec.Struct):
    """Milliseconds from the model's answer to the next request, for a shell command that does nothing."""

    alone: float
    bare: float
    """With the hook `true` on the same events."""
    guard: float
    calls: int
    """Calls that each figure is the median of."""
    load: float = 0.0
    """How many processes wanted a core meanwhile."""


def tally(host: InstalledHost, adapter: Adapter, runs: int, *, guarded: bool) -> Tally:
    names = (*_FILES, _CONTROL)
    calls = tuple(Call(shell=f"touch {name}") for name in names)
    situation = Situation("", "", "", Expected(), calls=calls, patience=90)
    found = Tally()
    for _ in range(runs):
        with arena(adapter) as place, serving(adapter.wire, place.script(calls)) as model:
            environment = place.configure(model.url)
            if guarded:
                place.install_guard([_CRASH, _HANG], {"permissions": {"deny": ["Bash(touch by-rule:*)"]}})
            else:
                place.install_native([_RULE, _CRASH, _HANG])
            seen = look(place, host, model, environment, situation)
        if _CONTROL not in seen.files or len(seen.requests) < len(calls) + 1:
            found.broken += 1
        found.runs += 1
        for denied, name in zip(DENIED, _FILES, strict=True):
            found.executed[denied] += name in seen.files
    return found


def overhead(host: InstalledHost, adapter: Adapter) -> Overhead:
    waits: dict[str, list[float]] = {"alone": [], "bare": [], "guard": []}
    for _ in range(SESSIONS):
        for mode, found in waits.items():  # in turns, so that a busy machine slows all three
            found.extend(_session(host, adapter, mode))
    figures: Mapping[str, float] = {mode: round(median(found) * 1000, 1) for mode, found in waits.items()}
    calls = min(len(found) for found in waits.values())
    return Overhead(**figures, calls=calls, load=round(os.getloadavg()[1], 1))


def _session(host: InstalledHost, adapter: Adapter, mode: str) -> Sequence[float]:
    calls = tuple(Call(shell=f"true {number}") for number in range(CALLS))  # equal calls would look like a loop
    situation = Situation("", "", "", Expected(), calls=calls, patience=120)
    bare = [Hook(command="true", event=event, blocks_failures=False) for event in (BEFORE, AFTER)]
    with arena(adapter) as place, serving(adapter.wire, place.script(calls)) as model:
        environment = place.configure(model.url)
        if mode == "guard":
            place.install_guard([], {"permissions": {"deny": ["Bash(git push:*)"]}})
        else:
            place.install_native(bare if mode == "bare" else [])
        return look(place, host, model, environment, situation).waits[WARM_UP:CALLS]
