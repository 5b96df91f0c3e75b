"""What a hook's output means.

`read` turns one run into a verdict, `merge` combines the verdicts of one event into an outcome, and `rewrite` applies
the changes hooks make to a tool's input. All three are pure and never raise. They follow three laws:

1. An output can always tighten. It can loosen or change something only if it is valid.
2. A failure is never a success. Failures that are let through are reported to the user and counted.
3. The outcome depends on configuration order, never on timing.

To change what an exit code or a kind of stdout means, edit `RULES`. JSON fields are in `reader`, differences between
events in `events`, and differences between agents in `dialects`.
"""

import json
import re
import signal as signals
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.events import HookRun
from wave_agent.formats.strict_json import StrictJSONError, parse_object
from wave_agent.hooks.dialects import DIALECTS, Dialect
from wave_agent.hooks.events import (
    BLOCK_WORDS,
    CANCEL,
    DECLINE,
    EVENTS,
    FAILURE_WORD,
    Audience,
    ContextPlace,
    Decision,
    EventRow,
    FailureBlock,
    Flow,
    HookEvent,
    OnFailure,
)
from wave_agent.hooks.execution import HookExecutionResult, Opinion
from wave_agent.hooks.reader import UNUSABLE, HookOutput, Stated, knows, read_output, unknown_keys
from wave_agent.hooks.verdicts import (
    DECISION_OF,
    MAKE,
    AddContext,
    AnswerServer,
    Approve,
    Ask,
    Block,
    Blocks,
    Defer,
    Effect,
    EndTurn,
    Failure,
    FailureKind,
    InitialPrompt,
    Outcome,
    RankedVerdict,
    ReplaceOutput,
    Rewrite,
    Role,
    Said,
    TellRefused,
    TellUser,
    ToUser,
    Verdict,
    Withhold,
)
from wave_agent.lazy_regex import lazy_regex

EXECUTION_FAILED = "Hook execution failed"


# ------------------------------------------------------------------------------------------------------ reading a run


class Stdout(StrEnum):
    """What kind of output a run printed to stdout."""

    EMPTY = "empty, or {}"
    TEXT = "plain text"
    CHATTER = "plain text, then JSON that states a decision"
    FOREIGN = "JSON without a known key"
    DECIDES = "JSON that states a decision"
    UNREADABLE = "JSON with a decision that cannot be read"
    SILENT = "JSON that states no decision"
    MALFORMED = "starts with {, not strict JSON; or a decision inside text"


class ExitClass(StrEnum):
    ZERO = "exit 0"
    TWO = "exit 2"
    OTHER = "another exit code"


class _FinishedRun(Struct, frozen=True, gc=False):
    """A finished run, and the effects its output can have. Each rule in `RULES` picks from these."""

    row: EventRow
    name: str
    on_failure: OnFailure
    result: HookExecutionResult
    text: str
    """Trimmed stdout."""
    output: HookOutput
    problem: str
    """What is wrong with stdout as a whole, if anything."""
    printed: str = ""
    """The last lines of stdout if it is not JSON: they may say why the hook blocks or fails."""

    @property
    def must_not_fail(self) -> bool:
        return self.on_failure is OnFailure.BLOCK

    @property
    def quotable(self) -> str:
        """The part of stdout the model may see: a block or failure it reads must say why."""
        return self.printed if self.row.reason_reader is Audience.MODEL else ""

    def failed(self, kind: FailureKind, message: str, code: int | None = None) -> tuple[Effect, ...]:
        """A failed run only reports to the user: its context and changes cannot be trusted."""
        return (*self.notices, *self.withheld, Failure(kind, message, self.must_not_fail, code))

    @property
    def withheld(self) -> tuple[Effect, ...]:
        return (Withhold(self.output.withhold),) if self.output.withhold else ()

    @property
    def notices(self) -> tuple[Effect, ...]:
        """Messages for the user: the hook's own, and one for each field that has a problem."""
        output = self.output
        message = (TellUser(output.system_message),) if output.system_message else ()
        return (*message, *self.notes(output.problems)) if output.problems else message

    def notes(self, problems: Sequence[str]) -> tuple[Effect, ...]:
        return tuple(TellUser(f"hook {self.name}: {problem}") for problem in problems)

    @property
    def stated(self) -> tuple[Effect, ...]:
        """The decisions in the JSON, each with its reason or a default one."""
        return tuple(
            [MAKE[said.decision](said.reason or _DEFAULT_REASON[said.decision](self)) for said in self.output.stated]
        )

    @property
    def restrictions(self) -> tuple[Effect, ...]:
        """The decisions that still apply on exit 2. An allow does not; a block without a reason uses stderr instead."""
        return tuple(
            effect
            for said, effect in zip(self.output.stated, self.stated, strict=True)
            if said.decision not in (Decision.ALLOW, Decision.BLOCK)
            or (said.decision is Decision.BLOCK and said.reason)
        )

    @property
    def block(self) -> Block:
        """The block that exit 2 amounts to."""
        from wave_agent.hooks.accidental_exit import only_says_that_it_failed  # lazy: most hooks do not block

        stderr = self.result.stderr
        if not stderr or (self.quotable and only_says_that_it_failed(self.last_errors)):
            stderr = _lines(f"Blocked by hook {self.name}", self.quotable, self.last_errors)
        return Block(self.output.reason or stderr)

    @property
    def last_errors(self) -> str:
        return _tail(_end(self.result.stderr, self.result.stderr_end))

    @property
    def blocked(self) -> tuple[Effect, ...]:
        """The block of an exit 2, plus a warning if the exit code looks accidental."""
        from wave_agent.hooks.accidental_exit import breakage  # lazy: most hooks do not block

        looks = None if self.output.reason else breakage(self.result.stderr)
        if looks is None:
            return (self.block,)
        # Only a hook with `onFailure: block` withholds the result: its job may have been to redact it.
        withheld = (Withhold(_LOOKS_BROKEN),) if self.must_not_fail and self.row.withholds else ()
        note = TellUser(f"hook {self.name} blocked, but the hook itself looks broken: {looks}")
        return (note, *withheld, self.block)

    @property
    def fields(self) -> tuple[Effect, ...]:
        """The effects of every JSON field other than the decisions."""
        output = self.output
        effects: list[Effect] = [*self.notices, *map(AddContext, output.contexts)]
        if output.updated_input is not None:
            effects.append(Rewrite(output.updated_input))
        if output.updated_tool_output is not None:
            effects.append(ReplaceOutput(output.updated_tool_output))
        if output.action:
            accepts = self.row.action_words[output.action] is Decision.ALLOW
            effects.append(AnswerServer(output.action, output.content if accepts else {}))
        if output.withhold:
            effects.append(Withhold(output.withhold))
        if output.message:
            effects.append(TellRefused(output.message))
        if output.retry:
            effects.append(AddContext(MAY_RETRY))
        if output.initial_prompt:
            effects.append(InitialPrompt(output.initial_prompt))
        return tuple(effects)


