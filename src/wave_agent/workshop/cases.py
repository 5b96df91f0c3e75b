"""Case files for hooks: events and their expected outcomes, in YAML or JSON. Errors include file and line."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import WaveError
from wave_agent.formats.strict_json import Document, StrictJSONError, parse_document, show_path, type_name
from wave_agent.formats.strict_json import Path as Place
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.text import did_you_mean
from wave_agent.workshop.sample_events import (
    GIVEN,
    Subject,
    SubjectError,
    check_tool,
    event_named,
    hooks_named,
    subject,
)
from wave_agent.workshop.trial import Bench, Rehearsal, rehearse

SUFFIXES = (".yaml", ".yml", ".json")
WORDS = ("block", "allow", "ask", "stop", "failure", "context", "none")
_KEYS = ("name", "event", "payload", "hook", "dialect", "answer", "expect", *GIVEN)


class CaseFileError(WaveError):
    """An invalid case file. The message says where, and what to change."""


class Check(Struct, frozen=True):
    """Something a case can expect."""

    type: type
    how: Literal["is", "has"]
    """`has`: the text contains the expected one."""
    actual: Callable[[Rehearsal], Any]
    meaning: str


def _exit_code(found: Rehearsal) -> Any:
    codes = [one.result.exit_code for one in found.runs]
    return codes[0] if codes and len(set(codes)) == 1 else codes


CHECKS: Mapping[str, Check] = {
    "outcome": Check(str, "is", lambda found: found.account.word, f"the combined outcome: {', '.join(WORDS)}"),
    "reason": Check(str, "has", lambda found: found.outcome.reason, "the reasons for the outcome"),
    "context": Check(
        str,
        "has",
        lambda found: "\n".join(said.text for said in found.outcome.contexts),
        "the context hooks add for the model",
    ),
    "input": Check(dict, "is", lambda found: found.outcome.tool_input, "the tool's input after all rewrites"),
    "output": Check(
        str, "has", lambda found: found.outcome.replacement or "", "the text that replaces the tool's result"
    ),
    "permission": Check(
        str,
        "is",
        lambda found: found.permission.answer.value if found.permission else None,
        "the combined decision of hooks, rules and mode: allow, ask or deny",
    ),
    "model": Check(str, "has", lambda found: "\n".join(found.account.model), "what the model would see"),
    "user": Check(str, "has", lambda found: "\n".join(found.account.user), "what the user would see"),
    "exit_code": Check(int, "is", _exit_code, "the exit code of every hook that ran"),
    "failures": Check(
        int, "is", lambda found: found.outcome.failed_open, "the number of failures let through; 0 by default"
    ),
    "hooks": Check(list, "is", lambda found: [one.hook.name for one in found.runs], "the names of the hooks that ran"),
}


class Case(Struct, frozen=True, kw_only=True):
    name: str
    place: str
    """File and line."""
    subject: Subject
    hook: str | None
    dialect: Dialect | None = None
    """Hooks are read in this dialect."""
    answer: Any = None
    """What the model answers that hooks ask. None: no model is asked, unless the bench has one."""
    expect: Mapping[str, Any]


class Difference(Struct, frozen=True):
    what: str
    how: str
    expected: Any
    actual: Any

    def lines(self) -> tuple[str, str]:
        """`- expected`, `+ actual`."""
        expected, actual = (json.dumps(value, ensure_ascii=False) for value in (self.expected, self.actual))
        return f"- {self.what} {self.how} {expected}", f"+ {self.what} is {actual}"


def differences(expect: Mapping[str, Any], found: Rehearsal) -> tuple[Difference, ...]:
    """How the result differs from the expectation. A failure that was let through is a difference unless expected."""
    wanted = {**expect} if expect.get("outcome") == "failure" else {**expect, "failures": expect.get("failures", 0)}
    return tuple(
        Difference(what, check.how, wanted[what], actual)
        for what, check in CHECKS.items()
        if what in wanted and not _met(check, wanted[what], actual := check.actual(found))
    )


def _met(check: Check, expected: Any, actual: Any) -> bool:
    if check.how == "has":
        return expected in actual
    return json.dumps(expected, sort_keys=True) == json.dumps(actual, sort_keys=True)  # `True` is not `1`


async def run_case(case: Case, bench: Bench) -> Rehearsal:
    """Run one case on the bench's hooks, or on those it names."""
    hooks = bench.hooks
    if case.hook is not None:
        hooks = hooks_named(case.hook, case.subject.event, hooks)
    if case.dialect is not None:
        hooks = tuple(replace(hook, dialect=case.dialect) for hook in hooks)
    bench = replace(bench, hooks=hooks)
    if case.answer is not None:
        from wave_agent.workshop.given_answers import AnsweredRunner  # lazy: few hooks ask a model

        bench = replace(bench, runner=AnsweredRunner(case.answer, bench.runner or ProcessRunner()))
    return await rehearse(bench, case.subject)


# ---------------------------------------------------------------------------------------------------- reading the files


