"""The pages of the Python reference: each public name with its signature and docstring, read from the source."""

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple, get_args

import wave_agent
import wave_agent.hooks
import wave_agent.testing
from wave_agent.events import Event, HookRun, event_to_dict


class Page(NamedTuple):
    title: str
    about: str
    rooms: Sequence[str]
    """The public names that are defined in these rooms of the package are on the page."""


PAGES = {
    "agent": Page(
        "The agent",
        "From `wave_agent`. [The SDK](../../sdk.md) explains how to use it.",
        ("agent", "permissions"),
    ),
    "messages": Page(
        "Messages",
        "From `wave_agent`. [Conversations](../../sdk/conversation.md#messages) says who reads which block.",
        ("messages", "models.conversion"),
    ),
    "events": Page(
        "Events",
        "From `wave_agent.events`. They are what `Agent.stream` yields, and what `wave -p --output-format stream-json` "
        "prints, in snake case. See [events as they happen](../../sdk/conversation.md#events-as-they-happen).",
        ("events",),
    ),
    "tools": Page(
        "Tools", "From `wave_agent`. See [tools of your own](../../sdk/hooks-and-tools.md#tools).", ("tools",)
    ),
    "errors": Page("Errors", "From `wave_agent`. See [when they are raised](../../sdk.md#errors).", ("errors",)),
    "hooks": Page(
        "Hooks in Python",
        "From `wave_agent.hooks`. See [hooks in code](../../sdk/hooks-and-tools.md#hooks-in-code) and [scripts with "
        "`@hook`](../../workshop.md#hooks-in-python).",
        ("hooks",),
    ),
    "testing": Page(
        "Testing", "From `wave_agent.testing`. See [Testing](../../testing.md).", ("testing", "models.scripted")
    ),
}
_WIDTH = 100
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Field(NamedTuple):
    name: str
    type: ast.expr | None
    promise: str


def pages() -> dict[str, str]:
    public = {
        name: getattr(module, name)
        for module in (wave_agent, wave_agent.hooks, wave_agent.testing)
        for name in module.__all__
    }
    public |= {one.__name__: one for one in (*get_args(Event), HookRun, event_to_dict)}
    found = {place: [name for name in public if is_on(page, public[name])] for place, page in PAGES.items()}
    missing = set(public) - {name for names in found.values() for name in names}
    assert not missing, f"no page of the Python reference has {missing}"
    return {f"python/{place}.md": written(PAGES[place], found[place], public) for place in PAGES}


def is_on(page: Page, value: Any) -> bool:
    home = inspect.unwrap(value).__module__ + "."
    return any(home.startswith(f"wave_agent.{room}.") for room in page.rooms)


def written(page: Page, names: Iterable[str], public: dict[str, Any]) -> str:
    parts = [f"# {page.title}", fill(f"{page.about} This page is generated from the docstrings.", 118)]
    for name in sorted(names, key=str.lower):
        parts += [f"## {name}", *entry(name, public[name])]
    return "\n\n".join(part for part in parts if part) + "\n"


def entry(name: str, value: Any) -> list[str]:
    node = definition(inspect.unwrap(value))
    if isinstance(node, ast.ClassDef):
        return of_class(name, node)
    return [block(signature(node)), promise(node)]


def definition(value: Any) -> ast.ClassDef | _FunctionNode:
    module = importlib.import_module(value.__module__)
    tree = ast.parse(Path(inspect.getfile(module)).read_text())
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in tree.body if isinstance(node, kinds) and node.name == value.__name__]
    return found[-1]  # before it are the signatures of an overloaded function


def of_class(name: str, node: ast.ClassDef) -> list[str]:
    bases = [ast.unparse(base) for base in node.bases]
    parts = [promise(node)]
    if bases and (bases[0].endswith("Error") or bases[0] == "Exception"):
        parts.insert(0, f"An error of the kind `{bases[0]}`.")
    if "StrEnum" in bases:
        values = [line.value for line in node.body if isinstance(line, ast.Assign)]
        words = [f"`{value.value}`" for value in values if isinstance(value, ast.Constant)]
        parts.append(fill(f"One of {', '.join(words)}.", 118))
    rows = [f"| `{field.name}` | {cell(field.type)} | {one_line(field.promise)} |" for field in fields_of(node)]
    if rows:
        parts.append("\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows]))
    for function in functions_of(node):
        parts += [f"### {name}.{function.name}", block(signature(function)), promise(function)]
    return parts


def fields_of(node: ast.ClassDef) -> Iterator[Field]:
    """Annotated fields, attributes that `__init__` explains, and properties."""
    creation = next((one.body for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), [])
    for place in (node.body, creation):
        for at, line in enumerate(place):
            if isinstance(line, ast.AnnAssign):
                name = ast.unparse(line.target).removeprefix("self.")
                words = text_of(place[at + 1]) if at + 1 < len(place) else ""
                if not name.startswith("_") and (place is node.body or words):
                    yield Field(name, line.annotation, words)
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and is_property(one) and not one.name.startswith("_"):
            yield Field(one.name, one.returns, promise(one))


def functions_of(node: ast.ClassDef) -> Iterator[_FunctionNode]:
    for one in node.body:
        if not isinstance(one, _FunctionNode) or one.name.startswith("_"):
            continue
        if promise(one) and not any(is_kind_of_property(decorator) for decorator in one.decorator_list):
            yield one


def is_property(node: _FunctionNode) -> bool:
    return any(ast.unparse(one) == "property" for one in node.decorator_list)


def is_kind_of_property(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).rpartition(".")[2] in ("property", "setter")


def text_of(line: ast.stmt) -> str:
    """The words below a field."""
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str):
        return inspect.cleandoc(line.value.value)
    return ""


def promise(node: ast.ClassDef | _FunctionNode) -> str:
    return ast.get_docstring(node) or ""


def signature(node: _FunctionNode) -> str:
    """Without `self`. If it is long, each argument is on a line of its own."""
    words = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = f" -> {type_of(node.returns)}" if node.returns else ""
    arguments = [one for one in arguments_of(node.args) if one not in ("self", "cls")]
    line = f"{words}{node.name}({', '.join(arguments)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{words}{node.name}(", *(f"    {one}," for one in arguments), f"){returns}"])


def arguments_of(node: ast.arguments) -> Iterator[str]:
    plain = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
    for at, (one, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield argument(one, default)
        if at == len(node.posonlyargs):
            yield "/"
    if node.vararg:
        yield f"*{argument(node.vararg)}"
    elif node.kwonlyargs:
        yield "*"
    for one, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        yield argument(one, default)
    if node.kwarg:
        yield f"**{argument(node.kwarg)}"


def argument(node: ast.arg, default: ast.expr | None = None) -> str:
    named = f"{node.arg}: {type_of(node.annotation)}" if node.annotation else node.arg
    return f"{named} = {ast.unparse(default)}" if default else named


def type_of(node: ast.expr) -> str:
    """A type as it would be written without the quotes that keep it from being evaluated."""
    return str(node.value) if isinstance(node, ast.Constant) and node.value is not None else ast.unparse(node)


def block(text: str) -> str:
    return f"```text picture as=python\n{text}\n```"


def cell(node: ast.expr | None) -> str:
    return f"`{type_of(node)}`".replace("|", "\\|") if node else ""


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
