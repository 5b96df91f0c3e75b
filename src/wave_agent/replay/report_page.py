"""What hooks did in many sessions as a single, self-contained HTML page with plots."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from msgspec.structs import replace

from wave_agent.replay.charts import Bar, over_time, share, span
from wave_agent.replay.figures import HookFigures, rolled_out
from wave_agent.replay.html import framed, plain
from wave_agent.replay.overview import DayFigures, HookOverview

_MOST_BARS = 92
"""Days in a plot; of a longer time, weeks are shown."""
_MOST_HOOKS = 30

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --value: #2f7fd0; --part: #d05a1d; }
@media (prefers-color-scheme: dark) { :root { --value: #6db1f2; --part: #f29a5c; } }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .4rem; } p { margin: .2rem 0 1rem; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
section { min-width: 0; } section.wide { grid-column: 1 / -1; }
dl { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 1rem 0; } dt { opacity: .7; } dd { margin: 0; }
dd { font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.plot { width: 100%; height: auto; } .grid { stroke: CanvasText; opacity: .15; }
svg text { fill: CanvasText; font-size: 11px; } .axis { text-anchor: end; }
.start { text-anchor: start; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.value { fill: var(--value); } .part { fill: var(--part); } .lane { fill: CanvasText; opacity: .06; }
.span { display: block; width: 100%; height: .7em; margin: .2rem 0; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; } .key.value { background: var(--value); }
.key.part { background: var(--part); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th { font-weight: 600; } .main { text-align: left; width: 60%; } .by { white-space: normal; overflow-wrap: anywhere; }
td.main { white-space: normal; overflow-wrap: anywhere; } code { font: .9em ui-monospace, monospace; }
@media (max-width: 40rem) { .less { display: none; } }
.empty { opacity: .7; }
"""


def report_page(found: HookOverview, title: str) -> str:
    """The whole page."""
    days = filled(found.days)
    by_week = len(days) > _MOST_BARS
    bars = weeks(days) if by_week else days
    body = [
        f"<header><h1>{plain(title)}</h1><p>{plain(_period(found.days))}</p>{_summary(found)}</header><main>",
        *_section(
            "Blocked",
            "Runs that denied, blocked or stopped, in percent of all runs that were not in shadow mode, "
            f"by {'week' if by_week else 'day'}.",
            over_time("Blocked runs in percent", [_blocked(day) for day in bars], unit=" %"),
        ),
        *_section(
            "Failures",
            f'<span class="key value"></span> failed, <span class="key part"></span> of these let through, '
            f"by {'week' if by_week else 'day'}.",
            over_time("Failed runs", [_failed(day) for day in bars]),
        ),
        *_rollouts(found.hooks),
        *_section("Latency", _LATENCY, _latency(found.hooks), wide=True),
        *_section("Denied most", "Calls that did not run, and what denied them.", _denied(found), wide=True),
        "</main>",
    ]
    return framed(title, body, style=_STYLE)


_LATENCY = (
    '<span class="key value"></span> p50 to <span class="key part"></span> p99, on a logarithmic scale from 1 ms. '
    "Slowest first."
)


def _section(title: str, about: str, *content: str, wide: bool = False) -> Iterator[str]:
    """`about` and `content` are HTML."""
    yield f"<section{' class=wide' if wide else ''}><h2>{title}</h2><p>{about}</p>"
    yield from content
    yield "</section>"


def _summary(found: HookOverview) -> str:
    blocks, failures = sum(day.blocks for day in found.days), sum(day.failures for day in found.days)
    enforced, would_block = sum(day.enforced for day in found.days), sum(day.would_block for day in found.days)
    shown = {
        "sessions": f"{found.sessions:,}",
        "hook runs": f"{found.runs:,}",
        "blocked": f"{blocks:,} ({_percent(blocks, enforced)})",
        **({"would have blocked": f"{would_block:,}"} if enforced < found.runs else {}),
        "failed": f"{failures:,} ({_percent(failures, found.runs)})",
        "let through": f"{sum(day.let_through for day in found.days):,}",
    }
    return f"<dl>{''.join(f'<div><dt>{name}</dt><dd>{value}</dd></div>' for name, value in shown.items())}</dl>"


def _period(days: Sequence[DayFigures]) -> str:
    if not days:
        return "No hook ran."
    first, last = days[0].day, days[-1].day
    return first if first == last else f"{first} to {last}"


