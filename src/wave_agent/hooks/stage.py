"""What a hook sees of an event: the payload, and how it changes from one hook to the next."""

import json
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from wave_agent.formats.readable import encode_readable, readable, readable_text
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Aside, Dialect, stdin_fields
from wave_agent.hooks.events import EFFECTS, OF_THE_RESULT, EventRow
from wave_agent.hooks.semantics import Check, replaced, rewrite, same_json
from wave_agent.hooks.verdicts import Verdict

if TYPE_CHECKING:
    from wave_agent.effects.values import Effects  # a session whose hooks never see a call does not need it

ToolInput = dict[str, Any]
ARGUMENT_LIMIT = 100 * 1024
"""Maximum bytes of one argument; the system allows 128 KiB."""
EffectsOf = Callable[[Mapping[str, Any]], "Effects"]
"""A tool's input → what a call with it would do."""


def unknown_effects(_: Mapping[str, Any]) -> "Effects":
    """The call may do anything."""
    from wave_agent.effects.values import UNKNOWN_EFFECTS  # lazy: see above

    return UNKNOWN_EFFECTS


class ToolFacts(Struct, frozen=True, kw_only=True):
    """What we need to know about a tool whose input hooks can rewrite."""

    nullable: frozenset[str] = frozenset()
    """Input fields whose schema allows null."""
    normalise: Callable[[ToolInput], ToolInput] = lambda tool_input: tool_input
    """Makes file paths absolute. Applied again after each rewrite."""
    why_invalid: Check = lambda _: ""
    """Returns what is wrong with an input, or an empty string."""
    effects: EffectsOf = unknown_effects
    """Never fails."""


class Occurrence(Struct, frozen=True, kw_only=True):
    """One occurrence of an event: what is the same for all its hooks."""

    row: EventRow
    number: int
    """Links journal entries and deferred context to this occurrence."""
    tool: ToolFacts = ToolFacts()
    aside: Aside = Aside()
    is_waited_for: bool = True
    """False: the hooks run in the background, like async hooks."""
    is_late: bool = False
    """What the event is about is over, whatever its hooks decide."""
    ends: float | None = None
    """The deadline for all hooks together, in `monotonic` time."""
    export_file: Callable[[str], str] = lambda _: ""
    """From a hook's name to a new file to which it can write variables, or an empty string."""

    def waits_for(self, hook: HookDefinition) -> bool:
        return self.is_waited_for and not hook.is_async

    def seconds(self, wanted: float) -> float:
        """The time a hook gets: its own timeout, or less if the event's deadline comes first."""
        return wanted if self.ends is None else max(0.0, min(wanted, self.ends - monotonic()))


class Stage:
    """The payload a hook sees, encoded once for all hooks that see the same one."""

    __slots__ = ("_arguments", "_known", "_stdin", "occurrence", "payload")

    def __init__(
        self,
        occurrence: Occurrence,
        payload: Mapping[str, Any],
        known: "list[tuple[ToolInput, Effects]] | None" = None,
    ) -> None:
        """Alias fields are updated along with the fields they repeat. `known`: effects computed so far, by input."""
        aliases = occurrence.row.aliases
        self.occurrence = occurrence
        self.payload = {**payload, **{alias: payload[field] for alias, field in aliases.items() if field in payload}}
        self._stdin: dict[Dialect, bytes] = {}
        self._arguments: tuple[str, ...] | None = None
        self._known: list[tuple[ToolInput, Effects]] = [] if known is None else known

    def stdin(self, dialect: Dialect) -> bytes:
        """The payload as JSON, in the form this dialect expects."""
        if dialect not in self._stdin:
            here = self.occurrence
            fields = stdin_fields(dialect, here.row, self.payload, here.aside)
            if here.row.shows_effects:
                from wave_agent.effects.shown import to_json  # lazy: see above

                fields[EFFECTS.name] = to_json(self.effects())
            self._stdin[dialect] = encode_readable(fields)
        return self._stdin[dialect]

    def effects(self) -> "Effects":
        """What the call would do with the input that is seen here. Computed on demand, once for each input."""
        seen = self.tool_input
        for tool_input, effects in self._known:
            if same_json(tool_input, seen):
                return effects
        effects = self.occurrence.tool.effects(seen)
        self._known.append((seen, effects))
        return effects

    @property
    def arguments(self) -> tuple[str, ...]:
        """The event's main values as arguments of a command."""
        if self._arguments is None:
            self._arguments = tuple(_argument(self.payload, path) for path in self.occurrence.row.arguments)
        return self._arguments

    @property
    def has_cut_arguments(self) -> bool:
        """Whether an argument is truncated. That may drop a whole character."""
        return any(len(text.encode()) > ARGUMENT_LIMIT - 4 for text in self.arguments)

    @property
    def tool_input(self) -> ToolInput:
        return self.payload.get("tool_input") or {}

    def showing(self, **fields: Any) -> "Stage":
        return Stage(self.occurrence, {**self.payload, **fields}, self._known)

    def rewritten(self, hook: HookDefinition, fields: Mapping[str, Any]) -> tuple[ToolInput, str]:
        """The input as this hook rewrites it, and a problem to report to the user, if any."""
        tool = self.occurrence.tool
        if not hook.columns.whole_input:
            return tool.normalise(rewrite(self.tool_input, fields, tool.nullable)), ""
        found, problem = replaced(self.tool_input, fields, tool.nullable, tool.why_invalid)
        return tool.normalise(found), problem

    def after(self, hook: HookDefinition, verdict: Verdict) -> "Stage":
        """What the next hook of the strand sees."""
        stage = self
        if verdict.rewrite is not None:
            stage = stage.showing(tool_input=self.rewritten(hook, verdict.rewrite)[0])
        if verdict.replacement is not None and "tool_response" not in self.payload:
            stage = stage.showing(error=verdict.replacement)
        elif verdict.replacement is not None:
            # Drop the tool's other fields too: they may contain what the replacement removes.
            response: Mapping[str, Any] = self.payload.get("tool_response") or {}
            success = response.get("success", True)
            stage = stage.showing(tool_response={"success": success, "content": verdict.replacement})
        if verdict.replacement is not None:
            stage = stage.showing(**_without_result(stage.payload))
        return stage


def _without_result(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that repeat the result in another form, without it."""
    return {
        field: {key: value for key, value in cast(Mapping[str, Any], payload[field]).items() if key != repeated}
        for field, repeated in OF_THE_RESULT.items()
        if isinstance(payload.get(field), Mapping)
    }


def _argument(payload: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """One value of the payload as a command-line argument."""
    value: Any = payload
    for step in path:
        value = cast(Mapping[str, Any], value).get(step, "") if isinstance(value, Mapping) else ""
    value = readable_text(value.replace("\0", "")) if isinstance(value, str) else readable(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode()[:ARGUMENT_LIMIT].decode(errors="ignore")