def read_cases(file: str, hooks: Sequence[HookDefinition], tools: Sequence[str]) -> list[Case]:
    """Raises `CaseFileError`."""
    try:
        text = Path(file).read_bytes().decode()
    except OSError as error:
        raise CaseFileError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CaseFileError(f"{file} is not UTF-8") from None
    document = _parse_json(file, text) if file.endswith(".json") else _parse_yaml(file, text)
    return _CaseFileReader(file, document, hooks, tools).cases()


def _parse_json(file: str, text: str) -> Document:
    try:
        return parse_document(text)
    except StrictJSONError as error:
        raise CaseFileError(f"{file}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None


def _parse_yaml(file: str, text: str) -> Document:
    from wave_agent.formats.yaml_json import YAMLProblemError, parse_yaml  # lazy: only a YAML file needs it

    try:
        return parse_yaml(text)
    except YAMLProblemError as error:
        raise CaseFileError(f"{file}:{error.line}:{error.column}: not valid YAML: {error.problem}") from None


class _CaseFileReader:
    """One file."""

    def __init__(self, file: str, document: Document, hooks: Sequence[HookDefinition], tools: Sequence[str]) -> None:
        self.file = file
        self.document = document
        self.hooks = hooks
        self.tools = tools

    def wrong(self, path: Place, problem: str) -> CaseFileError:
        return CaseFileError(f"{self.file}:{self.document.line(path) or 1}: {show_path(path)}: {problem}")

    def cases(self) -> list[Case]:
        """A list of cases, or an object with one under `cases`."""
        value: Any = self.document.value
        path: Place = ()
        if isinstance(value, dict):
            self.known(cast(dict[str, Any], value), (), ("cases",))
            value, path = cast(dict[str, Any], value).get("cases"), ("cases",)
        if not isinstance(value, list) or not value:
            raise self.wrong(path, 'must be a list of cases, or an object with a list under "cases"')
        return [self.case(entry, (*path, index)) for index, entry in enumerate(cast(list[Any], value))]

    def known(self, entry: Mapping[str, Any], path: Place, keys: Sequence[str]) -> None:
        for key in entry:
            if key not in keys:
                raise self.wrong((*path, key), f'unknown key "{key}"{did_you_mean(str(key), keys)}')

    def value(self, entry: Mapping[str, Any], key: str, path: Place, kind: type) -> Any:
        found = entry.get(key)
        if found is not None and (not isinstance(found, kind) or (kind is int and isinstance(found, bool))):
            raise self.wrong((*path, key), f"must be {type_name(kind())}, not {type_name(found)}")
        return found

    def case(self, raw: Any, path: Place) -> Case:
        if not isinstance(raw, dict):
            raise self.wrong(path, f"a case must be an object, not {type_name(raw)}")
        entry = cast(dict[str, Any], raw)
        self.known(entry, path, _KEYS)
        given = {key: entry[key] for key in GIVEN if key in entry}
        hook = self.value(entry, "hook", path, str)
        name = self.value(entry, "name", path, str)
        payload = self.value(entry, "payload", path, dict)
        event = self.value(entry, "event", path, str)
        if event is None:
            raise self.wrong(path, 'needs an "event"')
        try:
            found = subject(event_named(event), given, payload)
            if found.tool is not None:
                check_tool(found.tool, self.tools, self.hooks)
            if hook is not None:
                hooks_named(hook, found.event, self.hooks)
        except SubjectError as error:
            raise self.wrong(path, str(error)) from None
        return Case(
            name=name or f"{event} {found.tool or ''}".strip(),
            place=f"{self.file}:{self.document.line(path)}",
            subject=found,
            hook=hook,
            dialect=self.dialect(entry, path),
            answer=entry.get("answer"),
            expect=self.expect(entry.get("expect"), (*path, "expect")),
        )

    def dialect(self, entry: Mapping[str, Any], path: Place) -> Dialect | None:
        named = self.value(entry, "dialect", path, str)
        if named is not None and named not in tuple(Dialect):
            known = ", ".join(Dialect)
            raise self.wrong(
                (*path, "dialect"), f'"{named}" is not a dialect{did_you_mean(named, Dialect)}; available: {known}'
            )
        return None if named is None else Dialect(named)

    def expect(self, raw: Any, path: Place) -> Mapping[str, Any]:
        if raw is None:
            raise self.wrong(path, "a case must expect something")
        entry = {"outcome": raw} if isinstance(raw, str) else raw
        if not isinstance(entry, dict):
            raise self.wrong(path, f"must be a word or an object, not {type_name(raw)}")
        wanted = cast(dict[str, Any], entry)
        self.known(wanted, path, tuple(CHECKS))
        for what in wanted:
            self.value(wanted, what, path, CHECKS[what].type)
        word = wanted.get("outcome")
        if word is not None and word not in WORDS:
            raise self.wrong(
                path, f'"{word}" is not an outcome{did_you_mean(word, WORDS)}; available: {", ".join(WORDS)}'
            )
        if not any(value is not None for value in wanted.values()):
            raise self.wrong(path, "a case must expect something")
        return {what: value for what, value in wanted.items() if value is not None}