MAY_RETRY = "You may make the denied call again; it is then judged anew."
_LOOKS_BROKEN = "it exited with 2 and looks broken"
_TAIL_LINES, _TAIL_CHARACTERS = 30, 2000


def _tail(text: str) -> str:
    """The last lines: that is where test runners and linters say what is wrong."""
    return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])[-_TAIL_CHARACTERS:].strip()


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


def _nothing(_: _FinishedRun) -> tuple[Effect, ...]:
    """No opinion: silence is not approval."""
    return ()


def _exit_blocks(run: _FinishedRun) -> tuple[Effect, ...]:
    """**Block**, with the JSON's `reason`, else stderr, else `Blocked by hook NAME` and the end of stdout."""
    return (*run.fields, *run.blocked)


def _exit_failed(run: _FinishedRun) -> tuple[Effect, ...]:
    """Failure: the user sees stderr or `Hook execution failed`; the action proceeds."""
    result = run.result
    message = result.stderr or EXECUTION_FAILED
    if run.must_not_fail and run.row.reason_reader is Audience.MODEL:
        what = f"Hook {run.name} failed with exit code {result.exit_code}"
        message = result.stderr or what
        if run.printed:  # `make` only says on stderr that something failed; the test runner says what on stdout
            message = _lines(what, run.printed, run.last_errors)
    return run.failed(FailureKind.EXIT, message, result.exit_code)


def _text(run: _FinishedRun) -> tuple[Effect, ...]:
    """Context, if the event accepts plain text as context; otherwise ignored."""
    return (AddContext(run.text),) if run.row.text_is_context else ()


def _foreign(run: _FinishedRun) -> tuple[Effect, ...]:
    """Context, if the event accepts plain text as context; otherwise a warning that names the closest known key. A
    misspelt decision is always reported."""
    return (*_text(run), *run.notices) if run.row.text_is_context else (TellUser(f"hook {run.name}: {run.problem}"),)


def _decides(run: _FinishedRun) -> tuple[Effect, ...]:
    """The JSON applies."""
    if run.row.block_needs_reason and any(
        said.decision is Decision.BLOCK and not said.reason for said in run.output.stated
    ):
        problem = f'hook {run.name}: "decision": "block" on {run.row.event} needs a "reason" that tells the model why'
        return (*run.fields, *run.stated, TellUser(problem))
    return (*run.fields, *run.stated)


def _contradiction(run: _FinishedRun) -> tuple[Effect, ...]:
    """The JSON applies. An `allow` is reported as contradictory; with `continue: false`, exit 2 also blocks."""
    if run.output.strictest is Decision.ALLOW:
        problem = f"hook {run.name} printed allow and exited with 2; its JSON counts, but one of the two is a mistake"
        if run.must_not_fail:
            return run.failed(FailureKind.JSON, problem)
        return (*_decides(run), TellUser(problem))
    if run.output.strictest is Decision.STOP or run.row.block_needs_reason:
        # With `continue: false`, the exit code blocks as well; a block without a reason takes stderr as its reason.
        return (*run.fields, *run.restrictions, run.block)
    return _decides(run)


