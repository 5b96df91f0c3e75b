"""Where a hook's output gets its meaning.

`read` turns one run into a verdict, `merge` turns the verdicts of one event into an outcome, `rewrite` applies what
hooks changed. All three are pure and never raise. Three laws stand behind every line:

1. An output can always tighten; it loosens or changes something only if it is valid.
2. No failure is a success. What a failure lets through is told to the user and counted.
3. The outcome never depends on timing, only on configuration order.
"""

import signal as signals
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.breakage import breakage
from wave_agent.hooks.events import EVENTS, Decision, EventRow, FailureBlock, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.reader import HookOutput, knows, read_output, unknown_keys
from wave_agent.hooks.verdicts import (
    DECISION_OF,
    MAKE,
    AddContext,
    Allow,
    Ask,
    Block,
    Effect,
    EndTurn,
    Failure,
    FailureKind,
    Outcome,
    Reading,
    ReplaceOutput,
    Rewrite,
    Role,
    Said,
    TellRefused,
    TellUser,
    ToUser,
    Verdict,
)
from wave_agent.strictjson import StrictJSONError, parse_object

EXECUTION_FAILED = "Hook execution failed"


# ------------------------------------------------------------------------------------------------------ reading a run


class Stdout(StrEnum):
    """What a run printed, as far as its meaning goes."""

    EMPTY = "empty, or {}"
    TEXT = "plain text"
    FOREIGN = "JSON without a known key"
    DECIDES = "JSON that states a decision"
    UNREADABLE = "JSON with a decision that cannot be read"
    SILENT = "JSON that states none"
    MALFORMED = "starts with {, not strict JSON"


class ExitClass(StrEnum):
    ZERO = "exit 0"
    TWO = "exit 2"
    OTHER = "another exit code"


class _Run(Struct, frozen=True):
    """One finished run on its way to a verdict."""

    row: EventRow
    name: str
    on_failure: OnFailure
    result: HookExecutionResult
    text: str
    """Trimmed stdout."""
    output: HookOutput
    problem: str
    """What is wrong with stdout as a whole."""

    @property
    def must_not_fail(self) -> bool:
        return self.on_failure is OnFailure.BLOCK

    def failed(self, kind: FailureKind, message: str) -> tuple[Effect, ...]:
        """A failed run says nothing but to the user: its context and changes are not to be trusted."""
        return (*self.told, Failure(kind, message, self.must_not_fail))

    @property
    def told(self) -> tuple[Effect, ...]:
        """The hook's own message, and what is wrong with single fields."""
        output = self.output
        message = (TellUser(output.system_message),) if output.system_message else ()
        return (*message, *self.notes(output.problems)) if output.problems else message

    def notes(self, problems: Sequence[str]) -> tuple[Effect, ...]:
        return tuple(TellUser(f"hook {self.name}: {problem}") for problem in problems)

    @property
    def stated(self) -> tuple[Effect, ...]:
        """The decisions of the JSON, each with its reason or the default one."""
        return tuple(
            MAKE[said.decision](said.reason or _DEFAULT_REASON[said.decision](self)) for said in self.output.stated
        )

    @property
    def restrictions(self) -> tuple[Effect, ...]:
        """Those that stand beside an exit 2: an allow does not, a block without a reason takes the exit code's."""
        return tuple(effect for effect in self.stated if isinstance(effect, EndTurn | Ask | Block) and effect.reason)

    @property
    def block(self) -> Block:
        """Exit 2."""
        return Block(self.output.reason or self.result.stderr or f"Blocked by hook {self.name}")

    @property
    def blocked(self) -> tuple[Effect, ...]:
        """Exit 2, and what the user is told if it looks like an accident."""
        looks = None if self.output.reason else breakage(self.result.stderr)
        if looks is None:
            return (self.block,)
        return (TellUser(f"hook {self.name} blocked, but the hook itself looks broken: {looks}"), self.block)

    @property
    def fields(self) -> tuple[Effect, ...]:
        """All that the JSON says beside its decision."""
        output = self.output
        effects: list[Effect] = [*self.told, *map(AddContext, output.contexts)]
        if output.updated_input is not None:
            effects.append(Rewrite(output.updated_input))
        if output.updated_tool_output is not None:
            effects.append(ReplaceOutput(output.updated_tool_output))
        if output.message:
            effects.append(TellRefused(output.message))
        return tuple(effects)


