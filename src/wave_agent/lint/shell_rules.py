"""Rules for Bash and sh scripts, based on their syntax tree, so quoted text and comments are not commands."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.hooks.events import EventRow
from wave_agent.lint.findings import Hit
from wave_agent.lint.scripts import Language, Script, can_block_at, delays_a_tool
from wave_agent.shell.grammar import can_parse, parse_unwatched

if TYPE_CHECKING:
    from tree_sitter import Node

BLOCKED_WORDS = re.compile(r"\b(?:BLOCK(?:ED|ING)?|DENIED|[Bb]locked|[Dd]enied|[Nn]ot allowed|[Ff]orbidden)\b")
BLOCKING_NAME = re.compile(r"_*(?:block|deny|refuse|reject|forbid)", re.IGNORECASE)
"""How the name of a function begins that is there to block."""
_BLOCKS = frozenset(
    ("program", "compound_statement", "if_statement", "else_clause", "elif_clause", "do_group", "case_item", "subshell")
)
_TO_STDERR = re.compile(r">\s*(?:&\s*2|/dev/stderr)")
_READS = re.compile(
    r"\b(?:cat|read|jq|mapfile|readarray|tee|head|sed|awk|grep|xargs|exec|source|python[\d.]*|node|ruby|perl)\b"
    r"|/dev/(?:stdin|fd/0)|<&0|(?:^|\s)\.\s"
)
_LOOKS_AT_INPUT = re.compile(
    r"\b(?:tool_input|file_path|tool_name|prompt|COMMAND|FILE_PATH|TOOL_NAME|TOOL_INPUT|PROMPT)\b"
)
_JUDGED = r"(?:\[\[?|\bcase\b|\btest\b|\bgrep\b|\bjq\b|<<<|\becho\b|\bprintf\b|\w=)[^\n]*\$\{{?{number}\b"
_ARGUMENTS = re.compile(r"\$[1-9@*]|\$\{[1-9@*]")
_RISKY = ("jq", "grep", "egrep", "sed", "awk", "git", "python", "python3", "node", "curl")
_NETWORK = ("curl", "wget", "nc", "ncat", "gh")
_LIMITED = re.compile(
    r"(?:^|\s)(?:--max-time|-m|--connect-timeout|--timeout|-T|--unix-socket)\b|localhost|127\.0\.0\.1"
)
_BASH_ONLY = {
    "herestring_redirect": "<<<",
    "array": "an array",
    "process_substitution": "<( )",
    "ansi_c_string": "$'…'",
}
_BASH_EXPANSION = re.compile(r"\$\{\w+(?:,,?|\^\^?|//?|:\d)")


class ScriptCommand(Struct, frozen=True):
    """One command of a script."""

    name: str
    arguments: tuple[str, ...]
    node: "Node"
    document: str = ""
    """The stdin given to it in the script itself, by here-documents and redirections."""

    @property
    def line(self) -> int:
        return self.node.start_point[0] + 1

    @property
    def text(self) -> str:
        return " ".join((*self.arguments, self.document))


class ScriptTree:
    """A script's commands, in order."""

    def __init__(self, text: str) -> None:
        self.root = parse_unwatched(text)
        self.nodes = list(_walk(self.root))
        self.calls = [_call(node) for node in self.nodes if node.type == "command"]

    def called(self, *names: str) -> list[ScriptCommand]:
        return [call for call in self.calls if call.name in names]


def shell_hits(script: Script, *, inline: bool = False) -> Iterator[Hit]:
    """All findings. `inline`: the script is a hook's command line, for which fewer rules apply."""
    if not can_parse(script.text):
        return
    tree = ScriptTree(script.text)
    for rule in _INLINE_RULES if inline else _RULES:
        yield from rule(script, tree)


def _walk(node: "Node") -> Iterator["Node"]:
    yield node
    for child in node.named_children:
        yield from _walk(child)


def _text(node: "Node | None") -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""