def _exit_two_rules(run: _FinishedRun) -> tuple[Effect, ...]:
    """**Block**; the reason is stderr unless the JSON also blocks with a reason. An `allow` is reported."""
    said = run.output.strictest
    if said >= Decision.BLOCK:
        blocks = any(isinstance(effect, Block) for effect in run.restrictions)
        return (*run.fields, *run.restrictions, *(() if blocks else (run.block,)))
    word = said.name.lower()
    problem = f"hook {run.name} printed {word} and exited with 2; the exit code counts, but one of the two is a mistake"
    reason = run.result.stderr or f"Blocked by hook {run.name}"
    return (*run.notices, *run.withheld, TellUser(problem), Block(reason))


def _unreadable(run: _FinishedRun) -> tuple[Effect, ...]:
    """The hook meant to decide: ask before a tool call, a failure elsewhere."""
    first, *more = run.output.unreadable
    problem = f"hook {run.name}: {first}"
    if run.row.unreadable is not None:
        return (*_decides(run), *run.notes(more), MAKE[run.row.unreadable](problem))
    if run.output.strictest >= Decision.BLOCK:
        return (*_decides(run), *run.notes(run.output.unreadable))
    return (*run.notes(more), *run.failed(FailureKind.JSON, problem))


def _unreadable_blocks(run: _FinishedRun) -> tuple[Effect, ...]:
    """**Block**, along with any other restriction in the JSON."""
    return (*run.fields, *run.notes(run.output.unreadable), *run.restrictions, run.block)


def _silent_failed(run: _FinishedRun) -> tuple[Effect, ...]:
    """The fields apply, and a `reason` without a decision is reported; with `onFailure: block`, a failure."""
    return _exit_failed(run) if run.must_not_fail else _fields(run)


def _malformed(run: _FinishedRun) -> tuple[Effect, ...]:
    """Reported to the user; with `onFailure: block`, a failure."""
    if run.must_not_fail:
        return run.failed(FailureKind.JSON, run.problem)
    return (TellUser(run.problem),)


def _malformed_blocks(run: _FinishedRun) -> tuple[Effect, ...]:
    """Reported to the user; **block**."""
    return (TellUser(run.problem), *run.blocked)


def _malformed_failed(run: _FinishedRun) -> tuple[Effect, ...]:
    """Reported to the user; failure."""
    return (TellUser(run.problem), *_exit_failed(run))


def _fields(run: _FinishedRun) -> tuple[Effect, ...]:
    """The fields apply; a `reason` without a decision is reported."""
    if run.output.undecided:
        problem = (
            f"{run.output.undecided} without a decision has no effect: {run.row.event} expects {run.row.decides_with}"
        )
        return (*run.fields, *run.notes((problem,)))
    return run.fields


def _chatter(run: _FinishedRun) -> tuple[Effect, ...]:
    """Restrictions in the JSON apply; everything else in it is dropped and reported."""
    rule = _unreadable if run.output.unreadable else _decides
    return (TellUser(run.problem), *rule(run))


def _chatter_blocks(run: _FinishedRun) -> tuple[Effect, ...]:
    """**Block**, along with any other restriction in the JSON; everything else in it is dropped and reported."""
    return (TellUser(run.problem), *run.withheld, *run.restrictions, run.block)


def _chatter_failed(run: _FinishedRun) -> tuple[Effect, ...]:
    """Restrictions in the JSON apply; with `onFailure: block`, or if it restricts nothing, a failure."""
    asks = bool(run.output.stated or run.output.unreadable)
    if run.output.strictest >= Decision.BLOCK or (asks and not run.must_not_fail):
        return _chatter(run)
    return (TellUser(run.problem), *_exit_failed(run))


_DEFAULT_REASON: Mapping[Decision, Callable[[_FinishedRun], str]] = {
    Decision.STOP: lambda run: f"Stopped by hook {run.name}",
    Decision.BLOCK: lambda run: f"Blocked by hook {run.name}",
    Decision.DEFER: lambda run: f"Hook {run.name} defers the decision about this call",
    Decision.ASK: lambda run: f"Hook {run.name} asks for confirmation",
    Decision.ALLOW: lambda _: "",
}

Rule = Callable[[_FinishedRun], tuple[Effect, ...]]