def _nothing(_: _Run) -> tuple[Effect, ...]:
    """No opinion: silence is not approval."""
    return ()


def _exit_blocks(run: _Run) -> tuple[Effect, ...]:
    """**Block**, with the JSON's `reason`, else stderr, else `Blocked by hook NAME`."""
    return (*run.fields, *run.blocked)


def _exit_failed(run: _Run) -> tuple[Effect, ...]:
    """Failure: stderr, or `Hook execution failed`, goes to the user; the action goes on."""
    return run.failed(FailureKind.EXIT, run.result.stderr or EXECUTION_FAILED)


def _text(run: _Run) -> tuple[Effect, ...]:
    """Context, where the event takes plain text as context; else ignored."""
    return (AddContext(run.text),) if run.row.text_is_context else ()


def _foreign(run: _Run) -> tuple[Effect, ...]:
    """Context, where plain text is context; else the user is told, with the nearest known key."""
    return _text(run) or (TellUser(f"hook {run.name}: {run.problem}"),)


def _decides(run: _Run) -> tuple[Effect, ...]:
    """The JSON rules."""
    made = run.stated
    if run.row.block_needs_reason and any(isinstance(effect, Block) and not effect.reason for effect in made):
        made = tuple(effect for effect in made if not isinstance(effect, Block))
        problem = f'hook {run.name}: "decision": "block" on {run.row.event} needs a "reason"'
        if not made:
            return run.failed(FailureKind.JSON, problem)
        return (*run.fields, *made, TellUser(problem))
    return (*run.fields, *made)


def _contradiction(run: _Run) -> tuple[Effect, ...]:
    """The JSON rules. An `allow` is told as a contradiction; beside `continue: false` it blocks as well."""
    if run.output.strictest is Decision.ALLOW:
        problem = f"hook {run.name} printed allow and exited with 2; its JSON counts, but one of the two is a mistake"
        if run.must_not_fail:
            return run.failed(FailureKind.JSON, problem)
        return (*_decides(run), TellUser(problem))
    if run.output.strictest is Decision.STOP or run.row.block_needs_reason:
        # Beside `continue: false` the exit code blocks as well; to a block without its reason it lends stderr.
        return (*run.fields, *run.restrictions, run.block)
    return _decides(run)


def _unreadable(run: _Run) -> tuple[Effect, ...]:
    """The hook meant to decide: an ask before a tool, elsewhere a failure."""
    first, *more = run.output.unreadable
    problem = f"hook {run.name}: {first}"
    if run.row.unreadable is not None:
        return (*_decides(run), *run.notes(more), MAKE[run.row.unreadable](problem))
    if run.output.strictest >= Decision.BLOCK:
        return (*_decides(run), *run.notes(run.output.unreadable))
    return (*run.notes(more), *run.failed(FailureKind.JSON, problem))


def _unreadable_blocks(run: _Run) -> tuple[Effect, ...]:
    """**Block**; what else restricts stands beside it."""
    return (*run.fields, *run.notes(run.output.unreadable), *run.restrictions, run.block)


def _silent_failed(run: _Run) -> tuple[Effect, ...]:
    """Its fields count; under `onFailure: block` a failure."""
    return _exit_failed(run) if run.must_not_fail else run.fields


def _malformed(run: _Run) -> tuple[Effect, ...]:
    """The user is told; under `onFailure: block` a failure."""
    if run.must_not_fail:
        return run.failed(FailureKind.JSON, run.problem)
    return (TellUser(run.problem),)


