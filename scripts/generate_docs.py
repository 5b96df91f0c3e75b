"""Generates the tables in the docs, and the files in `schemas/`, from the program's own data.

`--check` only reports whether they are up to date. A generated part of a document is between
`<!-- generated: NAME ARGUMENTS -->` and `<!-- end -->`.
"""

import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import cli_pages
import hosts_page
import message_pages
import python_pages
from click.shell_completion import get_completion_class
from man_page import man_page

from wave_agent.cli.completion import HOW
from wave_agent.cli.main import wave
from wave_agent.cli.quick import HELP_FILE, WIDE
from wave_agent.effects.shown import MEANINGS
from wave_agent.guard.hosts import HOSTS, Verb
from wave_agent.hooks.compatibility import COLUMNS, COMPARISONS, Kinship
from wave_agent.hooks.definitions import LAYERS
from wave_agent.hooks.dialects import DIALECTS, Dialect
from wave_agent.hooks.events import COMMON_STDIN, EVENTS, NEVER_HERE, Audience, Decision, EventRow, Flow, HookEvent
from wave_agent.hooks.public_settings import PUBLIC_SETTINGS
from wave_agent.hooks.reader import TABLE, Field, Home
from wave_agent.hooks.semantics import RULES, ExitClass, Stdout, words_of
from wave_agent.lint.codes import CODES, Level
from wave_agent.models.apis import PROVIDERS
from wave_agent.permissions.decision import MODE_ALLOWS, PermissionMode, ToolKind
from wave_agent.recipes import load_recipe, recipe_names
from wave_agent.replay.export_rows import TABLES
from wave_agent.replay.questions import QUESTIONS
from wave_agent.screen.commands import COMMANDS
from wave_agent.screen.keys import KEYS
from wave_agent.settings.layers import Settings
from wave_agent.settings.mcp_keys import MCP_SETTINGS
from wave_agent.settings.values import VALUES
from wave_agent.telemetry.vocabulary import METRICS, SPANS
from wave_agent.tools.base import SCHEMAS, Tool
from wave_agent.tools.registry import builtin_tools, every_tool
from wave_agent.workshop.cases import CHECKS
from wave_agent.workshop.schemas import all_schemas

ROOT = Path(__file__).parent.parent

