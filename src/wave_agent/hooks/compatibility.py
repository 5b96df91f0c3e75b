"""What hooks for other agents have in another way than ours, in words: for the documentation and for whoever asks."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct

from wave_agent.hooks.dialects import DIALECTS, Dialect, DialectRow
from wave_agent.hooks.events import EventRow, HookEvent


class Kinship(StrEnum):
    """How what holds here compares with what holds in the agent that a hook was written for."""

    SAME = "same"
    STRICTER = "stricter on purpose"
    DIFFERENT = "different"


class Column(Struct, frozen=True):
    """What a column of the table of dialects means for whoever writes hooks."""

    name: str
    topic: str
    on: Callable[[EventRow], bool]
    """The events that it is about."""
    here: Callable[[DialectRow], str]
    """What holds in a dialect."""
    shown: str
    """The test that shows it."""
    kinship: Kinship = Kinship.SAME
    why: str = ""


def _always(_: EventRow) -> bool:
    return True


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "nothing"


COLUMNS = (
    Column(
        "exit_two_rules",
        "exit 2 beside JSON",
        lambda event: not event.after_tool and event.has_tool,
        lambda row: (
            "blocks, whatever the JSON allows or asks; the contradiction is reported"
            if row.exit_two_rules
            else "a decision in the JSON rules"
        ),
        "test_a_guard_that_exits_with_2_is_overruled_by_its_own_json",
    ),
    Column(
        "whole_input",
        "`updatedInput`",
        lambda event: event.has_rewrites,
        lambda row: (
            "is the whole input: a field that it leaves out is gone. If the tool cannot take that, its fields are set "
            "in the input instead, and the user is told"
            if row.whole_input
            else "has the fields to set; the others stay"
        ),
        "test_a_field_that_the_new_input_leaves_out_stays_in",
        Kinship.DIFFERENT,
        "there, a call with an invalid new input is refused; here what the hook wants to change is changed",
    ),
    Column(
        "failed_tool",
        "a tool that ran and failed, such as a command with exit code 1",
        lambda event: event.after_tool,
        lambda row: f"fires `{row.failed_tool}`",
        "test_a_hook_that_commits_after_green_tests_commits_after_red_ones",
    ),
    Column(
        "needs_somebody",
        "where nobody can be asked, as with `wave -p`",
        lambda event: event.event in frozenset[HookEvent]().union(*(row.needs_somebody for row in DIALECTS.values())),
        lambda row: (
            f"hooks on {_codes(sorted(row.needs_somebody))} do not run"
            if row.needs_somebody
            else "all hooks run, and can answer"
        ),
        "test_a_hook_answers_a_question_that_nobody_sees",
        Kinship.STRICTER,
        "releases differ: 2.1.197 does not run them, 2.1.325 does, and an allow counts there",
    ),
    Column(
        "has_once",
        "`once` in settings",
        _always,
        lambda row: "is honoured" if row.has_once else "is ignored, and reported: the hook runs every time",
        "test_a_guard_that_says_once_guards_the_first_call_alone",
    ),
    Column(
        "has_arguments",
        "arguments of a command that is one bare path",
        _always,
        lambda row: "the event's main values" if row.has_arguments else "none",
        "test_a_bare_path_in_a_foreign_file_gets_no_arguments",
    ),
    Column(
        "names_its_services",
        "`http` hooks",
        _always,
        lambda row: (
            "trust in the hook covers its host; `allowedEnvVars` names the variables of its headers; an empty answer "
            "is no opinion and plain text is plain text. Managed `httpHooks` limit both"
            if row.names_its_services
            else "`httpHooks` lists hosts and variables; an answer is JSON"
        ),
        "test_a_service_that_no_setting_lists_is_not_asked",
    ),
    Column(
        "takes_other_types",
        "types of hooks that this agent does not have (`prompt`, `agent`)",
        _always,
        lambda row: (
            "reported at the start; each run is a failure, which counts, and blocks under `onFailure: block`"
            if row.takes_other_types
            else "the entry is invalid"
        ),
        "test_a_guard_of_an_unknown_type_lets_the_call_pass_and_nobody_hears_of_it",
        Kinship.DIFFERENT,
        "this agent does not have them yet",
    ),
    Column(
        "follows_session",
        "`cwd` on stdin, and the directory in which a hook runs",
        _always,
        lambda row: (
            "follow the session's current directory, inside the project. A hook itself stays in the project's "
            "directory if it, or a script that it names, names a relative path or a program that may take code or "
            "settings from where it runs (`git`, `make`, `npx`, `python -c`, …)"
            if row.follows_session
            else "where the agent was started; the project's directory"
        ),
        "test_a_hook_runs_where_the_session_was_started_and_not_where_it_is",
        Kinship.STRICTER,
        "a change of directory must not lose a guard, nor put another file in its place",
    ),
    Column(
        "stdin",
        "more on stdin",
        _always,
        lambda row: _codes(extra.field.name for extra in row.stdin),
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
    Column(
        "environment",
        "more in the environment",
        _always,
        lambda row: _codes(row.environment),
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
    Column(
        "shapes",
        "`tool_response` in the shape of the agent",
        lambda event: "tool_response" in {field.name for field in event.stdin},
        lambda row: f"of {_codes(row.shapes)}" if row.shapes else "`success`, `content` and the tool's own fields",
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
)


def differences(dialect: Dialect, event: EventRow) -> tuple[str, ...]:
    """What this dialect has in another way than ours, on this event, in words."""
    row, own = DIALECTS[dialect], DIALECTS[Dialect.WAVE]
    return tuple(
        f"{column.topic}: {column.here(row)}"
        for column in COLUMNS
        if column.on(event) and column.here(row) != column.here(own)
    )


class Comparison(Struct, frozen=True):
    """One thing that does not depend on the dialect, beside what holds in the agent that a hook was written for."""

    topic: str
    kinship: Kinship
    here: str
    why: str = ""
    shown: str = ""
    """The test, or the conformance case, that shows it."""


SAME, STRICTER, DIFFERENT = Kinship.SAME, Kinship.STRICTER, Kinship.DIFFERENT
COMPARISONS = (
    Comparison(
        "exit codes 0, 2 and others",
        SAME,
        "2 blocks, with or without stderr; others are reported",
        shown="claude-exit-2-beside-allow-blocks-without-stderr-too",
    ),
    Comparison(
        "matcher groups, `type`, `command`, `args`, `timeout`, `if`, `async`, `statusMessage`",
        SAME,
        "with `args` no shell runs; `${CLAUDE_PROJECT_DIR}` and `${CLAUDE_PLUGIN_ROOT}` are filled in",
        shown="test_a_guard_that_names_the_project_in_its_args_is_not_found",
    ),
    Comparison(
        "`decision: approve` and `block` before a tool",
        SAME,
        "the old words for allow and deny",
        shown="test_a_deny_under_a_key_that_is_given_twice_is_lost",
    ),
    Comparison(
        "`decision: allow` before a tool",
        SAME,
        "no opinion; it is reported",
        shown="test_a_hook_with_nothing_to_object_answers_the_question",
    ),
    Comparison(
        "several hooks at once",
        SAME,
        "a deny is never lost, whichever hook is faster",
        shown="claude-a-rewritten-input-is-seen-by-the-other-guards",
    ),
    Comparison(
        "two hooks that each return the whole input",
        DIFFERENT,
        "what each has changed is put together",
        "there, the hook that ends last replaces what the other one wrote",
        "claude-two-whole-inputs-compose",
    ),
    Comparison(
        "`updatedToolOutput` as an object or a list",
        SAME,
        "its text replaces the result",
        shown="test_a_redactor_that_prints_the_response_as_an_object_redacts_nothing",
    ),
    Comparison(
        "a Stop that is blocked without a reason",
        SAME,
        "the model goes on with a default text; it is reported",
        shown="test_a_stop_hook_that_blocks_without_a_reason_lets_the_turn_end",
    ),
    Comparison(
        "context from Stop hooks and from async hooks",
        SAME,
        "reaches the model with the next request, also with `wave -p`",
        shown="test_what_an_async_hook_adds_is_lost_when_there_is_one_prompt_alone",
    ),
    Comparison(
        "an empty alternative in a matcher (`Bash|`)",
        SAME,
        "is left out",
        shown="test_a_stroke_too_many_in_a_matcher_switches_its_guards_off",
    ),
    Comparison(
        "JSON without a known key, on SessionStart and UserPromptSubmit",
        DIFFERENT,
        "is context, like plain text",
        "there it is dropped; text that a hook prints is worth reading",
        "claude-an-object-without-a-known-key-is-context",
    ),
    Comparison(
        "`CLAUDE_PROJECT_DIR`, `CLAUDE_ENV_FILE`; for plugins `CLAUDE_PLUGIN_ROOT`, `_DATA`",
        SAME,
        "set; what SessionStart hooks export reaches the session's commands, not hooks",
    ),
    Comparison(
        "odd shapes: no `type`, no inner `hooks`, a bare string, comments",
        STRICTER,
        "are read",
        "there, such a guard does not run",
    ),
    Comparison(
        "`tool_result`, `tool_output`, `user_prompt` on stdin; `CLAUDE_SESSION_ID`",
        DIFFERENT,
        "copies, under names that some hooks look for",
        "there, they do not exist",
    ),
    Comparison(
        "a decision in the wrong place, or under another event's name",
        STRICTER,
        "what restricts counts, and is reported",
        "the hook meant to restrict",
        "claude-a-deny-in-the-wrong-place-denies",
    ),
    Comparison(
        'a decision that cannot be read (`"Deny"`, `5`)',
        STRICTER,
        "asks before a tool, else fails",
        "the hook meant to decide",
    ),
    Comparison("JSON with an exit code other than 0 and 2", SAME, "counts: a deny with exit 1 denies"),
    Comparison(
        "text before the JSON",
        STRICTER,
        "what restricts counts, and is reported",
        "a deny must not be lost by an `echo`",
    ),
    Comparison(
        "a key that is given twice",
        STRICTER,
        "the stricter value counts, and it is reported",
        "which of the two was meant is unknown",
        "test_a_deny_under_a_key_that_is_given_twice_is_lost",
    ),
    Comparison(
        "`continue: false` before a tool",
        STRICTER,
        "the tool does not run",
        "what ends the turn should not act first",
        "claude-continue-false-before-a-tool-keeps-it-from-running",
    ),
    Comparison(
        "a hook's allow in plan mode, on a protected path, or against a rule that asks",
        STRICTER,
        "lifts none of them",
        "a hook answers questions; it does not change what is forbidden",
        "claude-an-allow-does-not-lift-plan-mode",
    ),
    Comparison(
        "an input that a hook rewrote",
        STRICTER,
        "guards that saw the old one run again on the new one",
        "nothing runs that no guard has seen",
        "claude-a-rewritten-input-is-seen-by-the-other-guards",
    ),
    Comparison(
        "one invalid entry in a file",
        STRICTER,
        "is reported; the rest still run",
        "a typo must not switch guards off",
        "claude-one-broken-entry-leaves-the-others",
    ),
    Comparison(
        "broken JSON on SessionStart and UserPromptSubmit",
        SAME,
        "is reported, and never context (older releases took it for context)",
        shown="claude-broken-json-of-a-prompt-hook-is-no-context",
    ),
    Comparison(
        "names in matchers", STRICTER, "match in any case: `bash` is `Bash`", "a guard should not depend on a capital"
    ),
    Comparison(
        "settings in directories above the current one",
        STRICTER,
        "count too, from the root of the repository",
        "no guard is lost by starting one directory below",
    ),
    Comparison(
        "a project's hooks", STRICTER, "need trust, and a script that changes is not run", "a checkout is not a program"
    ),
    Comparison(
        "permission rules",
        STRICTER,
        "a pattern for a tool that takes none here (`WebFetch(domain:…)`) restricts every call, and allows none",
        "what is not understood restricts",
    ),
    Comparison(
        "hooks that fail",
        STRICTER,
        "are reported and counted; `onFailure` or `--strict-hooks` make them block",
        "a failure is not a success",
    ),
    Comparison(
        "Stop hooks that block for ever",
        SAME,
        "after 8 blocks in a row without a tool call the turn ends, here as `stop_limit` (`maxStopBlocks`)",
        shown="test_a_loop_that_makes_progress_is_cut_by_the_limit_of_stops",
    ),
    Comparison(
        "`timeout`",
        DIFFERENT,
        "1000 or more is read as milliseconds, and reported",
        "many public hooks write milliseconds",
    ),
    Comparison("`shell`", DIFFERENT, "`bash`; an entry for another shell is invalid", "commands run in Bash"),
    Comparison(
        "`effort`, `background_tasks`, `session_crons`",
        DIFFERENT,
        "always the same values: the agent has no such things",
    ),
    Comparison(
        "`tool_response` of other tools (Grep, Glob, TodoWrite)",
        DIFFERENT,
        "`success`, `content` and the tool's own fields",
        "public hooks hardly read them",
    ),
    Comparison("`error` on PostToolUseFailure", DIFFERENT, "the text that the model reads"),
    Comparison(
        "`structuredPatch`", DIFFERENT, "at most 200 lines, long ones cut", "a patch may be as long as two files"
    ),
    Comparison(
        "tools and events that there are not here",
        DIFFERENT,
        "may be named; hooks on other events are reported and do not run",
    ),
    Comparison(
        "the transcript",
        DIFFERENT,
        "at `transcript_path`; `session` and `system` lines are this agent's own. Nothing is written to `~/.claude`",
    ),
    Comparison("names of hooks", DIFFERENT, "a short form of the command"),
)
