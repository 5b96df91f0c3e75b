"""How the page about the hosts is drawn."""

from typing import Any

from scripts.hosts_page import TITLES, cell, overhead, remaining, runs, situations_tables, summary, taken
from tests.hosts.adapters import ADAPTERS
from tests.rows import rows

GOOD: dict[str, Any] = {"seconds": 1.0}
BAD = {"faults": ["runs it", "the model is not told"]}
CANNOT = {"cannot": "no such event"}
SITUATIONS = [{"name": "exit 2", "about": "Deny", "wants": "not run"}]

CELLS = [
    ({"alone": GOOD, "guarded": GOOD}, "✓"),
    ({"alone": CANNOT, "guarded": CANNOT}, "–"),
    ({"alone": BAD, "guarded": GOOD}, "**runs it; the model is not told** → ✓"),
    ({"alone": CANNOT, "guarded": GOOD}, "– → ✓"),
    ({"alone": GOOD, "guarded": {"trouble": "x"}}, "✓ → ?"),
    ({"alone": BAD, "guarded": BAD}, "**runs it; the model is not told** → **runs it; the model is not told**"),
    ({}, "? → ?"),
]


@rows("pair, text", CELLS)
def test_a_cell(pair: dict[str, Any], text: str) -> None:
    assert cell(pair) == text


RESULTS: dict[str, Any] = {
    "system": "Linux",
    "hosts": {
        "codex": {
            "version": "1.0",
            "taken": "2026-01-02",
            "situations": {"exit 2": {"alone": BAD, "guarded": GOOD}},
            "guarded": {"runs": 20, "executed": {"a deny rule": 0}, "broken": 0},
            "alone": {"runs": 20, "executed": {"a deny rule": 7}, "broken": 1},
            "overhead": {"alone": 10.0, "bare": 14.4, "guard": 50.6, "calls": 22, "load": 1.5},
        },
        "qwen": {"version": "2.0", "taken": "2026-01-03", "trouble": "npm is needed"},
    },
}


def test_a_host_that_could_not_be_installed_is_named() -> None:
    text = summary(RESULTS, SITUATIONS)
    assert "| Codex | 1.0 | 0 of 1 | 1 of 1 |" in text
    assert "| Qwen Code | 2.0 | not installed: npm is needed |  |" in text
    assert "| kimi-cli | ? | not installed: not tried |  |" in text


def test_the_tables() -> None:
    assert "| exit 2 | not run | **runs it; the model is not told** → ✓ |" in situations_tables(RESULTS, SITUATIONS)
    assert "| Codex | with `wave guard` | 0 of 20 |" in runs(RESULTS)
    assert "| Codex | alone (1 did not get to the end) | **7 of 20** |" in runs(RESULTS)
    assert "| Codex | 10 ms | 14 ms | 51 ms | 4 ms | 41 ms | 1.5 |" in overhead(RESULTS)
    assert taken(RESULTS) == "Taken 2026-01-02 to 2026-01-03 on Linux."


def test_what_goes_wrong_with_the_guard_too() -> None:
    assert remaining(RESULTS, SITUATIONS) == "Nothing."
    wrong = {**RESULTS["hosts"]["codex"], "situations": {"exit 2": {"guarded": BAD}}}
    text = remaining({"system": "", "hosts": {"codex": wrong, "vibe": wrong}}, SITUATIONS)
    assert "| exit 2 | runs it | Codex, mistral-vibe |" in text


def test_every_host_has_a_title() -> None:
    assert list(TITLES) == list(ADAPTERS)