FLOW_WORDS = {
    Flow.PROCEED: "nothing can be blocked here; the reason goes to the user",
    Flow.ERASE_PROMPT: "the model is not called and the prompt is erased; only the user gets the reason",
    Flow.SKIP_TOOL: "the tool does not run; the model gets the reason and continues",
    Flow.FEEDBACK: "nothing is undone; the reason goes to the model as a message",
    Flow.REFUSE_CALL: "the call is refused; the reason goes to the user, the model gets the hook's `message`",
    Flow.SKIP_COMPACTION: "nothing is summarised; the reason goes to the user",
    Flow.DECLINE: "the server gets `decline`; the reason goes to the user",
    Flow.KEEP_WORKING: "the turn does not end; the reason goes to the model, which continues",
    Flow.REFUSE_TASK: "the todo list is not changed for this item; the reason goes to the model",
    Flow.END_TURN: "the turn ends; the reason goes to the user",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def events() -> str:
    rows = [
        [
            code(row.event),
            row.when,
            _target(row),
            f"{row.timeout:g} s",
            "ignored" if row.reason_reader is Audience.NOBODY else FLOW_WORDS[row.flow[Decision.BLOCK]],
            row.context,
        ]
        for row in EVENTS.values()
    ]
    head = ["event", "runs when", "matcher is compared with", "timeout", "exit 2 or block", "context goes"]
    return table(head, rows)


def _target(row: EventRow) -> str:
    name = code(row.target) if row.target else "–"
    return f"the file name in {name}" if row.target_is_file else name


def verdicts() -> str:
    rows = []
    for kind in Stdout:
        cells = [words_of(RULES[kind, exit_class]) for exit_class in ExitClass]
        rows.append([kind.replace("{}", "`{}`").replace("{,", "`{`,"), *cells])
    return table(["stdout", *ExitClass], rows)


def fields() -> str:
    rows = []
    for field in TABLE:
        takers = [row.event for row in EVENTS.values() if _takes(row, field)]
        place = {Home.TOP: "top level", Home.EITHER: "either place"}.get(field.home, code(field.home))
        kind = {bool: "boolean", str: "string", dict: "object"}[field.type]
        rows.append(
            [code(field.name), kind, place, code(*takers) if 0 < len(takers) < len(EVENTS) else "all", field.meaning]
        )
    return table(["field", "type", "place", "events", "meaning"], rows)


def _takes(row: EventRow, field: Field) -> bool:
    if field.home is Home.ANSWER:
        return bool(row.behavior_words)
    return field.name in row.specific and field.home is not Home.TOP


def words() -> str:
    """What each decision word means on each event."""
    names = {Decision.NONE: "no opinion", None: "cannot be read"}
    fields = (
        ("decision", "decision_words"),
        ("permissionDecision", "permission_words"),
        ("behavior", "behavior_words"),
    )
    asked = [(field, pick, word) for field, pick in fields for word in ("block", "deny", "ask", "approve", "allow")]
    columns: dict[tuple[str, ...], list[str]] = {}
    for row in EVENTS.values():
        found = [getattr(row, pick).get(word) for _, pick, word in asked]
        said = [row.block_word if one is Decision.BLOCK else one.name.lower() if one else "" for one in found]
        cells = tuple(names.get(one, word) for one, word in zip(found, said, strict=True))
        columns.setdefault(cells, []).append(row.event)
    most = max(columns.values(), key=len)
    heads = ["all others" if events is most else code(*events) for events in columns.values()]
    order = sorted(range(len(heads)), key=lambda at: heads[at] == "all others")
    rows = [
        [f"`{field}: {word}`", *(list(columns)[column][at] for column in order)]
        for at, (field, _, word) in enumerate(asked)
    ]
    return table(["", *(heads[column] for column in order)], rows)


def absent() -> str:
    return table(["event", "because"], [[code(event), why] for event, why in NEVER_HERE.items()])


def asking() -> str:
    """The events on which hooks may ask a model."""
    return f"{', '.join(code(row.event.value) for row in EVENTS.values() if row.asks_models)}."


def stdin() -> str:
    rows = [["every event", code(field.name), field.type, field.meaning] for field in COMMON_STDIN]
    rows += [
        [code(row.event), code(field.name), field.type, field.meaning] for row in EVENTS.values() for field in row.stdin
    ]
    return table(["event", "field", "type", "meaning"], rows)


def effects() -> str:
    return table(["field", "meaning"], [[code(name), meaning] for name, meaning in MEANINGS.items()])


def arguments() -> str:
    rows = [
        [code(row.event), ", ".join(code(".".join(path)) for path in row.arguments)]
        for row in EVENTS.values()
        if row.arguments
    ]
    rows.append(["all others", "none"])
    return table(["event", "arguments"], rows)


def failures() -> str:
    rows = [
        [
            code(row.event),
            row.failure_block,
            "the model, and the user" if row.reason_reader is Audience.MODEL else "the user",
            code(row.function_on_failure),
        ]
        for row in EVENTS.values()
    ]
    return table(["event", "a failure can block", "failures are shown to", "default for functions given in code"], rows)


def layers() -> str:
    where = {
        "managed": "`/etc/wave/settings.json`",
        "code": "the `hooks` argument of the SDK",
        "user": "`settings.json` in `WAVE_HOME` (default `~/.wave`)",
        "project": "`.wave/settings.json` in a directory of the project",
        "local": "`.wave/settings.local.json` in a directory of the project",
        "flag": "`--settings FILE`",
    }
    return table(["layer", "from"], [[code(layer), where[layer]] for layer in LAYERS])


def guard_hosts() -> str:
    rows = []
    for row in HOSTS.values():
        can = row.enforces[HookEvent.PRE_TOOL_USE]
        verbs = [Verb.DENY, Verb.ASK, Verb.REWRITE, Verb.CONTEXT]
        title = f"{row.title} (experimental)" if row.experimental else row.title
        marks = ["yes" if verb in can else "–" for verb in verbs]
        rows.append([code(row.name), title, *marks, ", ".join(map(code, row.installed))])
    return table(["host", "", "deny", "ask", "rewrite", "context before a tool", "events"], rows)


def host_names(host: str) -> str:
    """The names of another agent's events and tools, and ours."""
    row = HOSTS[host]
    events = [[code(theirs), code(ours), "event"] for theirs, ours in row.events.items() if theirs != ours]
    tools = [[code(theirs), code(tool.name), "tool"] for theirs, tool in row.tools.items() if theirs != tool.name]
    return table([f"in {row.title}", "in Wave", "is"], [*events, *tools])


def modes() -> str:
    kinds = {
        ToolKind.READS: "reading",
        ToolKind.FETCHES: "fetching pages",
        ToolKind.EDITS: "editing files",
        ToolKind.ACTS: "everything else",
    }
    rows = []
    for mode in PermissionMode:
        allowed = MODE_ALLOWS[mode]
        rows.append([code(mode), *("runs" if kind in allowed else "asks" for kind in ToolKind)])
        if mode is PermissionMode.PLAN:
            rows[-1][3:] = ["denied", "denied"]
        if mode is PermissionMode.DONT_ASK:
            rows[-1][1:] = ["denied"] * len(kinds)
    return table(["mode", *(kinds[kind] for kind in ToolKind)], rows)


def settings() -> str:
    defaults = Settings()
    rows = []
    for value in VALUES:
        key = f"{value.section}.{value.key}" if value.section else value.key
        default = getattr(defaults, value.name)
        shown = "–" if default in (None, ()) else code(json.dumps(default))
        layers = "managed only" if value.managed_only else "combined" if value.adds_up else "last wins"
        if value.not_the_project:
            layers = "user and managed only"
        rows.append([code(key), shown, layers, value.meaning])
    rows += [[code(key), "–", row.layers, row.meaning] for key, row in MCP_SETTINGS.items()]
    return table(["setting", "default", "several layers", "meaning"], rows)


def telemetry_spans() -> str:
    rows = [[f"`{row.name} {{{row.about}}}`", row.kind.value, row.meaning] for row in SPANS]
    parts = [table(["span", "kind", "what it is"], rows)]
    for row in SPANS:
        known = [[code(name), meaning, ""] for name, meaning in row.attributes.items()]
        known += [[code(name), meaning, "only with content"] for name, meaning in row.content.items()]
        parts.append(f"Attributes of `{row.name}`:\n\n{table(['attribute', 'meaning', ''], known)}")
    return "\n\n".join(parts)


def telemetry_metrics() -> str:
    rows = [
        [code(row.name), row.instrument.value, code(row.unit), row.meaning, code(*row.attributes)] for row in METRICS
    ]
    return table(["metric", "instrument", "unit", "meaning", "attributes"], rows)


def providers() -> str:
    rows = [[one.name, code(*one.keys), code(one.url_variable), code(one.url), code(*one.apis)] for one in PROVIDERS]
    return table(["provider", "key", "URL variable", "its own server", "APIs"], rows)


def tools() -> str:
    """The built-in tools, with the inputs that hooks see."""
    rows = []
    for tool in every_tool():
        schema = Tool.schema(tool)
        needed = schema.get("required", [])
        inputs = [code(name) if name in needed else f"`{name}`?" for name in schema["properties"]]
        does = re.split(r"(?<=\.)\s", tool.description)[0].replace("*", "\\*")
        rows.append([code(tool.name), ", ".join(inputs), tool.kind, does])
    return table(["tool", "input", "kind", "what it does"], rows)


def message_areas() -> str:
    texts = message_pages.texts_by_area()
    rows = [
        [f"[{area.title}](messages/{name}.md)", str(len(texts[name]))] for name, area in message_pages.AREAS.items()
    ]
    return table(["page", "messages"], rows)


def checks() -> str:
    kinds = {str: "text", int: "number", dict: "object", list: "list"}
    rows = [
        [code(name), kinds[check.type], "contains this" if check.how == "has" else "is this", check.meaning]
        for name, check in CHECKS.items()
    ]
    return table(["key", "value", "passes if it", "what"], rows)


def keys() -> str:
    return table(["key", "where", "does"], [[key.label, key.where, key.meaning] for key in KEYS])


def commands() -> str:
    rows = [[code(f"/{one.name} {one.argument}".rstrip()), one.meaning] for one in COMMANDS]
    return table(["command", "does"], rows)


def lint_codes() -> str:
    rows = [
        [code(one.id), one.level, one.title + (" (`--fix`)" if one.fixable else ""), f"{one.why} {one.fix}"]
        for one in CODES.values()
    ]
    return table(["code", "level", "finding", "why, and what to do"], rows)


def export_tables() -> str:
    """Columns that several tables share are explained once."""
    shared = set.intersection(*({column.name for column in columns} for columns in TABLES.values()))
    parts: list[str] = []
    for name, columns in {"all tables": next(iter(TABLES.values())), **TABLES}.items():
        wanted = [column for column in columns if (column.name in shared) == (name == "all tables")]
        rows = [[code(column.name), code(column.type), column.meaning] for column in wanted]
        title = "In all tables" if name == "all tables" else f"`{name}`"
        parts.append(f"**{title}**\n\n" + table(["column", "type", "meaning"], rows))
    return "\n\n".join(parts)


def questions() -> str:
    return table(["`--question`", "asks"], [[code(name), one.asks] for name, one in QUESTIONS.items()])


def lint_levels() -> str:
    meanings = {
        Level.ERROR: "the hook does not do its job",
        Level.WARNING: "it will fail on another machine or another day",
        Level.ADVICE: "it could be safer; advice alone leaves the exit status at 0",
    }
    return table(["level", "means"], [[level, meanings[level]] for level in Level])


def recipes() -> str:
    rows = []
    for recipe in map(load_recipe, recipe_names()):
        matcher = f" for {code(recipe.entry['matcher'])}" if "matcher" in recipe.entry else ""
        languages = ", ".join(recipe.scripts)
        rows.append([code(recipe.name), f"{code(recipe.event)}{matcher}", recipe.summary, languages])
    return table(["recipe", "runs on", "does", "languages"], rows)


def dialects() -> str:
    """The effects of a hook's dialect."""
    rows = [[column.topic, *(column.here(row) for row in DIALECTS.values())] for column in COLUMNS]
    return table(["", *(f"{row.dialect} ({row.agent})" for row in DIALECTS.values())], rows)


def compatibility() -> str:
    """Hooks for Claude Code there and here: first what depends on the dialect, then what applies to all hooks."""
    row = DIALECTS[Dialect.CLAUDE]
    found = [(one.topic, one.kinship, one.here(row), one.why) for one in COLUMNS]
    found += [(one.topic, one.kinship, one.here, one.why) for one in COMPARISONS]
    order = [str(one) for one in Kinship]
    return table(["what", "compared", "here", "why"], sorted(found, key=lambda one: order.index(one[1])))


def public_settings() -> str:
    """What public settings use, and what Wave makes of it."""
    return table(["what", "repositories", "here"], [[one.what, one.repositories, one.here] for one in PUBLIC_SETTINGS])


def attacks() -> str:
    """The classes in tests/attacks, with their number of attempts and how many still get through."""
    files = sorted((ROOT / "tests" / "attacks" / "classes").glob("*.toml"))
    classes = {file.stem: tomllib.loads(file.read_text()) for file in files}
    rows, attempts, through = [], 0, 0
    for name, data in classes.items():
        known = sum(attempt.get("xfail", False) for attempt in data["attempt"])
        attempts, through = attempts + len(data["attempt"]), through + known
        rows.append([data["title"], str(len(data["attempt"])), str(known or "–"), code(name)])
    told = f"{len(classes)} classes with {attempts} attempts; {through or 'none'} of them get through today."
    return f"{told}\n\n{table(['class', 'attempts', 'get through', 'file'], rows)}"


def ways(name: str) -> str:
    """The ways in a file of tests/effects, and whether each is seen before it runs."""
    found = tomllib.loads((ROOT / "tests" / "effects" / f"{name}.toml").read_text())["way"]
    unseen = sum(way.get("unseen", False) for way in found)
    lines = [way["line"].replace("\n", "⏎") for way in found]
    shown = [f"`` {line} ``" if "`" in line else code(line) for line in lines]
    seen = ["not complete" if way.get("unseen") else "seen" for way in found]
    rows = zip(shown, seen, strict=True)
    return f"{len(found) - unseen} of {len(found)} are seen.\n\n{table(['line', 'before it runs'], rows)}"


RESULTS = ROOT / "benchmarks" / "results.json"
PLOT = ROOT / "docs" / "performance.svg"
SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}


