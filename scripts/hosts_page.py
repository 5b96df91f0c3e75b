"""The tables of `docs/hosts.md`, from what `make test-hosts` found. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "qwen": "Qwen Code",
    "kimi": "kimi-cli",
    "vibe": "mistral-vibe",
}
GOOD = "✓"
ABSENT = "–"

Results = Mapping[str, Any]
Situations = Sequence[Mapping[str, Any]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _hosts(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    """In the order of the page; a host that was never tried is one that is missing."""
    return [(name, results["hosts"].get(name, {"version": "?", "trouble": "not tried"})) for name in TITLES]


def _outcome(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "?"
    if found.get("cannot"):
        return ABSENT
    if found.get("trouble"):
        return "?"
    return "; ".join(found["faults"]) if found.get("faults") else GOOD


def cell(pair: Mapping[str, Any]) -> str:
    """What a host does alone, and with the guard; once, if both are good or neither can be."""
    alone, guarded = _outcome(pair.get("alone")), _outcome(pair.get("guarded"))
    if alone == guarded and alone in (GOOD, ABSENT):
        return alone
    bold = [text if text in (GOOD, ABSENT, "?") else f"**{text}**" for text in (alone, guarded)]
    return " → ".join(bold)


def summary(results: Results, situations: Situations) -> str:
    rows = []
    for name, host in _hosts(results):
        if host.get("trouble"):
            rows.append([TITLES[name], host["version"], f"not installed: {host['trouble']}", ""])
            continue
        found = [host.get("situations", {}).get(one["name"], {}) for one in situations]
        counts = [_count(_outcome(pair.get(side)) for pair in found) for side in ("alone", "guarded")]
        rows.append([TITLES[name], host["version"], *counts])
    return table(["host", "version", "alone", "with `wave guard`"], rows)


def _count(outcomes: Iterable[str]) -> str:
    every = [one for one in outcomes if one != ABSENT]
    text = f"{every.count(GOOD)} of {len(every)}"
    return text + (f" ({every.count('?')} without a result)" if "?" in every else "")


def situations_tables(results: Results, situations: Situations) -> str:
    hosts = [(name, host) for name, host in _hosts(results) if not host.get("trouble")]
    head = ["situation", "a good host", *(TITLES[name] for name, _ in hosts)]
    parts: list[str] = []
    for about in dict.fromkeys(one["about"] for one in situations):
        rows = [
            [one["name"], one["wants"], *(cell(host.get("situations", {}).get(one["name"], {})) for _, host in hosts)]
            for one in situations
            if one["about"] == about
        ]
        parts.append(f"### {about}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def remaining(results: Results, situations: Situations) -> str:
    """What goes wrong with the guard, too."""
    rows = []
    for one in situations:
        found: dict[str, list[str]] = {}
        for name, host in _hosts(results):
            pair = host.get("situations", {}).get(one["name"], {})
            for fault in (pair.get("guarded") or {}).get("faults", ()):
                found.setdefault(fault, []).append(TITLES[name])
        rows += [[one["name"], fault, ", ".join(names)] for fault, names in found.items()]
    return table(["situation", "what happens", "in"], rows) if rows else "Nothing."


def runs(results: Results) -> str:
    rows = []
    kinds: list[str] = []
    for name, host in _hosts(results):
        for side, words in (("alone", "alone"), ("guarded", "with `wave guard`")):
            tally = host.get(side)
            if tally:
                kinds = list(tally["executed"])
                broken = f" ({tally['broken']} did not get to the end)" if tally["broken"] else ""
                counts = [f"{count} of {tally['runs']}" for count in tally["executed"].values()]
                rows.append([TITLES[name], words + broken, *(_loud(text) for text in counts)])
    return table(["host", "", *kinds], rows)


def _loud(text: str) -> str:
    return text if text.startswith("0 ") else f"**{text}**"


def overhead(results: Results) -> str:
    rows = []
    for name, host in _hosts(results):
        found = host.get("overhead")
        if found:
            figures = [f"{found[mode]:.0f} ms" for mode in ("alone", "bare", "guard")]
            added = [f"{found[mode] - found['alone']:.0f} ms" for mode in ("bare", "guard")]
            rows.append([TITLES[name], *figures, *added, f"{found['load']:g}"])
    added = ["added by `true`", "added by `wave guard`"]
    head = ["host", "alone", "with the hook `true`", "with `wave guard`", *added, "load"]
    return table(head, rows)


def taken(results: Results) -> str:
    days = sorted({host["taken"] for _, host in _hosts(results) if host.get("taken")})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "never"
    return f"Taken {when} on {results['system']}."
