"""How a hook run is shown: one line, and all of its details."""

import json

from textual.content import Content

from wave_agent.events import HookRun
from wave_agent.screen.diff import coloured
from wave_agent.screen.plain import plain
from wave_agent.screen.run_looks import look_of
from wave_agent.text import one_line
from wave_agent.tools.diff import unified_diff


def headline(run: HookRun, *, reason: bool = True) -> Content:
    """One line: who did what, and why."""
    look = look_of(run)
    shadow = "would have " if run.mode == "shadow" else ""
    through = ", and was let through" if run.let_through else ""
    said = one_line(run.reason, 160) if reason else ""
    return Content.assemble(
        plain(f"{look.glyph} ", look.style),
        plain(one_line(run.name, 60), "bold"),
        plain(f" on {run.event} " + (f"in {run.agent_type} " if run.agent_type else "")),
        plain(f"{shadow}{look.word}{through}", look.style),
        plain(f": {said}" if said else ""),
        plain(f"  {run.duration_ms:.0f} ms", "$muted"),
    )


def story(run: HookRun) -> Content:
    """All details of the run."""
    facts = {
        "command": run.command,
        "from": run.layer,
        "call": run.tool_use_id or "",
        "exit code": "" if run.exit_code is None else str(run.exit_code),
        "failure": run.failure or "",
        "mode": run.mode + (", in the background" if run.is_async else ""),
        "look": "second, on the rewritten input" if run.look > 1 else "",
        "took": f"{run.duration_ms:.1f} ms",
    }
    lines = [Content.assemble(plain(f"{name:>10}  ", "$muted"), plain(text)) for name, text in facts.items() if text]
    if run.reason:
        lines += [plain("    reason", "$muted"), plain(run.reason)]
    for text in run.deferred:
        lines += [plain("   context added later", "$muted"), plain(text)]
    if run.before is not None and run.after is not None:
        lines += [plain("   rewrote", "$muted"), coloured(unified_diff(_json(run.before), _json(run.after)))]
    if run.original_sha256:
        lines.append(plain(f"  replaced  a result whose SHA-256 was {run.original_sha256}"))
    return Content("\n").join(lines)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
