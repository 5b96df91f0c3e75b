"""Text output of a hook trial."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wave_agent.cli.hooks.options import indented
from wave_agent.effects.shown import call_summary, to_json
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.text import clip, one_line, strip_controls
from wave_agent.workshop.cases import Case, Difference
from wave_agent.workshop.inventory import place_of
from wave_agent.workshop.trial import Bench, Rehearsal, Tried

SHOWN = 2000
"""Maximum number of characters shown per stream; --json prints everything."""


def rehearsal_lines(found: Rehearsal, bench: Bench) -> Iterator[str]:
    subject, project = found.subject, bench.judge.places.project
    shown = f" {subject.tool} {json.dumps(subject.facts['tool_input'], ensure_ascii=False)}" if subject.tool else ""
    yield one_line(f"{subject.event}{shown}")
    if found.effects is not None:
        yield f"It {call_summary(subject.tool or '', found.effects, project, os.path.lexists)}."
    if not bench.hooks:
        yield no_hooks(bench)
    elif not found.runs:
        yield "No hook ran."
    for tried in found.runs:
        yield from _run(tried, project)
    for one in found.left_out:
        yield one_line(f"{one.hook.name} ({place_of(one.hook, project)}) was not run: {one.why}")
    account = found.account
    yield f"Outcome: {account.word}"
    for sentence in account.happens:
        yield f"    {one_line(sentence)}"
    if found.outcome.rewritten_by:
        yield from indented("input", json.dumps(found.outcome.tool_input, ensure_ascii=False), width=16)
    yield from _audience("the model sees", account.model)
    yield from _audience("the user sees", account.user)


def no_hooks(bench: Bench) -> str:
    if bench.left_out:
        return f"No hooks to try: --no-project-hooks skips the project's own ({bench.left_out})."
    return "There are no hooks in this project."


def _run(tried: Tried, project: str) -> Iterator[str]:
    result, again = tried.result, ", second look" if tried.run.look > 1 else ""
    head = (
        f"{tried.hook.name} ({place_of(tried.hook, project)}{again}): {how_it_ended(result)}, {result.duration:.0f} ms"
    )
    yield one_line(head)
    answer = "" if result.opinion is None else json.dumps(result.opinion.to_dict(), ensure_ascii=False)
    for label, text in (("stdout", result.stdout), ("stderr", result.stderr), ("answer", answer)):
        if text:
            yield from indented(label, clip(text, SHOWN))
    yield from indented("read as", tried.read_as)
    for problem in tried.problems:
        yield from indented("problem", clip(problem, SHOWN))
    yield from indented("says", f"{tried.run.outcome}{', but only in shadow' if tried.run.mode == 'shadow' else ''}")


def how_it_ended(result: HookExecutionResult) -> str:
    if result.timed_out:
        return "timed out"
    if result.error is not None:
        asked = result.by_model or result.by_service or result.by_server
        return "no answer" if asked else "could not start"
    if result.opinion is not None:
        return f"answered by {result.model}" if result.model else "answered"
    return f"signal {result.signal}" if result.exit_code is None else f"exit {result.exit_code}"


def _audience(who: str, texts: Iterable[str]) -> Iterator[str]:
    for text in list(texts) or ["nothing"]:
        yield from indented(who, clip(text, SHOWN), width=16)


def difference_lines(expect: Mapping[str, Any], differs: Sequence[Difference]) -> Iterator[str]:
    if expect:
        yield "Not as expected:" if differs else "As expected."
    yield from _diff(differs)


def case_lines(case: Case, found: Rehearsal, differs: Sequence[Difference]) -> Iterator[str]:
    where = f" ({case.place})" if differs else ""
    yield f"{'FAILED' if differs else 'ok':<6} {one_line(case.name + where)}"
    yield from _diff(differs)
    for tried in found.runs if differs else ():
        yield f"    {one_line(tried.hook.name)}: {how_it_ended(tried.result)}, {tried.run.outcome}"
        for problem in tried.problems:
            yield from indented("", clip(problem, SHOWN), width=3)


def _diff(differs: Sequence[Difference]) -> Iterator[str]:
    for one in differs:
        for line in one.lines():
            yield f"    {strip_controls(line)}"


def rehearsal_to_dict(found: Rehearsal) -> dict[str, Any]:
    permission, account = found.permission, found.account
    return {
        "event": found.subject.event.value,
        "facts": found.subject.facts,
        "effects": None if found.effects is None else to_json(found.effects),
        "runs": [_run_to_dict(tried) for tried in found.runs],
        "not_run": [{"name": one.hook.name, "why": one.why} for one in found.left_out],
        "outcome": account.word,
        "reason": found.outcome.reason,
        "happens": account.happens,
        "model_sees": account.model,
        "user_sees": account.user,
        "tool_input": found.outcome.tool_input,
        "rewritten_by": found.outcome.rewritten_by,
        "failed_open": found.outcome.failed_open,
        "permission": None if permission is None else {"answer": permission.answer.value, "by": permission.by},
    }


def _run_to_dict(tried: Tried) -> dict[str, Any]:
    result = tried.result
    return {
        "name": tried.hook.name,
        "command": tried.hook.shown_command,
        "source": tried.hook.source,
        "line": tried.hook.line,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "error": result.error,
        "duration_ms": tried.run.duration_ms,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "look": tried.run.look,
        "mode": tried.run.mode,
        "outcome": tried.run.outcome,
        "read_as": tried.read_as,
        "problems": tried.problems,
        "model": result.model,
        "tokens": result.tokens,
        "answer": None if result.opinion is None else result.opinion.to_dict(),
    }
