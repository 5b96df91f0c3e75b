"""Reads the JSON that a hook prints, field by field.

Each field is checked on its own: an unusable one is dropped and reported, and the rest still apply. Restrictions are
honoured wherever they appear; fields that loosen or change something apply only in the right place.

`FIELDS` is the table of fields. `read_output` returns a `HookOutput`, which `semantics` turns into effects.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from wave_agent.formats.strict_json import Twice, type_name, unsound
from wave_agent.hooks.events import EVENTS, Decision, EventRow, Flow, HookEvent
from wave_agent.text import did_you_mean, nearest

SPECIFIC = "hookSpecificOutput"
INPUT = "updatedInput"
OUTPUT = "updatedToolOutput"
INITIAL = "initialUserMessage"
UNUSABLE = f"its {OUTPUT} cannot be used"


class Home(StrEnum):
    """Where a field belongs."""

    TOP = "top level"
    SPECIFIC = SPECIFIC
    EITHER = "either"
    ANSWER = f"{SPECIFIC}.decision"


_Types = tuple[type, ...]


class Field(Struct, frozen=True, kw_only=True, eq=False):  # compared by identity: `_misplaced` hashes it often
    """One row of the table of output fields."""

    name: str
    type: type
    also: _Types = ()
    """Types that are also accepted and converted."""
    home: Home
    decides: bool = False
    """The field states a decision: if its value cannot be read, the hook still meant to decide."""
    free: bool = False
    """Text that only accompanies a decision, accepted anywhere."""
    carries: bool = False
    """It states no decision itself, but a hook that misspells it loses one, or a change that it meant to make."""
    meaning: str
    types: _Types = ()
    """All types that are accepted."""

    def __post_init__(self) -> None:
        force_setattr(self, "types", (self.type, *self.also))


FIELDS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field(name="continue", type=bool, home=Home.TOP, decides=True,
              meaning="`false` ends the whole turn; it beats every other decision"),
        Field(name="stopReason", type=str, home=Home.TOP, free=True,
              meaning="goes with `continue: false`; for the user, never for the model"),
        Field(name="systemMessage", type=str, home=Home.TOP, meaning="a warning for the user, never for the model"),
        Field(name="suppressOutput", type=bool, home=Home.TOP,
              meaning="hides this hook's stdout from the user"),
        Field(name="decision", type=str, home=Home.TOP, decides=True,
              meaning='`"block"` or `"deny"`; on PreToolUse also `"approve"` (allow) and `"ask"`'),
        Field(name="reason", type=str, home=Home.TOP, free=True,
              meaning="goes with `decision`; a block on Stop should have one"),
        Field(name=SPECIFIC, type=dict, home=Home.TOP, carries=True, meaning="an object with the fields below"),
        Field(name="hookEventName", type=str, home=Home.SPECIFIC, meaning="must equal the event if present"),
        Field(name="permissionDecision", type=str, home=Home.SPECIFIC, decides=True,
              meaning='`"allow"`, `"deny"`, `"ask"` or `"defer"`'),
        Field(name="permissionDecisionReason", type=str, home=Home.SPECIFIC, free=True,
              meaning="for an allow or ask, shown to the user only; for a deny, sent to the model"),
        Field(name=INPUT, type=dict, home=Home.SPECIFIC, carries=True,
              meaning="top-level fields to set in the tool's input, each replaced whole; `null` removes one"),
        Field(name=OUTPUT, type=str, also=(dict, list), home=Home.SPECIFIC, carries=True,
              meaning="replaces the tool's result for the model and in the transcript; an object or a list is "
                      "converted to text, anything else withholds the result"),
        Field(name="additionalContext", type=str, home=Home.EITHER, meaning="added to the model's context"),
        Field(name=INITIAL, type=str, home=Home.SPECIFIC,
              meaning="a prompt to begin a session with that runs unattended, before the user's own, if there is one"),
    )
}  # fmt: skip
ANSWER = Field(
    name="decision", type=dict, home=Home.SPECIFIC, decides=True,
    meaning="the answer to the permission question: an object with the fields below",
)  # fmt: skip
"""The form of `decision` that is an object, on events that accept one."""
ANSWER_FIELDS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field(name="behavior", type=str, home=Home.ANSWER, decides=True, meaning='`"allow"` or `"deny"`'),
        Field(name=INPUT, type=dict, home=Home.ANSWER, decides=True,
              meaning="goes with an allow: fields to set in the input, which is then checked again"),
        Field(name="message", type=str, home=Home.ANSWER, meaning="goes with a deny: the message for the model"),
        Field(name="interrupt", type=bool, home=Home.ANSWER, decides=True,
              meaning="goes with a deny: `true` also ends the whole turn"),
    )
}  # fmt: skip
ACTION = Field(
    name="action", type=str, home=Home.SPECIFIC, decides=True,
    meaning='the answer to an MCP server: `"accept"`, `"decline"` or `"cancel"`',
)  # fmt: skip
CONTENT = Field(
    name="content", type=dict, home=Home.SPECIFIC, decides=True,
    meaning="goes with an accept: the values of the form, which must fit `requested_schema`",
)  # fmt: skip
REPLY_FIELDS: Mapping[str, Field] = {ACTION.name: ACTION, CONTENT.name: CONTENT}
"""Only fields on events where hooks answer an MCP server. Elsewhere the names mean nothing: they are too common."""
RETRY = Field(
    name="retry", type=bool, home=Home.SPECIFIC,
    meaning="`true` tells the model that it may make the denied call again; the call is then judged anew",
)  # fmt: skip
"""Only a field on events that accept it, for the same reason."""
_DECISION = FIELDS[ANSWER.name]
_TOP, _SPECIFIC, _ASK, _NONE = Home.TOP, Home.SPECIFIC, Decision.ASK, Decision.NONE  # looking up a member takes longer
TABLE = (*FIELDS.values(), ANSWER, *ANSWER_FIELDS.values(), *REPLY_FIELDS.values(), RETRY)


class Stated(Struct, frozen=True, gc=False):
    """A decision and its reason."""

    decision: Decision
    reason: str = ""


class HookOutput(Struct, frozen=True, kw_only=True, gc=False):
    """What the JSON of one run says, on one event."""

    stated: tuple[Stated, ...] = ()
    """Every readable decision that is an opinion, in the order found."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with each decision that cannot be read."""
    reason: str = ""
    contexts: tuple[str, ...] = ()
    updated_input: Mapping[str, Any] | None = None
    updated_tool_output: str | None = None
    action: str = ""
    content: Mapping[str, Any] = {}
    withhold: str = ""
    """Why the tool's result must be withheld: its replacement cannot be used."""
    message: str = ""
    """The message for the model if the call is refused."""
    system_message: str = ""
    retry: bool = False
    initial_prompt: str = ""
    problems: tuple[str, ...] = ()
    """What is wrong with single fields, for the user."""
    undecided: str = ""
    """The reason that was given without any decision; a mistake, unless the exit code decides."""

    @property
    def strictest(self) -> Decision:
        return max((stated.decision for stated in self.stated), default=Decision.NONE)


