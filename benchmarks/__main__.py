"""`python -m benchmarks [NAME…]`: every claim, its baseline and its limit.

Writes `benchmarks/results.json`, from which `scripts/generate_docs.py` generates the table and the plot of
`docs/performance.md`. Exit status 1 if a claim does not hold.
"""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import msgspec

from benchmarks.measure import Claim

RESULTS = Path(__file__).parent / "results.json"
NAMES = (
    *("starting", "turns", "calls", "spawning", "warm", "growth", "answers", "reading", "durability"),
    *("scripts", "replaying", "effects", "screen", "changes", "guarding", "mcp", "subagents", "many_sessions"),
    *("searching", "telemetry"),
)


def main(wanted: list[str]) -> int:
    claims: list[Claim] = []
    for name in wanted or NAMES:
        module = import_module(f"benchmarks.{name}")
        for claim in module.claims():
            claims.append(msgspec.structs.replace(claim, group=name))
            print(claim, flush=True)
    if not wanted:
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(report(claims)), indent=1) + b"\n")
        print(f"Written: {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0 if all(claim.holds for claim in claims) else 1


def report(claims: list[Claim]) -> dict[str, object]:
    return {
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "claims": [{**msgspec.to_builtins(claim), "holds": claim.holds} for claim in claims],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