def _malformed_blocks(run: _Run) -> tuple[Effect, ...]:
    """The user is told; **block**."""
    return (TellUser(run.problem), *run.blocked)


def _malformed_failed(run: _Run) -> tuple[Effect, ...]:
    """The user is told; failure."""
    return (TellUser(run.problem), *_exit_failed(run))


def _fields(run: _Run) -> tuple[Effect, ...]:
    """Its fields count."""
    return run.fields


_DEFAULT_REASON: Mapping[Decision, Callable[[_Run], str]] = {
    Decision.STOP: lambda run: f"Stopped by hook {run.name}",
    # An event whose block needs a reason has no default for it.
    Decision.BLOCK: lambda run: "" if run.row.block_needs_reason else f"Blocked by hook {run.name}",
    Decision.ASK: lambda run: f"Hook {run.name} asks for confirmation",
    Decision.ALLOW: lambda _: "",
}

RULES: Mapping[tuple[Stdout, ExitClass], Callable[[_Run], tuple[Effect, ...]]] = {
    (Stdout.EMPTY, ExitClass.ZERO): _nothing,
    (Stdout.EMPTY, ExitClass.TWO): _exit_blocks,
    (Stdout.EMPTY, ExitClass.OTHER): _exit_failed,
    (Stdout.TEXT, ExitClass.ZERO): _text,
    (Stdout.TEXT, ExitClass.TWO): _exit_blocks,
    (Stdout.TEXT, ExitClass.OTHER): _exit_failed,
    (Stdout.FOREIGN, ExitClass.ZERO): _foreign,
    (Stdout.FOREIGN, ExitClass.TWO): _exit_blocks,
    (Stdout.FOREIGN, ExitClass.OTHER): _exit_failed,
    (Stdout.DECIDES, ExitClass.ZERO): _decides,
    (Stdout.DECIDES, ExitClass.TWO): _contradiction,
    (Stdout.DECIDES, ExitClass.OTHER): _decides,
    (Stdout.UNREADABLE, ExitClass.ZERO): _unreadable,
    (Stdout.UNREADABLE, ExitClass.TWO): _unreadable_blocks,
    (Stdout.UNREADABLE, ExitClass.OTHER): _unreadable,
    (Stdout.SILENT, ExitClass.ZERO): _fields,
    (Stdout.SILENT, ExitClass.TWO): _exit_blocks,
    (Stdout.SILENT, ExitClass.OTHER): _silent_failed,
    (Stdout.MALFORMED, ExitClass.ZERO): _malformed,
    (Stdout.MALFORMED, ExitClass.TWO): _malformed_blocks,
    (Stdout.MALFORMED, ExitClass.OTHER): _malformed_failed,
}
"""One cell for each kind of stdout and exit code. The table in the docs is printed from it, docstrings included."""


def read(
    event: HookEvent, result: HookExecutionResult, *, name: str, on_failure: OnFailure = OnFailure.CONTINUE
) -> Verdict:
    """What this run means. Pure; never raises."""
    row = EVENTS[event]
    if unfinished := _unfinished(result, name):
        # What a hook guards is not let through because somebody has changed the hook.
        return Verdict((Failure(*unfinished, blocks=result.is_refused or on_failure is OnFailure.BLOCK),))
    text = _text_of(result)
    kind, output, problem = _classify(row, name, text, cut=result.stdout_dropped > 0)
    run = _Run(row, name, on_failure, result, text, output, problem)
    rule = RULES[kind, _EXIT_CLASSES.get(result.exit_code, ExitClass.OTHER)]
    return Verdict(rule(run), kind is Stdout.MALFORMED, output.suppress_output)


def kinds_of(event: HookEvent, result: HookExecutionResult) -> tuple[Stdout, ExitClass] | None:
    """Which cell of `RULES` this run is read by. None: it did not end by itself, so none counts."""
    if _unfinished(result, ""):
        return None
    kind, _, _ = _classify(EVENTS[event], "", _text_of(result), cut=result.stdout_dropped > 0)
    return kind, _EXIT_CLASSES.get(result.exit_code, ExitClass.OTHER)


