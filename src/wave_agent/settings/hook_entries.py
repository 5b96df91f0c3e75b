"""One source of settings, and its hook entries as hook definitions, with everything that is wrong with them.

An invalid entry disables only itself, and is reported. If that would lose a guard that must not be lost, the issue is
fatal.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from wave_agent.errors import SettingsError
from wave_agent.formats.strict_json import Document, Path, StrictJSONError, parse_document, show_path, type_name
from wave_agent.hooks.definitions import LAYERS, HookDefinition, Layer, Mode, Phase
from wave_agent.hooks.dialects import DIALECTS, Dialect
from wave_agent.hooks.events import EVENTS, NEVER_HERE, EventRow, FailureBlock, HookEvent, HookEventName, OnFailure
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.kinds import (
    MAIN_KEYS,
    RUN_KEYS,
    THINKING,
    BrokenError,
    RunFields,
    absent_type,
    choice,
    read_run,
    usual_timeout,
    why_absent,
)
from wave_agent.hooks.matcher import (
    EVERYTHING,
    KNOWN_TOOLS,
    Matcher,
    MatcherError,
    MatcherForm,
    parse_file_matcher,
    parse_matcher,
)
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.rule import NET, Rule, RuleError, below, parse_rule
from wave_agent.text import did_you_mean, nearest, strip_controls

MAX_HOOKS = 2000
"""The limit for all settings together. Every call checks each hook, so more would be slow."""
MAX_TIMEOUT = 600.0
MILLISECONDS_FROM = 1000


class Issue(Struct, frozen=True, kw_only=True):
    """One problem in the settings."""

    source: str
    path: Path
    message: str
    line: int | None = None
    broken: bool = True
    """False for a warning: the entry still works."""
    fatal: bool = False
    """Starting would lose a guard that must not be lost."""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return strip_controls(f"{place}: {show_path(self.path)}: {self.message}")


class SettingsSource(Struct, frozen=True, dict=True):  # `dict`: for the cached property
    """The parsed settings of one layer, and what to call them in messages."""

    layer: Layer
    name: str
    document: Document
    dialect: Dialect = Dialect.WAVE
    """The agent these settings were written for."""
    plugin_root: str = ""
    """The directory of the plugin they belong to."""
    plugin_data: str = ""
    """The directory where that plugin can store its data."""
    inner: str = ""
    """The subdirectory of the project they belong to, relative to the project; empty for the project itself."""
    agent: str = ""
    """The type of subagent that they belong to, if they are the hooks of a definition."""

    @cached_property
    def hooks(self) -> "SourceHooks":
        """Its hook entries. Loaded once, however many are interested: trust, the user's guards, the merged settings."""
        entries = self.document.value.get("hooks")
        return SourceHooks() if entries is None else _EntryLoader(self).load(entries)

    def with_settings(self, settings: Mapping[str, Any]) -> "SettingsSource":
        """The same source with some of its settings. Hooks that stay the same are not loaded again."""
        changed = replace(self, document=Document(settings, self.document.lines))
        if "hooks" in vars(self) and settings.get("hooks") is self.document.value.get("hooks"):
            vars(changed)["hooks"] = self.hooks
        return changed


class SourceHooks(Struct, frozen=True):
    """The hook entries of one source by itself: `load_hooks` gives them their place among those of other sources."""

    found: tuple[HookDefinition | Issue, ...] = ()
    """As written, so that issues can be reported in this order. The groups of its hooks are numbered from 1."""
    groups: int = 0
    entries: int = 0
    """Including invalid ones."""


def in_configuration_order(sources: Iterable[SettingsSource]) -> list[SettingsSource]:
    """Sort by layer; within a project, by directory, outermost first."""
    return sorted(sources, key=lambda one: (_RANKS[one.layer], len(one.inner), LAYERS.index(one.layer)))


_RANKS = {layer: LAYERS.index(Layer.PROJECT if layer is Layer.LOCAL else layer) for layer in LAYERS}


