"""Rules for Python scripts, based on their syntax tree."""

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from wave_agent.lint.findings import Hit
from wave_agent.lint.scripts import Script, can_block_at, delays_a_tool
from wave_agent.lint.shell_rules import BLOCKED_WORDS, BLOCKING_NAME

_EXITS = ("exit", "sys.exit", "os._exit", "SystemExit", "quit")
_LOADS = ("json.load", "json.loads")
_NETWORK = ("requests.", "httpx.", "urllib.request.urlopen", "urlopen", "aiohttp.", "http.client.")
_EVERYTHING = ("", "Exception", "BaseException")
_RUNS_PYTHON = re.compile(r"\bpython[\d.]*\b")
_ISOLATES = re.compile(r"\bpython[\d.]*[ \t]+-\w*[IP]")


def python_hits(script: Script) -> Iterator[Hit]:
    try:
        tree = ast.parse(script.text)
    except (SyntaxError, ValueError, RecursionError):
        return  # another Python version may parse it; checkers.py asks the one that runs it
    yield from _unguarded_load(script, tree)
    yield from _reads_nothing(script, tree)
    yield from _swallows(script, tree)
    yield from _network(script, tree)
    yield from _exits(script, tree)
    yield from _not_isolated(script, tree)


def _not_isolated(script: Script, tree: ast.Module) -> Iterator[Hit]:
    """Skipped if the script imports anything outside the standard library: it may be a module next to the script."""
    if not script.can_block or script.runs_elsewhere or not _imported(tree) <= sys.stdlib_module_names:
        return
    starts = [hook.command for hook in script.hooks if _RUNS_PYTHON.search(hook.command)]
    if not all(map(_ISOLATES.search, starts or [script.text.split("\n", 1)[0]])):
        yield Hit("W215", 1, "modules in the script's directory take precedence over the standard library")


def _imported(tree: ast.Module) -> set[str]:
    """The top-level names of the modules it imports."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [f"{'.' * node.level}{node.module}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def target_problem(text: bytes, function: str) -> str:
    """Why this function in a file with this text cannot be called; empty if no problem is found."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        return f"it is not valid Python{f', line {line}' if line else ''}: {getattr(error, 'msg', error)}"
    name = function.partition(".")[0]
    bound = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imported = [
        alias for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names
    ]
    bound |= {(alias.asname or alias.name).partition(".")[0] for alias in imported}
    return "" if name in bound or "*" in bound else f"it has no function {name}"


def _dotted(node: ast.expr) -> str:
    """The dotted name of an expression such as `sys.stdin.read`; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _unguarded_load(script: Script, tree: ast.Module) -> Iterator[Hit]:
    """Not in a `try`, either here or around every call of the enclosing function."""
    if not script.guards:
        return
    tried = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for one in node.body
        for inner in ast.walk(one)
    }
    tried_names = {_dotted(call.func) for call in _calls(tree) if id(call) in tried}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for call in _calls(tree):
        reads = _dotted(call.func) in _LOADS and call.args and "stdin" in ast.unparse(call.args[0])
        if not reads or id(call) in tried:
            continue
        inside = {one.name for one in functions if any(inner is call for inner in ast.walk(one))}
        if not inside & tried_names:
            yield Hit("W203", call.lineno, f"{ast.unparse(call)} is not in a try: invalid JSON lets the call through")


def _reads_nothing(script: Script, tree: ast.Module) -> Iterator[Hit]:
    imported = {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    imported |= {
        (node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }  # a module of the project may read it
    knows = imported <= sys.stdlib_module_names
    reads = any(word in script.code for word in ("stdin", "input(", "open(0", "fileinput", "sys.argv"))
    looked_at = any(word in script.code for word in ("tool_input", "file_path", "tool_name", "prompt"))
    if script.guards and knows and looked_at and not reads:
        yield Hit("W205", 1, "event fields are used, but stdin is never read")


def _swallows(script: Script, tree: ast.Module) -> Iterator[Hit]:
    """A catch-all handler that ends in success, around the code that decides."""
    if not script.guards:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try):
            continue
        for handler in node.handlers:
            everything = _dotted(handler.type) in _EVERYTHING[1:] if handler.type else True
            if everything and _ends_well(handler.body):
                yield Hit("W206", handler.lineno, "every exception is caught here and treated as success")


def _ends_well(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Pass):
        return len(body) == 1
    if isinstance(last, ast.Return):  # the status returned by a main function
        return isinstance(last.value, ast.Constant) and last.value.value == 0 and last.value.value is not False
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    call = last.value
    return _dotted(call.func) in _EXITS and _status(call) == 0


def _status(call: ast.Call) -> object:
    """The status of an exit call; None if it is not a literal."""
    if not call.args:
        return 0
    return call.args[0].value if isinstance(call.args[0], ast.Constant) else None


def _network(script: Script, tree: ast.Module) -> Iterator[Hit]:
    waited_for = any(
        delays_a_tool(row) and not hook.is_async for row, hook in zip(script.rows, script.hooks, strict=True)
    )
    for call in _calls(tree) if waited_for else ():
        name = _dotted(call.func)
        limited = any(keyword.arg == "timeout" for keyword in call.keywords)
        local = any(host in ast.unparse(call) for host in ("localhost", "127.0.0.1"))
        if name.startswith(_NETWORK) and name.rsplit(".", 1)[-1][:1].islower() and not limited and not local:
            yield Hit("W208", call.lineno, f"{name} runs before each matching call, without a timeout")


def _exits(script: Script, tree: ast.Module) -> Iterator[Hit]:
    """The print calls just before an exit, in the same block."""
    can_block = not script.hooks or any(map(can_block_at, script.rows))
    for node in ast.walk(tree):
        for field in ("body", "orelse", "handlers", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and can_block:
                named = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ""
                yield from _in_block([one for one in statements if isinstance(one, ast.stmt)], named)  # pyright: ignore[reportUnknownVariableType]


def _in_block(statements: Sequence[ast.stmt], function: str) -> Iterator[Hit]:
    """`function`: they are its body."""
    for number, statement in enumerate(statements):
        call = (
            statement.value
            if isinstance(statement, ast.Expr)
            else statement.exc
            if isinstance(statement, ast.Raise)
            else None
        )
        if not isinstance(call, ast.Call) or _dotted(call.func) not in _EXITS:
            continue
        printed = [one.value for one in statements[max(0, number - 3) : number] if isinstance(one, ast.Expr)]
        calls = [one for one in printed if isinstance(one, ast.Call) and _dotted(one.func) == "print"]
        if _status(call) == 1 and any(BLOCKED_WORDS.search(ast.unparse(one)) for one in calls):
            yield Hit("W210", call.lineno, "exit 1 after a message that something is blocked")
        elif _status(call) == 1 and BLOCKING_NAME.match(function):
            yield Hit("W210", call.lineno, f"exit 1 in the function {function}")
        if _status(call) == 2 and calls and not any(_is_json_or_stderr(one) for one in calls):
            yield Hit("W212", calls[-1].lineno, "this is printed to stdout; with exit 2 the reason belongs on stderr")


def _is_json_or_stderr(call: ast.Call) -> bool:
    return (
        any(keyword.arg == "file" for keyword in call.keywords)
        or "dumps" in ast.unparse(call)
        or "{" in ast.unparse(call)
    )