def in_readable_unit(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim about a time, in the largest unit in which its value is at least 1."""
    if claim["unit"] not in SECONDS:
        return claim
    seconds = claim["value"] * SECONDS[claim["unit"]]
    unit = next((unit for unit in ("s", "ms") if seconds >= SECONDS[unit]), "µs")
    factor = SECONDS[claim["unit"]] / SECONDS[unit]
    numbers = {key: claim[key] * factor for key in ("value", "floor", "limit") if claim[key] is not None}
    return {**claim, **numbers, "unit": unit}


def performance() -> str:
    """The latest results of `make bench`."""
    report = json.loads(RESULTS.read_text())
    rows = []
    for claim in map(in_readable_unit, report["claims"]):
        unit, floor = claim["unit"], claim["floor"]
        sign = "at least" if claim["at_least"] else "at most"
        beside = f"{claim['value'] / floor:.2f} × {claim['floor_name']} ({floor:.3g} {unit})" if floor else "–"
        limit = f"{claim['factor']:g} × baseline" if claim["factor"] else f"{claim['limit'] or 0:.4g} {unit}"
        mark = "" if claim["holds"] else " (missed in this run)"
        claimed = "–" if claim["limit"] is None else f"{sign} {limit}{mark}"
        rows.append([claim["name"], f"{claim['value']:.3g} {unit}", beside, claimed])
    told = (
        f"Measured {report['taken']} with Python {report['python']} on {report['system']}, {report['cores']} cores, "
        f"load {report['load']}."
    )
    return table(["what", "measured", "relative to baseline", "claimed"], rows) + f"\n\n{told}"


def plot() -> str:
    """Each figure as a bar, as a share of its limit; the line is the limit."""
    claims = [claim for claim in json.loads(RESULTS.read_text())["claims"] if claim["limit"] is not None]
    left, full, step = 400, 300, 22
    height = step * len(claims) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + full + 160}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{left + full + 160}" height="{height}" fill="#ffffff"/>',
    ]
    for at, claim in enumerate(claims):
        share = claim["limit"] / claim["value"] if claim["at_least"] else claim["value"] / claim["limit"]
        color = "#3b7d4f" if claim["holds"] else "#b3412c"
        y = 24 + at * step
        width = max(2, min(share, 1.4) * full)
        name = claim["name"].replace("&", "&amp;").replace("<", "&lt;")
        lines += [
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end" fill="#222222">{name}</text>',
            f'<rect x="{left}" y="{y}" width="{width:.0f}" height="15" fill="{color}"/>',
            f'<text x="{left + width + 6:.0f}" y="{y + 12}" fill="#222222">{share:.0%}</text>',
        ]
    end = left + full
    lines.append(f'<line x1="{end}" y1="16" x2="{end}" y2="{height - 12}" stroke="#222222" stroke-dasharray="4 3"/>')
    lines.append(f'<text x="{end}" y="12" text-anchor="middle" fill="#222222">the limit</text>')
    return "\n".join([*lines, "</svg>", ""])


PACKAGE = ROOT / "src" / "wave_agent"


def summary(module: Path) -> str:
    """The first sentence of a module's docstring."""
    promise = ast.get_docstring(ast.parse(module.read_text())) or ""
    paragraph = " ".join(promise.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph)[0].removesuffix(".")


def _hosts() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The latest results of `make test-hosts`, and the situations."""
    place = ROOT / "tests" / "hosts"
    results = json.loads((place / "results.json").read_text())
    return results, tomllib.loads((place / "situations.toml").read_text())["situation"]


def hosts_summary() -> str:
    results, situations = _hosts()
    return f"{hosts_page.summary(results, situations)}\n\n{hosts_page.taken(results)}"


def hosts_situations() -> str:
    return hosts_page.situations_tables(*_hosts())


def hosts_remaining() -> str:
    return hosts_page.remaining(*_hosts())


def hosts_runs() -> str:
    return hosts_page.runs(_hosts()[0])


def hosts_overhead() -> str:
    return hosts_page.overhead(_hosts()[0])


def room_names() -> list[str]:
    """As in the contract, highest first."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(one for one in linter["contracts"] if one["id"] == "rooms")
    return re.findall(r"\w+", " ".join(contract["layers"]))


def _claude() -> tuple[str, list[dict[str, Any]]]:
    """The version of Claude Code in the recording, and the situations."""
    place = ROOT / "tests" / "claude"
    version = json.loads((place / "recorded.json").read_text())["version"]
    return version, tomllib.loads((place / "situations.toml").read_text())["situation"]


def claude_summary() -> str:
    version, found = _claude()
    counts = Counter(one.get("result", "same") for one in found)
    kinds = ("same", "stricter", "different", "looser")
    shown = table(["in Wave", "situations"], [[kind, str(counts[kind])] for kind in kinds])
    return f"{shown}\n\nCompared with version {version}, in {len(found)} situations."


def claude_differences() -> str:
    order = ("looser", "different", "stricter")
    found = [one for one in _claude()[1] if one.get("result", "same") in order]
    rows = [[one["about"], one["name"], one["result"], one["reason"]] for one in found]
    return table(["about", "situation", "Wave is", "why"], sorted(rows, key=lambda row: order.index(row[2])))


def rooms() -> str:
    """The contract as a picture."""
    lines: list[str] = []
    for name in room_names():
        room = PACKAGE / name / "__init__.py"
        lines.append(f" {name:<14}{summary(room if room.exists() else PACKAGE / f'{name}.py')}")
    return "\n".join(["```text picture", *lines, "```"])


def modules(first: str, last: str) -> str:
    """For each room from `first` down to `last` a table of its modules, each with what its docstring promises."""
    names = room_names()
    tables: list[str] = []
    for name in names[names.index(first) : names.index(last) + 1]:
        for room in sorted(file.parent for file in (PACKAGE / name).rglob("__init__.py")):
            files = sorted(file for file in room.glob("*.py") if file.stem != "__init__")
            if files:
                rows = [[code(file.stem), summary(file)] for file in files]
                inside = room.relative_to(PACKAGE).as_posix()
                tables.append(f"## `{inside}/`\n\n{table(['module', 'what it holds'], rows)}")
    return "\n\n".join(tables)


PARTS: dict[str, Callable[..., str]] = {
    part.__name__: part
    for part in (
        *(events, absent, verdicts, fields, words, stdin, effects, arguments, failures, layers, modes, settings),
        *(
            guard_hosts,
            host_names,
            hosts_summary,
            hosts_situations,
            hosts_remaining,
            hosts_runs,
            hosts_overhead,
            providers,
        ),
        *(export_tables, questions),
        *(checks, keys, commands, lint_codes, lint_levels, recipes, performance, attacks, dialects, compatibility),
        *(public_settings, asking, tools, message_areas, claude_summary, claude_differences),
        *(rooms, modules, ways),
        *(telemetry_spans, telemetry_metrics),
    )
}
PART = re.compile(r"(<!-- generated: (\w+)((?: \w+)*) -->\n).*?(<!-- end -->)", re.DOTALL)


def generated(text: str) -> str:
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]](*part[3].split())}\n\n{part[4]}", text)


