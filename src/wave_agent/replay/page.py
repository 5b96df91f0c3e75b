"""The timeline of a session as a single, self-contained HTML page."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from wave_agent.replay.drawing import beside_others, describe, duration, seconds
from wave_agent.replay.html import framed
from wave_agent.replay.html import plain as _text
from wave_agent.replay.timeline import Span, Timeline, TurnSpan
from wave_agent.text import clip

_WIDE = 1000
"""Width of the drawing, in SVG units."""
_TEXT_LIMIT = 100_000
"""Maximum characters per text, so that the page opens quickly."""

_STYLE = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 90rem; padding: 1rem; }
header { position: sticky; top: 0; background: Canvas; padding: .5rem 0; z-index: 1; }
h1 { font-size: 1.2rem; margin: 0; } h2 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
input { font: inherit; width: 20rem; max-width: 100%; }
summary { display: grid; grid-template-columns: 6rem 5rem 4rem 18rem 1fr; gap: .6rem; cursor: pointer; }
summary:hover, details[open] > summary { background: color-mix(in srgb, CanvasText 10%, Canvas); }
summary > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.at, .took { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: 1.2em; } svg .lane { fill: CanvasText; opacity: .06; }
.prompt { fill: #7a5cc0; } .model { fill: #2f7fd0; } .tool { fill: #2a9d5c; }
.hook { fill: #d08a1d; } .note { fill: #888; } .bad { fill: #d03030; } .bad .what { color: #d03030; }
dl { display: grid; grid-template-columns: 8rem 1fr; margin: .3rem 0 .8rem 2rem; gap: .2rem 1rem; }
dd { margin: 0; min-width: 0; } pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
[hidden] { display: none; }
"""

_SCRIPT = """
"use strict";
const field = document.getElementById("search"), found = document.getElementById("found");
const rows = [...document.querySelectorAll("details")].map(row => [row, row.textContent.toLowerCase()]);
const turns = [...document.querySelectorAll("section")];
function show() {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const [row, text] of rows) {
    row.hidden = !words.every(word => text.includes(word));
    count += !row.hidden;
  }
  for (const turn of turns) turn.hidden = !turn.querySelector("details:not([hidden])");
  found.textContent = count + " of " + rows.length;
}
field.addEventListener("input", show);
show();
"""


def page(found: Timeline) -> str:
    """The whole page."""
    began = datetime.fromtimestamp(found.start, UTC)
    body = [
        f"<header><h1>Session {_text(found.session_id)}</h1>",
        f"<p>{_text(found.cwd)} · {began:%Y-%m-%d %H:%M:%S} UTC · {seconds(found.end - found.start)}</p>",
        '<label>Search <input id="search" type="search" autocomplete="off"></label>',
        '<output id="found"></output></header>',
        *_turns(found),
    ]
    return framed(f"Session {found.session_id}", body, style=_STYLE, script=_SCRIPT)


def _turns(found: Timeline) -> Iterator[str]:
    turns = {turn.number: turn for turn in found.turns}
    beside = beside_others(found.spans)
    began = found.start
    by_turn: dict[int, list[Span]] = {}
    for span in found.spans:
        by_turn.setdefault(span.turn, []).append(span)
    for number, own in by_turn.items():
        turn = turns.get(number) or TurnSpan(0, own[0].start, max(span.end for span in own))
        title = f"Prompt {number}" if number else "Before the first prompt"
        yield f"<section><h2>{title} · {seconds(turn.end - turn.start)}</h2>"
        for span in own:
            yield _row(span, turn, began, beside=span.run is not None and span.line in beside)
        yield "</section>"


def _row(span: Span, turn: TurnSpan, began: float, *, beside: bool) -> str:
    bad = " bad" if span.bad else ""
    took = duration(span) if span.end > span.start else ""
    return (
        f'<details class="row{bad}"><summary><span class="at">{span.start - began:.3f} s</span>'
        f'<span class="took">{took}</span><span>{span.kind}</span>{_drawing(span, turn)}'
        f'<span class="what">{_text(" ".join(clip(describe(span, beside=beside), 300).split()))}</span></summary>'
        f"<dl>{''.join(_facts(span))}</dl></details>"
    )


def _drawing(span: Span, turn: TurnSpan) -> str:
    whole = max(turn.end - turn.start, 1e-9)
    left = min(max((span.start - turn.start) / whole, 0), 1) * _WIDE
    width = max(min(max((span.end - span.start) / whole, 0) * _WIDE, _WIDE - left), 4)
    kind = "bad" if span.bad else span.kind
    return (
        f'<svg viewBox="0 0 {_WIDE} 16" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="lane" width="{_WIDE}" height="16"/>'
        f'<rect class="{kind}" x="{min(left, _WIDE - 4):.1f}" y="2" width="{width:.1f}" height="12"/></svg>'
    )


def _facts(span: Span) -> Iterator[str]:
    run: Mapping[str, Any] = {} if span.run is None else msgspec.to_builtins(span.run)
    shown = {
        "verdict": span.verdict,
        "read by": ", ".join(span.seen_by) or "no one",
        "times": "" if span.exact else "the start is estimated from what happened before",
        "text": span.text,
        **span.facts,
        **run,
        "transcript": f"line {span.line}{_of_subagent(span)}",
    }
    for name, value in shown.items():
        if value not in ("", None, [], (), {}):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            yield f"<dt>{_text(str(name))}</dt><dd><pre>{_text(clip(shown, _TEXT_LIMIT))}</pre></dd>"


def _of_subagent(span: Span) -> str:
    """Hook runs of a subagent are in the session's own transcript."""
    return f" of subagents/{span.agent_id}.jsonl" if span.agent_id and span.run is None else ""
