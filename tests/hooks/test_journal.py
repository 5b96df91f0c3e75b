"""The journal and deferred context on their own: which `once` hooks are used up, which context still waits."""

from wave_agent.hooks.config import hooks_in_code, load_hooks
from wave_agent.hooks.deferred import DeferredContext
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.journal import HookJournal
from wave_agent.hooks.journal_entries import journal_entry
from wave_agent.hooks.stage import Occurrence, Stage
from wave_agent.hooks.verdicts import AddContext, Defer, Failure, FailureKind, Outcome, Said, Verdict


def hook(**fields: object) -> HookDefinition:
    config = load_hooks([hooks_in_code({"PreToolUse": [{"command": "./hook.sh", **fields}]})])
    assert config.issues == ()
    return config.hooks[0]


def stage(number: int = 1, *, waited: bool = True) -> Stage:
    row = EVENTS[HookEvent.PRE_TOOL_USE]
    return Stage(Occurrence(row=row, number=number, is_waited_for=waited), {"tool_name": "Bash", "tool_input": {}})


def test_a_once_hook_may_look_twice_on_its_first_occasion_and_never_runs_on_another() -> None:
    journal, once = HookJournal(), hook(once=True)
    first, second = journal.next_occasion(), journal.next_occasion()
    assert [journal.claim(once, occasion) for occasion in (first, first, second)] == [True, True, False]
    assert all(journal.claim(hook(), occasion) for occasion in (first, first, second))


def test_after_a_resume_occasions_go_on_and_a_once_hook_that_ran_stays_used_up() -> None:
    once = hook(once=True)
    run = journal_entry(once, stage(7), 1, result=HookExecutionResult(exit_code=0), verdict=Verdict(), started="")
    resumed = HookJournal([run])
    assert resumed.next_occasion() == 8
    assert not resumed.claim(once, 8)
    assert resumed.claim(hook(once=True, name="another"), 8)


def test_a_once_hook_that_deferred_its_decision_judges_the_call_again() -> None:
    once, journal = hook(once=True), HookJournal()
    assert journal.claim(once, journal.next_occasion())
    later = Verdict((Defer("later"),))
    run = journal_entry(once, stage(1), 1, result=HookExecutionResult(exit_code=0), verdict=later, started="")
    journal.add(run)
    assert journal.claim(once, journal.next_occasion())
    assert HookJournal([run]).claim(once, 2)


def test_a_failure_is_let_through_only_if_the_hook_had_a_say() -> None:
    failed = Verdict((Failure(FailureKind.EXIT, "exit 1", blocks=False),))
    result = HookExecutionResult(exit_code=1)

    def let_through(one: HookDefinition, here: Stage, *, is_cancelled: bool = False) -> bool:
        entry = journal_entry(one, here, 1, result=result, verdict=failed, started="", is_cancelled=is_cancelled)
        return entry.let_through

    assert let_through(hook(), stage())
    assert not let_through(hook(), stage(), is_cancelled=True)
    assert not let_through(hook(), stage(waited=False))
    assert not let_through(hook(mode="shadow"), stage())
    assert not let_through(hook(**{"async": True}), stage())


def test_context_is_marked_as_deferred_only_in_runs_that_nothing_waits_for() -> None:
    said = Verdict((AddContext("late"),))
    result = HookExecutionResult(exit_code=0)

    def deferred(one: HookDefinition, here: Stage) -> tuple[str, ...]:
        return journal_entry(one, here, 1, result=result, verdict=said, started="").deferred

    assert deferred(hook(), stage()) == ()
    assert deferred(hook(), stage(waited=False)) == ("late",)
    assert deferred(hook(**{"async": True}), stage()) == ("late",)
    assert deferred(hook(**{"async": True, "mode": "shadow"}), stage()) == ()


def test_context_of_an_erased_prompt_is_dropped_whether_it_came_before_or_comes_later() -> None:
    context = DeferredContext()
    for occasion in (1, 2):
        context.add(said(f"from {occasion}"), occasion)
    context.erase(1)
    context.add(said("still from 1"), 1)
    assert [(one.said.text, one.occasion) for one in context.take()] == [("from 2", 2)]
    assert context.take() == ()


def said(text: str) -> Outcome:
    return Outcome(event=HookEvent.USER_PROMPT_SUBMIT, contexts=(Said("hook", text),))
