"""A hook's `if` that is about effects: whether it applies to what a call does, or may do."""

from collections.abc import Collection, Mapping

from wave_agent.effects.calls import TOOLS
from wave_agent.effects.overlap import may_meet
from wave_agent.effects.values import ANY_HOST, Effects
from wave_agent.rules.rule import NET, Places, Rule, anchored
from wave_agent.rules.touched import PATHS, literal
from wave_agent.shell.values import escape

_MOST_PATTERNS = 50
"""Entries with wildcards that are compared; with more, the condition applies."""

_CHANGES = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"})
_CAN: Mapping[str, tuple[str, frozenset[str]]] = {
    "read": ("reads files", frozenset({"Read", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Bash"})),
    **dict.fromkeys(("edit", "write", "multiedit", "notebookedit"), ("changes files", _CHANGES)),
    NET: ("reaches a host", frozenset({"WebFetch", "WebSearch", "Bash"})),
}
"""By the tool of a rule: the effect it is about, and the tools whose effects are known that can have it."""


def may_apply(rule: Rule, effects: Effects, places: Places) -> bool:
    """Whether a call with these effects does, or may do, what a rule about effects is about.

    Unlike a deny rule, this errs on the side of yes: running a hook needlessly is the safe choice. So a condition
    applies to any call whose effects are not all known, and to wildcards that can name a path of the rule.
    """
    if not effects.complete or rule.touched(effects, places) is not None:
        return True
    if rule.tool == NET:
        return ANY_HOST in effects.hosts
    entries = [entry for _, entry in PATHS[rule.tool](effects) if literal(entry) is None]
    if len(entries) > _MOST_PATTERNS:
        return True
    patterns = _patterns(rule, places)
    return any(may_meet(entry, pattern) for entry in entries for pattern in patterns)


def _patterns(rule: Rule, places: Places) -> list[str]:
    """The rule's paths as absolute patterns: what it names, and everything below that."""
    found: list[str] = []
    for one in (rule.pattern, rule.also):
        if one is not None:
            base, pattern = anchored(one, places)
            whole = f"{escape(base.rstrip('/'))}/{pattern.strip('/')}"
            found += [whole, f"{whole}/**"]
    return found


def effect_missed_by(rule: Rule, tools: Collection[str]) -> str:
    """What a rule about effects is about, such as `reads files`, if none of these tools ever does it; else empty.

    A tool whose effects are not known may do anything.
    """
    effect, able = _CAN[rule.tool]
    return effect if tools and all(tool in TOOLS and tool not in able for tool in tools) else ""