def knows(output: Mapping[str, Any]) -> bool:
    """Whether this object has at least one known key."""
    return not FIELDS.keys().isdisjoint(output)


def unknown_keys(event: HookEvent, output: Mapping[str, Any]) -> str:
    """The warning about an object without any known key."""
    first, *more = [*output][:_MOST_UNKNOWN]
    first = next((key for key in (first, *more) if meant(event, key)), first)
    return f'stdout is a JSON object without a known key: "{first}"{did_you_mean(first, FIELDS)}'


def read_output(row: EventRow, output: Mapping[str, Any]) -> HookOutput:
    """Read one output on one event. Never raises, whatever the object contains."""
    reading = _OutputReading(row, output)
    for place, fields in ((_TOP, output), (_SPECIFIC, reading.specific)):
        uses = _uses(row.event, place, reading.right_event)
        for key, value in fields.items():
            use = uses.get(key)
            if use is None:
                reading.all_known = False
                if type(value) is Twice:
                    reading.twice(key, value, place)
            elif value is not None:
                field, types, take = use
                if not isinstance(value, types):
                    reading.another_type(field, value, place)
                elif take is not None:
                    take(reading, field, value, place)
    if OUTPUT in row.specific:
        reading.redaction(output)
    if row.has_rewrites:
        reading.rewrite(output)
    if not reading.all_known:
        reading.misspelt(output)
    return reading.result(output)


