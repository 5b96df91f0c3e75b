"""Guards that see one way to do something where there are others: found by the effects of what they name."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

from wave_agent.effects.calls import effects_of
from wave_agent.effects.shown import summary
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import EVENTS
from wave_agent.lint.findings import Finding, finding
from wave_agent.lint.places import FileOwner, SettingsFile
from wave_agent.lint.scripts import Script
from wave_agent.rules.rule import Rule, RuleError, parse_rule

_BASH = "Bash"
_FILE_FIELDS = re.compile(r"\b(?:file_path|filePath|notebook_path)\b")
_READS_EFFECTS = re.compile(r"\beffects\b")


def narrow_rules(place: SettingsFile, project: str) -> Iterator[Finding]:
    """Deny and ask rules about one command that mean the file or the host it names."""
    if place.source is None:
        return
    document = place.source.document
    for path, text in _restrictions(document.value):
        try:
            broader = _broader(parse_rule(text), project)
        except RuleError:
            continue  # the loader reports it
        if broader:
            yield finding("W118", place.file, document.line(path), f"{text}: {broader}")


def _restrictions(settings: object) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Deny and ask rules with their places; whatever has another shape is the loader's to report."""
    permissions = _entries(settings).get("permissions")
    for kind in ("deny", "ask"):
        rules = _entries(permissions).get(kind)
        for number, rule in enumerate(cast(list[object], rules) if isinstance(rules, list) else ()):
            if isinstance(rule, str):
                yield ("permissions", kind, number), rule


def _entries(value: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], value) if isinstance(value, Mapping) else {}


def narrow_guard(place: SettingsFile, hook: HookDefinition, script: Script | None, project: str) -> Iterator[Finding]:
    """A hook whose condition or matcher covers one way to touch a file. `script` is what it runs, if that was read."""
    if hook.condition is not None and (broader := _broader(hook.condition, project)):
        yield finding("W118", place.file, hook.line, f'"if": "{hook.condition.text}": {broader}')
    ours = place.kind in (FileOwner.WAVE, FileOwner.USER)  # no other agent has effects
    if not ours or script is None or not script.can_block or not EVENTS[hook.event].shows_effects:
        return
    if _FILE_FIELDS.search(script.code) and not _READS_EFFECTS.search(script.code) and not hook.matcher.matches(_BASH):
        reason = f"{hook.name}: its matcher ({hook.matcher.explain()}) omits Bash, which can touch the same files"
        yield finding("W119", place.file, hook.line, reason)


def _broader(rule: Rule, project: str) -> str:
    """The effects of a command that a rule names, and the rules about them; empty if it names no file or host."""
    if rule.tool != _BASH.casefold() or rule.pattern is None:
        return ""
    command = rule.pattern.removesuffix(":*")
    effects = effects_of(_BASH, {"command": command}, Surroundings(directory=project, project=project))
    rules = list(dict.fromkeys(_rules(effects, command, project)))
    if not effects.complete or not rules:
        return ""
    return f"it {summary(effects, project)}, and other commands can too; write {' and '.join(rules)}"


def _rules(effects: Effects, command: str, project: str) -> Iterator[str]:
    """Rules about what the command itself spells out, not about what its program touches on its own."""
    words = {word.strip("'\"").removeprefix("./") for word in command.split()}
    changed = (*effects.writes, *effects.deletes)
    for tool, entries in (("Read", [entry for entry in effects.reads if entry not in changed]), ("Edit", changed)):
        for entry in entries:
            inside = entry.removeprefix(f"{project}/")
            if inside in words:
                yield f"{tool}({inside})" if inside != entry else f"{tool}(/{entry})"
    for host in effects.hosts:
        if any(host in word for word in words):
            yield f"Net({host})"