def _text_of(result: HookExecutionResult) -> str:
    return result.stdout.strip().removeprefix("\ufeff").lstrip()


_EXIT_CLASSES: Mapping[int | None, ExitClass] = {0: ExitClass.ZERO, 2: ExitClass.TWO}
_NO_OUTPUT = HookOutput()


def _unfinished(result: HookExecutionResult, name: str) -> tuple[FailureKind, str] | None:
    """A run that did not end by itself: what it printed until then does not count."""
    if result.timed_out:
        return FailureKind.TIMEOUT, f"Hook {name} timed out after {result.duration / 1000:.3g} s"
    if result.error is not None:
        return FailureKind.SPAWN, f"Hook {name} could not be started: {result.error}"
    if result.exit_code is None:
        return FailureKind.SIGNAL, f"Hook {name} was ended by signal {_signal_name(result.signal)}"
    return None


def _signal_name(number: int | None) -> str:
    try:
        return f"{number} ({signals.Signals(number or 0).name})"
    except ValueError:
        return f"{number}"


def _classify(row: EventRow, name: str, text: str, *, cut: bool) -> tuple[Stdout, HookOutput, str]:
    """What kind of stdout this is, what it says if it is JSON, and what is wrong with it."""
    if not text:
        return Stdout.EMPTY, _NO_OUTPUT, ""
    if not text.startswith("{"):
        return Stdout.TEXT, _NO_OUTPUT, ""
    try:
        found = parse_object(text)
    except StrictJSONError as error:
        why = "it is longer than what is kept" if cut else str(error)
        return Stdout.MALFORMED, _NO_OUTPUT, f"hook {name}: stdout looks like JSON but is not: {why}"
    if cut:  # a whole object, and then more than the cap
        return Stdout.MALFORMED, _NO_OUTPUT, f"hook {name}: stdout is longer than what is kept"
    if not found:
        return Stdout.EMPTY, _NO_OUTPUT, ""
    if not knows(found):
        return Stdout.FOREIGN, _NO_OUTPUT, unknown_keys(found)
    output = read_output(row, found)
    kind = Stdout.UNREADABLE if output.unreadable else Stdout.DECIDES if output.stated else Stdout.SILENT
    return kind, output, ""


# ------------------------------------------------------------------------------------------------- merging the verdicts


_COUNTS: Mapping[Role, tuple[type, ...]] = {
    Role.ENFORCE: (Block, Ask, Allow, EndTurn, ReplaceOutput, AddContext, TellRefused, TellUser, Failure),
    Role.SHADOW: (),
    Role.ASYNC: (AddContext, TellUser),
}
"""Failures of shadow and async hooks are told all the same, but neither block nor count."""


WITHHELD = "[The result is withheld: hooks {names} replaced it in different ways. Put them into one sequential group.]"


def merge(event: HookEvent, readings: Iterable[Reading], *, failure_block_spent: bool = False) -> Outcome:
    """The outcome of one event. Independent of the order of `readings`; configuration order is in them."""
    row = EVENTS[event]
    ordered = sorted(readings, key=lambda reading: (reading.position, reading.look))
    tally = _Tally(row, spent=failure_block_spent)
    for reading in ordered:
        for effect in reading.verdict.effects:
            tally.count(reading, effect)
    replacement, replaced_by = tally.replacement(ordered)
    decision = max(tally.reasons, default=Decision.NONE)
    return Outcome(
        event=event,
        decision=decision,
        flow=row.flow[decision],
        blocked=Decision.BLOCK in tally.reasons,
        reasons={stated: tuple(said) for stated, said in tally.reasons.items()},
        contexts=tuple(tally.contexts),
        refusals=tuple(tally.refusals),
        to_user=tuple(tally.notes),
        replacement=replacement,
        replaced_by=replaced_by,
        failed_open=tally.failed_open,
        only_failures_block=decision is Decision.BLOCK and not tally.wanted_block,
    )