def meant(event: HookEvent, key: str) -> Field | None:
    """The field that decides or changes something on this event and of which this unknown key is a misspelling."""
    return _meant(event, key[:_LONGEST_KEY])


@lru_cache(maxsize=256)  # a hook prints the same keys each time
def _meant(event: HookEvent, key: str) -> Field | None:
    row = EVENTS[event]
    fields = fields_of(row)
    name = nearest(_plain(key), fields, likeness=_MISSPELT)
    field = None if name is None else fields[name]
    if field is None or not (field.decides or (field.carries and (field.home is _TOP or field.name in row.specific))):
        return None
    return field


_MISSPELT = 0.85
"""`precision` is a word of its own, `decison` and `desicion` are none."""
_LONGEST_KEY = 40
_MOST_UNKNOWN = 50
"""Unknown keys of one output that are compared."""


def _row(row: EventRow, key: str, value: Any, place: Home) -> Field | None:
    """The field for this key."""
    field = fields_of(row).get(key)
    return _form_of(row, value, place) if field is _DECISION else field


def fields_of(row: EventRow) -> Mapping[str, Field]:
    """The fields that have a meaning on this event."""
    if row.action_words:
        return {**FIELDS, **REPLY_FIELDS}
    return {**FIELDS, RETRY.name: RETRY} if RETRY.name in row.specific else FIELDS


def _form_of(row: EventRow, value: Any, place: Home) -> Field:
    """The form of `decision`. On events that accept an object, a word in its place is still read as a word."""
    if _DECISION.name not in row.specific:
        return _DECISION
    return ANSWER if isinstance(value, dict) or (place is Home.SPECIFIC and not isinstance(value, str)) else _DECISION


_REASONS: Mapping[str, tuple[str, ...]] = {
    "continue": ("stopReason",),
    "behavior": ("reason", "message"),
    "interrupt": ("stopReason", "reason", "message"),
    "permissionDecision": ("permissionDecisionReason", "reason"),
}
"""The fields that hold a decision's reason, if not the usual ones."""