RULES: Mapping[tuple[Stdout, ExitClass], Rule] = {
    (Stdout.EMPTY, ExitClass.ZERO): _nothing,
    (Stdout.EMPTY, ExitClass.TWO): _exit_blocks,
    (Stdout.EMPTY, ExitClass.OTHER): _exit_failed,
    (Stdout.TEXT, ExitClass.ZERO): _text,
    (Stdout.TEXT, ExitClass.TWO): _exit_blocks,
    (Stdout.TEXT, ExitClass.OTHER): _exit_failed,
    (Stdout.CHATTER, ExitClass.ZERO): _chatter,
    (Stdout.CHATTER, ExitClass.TWO): _chatter_blocks,
    (Stdout.CHATTER, ExitClass.OTHER): _chatter_failed,
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
"""One rule per kind of stdout and exit code. The table in the docs is generated from it, including docstrings."""

_RULES_IN: Mapping[Dialect, Mapping[tuple[Stdout, ExitClass], Rule]] = {
    dialect: {**RULES, (Stdout.DECIDES, ExitClass.TWO): _exit_two_rules} if row.exit_two_rules else RULES
    for dialect, row in DIALECTS.items()
}
"""In some dialects, exit 2 overrides the JSON."""


def rule_of(dialect: Dialect, kinds: tuple[Stdout, ExitClass]) -> Rule:
    """The rule for a run of a hook in this dialect."""
    return _RULES_IN[dialect][kinds]


def ends_turn(run: HookRun) -> bool:
    """Whether what a recorded hook said ended the turn. On some events a block does, also that of a failure."""
    blocks = run.outcome in BLOCK_WORDS or (run.outcome == FAILURE_WORD and not run.let_through)
    return run.outcome == "stop" or (blocks and EVENTS[HookEvent(run.event)].flow[Decision.BLOCK] is Flow.END_TURN)


def words_of(rule: Rule) -> str:
    """What a rule says about itself, in one line: for users, and for a table in the documentation."""
    return " ".join((rule.__doc__ or "").split()).removesuffix(".")


def read(
    event: HookEvent,
    result: HookExecutionResult,
    *,
    name: str,
    on_failure: OnFailure = OnFailure.CONTINUE,
    dialect: Dialect = Dialect.WAVE,
    continue_on_block: bool = True,
) -> Verdict:
    """The verdict of one run. Pure; never raises."""
    row = EVENTS[event]
    if unfinished := _unfinished(result, name):
        # A guard that was changed, and so refused to run, must not let its action through.
        has_no_say = result.is_refused or (result.is_spent and row.has_tool)
        return Verdict((Failure(*unfinished, blocks=has_no_say or on_failure is OnFailure.BLOCK),))
    if result.opinion is not None:
        return Verdict(_opinion(row, name, result.opinion, continue_on_block=continue_on_block))
    text = _text_of(result)
    kind, output, problem = _classify(row, name, result, text)
    # Malformed JSON is never quoted: if the hook redacts, it may contain the very text to be removed.
    printed = _tail(_end(text, result.stdout_end)) if kind in _QUOTED else ""
    run = _FinishedRun(row, name, on_failure, result, text, output, problem, printed)
    rule = rule_of(dialect, (kind, _EXIT_CLASSES.get(result.exit_code, _OTHER_EXIT)))
    effects = _heard_in_part(rule(run), run) if result.has_cut_arguments else rule(run)
    return Verdict(effects, kind is _MALFORMED)


def _opinion(row: EventRow, name: str, opinion: Opinion, *, continue_on_block: bool) -> tuple[Effect, ...]:
    """What a model's answer means. A model that does not object has no opinion: it never allows anything."""
    if opinion.ok:
        return ()
    reason = opinion.reason or f"Hook {name} objects, without giving a reason."
    if opinion.impossible and row.flow[Decision.BLOCK] is Flow.KEEP_WORKING:
        return (TellUser(f"hook {name} let the agent stop, since what it wants is impossible: {reason}"),)
    if row.objection_may_end_turn and not continue_on_block:
        return (EndTurn(reason),)
    # Where the reason of a block is for the user, the model still has to know why its call was refused.
    refusal = (TellRefused(reason),) if row.behavior_words else ()
    return (Block(reason), *refusal)


_RESTRICTS = Block | Defer | Ask | EndTurn | Failure


def _heard_in_part(effects: tuple[Effect, ...], run: "_FinishedRun") -> tuple[Effect, ...]:
    """A hook that got a truncated argument, did not read stdin and did not object has not judged the whole input."""
    if run.result.stdin_left and not any(isinstance(one, _RESTRICTS) for one in effects):
        why = f"Hook {run.name} judged an argument truncated to 100 KiB and did not read its stdin"
        effects = (Failure(FailureKind.EXIT, why, blocks=run.on_failure is OnFailure.BLOCK),)
    return (*effects, TellUser(f"hook {run.name}: an argument was truncated to 100 KiB; stdin has all of it"))


def kinds_of(event: HookEvent, result: HookExecutionResult) -> tuple[Stdout, ExitClass] | None:
    """The key of the rule in `RULES` for this run. None if the run did not exit by itself: no rule applies."""
    if _unfinished(result, ""):
        return None
    kind, _, _ = _classify(EVENTS[event], "", result, _text_of(result))
    return kind, _EXIT_CLASSES.get(result.exit_code, _OTHER_EXIT)


def _text_of(result: HookExecutionResult) -> str:
    return result.stdout.strip().removeprefix("\ufeff").lstrip()


def _end(kept: str, end: str) -> str:
    """The end of a stream, even if its middle was dropped."""
    return end or kept


_EXIT_CLASSES: Mapping[int | None, ExitClass] = {0: ExitClass.ZERO, 2: ExitClass.TWO}
# For every run, so they are looked up once: a member of an enum takes as long as a call.
_OTHER_EXIT, _MALFORMED, _QUOTED = ExitClass.OTHER, Stdout.MALFORMED, (Stdout.TEXT, Stdout.CHATTER)
_NO_OUTPUT = HookOutput()


def _unfinished(result: HookExecutionResult, name: str) -> tuple[FailureKind, str] | None:
    """How a run failed that did not exit by itself. Its output is ignored."""
    if result.timed_out:
        return FailureKind.TIMEOUT, f"Hook {name} timed out after {result.duration / 1000:.3g} s"
    if result.error is not None and result.by_server:
        return FailureKind.MCP, f"Hook {name} got no answer: {result.error}"
    if result.error is not None and result.by_service:
        return FailureKind.HTTP, f"Hook {name} got no answer: {result.error}"
    if result.error is not None and result.by_model:
        return FailureKind.ANSWER, f"Hook {name} got no answer: {result.error}"
    if result.error is not None:
        what = "did not run" if result.is_refused else "could not be started"
        return FailureKind.SPAWN, f"Hook {name} {what}: {result.error}"
    if result.exit_code is None:
        return FailureKind.SIGNAL, f"Hook {name} was killed by signal {_signal_name(result.signal)}"
    return None


def _signal_name(number: int | None) -> str:
    try:
        return f"{number} ({signals.Signals(number or 0).name})"
    except ValueError:
        return f"{number}"


def _classify(row: EventRow, name: str, result: HookExecutionResult, text: str) -> tuple[Stdout, HookOutput, str]:
    """The kind of stdout, what it says if it is JSON, and what is wrong with it. `text` is the trimmed stdout."""
    if not text:
        return Stdout.EMPTY, _NO_OUTPUT, ""
    if not text.startswith("{"):
        return _after_text(row, name, result, text)
    if result.stdout_dropped > 0:
        return Stdout.UNREADABLE, HookOutput(unreadable=(_TOO_LONG,)), ""
    try:
        found = parse_object(text, twice=True)
    except StrictJSONError as error:
        said = _restrictions(row, text)
        if said is not None:
            return Stdout.CHATTER, said, f"hook {name}: {_SEVERAL}"
        return Stdout.MALFORMED, _NO_OUTPUT, f"hook {name}: stdout looks like JSON but is not: {error}"
    if not found:
        return Stdout.EMPTY, _NO_OUTPUT, ""
    output = read_output(row, found)
    if not (output.stated or knows(found) or output.withhold):
        return Stdout.FOREIGN, HookOutput(problems=output.problems), unknown_keys(row.event, found)
    return Stdout.UNREADABLE if output.unreadable else _SAYS[bool(output.stated)], output, ""


def _restrictions(row: EventRow, text: str) -> HookOutput | None:
    """What the objects at the end of a text restrict, taken together; None if that is nothing. Of two scripts that
    print one after the other, neither must cancel the other's block."""
    stated: list[Stated] = []
    unreadable: list[str] = []
    reason, withhold = "", ""
    for _ in range(_MOST_OBJECTS):
        found, start = _ending_object(text)
        if start == len(text):
            break
        said = _restricting(row, read_output(row, found))
        stated, unreadable = [*said.stated, *stated], [*said.unreadable, *unreadable]
        reason, withhold = said.reason or reason, said.withhold or withhold
        text = text[:start].rstrip()
    if not (stated or unreadable or withhold):
        return None
    return HookOutput(stated=tuple(stated), unreadable=tuple(unreadable), reason=reason, withhold=withhold)


def _restricting(row: EventRow, output: HookOutput) -> HookOutput:
    """The part of an output that counts although it is not the only thing on stdout."""
    return HookOutput(
        stated=tuple(said for said in output.stated if said.decision >= Decision.ASK),
        unreadable=output.unreadable if row.unreadable is not None else (),
        reason=output.reason,
        withhold=output.withhold or (UNUSABLE if output.updated_tool_output is not None else ""),
    )


_SEVERAL = "stdout is not one JSON object, so only the restrictions in its last objects were applied; print one object"
_MOST_OBJECTS = 100
_SAYS: Mapping[bool, Stdout] = {True: Stdout.DECIDES, False: Stdout.SILENT}
_TOO_LONG = "stdout starts like JSON but is longer than the limit, so its decision cannot be read"
_STARTS = 1000
"""How many `{` to try as the start of an object: text full of braces must not take seconds to parse."""


def _after_text(row: EventRow, name: str, result: HookExecutionResult, text: str) -> tuple[Stdout, HookOutput, str]:
    """Plain text. A decision at its end can still restrict, and one anywhere else in it is reported."""
    end = _end(text, result.stdout_end)
    found, start = _ending_object(end)
    output = read_output(row, found)
    said = _restricting(row, output)
    stated, unreadable, withhold = said.stated, said.unreadable, said.withhold
    lost = end if output.unreadable else end[:start]
    silent = not (stated or unreadable or withhold or row.text_is_context)
    if silent and (_attempts(lost) or _attempts(text if result.stdout_end else "")):
        return Stdout.MALFORMED, _NO_OUTPUT, f"hook {name}: {_TEXT_BESIDE}"
    if not (output.stated or unreadable or withhold):
        return Stdout.TEXT, _NO_OUTPUT, ""
    kept = "only its restrictions were applied" if stated or unreadable else "it was ignored"
    kept += " and the result was withheld" if withhold else ""
    problem = f"hook {name}: there is text before the JSON on stdout, so {kept}; print text to stderr"
    return Stdout.CHATTER, said, problem


_TEXT_BESIDE = "stdout mixes text and JSON, so the JSON was not read; print one object, and any text to stderr"
_JSON_LINE = lazy_regex(r"^[ \t]*(?:\{|```)", re.MULTILINE)
_DECISION_KEY = lazy_regex(r'"(?:decision|permissionDecision|continue|updatedToolOutput)"\s*:')


def _attempts(text: str) -> bool:
    """Whether a line starts like JSON or a code fence and is followed by a key that states a decision."""
    begins = _JSON_LINE.search(text)
    return begins is not None and _DECISION_KEY.search(text, begins.start()) is not None


def _ending_object(text: str) -> tuple[dict[str, Any], int]:
    """The JSON object at the end of this text and its start index; an empty object if there is none."""
    start = len(text) if text.endswith("}") else 0
    for _ in range(_STARTS):
        start = text.rfind("{", 0, start)
        if start < 0:
            break
        with suppress(StrictJSONError):
            return parse_object(text[start:], twice=True), start
    return {}, len(text)


# ------------------------------------------------------------------------------------------------- merging the verdicts


WITHHELD = "[{what} Its result is withheld: {why}]"
IN_DIFFERENT_WAYS = "hooks {names} replaced it in different ways. Put them in one sequential group."


def merge(event: HookEvent, readings: Iterable[RankedVerdict], *, spent: Collection[int] = ()) -> Outcome:
    """Combine the verdicts of one event. The order of `readings` does not matter: each has its configuration position.

    `spent`: positions of broken hooks that have used up their one block, on events that limit them to one.
    """
    row = EVENTS[event]
    ordered = sorted(readings, key=attrgetter("position", "look"))
    tally = _Tally(row, spent=spent)
    for reading in ordered:
        taken = _TAKEN[reading.role]
        for effect in reading.verdict.effects:
            if take := taken.get(type(effect)):  # a rewrite has been applied before
                take(tally, reading, effect)
    replacement, replaced_by = tally.replacement()
    decision = max(tally.reasons, default=Decision.NONE)
    answer = tally.answer(decision)
    goes_on = row.context is ContextPlace.KEEP_WORKING and bool(tally.contexts) and decision < Decision.ASK
    outcome = Outcome(
        event=event,
        decision=decision,
        flow=row.flow[Decision.BLOCK if goes_on else decision],
        blocked=Decision.BLOCK in tally.reasons,
        reasons={stated: tuple(said) for stated, said in tally.reasons.items()},
        contexts=tuple(tally.contexts),
        wakes=tally.wakes,
        initial_prompts=tuple(tally.initial_prompts),
        refusals=tuple(tally.refusals),
        to_user=tuple(tally.notes),
        replacement=replacement,
        replaced_by=replaced_by,
        withheld=tally.withholds,
        answer=answer,
        failed_open=tally.failed_open,
        broken=frozenset(tally.broken),
        only_broken_block=decision is Decision.BLOCK and not tally.wanted_block and not goes_on,
        unmet=tuple(tally.unmet),
    )
    ends_unmet = row.failure_block is FailureBlock.BROKEN_ONCE and tally.unmet and decision < Decision.ASK
    return _ended(outcome) if ends_unmet and not goes_on else outcome


class _Tally:
    """Collects the effects that apply. Dictionaries serve as ordered sets: the same text from one hook is kept once."""

    def __init__(self, row: EventRow, *, spent: Collection[int]) -> None:
        self.row = row
        self.spent = spent
        self.broken: set[int] = set()
        self.unmet: dict[str, None] = {}
        self.withheld: dict[str, str] = {}
        """Why each hook withholds the result."""
        self.withholds = False
        self.replacements: dict[object, tuple[str, str]] = {}
        """The last text of each sequence of hooks, with the name of its hook."""
        self.answers: list[tuple[str, AnswerServer]] = []
        """What hooks answer an MCP server, with their names."""
        self.reasons: dict[Decision, dict[Said, None]] = {}
        self.contexts: dict[Said, None] = {}
        self.wakes = False
        self.initial_prompts: dict[Said, None] = {}
        self.refusals: dict[Said, None] = {}
        self.notes: dict[ToUser, None] = {}
        self.failed_open = 0
        self.wanted_block = False

    def decision(self, reading: RankedVerdict, effect: EndTurn | Block | Defer | Ask | Approve) -> None:
        self.reasons.setdefault(DECISION_OF[type(effect)], {})[Said(reading.name, effect.reason)] = None

    def approval(self, reading: RankedVerdict, effect: Approve) -> None:
        if reading.allow_counts:
            self.decision(reading, effect)

    def block(self, reading: RankedVerdict, effect: Block) -> None:
        self.wanted_block = True
        self.decision(reading, effect)

    def withheld_by(self, reading: RankedVerdict, effect: Withhold) -> None:
        self.withheld[reading.name] = f"hook {reading.name}: {effect.why}"

    def note(self, reading: RankedVerdict, effect: TellUser) -> None:
        self.notes[ToUser(reading.name, effect.text)] = None

    def context(self, reading: RankedVerdict, effect: AddContext) -> None:
        self.contexts[Said(reading.name, effect.text)] = None

    def wake(self, reading: RankedVerdict, effect: Block) -> None:
        """It is too late to block, but not to tell the model."""
        self.wakes = True
        self.contexts[Said(reading.name, effect.reason)] = None

    def initial_prompt(self, reading: RankedVerdict, effect: InitialPrompt) -> None:
        self.initial_prompts[Said(reading.name, effect.text)] = None

    def refusal(self, reading: RankedVerdict, effect: TellRefused) -> None:
        self.refusals[Said(reading.name, effect.text)] = None

    def replaced_output(self, reading: RankedVerdict, effect: ReplaceOutput) -> None:
        strand = ("alone", reading.position) if reading.strand is None else reading.strand
        self.replacements[strand] = reading.name, effect.text

    def answered(self, reading: RankedVerdict, effect: AnswerServer) -> None:
        if reading.allow_counts or self.row.action_words[effect.action] is not Decision.ALLOW:
            self.answers.append((reading.name, effect))

    def answer(self, decision: Decision) -> AnswerServer | None:
        """What the server gets: a refusal if any hook refuses, otherwise the first accept in configuration order."""
        if not self.row.action_words or decision is Decision.NONE:
            return None
        if decision is not Decision.ALLOW:
            cancels = any(said.action == CANCEL for _, said in self.answers)
            return AnswerServer(CANCEL if cancels else DECLINE)
        first = next((said for _, said in self.answers), None)
        others = [name for name, said in self.answers if first and not same_json(said.content, first.content)]
        if others:
            text = f"{self.answers[0][0]} and {', '.join(others)} answered with different content: the first one counts"
            self.notes[ToUser(self.answers[0][0], text)] = None
        return first

    def failure(self, reading: RankedVerdict, failure: Failure) -> None:
        self.failure_note(reading, failure)
        if lets_through(self.row, failure):
            self.failed_open += 1
            return
        name = reading.name
        self.unmet[name] = None
        if self.row.withholds:  # the hook's job may have been to redact the result
            self.withheld[name] = f"hook {name} failed {failure.how}"
        if failure_blocks(self.row, failure, spent=reading.position in self.spent):
            self.reasons.setdefault(Decision.BLOCK, {})[Said(name, failure.message)] = None
            self.wanted_block = self.wanted_block or not failure.is_broken
            if failure.is_broken:
                self.broken.add(reading.position)

    def failure_note(self, reading: RankedVerdict, failure: Failure) -> None:
        self.notes[ToUser(reading.name, failure.message, "error")] = None

    def replacement(self) -> tuple[str | None, str]:
        """The text that replaces the tool's result, and the names of the hooks that set it.

        Parallel hooks each saw the original: using the last one's text would restore what another one removed.
        """
        if self.withheld:
            return self.withhold("; ".join(self.withheld.values())), ", ".join(self.withheld)
        last = self.replacements.values()
        names = ", ".join(name for name, _ in last)
        if len({text for _, text in last}) <= 1:
            return next((text for _, text in last), None), names
        text = self.withhold(IN_DIFFERENT_WAYS.format(names=names))
        self.notes[ToUser(names, text)] = None
        return text, names

    def withhold(self, why: str) -> str:
        self.withholds = True
        return WITHHELD.format(what=self.row.withholds, why=why)


_Take = Callable[[_Tally, RankedVerdict, Any], None]
_ALL: Mapping[type, _Take] = {
    EndTurn: _Tally.decision,
    Block: _Tally.block,
    Defer: _Tally.decision,
    Ask: _Tally.decision,
    Approve: _Tally.approval,
    ReplaceOutput: _Tally.replaced_output,
    Withhold: _Tally.withheld_by,
    AnswerServer: _Tally.answered,
    AddContext: _Tally.context,
    InitialPrompt: _Tally.initial_prompt,
    TellRefused: _Tally.refusal,
    TellUser: _Tally.note,
    Failure: _Tally.failure,
}
_ASYNC: Mapping[type, _Take] = {
    AddContext: _Tally.context,
    TellUser: _Tally.note,
    Failure: _Tally.failure_note,
}
_TAKEN: Mapping[Role, Mapping[type, _Take]] = {
    Role.ENFORCE: _ALL,
    Role.SHADOW: {Failure: _Tally.failure_note},
    Role.ASYNC: _ASYNC,
    Role.REWAKE: {**_ASYNC, Block: _Tally.wake},
}
"""The effects that apply for each role. Failures of shadow and async hooks are reported, but never block."""


MANY_TIMES = 10
"""The limit for one prompt is this many times the limit for blocks in a row."""


def limited(outcome: Outcome, before: Blocks, limit: int) -> Outcome:
    """Ends the turn once hooks have blocked too often for one prompt. A `limit` of 0 means no limit.

    A block by broken hooks alone is not counted: it already happens only once.
    """
    keeps = outcome.flow is outcome.row.flow[Decision.BLOCK] and not outcome.only_broken_block
    if not (limit and keeps):
        return outcome
    if before.in_a_row >= limit:
        return _ended(outcome, f"kept the agent from stopping {limit} times in a row")
    if before.total >= MANY_TIMES * limit:
        return _ended(outcome, f"kept the agent from stopping {before.total} times")
    return outcome


def _ended(outcome: Outcome, did: str = "") -> Outcome:
    """The turn ends although hooks want it to continue, so it is not a success. A hook that still fails is an error."""
    said = outcome.reasons.get(Decision.BLOCK, ()) or outcome.contexts
    names = tuple(dict.fromkeys([*outcome.unmet, *(one.hook for one in said)]))
    hooks = f"{'hooks' if len(names) > 1 else 'hook'} {', '.join(names)}"
    error = f"The turn has ended, but {hooks} did not pass."
    notes = [ToUser("", f"H{hooks[1:]} {did}; it stops now.")] if did else []
    notes += [ToUser(", ".join(outcome.unmet), error, "error")] if outcome.unmet else []
    return replace(
        outcome,
        flow=outcome.row.flow[Decision.STOP],
        limit_reached=True,
        contexts=(),
        to_user=(*outcome.to_user, *notes),
        error=error,
    )


def lets_through(row: EventRow, failure: Failure) -> bool:
    """Whether this failure is only reported."""
    return not failure.blocks or row.failure_block is FailureBlock.NEVER


def withholds(row: EventRow, verdict: Verdict) -> bool:
    """Whether this run withholds the tool's result without replacing it."""
    failed = verdict.failure is not None and not lets_through(row, verdict.failure)
    return bool(row.withholds) and (failed or any(isinstance(effect, Withhold) for effect in verdict.effects))


def failure_blocks(row: EventRow, failure: Failure, *, spent: bool = False) -> bool:
    """Whether this failure blocks. `spent`: this hook's failure has already blocked once for this prompt."""
    once = row.failure_block is FailureBlock.BROKEN_ONCE and failure.is_broken
    return not lets_through(row, failure) and not (once and spent)


# --------------------------------------------------------------------------------------------------------- rewriting


def rewrite(tool_input: Mapping[str, Any], fields: Mapping[str, Any], nullable: Collection[str] = ()) -> dict[str, Any]:
    """The input with these top-level fields set. A null removes a field unless its schema allows null."""
    changed = dict(tool_input)
    for key, value in fields.items():
        if value is None and key not in nullable:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed


Check: TypeAlias = Callable[[dict[str, Any]], str]
"""Returns what is wrong with an input, or an empty string."""


def replaced(
    tool_input: Mapping[str, Any], fields: Mapping[str, Any], nullable: Collection[str], why_invalid: Check
) -> tuple[dict[str, Any], str]:
    """These fields as the whole input. If the tool cannot accept that, they are merged into its input instead, and the
    second value tells the user why."""
    whole = rewrite({}, fields, nullable)
    problem = why_invalid(whole)
    if not problem:
        return whole, ""
    kept = ", ".join(key for key in tool_input if key not in fields)
    note = f"updatedInput is not a whole input ({problem})"
    return rewrite(tool_input, fields, nullable), f"{note}; the fields it omits are kept: {kept or 'nothing'}"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level fields that differ, with their new values, or `REMOVED`."""
    changed = {key: value for key, value in after.items() if key not in before or not same_json(before[key], value)}
    return {**changed, **{key: REMOVED for key in before if key not in after}}


def changed(tool_input: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The input with these changes applied."""
    return {key: value for key, value in {**tool_input, **fields}.items() if value is not REMOVED}


REMOVED = object()


def same_json(one: object, other: object) -> bool:
    """Equal as JSON: unlike in Python, `True` is not `1`. The order of keys does not matter."""
    return one is other or (one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


NOT_CONVERGING = "Blocked: the rewrites do not converge: {names} changed the input again after it was final"