class _Tally:
    """What counts of each effect. Dictionaries as ordered sets: the same text of the same hook counts once."""

    def __init__(self, row: EventRow, *, spent: bool) -> None:
        self.row = row
        self.spent = spent
        self.reasons: dict[Decision, dict[Said, None]] = {}
        self.contexts: dict[Said, None] = {}
        self.refusals: dict[Said, None] = {}
        self.notes: dict[ToUser, None] = {}
        self.failed_open = 0
        self.wanted_block = False

    def count(self, reading: Reading, effect: Effect) -> None:
        counts = isinstance(effect, _COUNTS[reading.role])
        if isinstance(effect, Failure):
            self.notes[ToUser(reading.name, effect.message, "error")] = None
            if counts:
                self.failure(reading.name, effect)
        elif not counts:
            return
        elif isinstance(effect, TellUser):
            self.notes[ToUser(reading.name, effect.text)] = None
        elif isinstance(effect, AddContext):
            self.contexts[Said(reading.name, effect.text)] = None
        elif isinstance(effect, TellRefused):
            self.refusals[Said(reading.name, effect.text)] = None
        elif isinstance(effect, (EndTurn, Block, Ask, Allow)) and (
            reading.allow_counts or not isinstance(effect, Allow)
        ):
            self.wanted_block = self.wanted_block or isinstance(effect, Block)
            self.reasons.setdefault(DECISION_OF[type(effect)], {})[Said(reading.name, effect.reason)] = None

    def failure(self, name: str, failure: Failure) -> None:
        if failure_blocks(self.row, failure, spent=self.spent):
            self.reasons.setdefault(Decision.BLOCK, {})[Said(name, failure.message)] = None
        else:
            self.failed_open += 1

    def replacement(self, ordered: Sequence[Reading]) -> tuple[str | None, str]:
        """The text that replaces the tool's result, and the hooks that say so.

        Parallel hooks each saw the original: taking the last one's text would bring back what another took out.
        """
        last: dict[object, tuple[str, str]] = {}
        for reading in ordered:
            text = reading.verdict.replacement
            if text is not None and ReplaceOutput in _COUNTS[reading.role]:
                last[reading.strand if reading.strand is not None else ("alone", reading.position)] = reading.name, text
        names = ", ".join(name for name, _ in last.values())
        if len({text for _, text in last.values()}) <= 1:
            return next((text for _, text in last.values()), None), names
        self.notes[ToUser(names, WITHHELD.format(names=names))] = None
        return WITHHELD.format(names=names), names


def limited(outcome: Outcome, blocks_before: int, limit: int) -> Outcome:
    """The outcome when hooks have blocked this often for one prompt. A `limit` of 0 is none.

    A block by failures alone is bounded by itself and does not count.
    """
    wanted = outcome.decision is Decision.BLOCK and not outcome.only_failures_block
    if not (limit and wanted and blocks_before >= limit):
        return outcome
    told = ToUser("", f"Hooks have kept the agent from stopping {limit} times for this prompt; it stops now.")
    ended = outcome.row.flow[Decision.STOP]
    return replace(outcome, flow=ended, limit_reached=True, to_user=(*outcome.to_user, told))


def failure_blocks(row: EventRow, failure: Failure, *, spent: bool = False) -> bool:
    """Whether this failure stops what the event is about; if not, it is let through."""
    can = row.failure_block is FailureBlock.ALWAYS or (row.failure_block is FailureBlock.ONCE and not spent)
    return failure.blocks and can


# --------------------------------------------------------------------------------------------------------- rewriting


def rewrite(tool_input: Mapping[str, Any], fields: Mapping[str, Any], nullable: Collection[str] = ()) -> dict[str, Any]:
    """The input with these top-level fields set. A null removes the field unless its schema allows null."""
    changed = dict(tool_input)
    for key, value in fields.items():
        if value is None and key not in nullable:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed


NOT_CONVERGING = "Blocked: the rewrites do not converge: {names} changed the input again after it was final"