class _OutputReading:
    """One pass over one output."""

    __slots__ = (
        *(
            "all_known",
            "contexts",
            "decisions",
            "misspells",
            "problems",
            "right_event",
            "row",
            "specific",
            "taken",
            "texts",
        ),
        *("unreadable", "weak", "withhold"),
    )

    def __init__(self, row: EventRow, output: Mapping[str, Any]) -> None:
        self.row = row
        self.all_known = True
        """Every key is a field of this event."""
        self.misspells = False
        self.problems: list[str] = []
        self.unreadable: list[str] = []
        self.weak = ""
        """A hint about a word that is not an opinion here; dropped if the output decides in another way."""
        self.withhold = ""
        self.decisions: list[tuple[str, Decision]] = []
        self.texts: dict[str, str] = {}
        self.contexts: list[str] = []
        self.taken: dict[str, Any] = {}
        inner = output.get(SPECIFIC)
        self.specific: dict[str, Any] = inner if isinstance(inner, dict) else {}
        named = self.specific.get("hookEventName")
        self.right_event = named is None or named == row.event

    def decide(self, field: Field, value: Any, place: Home) -> None:
        """Read one value of a field that states a decision."""
        known = fields_of(self.row)[field.name]
        (self.decision if isinstance(value, known.types) else self.another_type)(known, value, place)

    def text(self, field: Field, value: str, _: Home) -> None:
        if text := value.strip():
            self.texts.setdefault(field.name, text)

    def misplaced(self, field: Field, _: object, place: Home) -> None:
        problem = _misplaced(self.row.event, field, place, self.right_event)
        self.problems.append(f"{_shown(field, place)} was ignored: {problem}")

    def another_type(self, field: Field, value: Any, place: Home) -> None:
        """A duplicate key, the other form of `decision`, or a mistake."""
        if type(value) is Twice:
            self.twice(field.name, value, place)
            return
        form = _form_of(self.row, value, place) if field is _DECISION else field
        if isinstance(value, form.types):
            self.answer(value, place)
        else:
            self.wrong(form, f"{_shown(form, place)} must be {_wanted(form.type)}, not {_show(value)}", place)

    def context(self, _: Field, value: str, __: Home) -> None:
        if text := value.strip():
            self.contexts.append(text)

    def message(self, field: Field, value: str, _: Home) -> None:
        self.taken[field.name] = value.strip()

    def keep(self, field: Field, value: Any, _: Home) -> None:
        self.taken[field.name] = value

    def input(self, field: Field, value: Any, place: Home) -> None:
        if problem := unsound(value):
            self.problems.append(f"{_shown(field, place)} was ignored: it holds {problem}")
        else:
            self.taken[INPUT] = value

    def content(self, field: Field, value: Any, place: Home) -> None:
        """An accept applies only if its content can be used."""
        holds = unsound(value)
        problem = _misplaced(self.row.event, field, place, self.right_event) or (f"it holds {holds}" if holds else "")
        if problem:
            self.unreadable.append(f"{_shown(field, place)} cannot be used: {problem}")
        else:
            self.taken[field.name] = value

    def wrong(self, field: Field, problem: str, place: Home) -> None:
        """An unusable field. If it was meant to replace the result, the result is withheld: it may need redaction."""
        if field.name == OUTPUT and not _misplaced(self.row.event, field, place, self.right_event):
            self.withhold = problem
        (self.unreadable if field.decides else self.problems).append(problem)

    def redaction(self, output: Mapping[str, Any]) -> None:
        """Withholds the result if a replacement was printed but cannot be used: the hook meant to redact something."""
        used = self.taken.get(OUTPUT)
        if self.withhold:
            return
        for shown, value in _spelt_like(_OUTPUT_NAMES, output):
            if value is not None and (used is None or _as_text(value) != used):
                self.withhold = UNUSABLE  # never quotes the value: the model reads this
                if not any(problem.startswith(f"{shown} ") for problem in self.problems):
                    self.problems.append(f"{shown} cannot be used: print {SPECIFIC}.{OUTPUT}, a string")

    def rewrite(self, output: Mapping[str, Any]) -> None:
        """Drops an allow whose `updatedInput` cannot be used: it was meant for that input only."""
        if self.all_known and not (self.problems or self.unreadable or self.row.behavior_words):
            return  # the usual case: every key is known and in its place, so there is nothing to look for
        if Decision.ALLOW not in [decision for _, decision in self.decisions]:
            return
        used = self.taken.get(INPUT)
        for shown, value in _spelt_like(_INPUT_NAMES, output):
            if value is None or value is used:
                continue
            if json.dumps(value, sort_keys=True) != json.dumps(used, sort_keys=True):
                self.decisions = [said for said in self.decisions if said[1] is not Decision.ALLOW]
                self.problems.append(f"the allow was ignored: {shown}, which came with it, cannot be used")
                return

    def misspelt(self, output: Mapping[str, Any]) -> None:
        """Reports unknown keys that are nearly one that decides. A hook that prints that one as well writes for two
        agents."""
        known = fields_of(self.row)
        unknown = [
            (key, place)
            for place, fields in ((_TOP, output), (_SPECIFIC, self.specific))
            for key, value in fields.items()
            if value is not None and key not in known
        ]
        for key, place in unknown[:_MOST_UNKNOWN]:
            field = meant(self.row.event, key)
            shown = key if place is _TOP else f"{SPECIFIC}.{key}"
            if field is None or field.name in output or field.name in self.specific:
                continue
            if not any(shown in problem for problem in self.problems):
                inside = field.home is not _TOP or (place is _SPECIFIC and field.name in self.row.specific)
                right = f"{SPECIFIC}.{field.name}" if inside else field.name
                self.misspells = True
                self.problems.append(f'unknown key "{shown[:60]}" was ignored: did you mean "{right}"?')

    def undecided(self, output: Mapping[str, Any]) -> str:
        """The field with a reason that goes with no decision, although this event has some."""
        given = [name for name in ("reason", "permissionDecisionReason") if name in self.texts]
        if not given or self.misspells or self.row.flow[Decision.BLOCK] is Flow.PROCEED:
            return ""
        known = fields_of(self.row)
        decides = any(key in known and known[key].decides for key in (*output, *self.specific))
        return "" if decides else given[0]

    def output(self, field: Field, value: Any, place: Home) -> None:
        problem = unsound(value) or _two_texts(value)
        if problem:
            self.wrong(field, f"{_shown(field, place)} cannot be used: it holds {problem}", place)
        else:
            self.taken[OUTPUT] = _as_text(value)

    def twice(self, key: str, values: Twice, place: Home) -> None:
        """Of a duplicate key, only the strictest decision is used."""
        shown = key if place is Home.TOP else f"{SPECIFIC}.{key}"
        self.problems.append(f'duplicate key "{shown}": only its strictest value is used')
        if key == SPECIFIC and place is Home.TOP:
            for field, value in self.inside(values):
                if self.strictness(field, value) >= _STRICTNESS.index(Decision.ASK):
                    self.decide(field, value, Home.SPECIFIC)
            return
        found = [(_row(self.row, key, value, place), value) for value in values]
        fields = [(field, value) for field, value in found if field is not None]
        if any(field is CONTENT for field, _ in fields):
            self.unreadable.append(f'duplicate key "{shown}": none of its values can be used')
        elif any(field.decides for field, _ in fields):
            field, value = max(fields, key=lambda one: self.strictness(*one))
            if value is not None:
                self.decide(field, value, place)
        elif key == OUTPUT and fields:
            self.wrong(FIELDS[OUTPUT], f'duplicate key "{shown}": none of its values can be used', place)

    def inside(self, values: Twice) -> Iterator[tuple[Field, Any]]:
        """The decisions inside these objects."""
        for inner in values:
            for key, value in cast("dict[str, Any]", inner if isinstance(inner, dict) else {}).items():
                for one in value if isinstance(value, Twice) else (value,):
                    field = _row(self.row, key, one, Home.SPECIFIC)
                    if field is not None and field.decides and field is not CONTENT:
                        yield field, one

    def strictness(self, field: Field, value: Any) -> int:
        """Rank of a value by how much it restricts. Null is no opinion, which is stricter than an allow."""
        if value is None:
            return _STRICTNESS.index(Decision.NONE)
        if not isinstance(value, field.type):
            return _STRICTNESS.index(None)
        if field is ANSWER:
            answer = cast("dict[str, Any]", value)
            word = answer.get("behavior")
            decision = self.row.behavior_words.get(word) if isinstance(word, str) else None
            return _STRICTNESS.index(Decision.STOP if answer.get("interrupt") is True else decision)
        return _STRICTNESS.index(self.meaning(field, value))

    def decision(self, field: Field, value: Any, place: Home) -> None:
        decision = self.meaning(field, value)
        if decision is None:
            hint = did_you_mean(value, self.words(field))
            self.unreadable.append(f"{_shown(field, place)} {_show(value)} cannot be read on {self.row.event}{hint}")
            return
        misplaced = _misplaced(self.row.event, field, place, self.right_event)
        if field is ACTION and (decision >= _ASK or not misplaced):
            self.taken[field.name] = value
        if decision >= _ASK:
            self.decisions.append((field.name, decision))
            if misplaced:
                self.problems.append(f"{_shown(field, place)} was honoured, but {misplaced}")
        elif misplaced:
            self.problems.append(f"{_shown(field, place)} was ignored: {misplaced}")
        elif decision is not _NONE:
            self.decisions.append((field.name, decision))
        elif field.name == "decision" and (hint := self.row.weak_words.get(value)):
            self.weak = f"{_shown(field, place)} {_show(value)} is no opinion on {self.row.event}: {hint}"
        elif self.row.behavior_words and field.name == ANSWER.name:
            self.problems.append(f"{_shown(field, place)} {_show(value)} was ignored: {_form(self.row)}")

    def answer(self, answer: Mapping[str, Any], place: Home) -> None:
        """Read a decision that is an object. An allow applies only if every part of it can be read."""
        said = self.parts(answer)
        word = said.get("behavior")
        decision = None if word is None else self.row.behavior_words.get(word)
        if decision is None and (word is not None or answer.get("behavior") is None):
            known = self.row.behavior_words
            shown = f"{_show(word)} cannot be read{did_you_mean(word, known)}" if word else "is missing"
            self.unreadable.append(f"{Home.ANSWER}.behavior {shown}; expected one of {', '.join(known)}")
        if said.get("interrupt"):
            self.decisions.append(("interrupt", Decision.STOP))
        misplaced = _misplaced(self.row.event, ANSWER, place, self.right_event)
        restricts = decision is Decision.BLOCK or bool(said.get("interrupt"))
        if misplaced:
            effect = "was honoured, but" if restricts else "was ignored:"
            self.problems.append(f"{_shown(ANSWER, place)} {effect} {misplaced}")
        if decision is not None and (restricts or not misplaced):
            self.decisions.append(("behavior", decision))
        for name, fits in (("message", restricts), (INPUT, not restricts and not misplaced)):
            if name in said and fits:
                self.taken[name] = said[name]
            elif name in said and not misplaced:
                self.problems.append(f"{Home.ANSWER}.{name} was ignored: it does not go with {_show(word)}")
        if message := self.taken.get("message", "").strip():
            self.texts["message"] = message

    def parts(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The readable fields of the object."""
        found: dict[str, Any] = {}
        for name, field in ANSWER_FIELDS.items():
            value = answer.get(name)
            problems = self.unreadable if field.decides else self.problems
            if value is None:
                continue
            if isinstance(value, Twice):
                problems.append(f'duplicate key "{field.home}.{name}"')
                words = self.row.behavior_words
                right = [one for one in value if isinstance(one, field.type)]
                strict = [one for one in right if one is True or words.get(str(one)) is Decision.BLOCK]
                found |= {name: strict[0]} if strict else {}
            elif not isinstance(value, field.type):
                problems.append(f"{field.home}.{name} must be {_wanted(field.type)}, not {_show(value)}")
            elif problem := unsound(value):
                problems.append(f"{field.home}.{name} holds {problem}")
            else:
                found[name] = value
        return found

    def meaning(self, field: Field, value: Any) -> Decision | None:
        """The decision this value states; None if it cannot be read on this event."""
        if field.name == "continue":
            return Decision.NONE if value else Decision.STOP
        return self.words(field).get(value)

    def words(self, field: Field) -> Mapping[str, Decision]:
        if field.name == _DECISION.name:
            return self.row.decision_words
        return self.row.action_words if field.name == ACTION.name else self.row.permission_words

    def reason_for(self, field: str) -> str:
        for key in _REASONS.get(field, ("reason", "permissionDecisionReason")):
            if key in self.texts:
                return self.texts[key]
        return ""

    def result(self, output: Mapping[str, Any]) -> HookOutput:
        taken, texts = self.taken, self.texts
        return HookOutput(
            stated=tuple([Stated(decision, self.reason_for(field)) for field, decision in self.decisions]),
            unreadable=tuple(self.unreadable),
            reason=texts.get("reason", ""),
            contexts=tuple(dict.fromkeys(self.contexts) if len(self.contexts) > 1 else self.contexts),
            updated_input=taken.get(INPUT),
            updated_tool_output=taken.get(OUTPUT),
            action=taken.get("action", ""),
            content=taken.get("content", _NO_CONTENT),
            withhold=self.withhold,
            message=texts.get("message", ""),
            system_message=taken.get("systemMessage", ""),
            retry=taken.get("retry", False),
            initial_prompt=taken.get(INITIAL, ""),
            problems=(*self.problems, self.weak) if self.weak and not self.decisions else tuple(self.problems),
            undecided=self.undecided(output) if texts and not self.decisions else "",
        )


_NO_CONTENT: Mapping[str, Any] = {}
_Take = Callable[[_OutputReading, Field, Any, Home], None]
_TAKEN_BY: Mapping[str, _Take] = {
    "additionalContext": _OutputReading.context,
    "systemMessage": _OutputReading.message,
    INPUT: _OutputReading.input,
    OUTPUT: _OutputReading.output,
    INITIAL: _OutputReading.message,
    RETRY.name: _OutputReading.keep,
}
"""How to take the value of a field that states no decision and is in the right place."""


@cache
def _uses(event: HookEvent, place: Home, right_event: bool) -> Mapping[str, tuple[Field, _Types, _Take | None]]:
    """How to take each field in this place, and the types it may have. None: only its type is checked."""

    def take(field: Field) -> _Take | None:
        if field is CONTENT:
            return _OutputReading.content
        if field.free:
            return _OutputReading.text
        if field.decides:
            return _OutputReading.decision
        if _misplaced(event, field, place, right_event):
            return _OutputReading.misplaced
        return _TAKEN_BY.get(field.name)

    return {name: (field, field.types, take(field)) for name, field in fields_of(EVENTS[event]).items()}


@cache  # called for every field of every output, with few distinct arguments
def _misplaced(event: HookEvent, field: Field, place: Home, right_event: bool) -> str:
    """Why the field does not belong in this place, and where it does; empty if the place is right."""
    if field.home is not Home.TOP and field.name not in EVENTS[event].specific:
        if field.decides:
            return _form(EVENTS[event])
        return f"{event} does not accept it"
    if place is Home.SPECIFIC and not right_event:
        return f'hookEventName must be "{event}" here'
    if field.home is Home.TOP and place is Home.SPECIFIC and field.name in EVENTS[event].specific:
        return _form(EVENTS[event])
    if field.home is Home.TOP and place is Home.SPECIFIC:
        return f"it belongs at the top level: did you mean {field.name}?"
    if field.home is Home.SPECIFIC and place is Home.TOP:
        return f"it belongs in {SPECIFIC}: did you mean {SPECIFIC}.{field.name}?"
    return ""


_STRICTNESS = (Decision.ALLOW, Decision.NONE, Decision.ASK, Decision.DEFER, None, Decision.BLOCK, Decision.STOP)
"""Decisions, least restrictive first. None stands for one that cannot be read."""


_NESTED = (dict, list, tuple)  # a union would be built anew for each value
_PLAIN_TEXTS = frozenset(FIELDS) - {SPECIFIC, INPUT, OUTPUT}
"""Names of fields whose text holds no other field."""
_INPUT_NAMES = frozenset({"updatedinput"})
_OUTPUT_NAMES = frozenset({"updatedtooloutput", "updatedmcptooloutput"})


def _spelt_like(names: frozenset[str], value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every value under one of these names, at any depth and in any spelling, with its path."""
    found: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            if key in _PLAIN_TEXTS and type(inner) is str:
                continue
            if _plain(key) in names:
                found.append((f"{path}.{key}" if path else key, inner))
            elif isinstance(inner, _NESTED) or (key == SPECIFIC and not path):
                found += _spelt_like(names, inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            found += _spelt_like(names, inner, path)
    elif isinstance(value, str) and path == SPECIFIC and any(name in _plain(value) for name in names):
        found.append((path, value))  # an object encoded as a string
    return found


@lru_cache(maxsize=256)
def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _streams(output: Mapping[str, Any]) -> str | None:
    """The text of an object with `stdout` or `stderr`, or None."""
    streams = [output[name] for name in ("stdout", "stderr") if isinstance(output.get(name), str)]
    return "\n".join(text.rstrip("\n") for text in streams if text) if streams else None


def _content(value: object) -> str | None:
    """The text of a content that is a string, or a list of text parts as in MCP; else None."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = cast("list[Any]", value)
    found = [cast("dict[str, Any]", part) for part in parts if isinstance(part, dict)]
    texts = [part["text"] for part in found if part.get("type") == "text" and isinstance(part.get("text"), str)]
    return "\n".join(texts) if 0 < len(texts) == len(parts) else None


def _two_texts(value: object) -> str:
    """Why a response with two different texts is unusable: if only one was redacted, the other restores the secret."""
    if not isinstance(value, dict):
        return ""
    output = cast("dict[str, Any]", value)
    streams, content = _streams(output), _content(output.get("content"))
    if streams is None or content is None or streams.strip() == content.strip():
        return ""
    return 'both a "content" and a "stdout" or "stderr" that differs from it; print a string'


def _as_text(value: Any) -> str:
    """The replacement for a tool's result, as text for the model."""
    if isinstance(value, str):
        return value
    output = cast("dict[str, Any]", value) if isinstance(value, dict) else {"content": value}
    text = _streams(output)
    text = _content(output.get("content")) if text is None else text
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _form(row: EventRow) -> str:
    return f"{row.event} expects {row.decides_with}"


def _shown(field: Field, place: Home) -> str:
    return field.name if place is Home.TOP else f"{SPECIFIC}.{field.name}"


def _wanted(kind: type) -> str:
    return type_name(kind())


def _show(value: object) -> str:
    """A value as its author wrote it, shortened."""
    if isinstance(value, str):
        return f'"{value[:60]}"'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else type_name(value)