def _call(node: "Node") -> ScriptCommand:
    name = _text(node.child_by_field_name("name")).rsplit("/", 1)[-1]
    arguments = tuple(_text(one).strip("\"'") for one in node.children_by_field_name("argument"))
    return ScriptCommand(name, arguments, node, _document(node))


def _document(node: "Node") -> str:
    """This command's here-documents and redirections; in `echo >&2 text` the grammar counts the text as one."""
    around = node.parent
    if around is None or around.type != "redirected_statement":
        return ""
    return "".join(_text(child) for child in around.children if child.type in ("file_redirect", "heredoc_redirect"))


def _around(node: "Node") -> Iterator["Node"]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _block(node: "Node") -> "Node | None":
    return next((one for one in _around(node) if one.type in _BLOCKS), None)


def _to_stderr(call: ScriptCommand) -> bool:
    for one in (call.node, *_around(call.node)):
        inside = list(one.children) if one.type in ("command", "redirected_statement") else []
        inside += [inner for child in inside if child.type == "heredoc_redirect" for inner in child.children]
        if any(_TO_STDERR.search(_text(child)) for child in inside if child.type == "file_redirect"):
            return True
    return False


def _is_tested(call: ScriptCommand) -> bool:
    """Its status is tested, so `set -e` does not end the script there and a failure is noticed."""
    inner = call.node
    for one in _around(call.node):
        if one.type == "list" and any(child.type in ("||", "&&") for child in one.children):
            return True
        if one.type in ("if_statement", "elif_clause", "while_statement"):
            return inner.id in {child.id for child in one.children_by_field_name("condition")}
        if one.type in ("negated_command", *_BLOCKS):
            return one.type == "negated_command"
        inner = one
    return False


# ------------------------------------------------------------------------------------------------------------ the rules


def _needs_jq(_: Script, tree: ScriptTree) -> Iterator[Hit]:
    used = [call for call in tree.called("jq") if not _is_tested(call)]
    checks = ("command", "which", "type", "hash")
    looked_for = any("jq" in call.arguments for call in tree.called(*checks)) or tree.called("jq") != used
    looked_for = looked_for or any(
        "jq" in call.arguments[:2] for call in tree.calls if call.name not in ("jq", *checks)
    )
    elsewhere = tree.called("source", ".")  # a sourced file may check for jq
    if used and not looked_for and not elsewhere:
        yield Hit("W201", used[0].line, "jq is used without checking that it is installed")


def _errexit(script: Script, tree: ScriptTree) -> Iterator[Hit]:
    """`set -e`, or the same option in the first line."""
    if not script.guards or any("ERR" in call.arguments for call in tree.called("trap")):
        return
    places = [call.line for call in tree.called("set") if re.search(r"(?:^|\s)-[a-z]*e|errexit", call.text)]
    if re.match(r"#!.*\b(?:ba)?sh\s+-[a-z]*e", script.text):
        places.append(1)
    risky = [call for call in tree.called(*_RISKY) if not _is_tested(call)]
    if places and risky:
        reason = f"with set -e a failing {risky[0].name} (line {risky[0].line}) ends this guard without blocking"
        yield Hit("W204", places[0], reason)


def _reads_nothing(script: Script, _: ScriptTree) -> Iterator[Hit]:
    looked_at = _LOOKS_AT_INPUT.search(script.code)
    if script.guards and looked_at and not _READS.search(script.code) and not _ARGUMENTS.search(script.code):
        line = script.code.count("\n", 0, looked_at.start()) + 1
        yield Hit("W205", line, f"{looked_at[0]} is used, but stdin is never read")


def _judges_by_argument(script: Script, _: ScriptTree) -> Iterator[Hit]:
    """All arguments of an event except names may be truncated."""
    pairs = zip(script.rows, script.hooks, strict=True)
    given = {at for row, hook in pairs if hook.gets_arguments for at in _cut_arguments(row)}
    for number in sorted(given):
        judged = re.search(_JUDGED.format(number=number), script.code)
        if judged and script.guards:
            line = script.code.count("\n", 0, judged.start()) + 1
            yield Hit("W216", line, f"${number} is truncated to 100 KiB; stdin has the full text")


