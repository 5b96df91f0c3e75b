"""Rules for JavaScript scripts. Without a syntax tree, they work on lines and cover less."""

import re
from collections.abc import Iterator, Sequence

from wave_agent.lint.findings import Hit
from wave_agent.lint.scripts import Script, can_block_at, delays_a_tool
from wave_agent.lint.shell_rules import BLOCKED_WORDS, BLOCKING_NAME

_LOADS = re.compile(r"JSON\.parse\(")
_TRY = re.compile(r"\btry\s*\{|\.catch\(")
_SWALLOWS = re.compile(r"catch\s*(?:\(\w*\))?\s*\{\s*(?:process\.exit\(0?\);?\s*)?\}")
_FETCH = re.compile(r"(?<![\w.])fetch\(|\baxios[.(]|\bhttps?\.(?:get|request)\(")
_LIMITED = re.compile(r"AbortSignal\.timeout|AbortController|timeout\s*:|localhost|127\.0\.0\.1")
_PRINTS = re.compile(r"console\.(log|error|warn)\((.*)|process\.std(out|err)\.write\((.*)")
_EXITS = re.compile(r"process\.exit\(\s*([12])\s*\)")
_FUNCTION = re.compile(r"\bfunction\s+(\w+)|\b(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?(?:\(|function|\w+\s*=>)")
_READS = re.compile(r"stdin|readFileSync\(\s*0|/dev/stdin|process\.argv|require\(\s*['\"]\.|from\s+['\"]\.")


def node_hits(script: Script) -> Iterator[Hit]:
    if script.guards:
        yield from _reading(script)
    waited_for = any(
        delays_a_tool(row) and not hook.is_async for row, hook in zip(script.rows, script.hooks, strict=True)
    )
    fetches = script.line_of(_FETCH)
    if waited_for and fetches and not _LIMITED.search(script.code):
        yield Hit("W208", fetches, "a network request runs before each matching call, without a timeout")
    if not script.hooks or any(map(can_block_at, script.rows)):
        yield from _exits(script)


def _reading(script: Script) -> Iterator[Hit]:
    loads = script.line_of(_LOADS)
    if loads and not _TRY.search(script.code):
        yield Hit("W203", loads, "JSON.parse is not in a try: invalid JSON lets the call through")
    if swallowed := _SWALLOWS.search(script.code):
        line = script.code.count("\n", 0, swallowed.start()) + 1
        yield Hit("W206", line, "every exception is caught here and treated as success")
    if "tool_input" in script.code and not _READS.search(script.code):
        yield Hit("W205", 1, "event fields are used, but stdin is never read")


def _exits(script: Script) -> Iterator[Hit]:
    for number, line in enumerate(script.lines):
        ended = _EXITS.search(line)
        if ended is None:
            continue
        printed = [found for one in script.lines[max(0, number - 3) : number + 1] if (found := _PRINTS.search(one))]
        texts = [found[0] for found in printed]
        if ended[1] == "1" and any(map(BLOCKED_WORDS.search, texts)):
            yield Hit("W210", number + 1, "exit 1 after a message that something is blocked")
        elif ended[1] == "1" and BLOCKING_NAME.match(name := _function(script.lines[: number + 1])):
            yield Hit("W210", number + 1, f"exit 1 in the function {name}")
        to_stderr = any(found[1] in ("error", "warn") or found[3] == "err" for found in printed)
        is_json = any("JSON.stringify" in text for text in texts)
        if ended[1] == "2" and printed and not to_stderr and not is_json:
            yield Hit("W212", number + 1, "the reason is printed to stdout; with exit 2 it belongs on stderr")


def _function(lines: Sequence[str]) -> str:
    """The name of the function that the last of these lines is in, if that began a few lines before; else empty."""
    for line in reversed(lines[-5:]):
        if found := _FUNCTION.search(line):
            return found[1] or found[2]
        if line.startswith("}"):
            break
    return ""