class HookConfig(Struct, frozen=True):
    """All hooks in configuration order, and all issues."""

    hooks: tuple[HookDefinition, ...] = ()
    issues: tuple[Issue, ...] = ()

    def require_usable(self) -> None:
        """Raises `SettingsError` if starting would lose a guard that must not be lost."""
        fatal = [str(issue) for issue in self.issues if issue.fatal]
        if fatal:
            raise SettingsError("These hooks are invalid and must not be skipped; fix them first:", fatal)


def parse_settings(text: str, layer: Layer, name: str) -> SettingsSource:
    """Parse a settings file. Raises `SettingsError` with file, line and column: a stray comma must not drop a guard."""
    try:
        document = parse_document(text)
    except StrictJSONError as error:
        raise SettingsError(f"{name}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None
    if not isinstance(document.value, dict):
        raise SettingsError(f"{name}: settings must be an object, not {type_name(document.value)}")
    return SettingsSource(layer, name, document)


def hooks_in_code(hooks: Mapping[str, Any] | Mapping[HookEventName, Any], name: str = "hooks") -> SettingsSource:
    """The `hooks` argument of the SDK: the same shape as in settings, with Python functions allowed as hooks."""
    return SettingsSource(Layer.CODE, name, Document({"hooks": hooks}, {}))


def load_hooks(sources: Iterable[SettingsSource], *, strict: bool = False) -> HookConfig:
    """Every hook of every layer. `strict`: no hook may fail open, and no invalid entry may be skipped."""
    hooks: list[HookDefinition] = []
    issues: list[Issue] = []
    groups, room = 0, MAX_HOOKS
    for source in in_configuration_order(sources):
        loaded = source.hooks
        placed = list(_placed(loaded.found, groups, strict=strict))
        issues += (one for one in placed if isinstance(one, Issue))
        if loaded.entries <= room:
            hooks += (one for one in placed if isinstance(one, HookDefinition))
        else:
            issues.append(_too_many(source))
        groups, room = groups + loaded.groups, max(0, room - loaded.entries)
    return HookConfig(tuple(replace(hook, position=index) for index, hook in enumerate(hooks)), tuple(issues))


def _placed(
    found: Iterable[HookDefinition | Issue], groups_before: int, *, strict: bool
) -> Iterator[HookDefinition | Issue]:
    """The entries of one source after those of others, without the entries that equal an earlier one."""
    seen: set[tuple[Any, ...]] = set()
    for one in found:
        if isinstance(one, Issue):
            yield replace(one, fatal=True) if strict and one.broken else one
            continue
        hook = replace(one, on_failure=OnFailure.BLOCK) if strict and _can_block(one) else one
        plain = replace(hook, group=0, path=(), line=None, matcher=EVERYTHING, function=None)
        key = (*asdict(plain).values(), hook.matcher.text, id(hook.function))
        if key in seen:
            message = f"the same as an earlier entry ({hook.name}); it runs once"
            yield Issue(source=hook.source, path=hook.path, line=hook.line, message=message, broken=False)
        else:
            seen.add(key)
            yield replace(hook, group=hook.group + groups_before)


def _can_block(hook: HookDefinition) -> bool:
    """Whether its failure can block anything."""
    return not hook.is_async and EVENTS[hook.event].failure_block is not FailureBlock.NEVER


def _too_many(source: SettingsSource) -> Issue:
    message = f"there are more than {MAX_HOOKS:,} hooks in all settings together; remove some"
    path: Path = ("hooks",)
    return Issue(source=source.name, path=path, line=source.document.line(path), message=message, fatal=True)


_SHELL = r"(?:\S*/)?(?:bash|sh|zsh|dash)"
_SHELLS = lazy_regex(_SHELL)
_INTERPRETERS = lazy_regex(rf"{_SHELL}|(?:\S*/)?(?:python[\d.]*|node|bun|deno|ruby|perl|uv|uvx|npx|run|env|exec)")
_CODE_OPTION = lazy_regex(r"-[a-z]*[ce]")
"""The next word is code, not a file name."""
_QUOTED_OR_PLAIN = r"""(?:"[^"]*"|'[^']*'|[^\s;&|"'])*"""
_PREPARATION = lazy_regex(
    rf"""\s*(?:
        (?:cd|set|export|source|\.)\s{_QUOTED_OR_PLAIN}(?:\s+{_QUOTED_OR_PLAIN})?\s*(?:;|&&|\n)  # set-up
        | \w+=(?:"?\$\([^()]*\)"?|{_QUOTED_OR_PLAIN})\s*(?:;|&&|\n)    # a variable, such as the input
        | (?:cat|jq(?:\s+(?:-\S+|'[^']*'|"[^"]*"|\.\S*))+)\s*\|\s*(?:xargs(?:\s+-\S+)*\s+)?  # a field of the input
    )""",
    re.VERBOSE,
)
_NAME_LENGTH = 40


def short_name(command: str) -> str:
    """A default name for a hook: the script's file name, or the start of its command."""
    import shlex  # lazy: only for hooks

    rest = command
    while (before := _PREPARATION.match(rest)) and rest[before.end() :].strip():
        rest = rest[before.end() :]
    try:
        words = shlex.split(rest)
    except ValueError:  # a quote that is not closed
        words = rest.split()
    for at, word in enumerate(words):
        if _CODE_OPTION.fullmatch(word) and at and _INTERPRETERS.fullmatch(words[at - 1]):
            inner = words[at + 1] if at + 1 < len(words) else ""
            if _SHELLS.fullmatch(words[at - 1]) and inner.strip():
                return short_name(inner)
            break
        if _INTERPRETERS.fullmatch(word) or word.startswith("-") or re.match(r"\w+=", word):
            continue
        file = word.rstrip("/").rsplit("/", 1)[-1]
        if file != word or re.fullmatch(r"[\w-]+\.\w{1,4}", file):
            return strip_controls(file)[:_NAME_LENGTH] or "hook"
        break
    return _first_words(rest) or "hook"


def _whole_words(text: str) -> str:
    """Drop a partial word at the end, unless that leaves too little."""
    kept = text.rpartition(" ")[0]
    return kept if len(kept) > _NAME_LENGTH // 2 else text


class _TooManyError(Exception):
    """There are more hooks than the limit."""


class _Group(Struct, frozen=True):
    row: EventRow
    path: Path
    number: int
    matcher: Matcher
    sequential: bool
    phase: Phase | None


GROUP_KEYS = ("matcher", "sequential", "phase", "hooks")
HOOK_KEYS = (
    *RUN_KEYS,
    "timeout",
    "async",
    "asyncRewake",
    "onFailure",
    "mode",
    "enabled",
    "name",
    "statusMessage",
    "if",
    "once",
    "rollout",
    "dialect",
)
_OF_A_PLUGIN = lazy_regex(r"\$\{CLAUDE_PLUGIN_(ROOT|DATA)\}")


class _EntryLoader:
    """Reads the entries of one source."""

    def __init__(self, source: SettingsSource) -> None:
        self.source = source
        self.groups = 0
        self.entries = 0
        self.found: list[HookDefinition | Issue] = []

    def load(self, by_event: Any) -> SourceHooks:
        if isinstance(by_event, Mapping):
            with suppress(_TooManyError):  # `load_hooks` reports it
                for key, groups in cast(Mapping[str, Any], by_event).items():
                    self.event(str(key), groups)
        else:
            self.report(("hooks",), f"must be an object of events, not {type_name(by_event)}", by_event, fatal=True)
        return SourceHooks(tuple(self.found), self.groups, self.entries)

    # ------------------------------------------------------------------------------------------------------- findings

    def report(self, path: Path, message: str, entry: object, *, fatal: bool = False) -> None:
        """Report an invalid entry. It is fatal if the entry was meant to block on failure or was written in code."""
        unforgiving = self.source.layer in (Layer.MANAGED, Layer.CODE)
        fatal = fatal or unforgiving or _must_not_be_lost(entry)
        line = self.source.document.line(path)
        self.found.append(Issue(source=self.source.name, path=path, line=line, message=message, fatal=fatal))

    def warn(self, path: Path, message: str) -> None:
        line = self.source.document.line(path)
        self.found.append(Issue(source=self.source.name, path=path, line=line, message=message, broken=False))

    def warn_misspelt(self, entry: Mapping[str, Any], path: Path, known: tuple[str, ...]) -> None:
        """Unknown keys are tolerated, but one that looks like a known key is probably a typo."""
        for key in map(str, entry):
            if key not in known and (hint := did_you_mean(key, known)):
                self.warn((*path, key), f'unknown key "{key}"{hint}')

    # ----------------------------------------------------------------------------------------------- events and groups

    def event(self, key: str, groups: Any) -> None:
        path: Path = ("hooks", key)
        if key.startswith("//"):
            return
        if key in NEVER_HERE:
            self.warn(path, f"never happens here, so its hooks do not run: {NEVER_HERE[key]}")
        elif key not in EVENTS:
            known = [event.value for event in EVENTS]
            self.report(
                path, f'unknown event "{key}"{did_you_mean(key, known)}; expected one of {", ".join(known)}', groups
            )
        elif not isinstance(groups, list):
            self.report(path, f"must be a list of matcher groups, not {type_name(groups)}", groups)
        else:
            for index, group in enumerate(cast(list[Any], groups)):
                self.group(EVENTS[HookEvent(key)], group, (*path, index))

    def group(self, row: EventRow, raw: Any, path: Path) -> None:
        try:
            group, entries = self.read_group(row, raw, path)
        except BrokenError as broken:
            self.count(1)
            self.report(broken.path, broken.message, raw)
            return
        self.count(len(entries) or 1)
        for entry, place in entries:
            try:
                self.found.append(self.hook(group, entry, place))
            except BrokenError as broken:
                self.report(broken.path, broken.message, entry)

    def count(self, entries: int) -> None:
        self.entries += entries
        if self.entries > MAX_HOOKS:
            raise _TooManyError

    def read_group(self, row: EventRow, raw: Any, path: Path) -> tuple[_Group, list[tuple[Any, Path]]]:
        """A group and its entries. `{matcher, command, …}`, a string or a function is a group with one hook."""
        self.groups += 1
        if isinstance(raw, str) or callable(raw):
            return _Group(row, path, self.groups, EVERYTHING, sequential=False, phase=None), [(raw, path)]
        if not isinstance(raw, Mapping):
            raise BrokenError(path, f"must be an object with matcher and hooks, not {type_name(raw)}")
        entry = cast(Mapping[str, Any], raw)
        inner = entry.get("hooks")
        main = (*MAIN_KEYS, "type") if DIALECTS[self.dialect(entry, path)].takes_other_types else MAIN_KEYS
        alone = inner is None and any(key in entry for key in main)
        if not alone and not isinstance(inner, list):
            raise BrokenError(path, 'needs a list "hooks" of the hooks to run')
        if not alone:
            self.refuse_strays(entry, path)
        self.warn_misspelt(entry, path, GROUP_KEYS + (HOOK_KEYS if alone else ()))
        group = _Group(
            row,
            path,
            self.groups,
            self.matcher(row, entry.get("matcher"), (*path, "matcher")),
            sequential=_flag(entry, "sequential", path, default=False),
            phase=choice(entry, "phase", path, Phase),
        )
        if group.phase is Phase.REWRITE and not row.has_rewrites:
            raise BrokenError((*path, "phase"), f'"rewrite" is for {_events_with(lambda row: row.has_rewrites)} only')
        entries = [entry] if alone else cast(list[Any], inner)
        return group, [(item, path if alone else (*path, "hooks", index)) for index, item in enumerate(entries)]

    def refuse_strays(self, entry: Mapping[str, Any], path: Path) -> None:
        """Reject hook fields on a group: they would have no effect there, so a guard would not do what it seems to."""
        for key in (*MAIN_KEYS, "onFailure"):
            if key in entry:
                raise BrokenError((*path, key), f'"{key}" belongs on each hook, not on the group')
        for key in entry.keys() & set(HOOK_KEYS):
            self.warn((*path, key), f'"{key}" has no effect on a group; put it on each hook')

    def matcher(self, row: EventRow, raw: Any, path: Path) -> Matcher:
        if raw is None:
            return EVERYTHING
        if not isinstance(raw, str):
            raise BrokenError(path, f"must be a string, not {type_name(raw)}")
        if row.target is None:
            if raw not in ("", "*"):
                self.warn(path, f"{row.event} has nothing to compare a matcher with; the hooks run every time")
            return EVERYTHING
        try:
            matcher = (parse_file_matcher if row.target_is_file else parse_matcher)(raw)
        except MatcherError as error:
            raise BrokenError(path, str(error)) from None
        for one in matcher.alternatives if row.has_tool else ():
            known = one.text.casefold() in (tool.casefold() for tool in KNOWN_TOOLS)
            if one.form is MatcherForm.NAME and not known and (hint := did_you_mean(one.text, KNOWN_TOOLS)):
                self.warn(path, f'no built-in tool is called "{one.text}"{hint}')
            if one.form is MatcherForm.NAME and one.text.startswith("mcp__") and one.text.count("__") == 1:
                self.warn(path, f'matches no tool; write "{one.text}__.*" for all tools of this MCP server')
        return matcher

    # ---------------------------------------------------------------------------------------------------------- hooks

    def hook(self, group: _Group, raw: Any, path: Path) -> HookDefinition:
        entry = _as_entry(raw, path)
        if path != group.path:  # a group with one hook has been checked as a whole
            self.warn_misspelt(entry, path, HOOK_KEYS)
        dialect = self.dialect(entry, path)
        columns = DIALECTS[dialect]
        run = self.rooted(read_run(entry, path, any_type=columns.takes_other_types))
        if run.kind in THINKING and not group.row.asks_models:
            able = _events_with(lambda row: row.asks_models)
            raise BrokenError((*path, "type"), f"{run.kind} hooks cannot run on {group.row.event}, only on {able}")
        if run.model in columns.model_words:
            self.warn((*path, "model"), f'"{run.model}" is a name of another agent; the usual model is asked')
            run = replace(run, model="")
        if run.kind is HookKind.ABSENT:
            self.warn((*path, "type"), f"{why_absent(run.command)}, so every run of this hook fails")
        if run.header_env and not columns.names_its_services:
            self.warn((*path, "allowedEnvVars"), "has no effect here: list the variables in httpHooks.env")
        rewakes = _flag(entry, "asyncRewake", path, default=False)
        is_async = _flag(entry, "async", path, default=False) or rewakes
        stated = choice(entry, "onFailure", path, OnFailure)
        self.refuse_impossible(group, path, is_async=is_async, stated=stated)
        return HookDefinition(
            event=group.row.event,
            layer=self.source.layer,
            source=self.source.name,
            path=path,
            line=self.source.document.line(path),
            group=group.number,
            matcher=group.matcher,
            sequential=group.sequential,
            phase=group.phase,
            name=_text(entry, "name", path) or _default_name(run),
            **asdict(run),
            condition=self.condition(group, entry, path),
            continue_on_block=_flag(
                entry, "continueOnBlock", path, default=columns.continues_on_block or run.kind is not HookKind.PROMPT
            ),
            timeout=self.timeout(group.row, run.kind, entry, path),
            is_async=is_async,
            rewakes=rewakes,
            on_failure=self.on_failure(group.row, stated, is_async=is_async, in_code=run.kind is HookKind.FUNCTION),
            mode=choice(entry, "mode", path, Mode) or Mode.ENFORCE,
            rollout=self.rollout(entry, path, is_async=is_async),
            enabled=_flag(entry, "enabled", path, default=True),
            status_message=_text(entry, "statusMessage", path),
            once=self.once(entry, path, honoured=columns.has_once),
            dialect=dialect,
            plugin_root=self.source.plugin_root,
            plugin_data=self.source.plugin_data,
            inner=self.source.inner,
            agent=self.source.agent,
        )

    def dialect(self, entry: Mapping[str, Any], path: Path) -> Dialect:
        """The dialect of the file. Our own settings can mark a hook as written for another agent, never the reverse."""
        if self.source.dialect is not Dialect.WAVE:
            return self.source.dialect
        return choice(entry, "dialect", path, Dialect) or Dialect.WAVE

    def rollout(self, entry: Mapping[str, Any], path: Path, *, is_async: bool) -> float | None:
        value, path = entry.get("rollout"), (*path, "rollout")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BrokenError(path, f"must be a share of sessions, a number from 0 to 1, not {type_name(value)}")
        if not 0 <= value <= 1:
            raise BrokenError(path, f"must be a share of sessions from 0 to 1, not {value}")
        if is_async:
            raise BrokenError(path, '"async" hooks are never enforced, so "rollout" cannot work; remove one of the two')
        if entry.get("mode") == Mode.SHADOW:
            self.warn(path, '"rollout" has no effect beside "mode": "shadow": the hook is enforced in no session')
        return float(value)

    def once(self, entry: Mapping[str, Any], path: Path, *, honoured: bool) -> bool:
        stated = _flag(entry, "once", path, default=False)
        if stated and not honoured:
            self.warn((*path, "once"), '"once" has no effect on a hook written for another agent: it runs every time')
        return stated and honoured

    def rooted(self, run: RunFields) -> RunFields:
        """What a plugin runs, with its directories filled in. A path with shell characters is left to the shell, which
        has it as a variable."""
        found = {"ROOT": self.source.plugin_root, "DATA": self.source.plugin_data}
        if not found["ROOT"]:
            return run

        def put_in(text: str) -> str:
            return _OF_A_PLUGIN.sub(lambda name: found[name[1]] or name[0], text)

        import shlex  # lazy: only for plugins

        is_line = run.kind is HookKind.COMMAND and run.args is None
        in_shell = is_line and any(shlex.quote(path) != path for path in found.values() if path)
        return replace(
            run,
            command=run.command if in_shell else put_in(run.command),
            args=None if run.args is None else tuple(map(put_in, run.args)),
        )

    def refuse_impossible(self, group: _Group, path: Path, *, is_async: bool, stated: OnFailure | None) -> None:
        if is_async and stated is OnFailure.BLOCK:
            raise BrokenError(
                path, '"async" hooks are not awaited, so "onFailure": "block" cannot work; remove one of the two'
            )
        if is_async and (group.sequential or group.phase is Phase.REWRITE):
            kind = "sequential" if group.sequential else "rewrite"
            raise BrokenError(path, f'"async" hooks are not awaited, so they cannot be part of a {kind} group')
        if stated is OnFailure.BLOCK and group.row.failure_block is FailureBlock.NEVER:
            self.warn((*path, "onFailure"), f"nothing can be blocked on {group.row.event}; a failure is only reported")

    def on_failure(self, row: EventRow, stated: OnFailure | None, *, is_async: bool, in_code: bool) -> OnFailure:
        if is_async or row.failure_block is FailureBlock.NEVER:
            return OnFailure.CONTINUE
        managed = OnFailure.BLOCK if self.source.layer is Layer.MANAGED else OnFailure.CONTINUE
        return stated or (row.function_on_failure if in_code else managed)

    def timeout(self, row: EventRow, kind: HookKind, entry: Mapping[str, Any], path: Path) -> float:
        value, path = entry.get("timeout"), (*path, "timeout")
        if value is None:
            return usual_timeout(kind, row.timeout)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BrokenError(path, f"must be a number of seconds, not {type_name(value)}")
        if not 0 < value < float("inf"):
            raise BrokenError(path, f"must be more than 0 seconds, not {value}")
        seconds = float(min(value, 10**9))
        if value >= MILLISECONDS_FROM and not _is_whole_minutes(value):
            seconds = seconds / 1000
            self.warn(path, f"{value} is read as milliseconds: {seconds:g} s; write seconds")
        if seconds > MAX_TIMEOUT:
            self.warn(path, f"{seconds:g} s exceeds the limit; {MAX_TIMEOUT:g} s is used")
        if row.deadline is not None and seconds > row.deadline:
            self.warn(path, f"the hooks of {row.event} have {row.deadline:g} s together; {seconds:g} s exceeds that")
        return min(seconds, MAX_TIMEOUT)

    def condition(self, group: _Group, entry: Mapping[str, Any], path: Path) -> Rule | None:
        text, path = entry.get("if"), (*path, "if")
        if text is None:
            return None
        if not isinstance(text, str):
            raise BrokenError(path, f"must be a string, not {type_name(text)}")
        if not text.strip():
            return None
        if not group.row.has_tool:
            raise BrokenError(path, f"needs a tool, and {group.row.event} has none")
        try:
            rule = below(parse_rule(text), self.source.inner)
        except RuleError as error:
            raise BrokenError(path, str(error)) from None
        named = next((tool for tool in KNOWN_TOOLS if tool.casefold() == rule.tool), None)
        if named is None and rule.tool != NET and (hint := did_you_mean(rule.tool, KNOWN_TOOLS)):
            self.warn(path, f'no built-in tool is called "{rule.tool}"{hint}')
        self.warn_if_useless(rule, named, group.matcher, path)
        return rule

    def warn_if_useless(self, rule: Rule, named: str | None, matcher: Matcher, path: Path) -> None:
        """`named`: the built-in tool that the rule names."""
        if rule.is_about_effects:
            from wave_agent.rules.conditions import effect_missed_by  # lazy: few hooks have such a condition

            names = [one.text if one.form is MatcherForm.NAME else "" for one in matcher.alternatives]
            known = {tool.casefold(): tool for tool in KNOWN_TOOLS}
            if effect := effect_missed_by(rule, [known.get(name.casefold(), "") for name in names]):
                self.warn(path, f'the matcher "{matcher.text}" matches no tool that {effect}, so this hook never runs')
        elif named and not matcher.matches(named):
            self.warn(path, f'the matcher "{matcher.text}" never matches {named}, so this hook never runs')


def _is_whole_minutes(timeout: float) -> bool:
    """3600 means an hour, not 3600 milliseconds. A multiple of 1000 is usually meant as milliseconds."""
    return timeout % 60 == 0 and timeout % 1000 != 0


_LIKE_BLOCK = ("block", "deny", "fail", "closed", "stop", "abort", "error", "true")
"""What people write for `onFailure` when they mean that a failure must block."""


def _must_not_be_lost(entry: object) -> bool:
    """Whether this entry contains an `onFailure` that is, or may have been meant as, `block`."""
    if isinstance(entry, Mapping):
        found = cast(Mapping[str, object], entry)
        stated = str(found.get("onFailure")).lower()
        meant = stated in _LIKE_BLOCK or nearest(stated, OnFailure) == OnFailure.BLOCK
        return meant or any(map(_must_not_be_lost, found.values()))
    return isinstance(entry, list) and any(map(_must_not_be_lost, cast(list[object], entry)))


def _events_with(column: Callable[[EventRow], bool]) -> str:
    return ", ".join(row.event for row in EVENTS.values() if column(row))


def _as_entry(raw: Any, path: Path) -> Mapping[str, Any]:
    if isinstance(raw, str):
        return {"command": raw}
    if callable(raw):
        return {"function": raw}
    if not isinstance(raw, Mapping):
        raise BrokenError(path, f"must be an object with a command, not {type_name(raw)}")
    return cast(Mapping[str, Any], raw)


def _flag(entry: Mapping[str, Any], key: str, path: Path, *, default: bool) -> bool:
    value = entry.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BrokenError((*path, key), f"must be true or false, not {type_name(value)}")
    return value


def _text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BrokenError((*path, key), f"must be a string, not {type_name(value)}")
    return " ".join(strip_controls(value).split())


def _first_words(prompt: str) -> str:
    short = strip_controls(" ".join(prompt.split()))
    return short if len(short) <= _NAME_LENGTH else f"{_whole_words(short[: _NAME_LENGTH - 1])}…"


def _default_name(run: RunFields) -> str:
    if run.kind in THINKING:
        return _first_words(run.command)
    if run.kind is HookKind.ABSENT:
        return f"{absent_type(run.command)} hook"
    if run.kind is HookKind.FUNCTION:
        return str(getattr(run.function, "__name__", type(run.function).__name__))
    import shlex  # lazy: only for hooks

    # With args, the command is one program, spaces included.
    return short_name(run.command if run.args is None else shlex.quote(run.command))
