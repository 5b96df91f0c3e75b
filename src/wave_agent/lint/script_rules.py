"""Rules for scripts in any language: the fields and variables they read and the decisions they print."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.reader import FIELDS, meant
from wave_agent.lint.findings import Hit
from wave_agent.lint.node_rules import node_hits
from wave_agent.lint.python_rules import python_hits
from wave_agent.lint.scripts import Language, Script
from wave_agent.lint.shell_rules import shell_hits

_NOBODY_SETS = (
    r"(CLAUDE_(?:TOOL|FILE|HOOK|BASH|USER|EVENT|PROMPT|COMMAND|MESSAGE|NOTIFICATION|TRANSCRIPT|RESPONSE|OUTPUT|EDITED"
    r"|MODIFIED|CHANGED)\w*)"
)
_VARIABLE = {
    Language.BASH: re.compile(rf"\$\{{?{_NOBODY_SETS}\b"),
    Language.SH: re.compile(rf"\$\{{?{_NOBODY_SETS}\b"),
    Language.PYTHON: re.compile(rf"(?:environ(?:\.get)?|getenv)\s*[\[(]\s*[\"']{_NOBODY_SETS}\b"),
    Language.NODE: re.compile(rf"process\.env(?:\.|\[\s*[\"']){_NOBODY_SETS}\b"),
}
_OLD_FIELDS = re.compile(r"""(?:\.|get\(\s*["']|\[\s*["'])(tool_output|tool_result)\b""")
_DECISION = re.compile(r"""(?<![A-Za-z])decision\\?["']?\s*[:=]\s*\\?["'](\w+)\\?["']""")
_KEYS = (
    re.compile(r"""["']?\b(\w+)\\?["']?\s*:\s*\\?["'](?:block|deny|ask|allow|approve)\\?["']"""),
    re.compile(r"""["'](\w+)\\?["']\s*:\s*\{"""),
)
"""Keys in front of a decision, and of an object."""
_BY_LANGUAGE: Mapping[Language, Callable[[Script], Iterator[Hit]]] = {
    Language.BASH: shell_hits,
    Language.SH: shell_hits,
    Language.PYTHON: python_hits,
    Language.NODE: node_hits,
}


def script_hits(script: Script, known_variables: Sequence[str] = ()) -> Iterator[Hit]:
    """All findings. `known_variables` are those defined in settings."""
    yield from _BY_LANGUAGE[script.language](script)
    yield from variable_hits(script, known_variables)
    yield from _old_fields(script)
    yield from _decision_words(script)
    yield from _misspelt_keys(script)
    yield from _stops_for_ever(script)


def inline_hits(script: Script, known_variables: Sequence[str] = ()) -> Iterator[Hit]:
    """Findings in a hook's command line."""
    yield from shell_hits(script, inline=True)
    yield from variable_hits(script, known_variables)


def variable_hits(script: Script, known: Sequence[str]) -> Iterator[Hit]:
    reported: set[str] = set()
    for number, line in enumerate(script.lines, 1):
        for found in _VARIABLE[script.language].finditer(line):
            name = found[1]
            own = re.search(rf"(?:^|[\s;]){name}=", script.code)
            if name not in reported and name not in known and not own:
                reported.add(name)
                yield Hit("W207", number, f"{name} is never set: it is always empty")


def _old_fields(script: Script) -> Iterator[Hit]:
    """Skipped if the script reads transcripts, where these names mean something else."""
    after_tools = [row for row in script.rows if any(field.name == "tool_response" for field in row.stdin)]
    if not after_tools or "tool_response" in script.code or "transcript" in script.code:
        return
    for number, line in enumerate(script.lines, 1):
        found = _OLD_FIELDS.search(line)
        if found:
            yield Hit("W211", number, f"{found[1]} is not the field agents use for a tool's result")
            return


def _decision_words(script: Script) -> Iterator[Hit]:
    """`approve` is the old form of `permissionDecision: allow`, and has no meaning on events without a pending tool."""
    for number, line in enumerate(script.lines, 1):
        for found in _DECISION.finditer(line):
            word = found[1]
            unknown = [row.event for row in script.rows if word not in row.decision_words]
            if word == "approve":
                yield Hit("W202", number, '"approve" is deprecated')
            elif unknown:
                yield Hit("W202", number, f'"{word}" is not a decision for {unknown[0]}')


def _misspelt_keys(script: Script) -> Iterator[Hit]:
    for number, line in enumerate(script.lines, 1):
        for key in dict.fromkeys(found[1] for pattern in _KEYS for found in pattern.finditer(line)):
            if key not in FIELDS and (field := meant(HookEvent.PRE_TOOL_USE, key)) and field.name not in script.code:
                yield Hit("W217", number, f'"{key}" is not a field of the output: did you mean "{field.name}"?')


def _stops_for_ever(script: Script) -> Iterator[Hit]:
    counted = [row for row in script.rows if row.block_counter is not None]
    if counted and script.can_block:
        known = {"stop_hook_active", *(str(row.block_counter) for row in counted)}
        if not any(name in script.code for name in known):
            yield Hit("W209", 1, f"it can block {counted[0].event} but never checks stop_hook_active")
