"""The pages that list what the program says when something is wrong, read from the source.

A message is the text that an error, a notice or a finding is created with. What is filled in is shown as `…`.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "wave_agent"
HOLE = "…"


class Area(NamedTuple):
    title: str
    advice: str
    """What to do about such messages."""
    rooms: Sequence[str]
    """Modules whose path begins so belong to it, unless they fit another area better."""


AREAS = {
    "commands": Area(
        "Messages of commands",
        "`wave` could not do what the command line asked for. The exit status is 2 for wrong usage and 1 otherwise. "
        "`wave COMMAND --help` and the [reference](../reference/cli.md) show what a command takes; messages about "
        "missing consent mean that the run is not interactive: review what it shows and repeat it with `--yes`.",
        ("cli", "guard", "system"),
    ),
    "workshop": Area(
        "Messages of wave hooks",
        "What `wave hooks` says about hooks, cases and scripts. [The workshop](../workshop.md) explains its commands, "
        "[Lint](../lint.md) each finding, and [Testing](../testing.md) how cases are written.",
        ("workshop", "lint", "cli/hooks", "recipes"),
    ),
    "settings": Area(
        "Messages about settings and trust",
        "The message names the file, the line and the entry. Nothing starts if a guard would be lost, so fix what is "
        "named, or remove the entry. `wave hooks list` shows how settings were read, `wave hooks lint` finds more, and "
        "[Settings](../settings.md), [Configuring hooks](../hooks/settings.md) and [Trust](../security/trust.md) "
        "explain the rest.",
        ("settings", "formats", "rules", "hooks/kinds", "hooks/matcher", "hooks/definitions", "hooks/rollout",
         "sessions/uploads", "telemetry"),
    ),
    "hooks": Area(
        "Messages about hooks",
        "A hook failed, or said something that has no meaning. `wave hooks test` runs it on a sample event and shows "
        "what was read; [Output](../hooks/output.md) says what output means, and "
        "[`onFailure`](../hooks/output.md#when-a-hook-fails) decides whether a failure blocks.",
        ("hooks", "agent/hook", "agent/reading_hook"),
    ),
    "calls": Area(
        "Messages about calls and tools",
        "These are results of tool calls: the model gets them and usually tries again, and you see them in the "
        "conversation. After `Not run:` comes who refused the call: a rule, a hook, the mode, a protected path, or the "
        "lack of someone to ask. See [who decides](../hooks/permissions.md#who-decides) and "
        "[the sandbox](../sandbox.md).",
        ("tools", "permissions", "effects", "shell", "formats/notebook_edits", "formats/readable", "agent/call",
         "agent/tool", "agent/asking", "agent/file_watch"),
    ),
    "models": Area(
        "Messages about the model",
        "The model's server could not be reached, refused the request, or sent something that is no answer. "
        "`wave doctor` tries the server and one tool call; [Your model](../models.md) says how server, key and API are "
        "chosen. The conversation is kept: send the prompt again.",
        ("models", "http", "agent/model", "agent/outgoing", "agent/spending"),
    ),
    "mcp": Area(
        "Messages about MCP servers",
        "`wave mcp list --check` connects to each server, `wave mcp test NAME` shows what it offers, and `wave mcp "
        "trust` reviews what a project would start. See [MCP servers](../mcp.md).",
        ("mcp", "cli/mcp", "screen/mcp"),
    ),
    "editors": Area(
        "Messages in editors",
        "An editor shows these as the error of a request, or as the result of a tool call; what no editor can show is "
        "printed on stderr. [In an editor](../editors.md) says what `wave acp` can do.",
        ("acp", "cli/acp"),
    ),
    "sessions": Area(
        "Messages about sessions, replay and export",
        "A transcript, an export or a recorded run cannot be used. Nothing is changed or deleted in such a case. See "
        "[Sessions](../sessions.md), [Replay](../replay.md), [Export](../export.md) and [Scale](../scale.md).",
        ("sessions", "replay", "cli/hooks/backtest", "cli/hooks/export", "cli/hooks/report", "cli/hooks/trace",
         "cli/hooks/stats", "cli/sessions"),
    ),
    "agent": Area(
        "Messages of the agent and the SDK",
        "An argument of `Agent.create` or a flag is invalid, the agent cannot be used in this way, or a session says "
        "what it does differently from what was asked. See [The SDK](../sdk.md) and [errors](../sdk.md#errors).",
        ("agent", "screen", "errors", "messages", "testing", "events", "text"),
    ),
}  # fmt: skip

SAYING = frozenset(
    (
        *(
            "Dialog",
            "add_notice_block",
            "echo",
            "notice",
            "problem",
            "report",
            "say",
            "tell",
            "warn",
            "wrong",
            "finding",
        ),
        *("_notify", "_problem", "_report", "_say", "_tell", "_warn", "_wrong", "_notice"),
    )
)
"""Functions that show their text, or keep it until it is shown."""
CLICK = frozenset({"UsageError", "BadParameter", "ClickException"})
WHOLE = (
    *("agent/call_judge", "agent/consequences", "agent/life_cycle", "agent/turn", "cli/headless", "cli/quick"),
    *("cli/requirements", "errors"),
    *("hooks/reader", "hooks/semantics", "hooks/verdicts", "models/client", "permissions/decision"),
)
"""Modules that make up what is said, and leave it to others to say it: each of their longer texts is a message."""
TABLES = frozenset({"Field", "cast"})
"""What these are called with is for the documentation."""


class Message(NamedTuple):
    module: str
    text: str


def messages() -> list[Message]:
    """Every one, in the order of the source."""
    trees = {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): ast.parse(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
        if "recipes" not in path.parts
    }
    errors = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(is_error(ast.unparse(base)) for base in node.bases)
    } | CLICK
    found: dict[Message, None] = {}
    for module, tree in trees.items():
        words = Module(tree, errors | SAYING)
        for text in (*words.said(), *words.returned(), *(words.kept() if module in WHOLE else ())):
            found[Message(module, " ".join(text.split()))] = None
    return list(found)


def is_error(name: str) -> bool:
    return name.rpartition(".")[2].endswith(("Error", "Failure", "Exception"))


class Module:
    def __init__(self, tree: ast.Module, saying: Iterable[str]) -> None:
        self._tree = tree
        self._saying = frozenset(saying)
        self._named: defaultdict[str, list[ast.expr]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._named[node.targets[0].id].append(node.value)

    def said(self) -> Iterator[str]:
        """What errors and notices are created with."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and self._says(ast.unparse(node.func)):
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    yield from filter(is_sentence, self.read(argument))

    def _says(self, function: str) -> bool:
        """An error that makes up its own text hands it to `super`."""
        return function == "super().__init__" or function.rpartition(".")[2] in self._saying

    def returned(self) -> Iterator[str]:
        """Texts that functions return, for others to say."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                value = node.value
                parts = (
                    [*value.args, *(one.value for one in value.keywords)] if isinstance(value, ast.Call) else [value]
                )
                parts = value.elts if isinstance(value, ast.Tuple) else parts
                texts = (text for part in parts for text in self.read(part))
                yield from (text for text in texts if is_sentence(text, 4) and not is_code(text))

    def kept(self) -> Iterator[str]:
        """All texts but docstrings, types and parts of longer texts."""
        left_out: set[int] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                left_out.add(id(node.value))
            elif isinstance(node, ast.JoinedStr):
                left_out |= {id(part) for part in node.values}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in TABLES:
                left_out |= {id(part) for part in ast.walk(node)}
        for node in ast.walk(self._tree):
            if id(node) not in left_out and isinstance(node, ast.Constant | ast.JoinedStr):
                yield from (text for text in self.read(node) if is_sentence(text, 4) and not is_code(text))

    def read(self, node: ast.expr, depth: int = 0) -> list[str]:
        """The texts that an expression may have."""
        match node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in parts)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [a + b for a in self.read(left, depth) or [HOLE] for b in self.read(right, depth) or [HOLE]]
            case ast.IfExp(body=body, orelse=other):
                return [*self.read(body, depth), *self.read(other, depth)]
            case ast.BoolOp(values=values):
                return [text for value in values for text in self.read(value, depth)]
            case ast.Name(id=name) if depth < 2:
                return [text for value in self._named[name] for text in self.read(value, depth + 1)]
            case _:
                return []


def is_code(text: str) -> bool:
    """Types, SQL, HTML and the like."""
    return re.search(r"</|^<|^:root|^\"use strict|SELECT|CAST\(|\w \| None|\w\[\w", text.strip()) is not None


def is_sentence(text: str, least: int = 2) -> bool:
    """Whether it has words enough to be a message: not a name, a place or a URL."""
    words = re.findall(r"[A-Za-z]{2,}", text.replace(HOLE, " "))
    return len(words) >= least and " " in text.strip()


def texts_by_area() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in AREAS}
    for message in messages():
        found[area_of(message.module)].append(message.text)
    return found


def pages() -> dict[str, str]:
    found: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for message in messages():
        found[area_of(message.module)].setdefault(message.module, []).append(message.text)
    return {f"{name}.md": page(AREAS[name], found[name]) for name in AREAS}


def area_of(module: str) -> str:
    """The area with the longest beginning of the module's path."""
    fitting = [(len(room), name) for name, area in AREAS.items() for room in area.rooms if module.startswith(room)]
    assert fitting, f"no area of messages has {module}"
    return max(fitting)[1]


def page(area: Area, found: Mapping[str, Sequence[str]]) -> str:
    parts = [f"# {area.title}", fill(area.advice, 118, break_long_words=False, break_on_hyphens=False)]
    parts.append(f"`{HOLE}` stands for what is filled in. [Other messages](../messages.md) have pages of their own.")
    for module, texts in found.items():
        parts.append(f"## {promise(PACKAGE / f'{module}.py')}")  # a section for itself in the site's search
        parts.append("\n".join(f"- {literal(text)}" for text in texts))
    return "\n\n".join(parts) + "\n"


def promise(module: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text())) or module.stem
    return re.split(r"(?<=\.) (?=[A-Z`])", " ".join(text.split("\n\n")[0].split()))[0].removesuffix(".")


def literal(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