def _cut_arguments(row: EventRow) -> Iterator[int]:
    return (at for at, path in enumerate(row.arguments, 1) if path != ("tool_name",))


def _network(script: Script, tree: ScriptTree) -> Iterator[Hit]:
    waited_for = any(
        delays_a_tool(row) and not hook.is_async for row, hook in zip(script.rows, script.hooks, strict=True)
    )
    for call in tree.called(*_NETWORK) if waited_for else ():
        in_background = call.node.next_sibling is not None and call.node.next_sibling.type == "&"
        if not _LIMITED.search(call.text) and not in_background:
            yield Hit("W208", call.line, f"{call.name} runs before each matching call, without a timeout")


def _before(call: ScriptCommand, tree: ScriptTree) -> Iterator[ScriptCommand]:
    """The print commands just before, in the same block."""
    block = _block(call.node)
    for other in tree.called("echo", "printf", "cat"):
        if (other.name == "cat" and "<<" not in other.document) or _decides(other, call):
            continue
        near = other.node.start_byte < call.node.start_byte and call.line - other.line <= 4
        if near and block is not None and (found := _block(other.node)) is not None and found.id == block.id:
            yield other


def _decides(printing: ScriptCommand, call: ScriptCommand) -> bool:
    """`printf … || exit`: exits only if printing failed."""
    for one in _around(call.node):
        if one.type in _BLOCKS:
            return False
        inside = one.start_byte <= printing.node.start_byte
        if one.type == "list" and inside and any(child.type == "||" for child in one.children):
            return True
    return False


def _function(call: ScriptCommand) -> str:
    """The name of the function that it is in; empty if it is in none."""
    inside = (one for one in _around(call.node) if one.type == "function_definition")
    return next((_text(one.child_by_field_name("name")) for one in inside), "")


def _exit_1(script: Script, tree: ScriptTree) -> Iterator[Hit]:
    if script.hooks and not any(map(can_block_at, script.rows)):
        return
    for call in tree.called("exit"):
        said = [one for one in _before(call, tree) if BLOCKED_WORDS.search(one.text)]
        if call.arguments == ("1",) and said:
            yield Hit("W210", call.line, "exit 1 after a message that something is blocked")
        elif call.arguments == ("1",) and (name := _function(call)) and BLOCKING_NAME.match(name):
            yield Hit("W210", call.line, f"exit 1 in the function {name}")


def _reason_on_stdout(_: Script, tree: ScriptTree) -> Iterator[Hit]:
    for call in tree.called("exit"):
        printed = list(_before(call, tree))
        silent = printed and not any(_to_stderr(one) or "{" in one.text for one in printed)
        if call.arguments == ("2",) and silent and "{" not in "".join(one.text for one in printed):
            yield Hit("W212", printed[-1].line, "this is printed to stdout; with exit 2 the reason belongs on stderr")


def _bash_under_sh(script: Script, tree: ScriptTree) -> Iterator[Hit]:
    if script.language is not Language.SH:
        return
    for node in tree.nodes:
        text = _text(node)
        what = _BASH_ONLY.get(node.type, "")
        if node.type == "test_command" and text.startswith("[["):
            what = "[[ ]]"
        elif node.type == "function_definition" and text.startswith("function"):
            what = "function"
        elif node.type == "expansion" and (found := _BASH_EXPANSION.match(text)):
            what = found[0]
        elif node.type == "command" and text.startswith(("source ", "set -o pipefail", "set -euo pipefail")):
            what = text.split("\n", 1)[0][:40]
        if what:
            yield Hit("W213", node.start_point[0] + 1, f"{what} is Bash syntax, but this runs under sh")
            return


_Rule = Callable[[Script, ScriptTree], Iterator[Hit]]
_RULES: Sequence[_Rule] = (
    _needs_jq, _errexit, _reads_nothing, _judges_by_argument, _network, _exit_1, _reason_on_stdout, _bash_under_sh,
)  # fmt: skip
_INLINE_RULES: Sequence[_Rule] = (_network, _exit_1, _reason_on_stdout)