def usage() -> str:
    """What `wave --help` prints in a wide terminal."""
    return wave.get_help(wave.make_context("wave", [], resilient_parsing=True, terminal_width=WIDE - 2)) + "\n"


SHARED = ROOT / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/wave",
    "fish": "fish/vendor_completions.d/wave.fish",
    "zsh": "zsh/site-functions/_wave",
}
"""Where shells look below `share`."""


def completion_script(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None  # click knows the three
    return kind(wave, {}, "wave", "_WAVE_COMPLETE").source() + "\n"


def tool_schemas() -> str:
    """Derived from the types of the built-in tools."""
    return json.dumps({tool.name: Tool.schema(tool) for tool in builtin_tools()}, indent=1) + "\n"


def reference() -> dict[Path, str]:
    """The pages that are generated as a whole."""
    kinds = {"reference": {**cli_pages.pages(), **python_pages.pages()}, "messages": message_pages.pages()}
    return {ROOT / "docs" / place / name: text for place, pages in kinds.items() for name, text in pages.items()}


def wanted() -> dict[Path, str | None]:
    """The expected content of each file; None: it should not exist."""
    pages = reference()
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    old_pages = [file for file in documents if {"reference", "messages"} & {*file.parts[:-1]} and file not in pages]
    schemas = {ROOT / "schemas" / name: f"{json.dumps(schema, indent=2)}\n" for name, schema in all_schemas().items()}
    left = [file for file in sorted((ROOT / "schemas").rglob("*.json")) if file not in schemas]
    own = {PLOT: plot(), PACKAGE / "cli" / Path(HELP_FILE).name: usage(), PACKAGE / "tools" / SCHEMAS: tool_schemas()}
    shared = {SHARED / COMPLETIONS[shell]: completion_script(shell) for shell in HOW}
    shared[SHARED / "man" / "man1" / "wave.1"] = man_page(wave)
    return {
        **{file: generated(file.read_text()) for file in documents},
        **schemas,
        **dict.fromkeys([*left, *old_pages]),
        **pages,
        **own,
        **shared,
    }


def write(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = {file: text for file, text in wanted().items() if (file.read_text() if file.exists() else None) != text}
    for file, text in stale.items():
        if not check:
            write(file, text)
        print(f"{file.relative_to(ROOT)}: {'out of date; run make docs' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