def filled(days: Sequence[DayFigures]) -> list[DayFigures]:
    """With the days between on which nothing ran; a gap of more than ten years is an invalid time."""
    found: list[DayFigures] = []
    for day in days:
        if found:
            before, at = date.fromisoformat(found[-1].day), date.fromisoformat(day.day)
            gap = (at - before).days
            found += [DayFigures(day=str(before + timedelta(one))) for one in range(1, gap)] if gap < 3650 else []
        found.append(day)
    return found


def weeks(days: Sequence[DayFigures]) -> list[DayFigures]:
    """Each named by its Monday."""
    found: dict[str, DayFigures] = {}
    for day in days:
        at = date.fromisoformat(day.day)
        monday = str(at - timedelta(at.weekday()))
        week = found.setdefault(monday, DayFigures(day=monday))
        found[monday] = replace(
            week,
            runs=week.runs + day.runs,
            enforced=week.enforced + day.enforced,
            blocks=week.blocks + day.blocks,
            would_block=week.would_block + day.would_block,
            failures=week.failures + day.failures,
            let_through=week.let_through + day.let_through,
        )
    return list(found.values())


def _blocked(day: DayFigures) -> Bar:
    percent = 100 * day.blocks / day.enforced if day.enforced else 0.0
    return Bar(day.day, percent, f"{day.day}: {day.blocks:,} of {day.enforced:,} runs ({percent:.1f} %)")


def _failed(day: DayFigures) -> Bar:
    hint = f"{day.day}: {day.failures:,} of {day.runs:,} runs failed, {day.let_through:,} let through"
    return Bar(day.day, day.failures, hint, day.let_through)


def _rollouts(hooks: Sequence[HookFigures]) -> Iterator[str]:
    """Both modes of each hook that is being rolled out; nothing if none is."""
    rows = (
        f'<tr><td class="main">{plain(hook.name)}</td><td class="less">{plain(hook.event)}</td><td>{hook.mode}</td>'
        f"<td>{hook.sessions:,}</td><td>{hook.blocked_sessions:,} ({_percent(hook.blocked_sessions, hook.sessions)})"
        f'</td><td class="less">{hook.runs:,}</td><td>{blocked:,} ({_percent(blocked, hook.runs)})</td>'
        f'<td class="less">{_ms(hook.p95_ms)}</td></tr>'
        for modes in rolled_out(hooks)
        for hook in modes
        for blocked in [hook.blocks + hook.would_block]
    )
    if body := list(rows):
        head = (
            '<th class="main">hook</th><th class="less">event</th><th>mode</th><th>sessions</th><th>with a block</th>'
            '<th class="less">runs</th><th>blocks</th><th class="less">p95</th>'
        )
        yield from _section("Rolled out", _ROLLED_OUT, _table(head, iter(body)), wide=True)


_ROLLED_OUT = (
    "Hooks that are enforced in a share of the sessions. In shadow mode, blocks are those that they would have made."
)


def _latency(hooks: Sequence[HookFigures]) -> str:
    slowest = sorted(hooks, key=lambda hook: (-hook.p99_ms, hook.name))[:_MOST_HOOKS]
    if not slowest:
        return _EMPTY
    longest = slowest[0].p99_ms
    rows = (
        f'<tr><td class="main">{plain(hook.name)}{span(hook.p50_ms, hook.p99_ms, longest)}</td>'
        f'<td class="less">{plain(hook.event)}</td><td class="less">{hook.runs:,}</td>'
        f'<td>{_ms(hook.p50_ms)}</td><td>{_ms(hook.p99_ms)}</td><td class="less">{hook.failures:,}</td>'
        f'<td class="less">{", ".join(hook.marks)}</td></tr>'
        for hook in slowest
    )
    head = '<th class="main">hook</th><th class="less">event</th><th class="less">runs</th><th>p50</th><th>p99</th>'
    return _table(f'{head}<th class="less">failed</th><th class="less"></th>', rows)


def _denied(found: HookOverview) -> str:
    if not found.denied:
        return _EMPTY
    most = found.denied[0].count
    rows = (
        f'<tr><td class="main"><code>{plain(one.text)}</code>{share(one.count, most)}</td><td>{one.count:,}</td>'
        f'<td class="less">{plain(one.tool)}</td><td class="by">{plain(one.by or "a rule or the user")}</td></tr>'
        for one in found.denied
    )
    head = '<th class="main">call</th><th>calls</th><th class="less">tool</th><th class="by">denied by</th>'
    return _table(head, rows)


_EMPTY = '<p class="empty">Nothing in this time.</p>'


def _table(head: str, rows: Iterator[str]) -> str:
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0 %"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
