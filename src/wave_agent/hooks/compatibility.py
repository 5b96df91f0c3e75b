"""How hooks for other agents differ from ours, in words, for the documentation and `wave hooks explain`."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct

from wave_agent.hooks.dialects import DIALECTS, Dialect, DialectRow
from wave_agent.hooks.events import EventRow, HookEvent


class Kinship(StrEnum):
    """How behaviour here compares with the agent that a hook was written for."""

    SAME = "same"
    STRICTER = "stricter on purpose"
    DIFFERENT = "different"


class Column(Struct, frozen=True):
    """What a column of the dialect table means to hook authors."""

    name: str
    topic: str
    on: Callable[[EventRow], bool]
    """The events it applies to."""
    here: Callable[[DialectRow], str]
    """The behaviour in a dialect."""
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
        "exit 2 with JSON",
        lambda event: not event.after_tool and event.has_tool,
        lambda row: (
            "blocks, whatever the JSON allows or asks; the contradiction is reported"
            if row.exit_two_rules
            else "a decision in the JSON takes precedence"
        ),
        "test_a_guard_that_exits_with_2_is_overruled_by_its_own_json",
    ),
    Column(
        "whole_input",
        "`updatedInput`",
        lambda event: event.has_rewrites,
        lambda row: (
            "is the whole input: fields it omits are removed. If the tool rejects the result, the fields are merged "
            "into the input instead, and the user is notified"
            if row.whole_input
            else "contains the fields to set; the others stay"
        ),
        "test_a_field_that_the_new_input_leaves_out_stays_in",
        Kinship.DIFFERENT,
        "there, a call with an invalid new input is rejected; here, the hook's changes are still applied",
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
        "no user to ask, as with `wave -p`",
        lambda event: event.event in frozenset[HookEvent]().union(*(row.needs_somebody for row in DIALECTS.values())),
        lambda row: (
            f"hooks on {_codes(sorted(row.needs_somebody))} do not run"
            if row.needs_somebody
            else "all hooks run and can answer"
        ),
        "test_a_hook_answers_a_question_that_nobody_sees",
        Kinship.STRICTER,
        "releases differ: 2.1.197 does not run them, 2.1.325 does and accepts an allow",
    ),
    Column(
        "has_once",
        "`once` in settings",
        _always,
        lambda row: "is honoured" if row.has_once else "is ignored and reported; the hook runs every time",
        "test_a_guard_that_says_once_guards_the_first_call_alone",
    ),
    Column(
        "has_arguments",
        "arguments of a command that is a bare path",
        _always,
        lambda row: "the event's main values" if row.has_arguments else "none",
        "test_a_bare_path_in_a_foreign_file_gets_no_arguments",
    ),
    Column(
        "names_its_services",
        "`http` hooks",
        _always,
        lambda row: (
            "trusting the hook covers its host; `allowedEnvVars` lists the variables its headers may use; an empty "
            "response is no opinion, and plain text is plain text. Managed `httpHooks` restrict both"
            if row.names_its_services
            else "`httpHooks` lists hosts and variables; a response is JSON"
        ),
        "test_a_service_that_no_setting_lists_is_not_asked",
    ),
    Column(
        "continues_on_block",
        "`continueOnBlock` of `prompt` hooks, if not set",
        _always,
        lambda row: (
            "true: the model gets the objection and continues"
            if row.continues_on_block
            else "false: an objection before or after a call also ends the turn"
        ),
        "test_an_objection_to_a_call_is_told_to_the_model_and_the_turn_goes_on",
    ),
    Column(
        "model_words",
        "`model` of `prompt` and `agent` hooks",
        _always,
        lambda row: (
            f"{', '.join(f'`{word}`' for word in sorted(row.model_words))}: the usual model; other names as they are"
            if row.model_words
            else "a name that the server knows"
        ),
        "test_a_hook_asks_for_a_model_that_only_another_agent_knows",
    ),
    Column(
        "takes_other_types",
        "hook types that Wave does not have",
        _always,
        lambda row: (
            "reported at start-up; each run is a failure: it is counted, and blocks under `onFailure: block`"
            if row.takes_other_types
            else "the entry is invalid"
        ),
        "test_a_guard_of_an_unknown_type_lets_the_call_pass_and_nobody_hears_of_it",
        Kinship.DIFFERENT,
        "such as one that a later release of another agent adds",
    ),
    Column(
        "follows_session",
        "`cwd` on stdin, and the directory a hook runs in",
        _always,
        lambda row: (
            "both follow the session's current directory within the project. But the hook runs in the project's "
            "directory if it, or a script it names, uses a relative path or a program that may load code or settings "
            "from the directory it runs in (`git`, `make`, `npx`, `python -c`, …)"
            if row.follows_session
            else "the directory the agent was started in; the project's directory"
        ),
        "test_a_hook_runs_where_the_session_was_started_and_not_where_it_is",
        Kinship.STRICTER,
        "changing directory must not disable a guard or swap its script",
    ),
    Column(
        "stdin",
        "additional stdin fields",
        _always,
        lambda row: _codes(extra.field.name for extra in row.stdin),
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
    Column(
        "environment",
        "additional environment variables",
        _always,
        lambda row: _codes(row.environment),
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
    Column(
        "shapes",
        "`tool_response` in the agent's own shape",
        lambda event: "tool_response" in {field.name for field in event.stdin},
        lambda row: f"for {_codes(row.shapes)}; of other tools, `success`, `content` and the tool's own fields",
        "test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not",
    ),
)


def differences(dialect: Dialect, event: EventRow) -> tuple[str, ...]:
    """How this dialect differs from ours on this event, in words."""
    row, own = DIALECTS[dialect], DIALECTS[Dialect.WAVE]
    return tuple(
        f"{column.topic}: {column.here(row)}"
        for column in COLUMNS
        if column.on(event) and column.here(row) != column.here(own)
    )


class Comparison(Struct, frozen=True):
    """A behaviour that does not depend on the dialect, compared with the agent that a hook was written for."""

    topic: str
    kinship: Kinship
    here: str
    why: str = ""
    shown: str = ""
    """The test or conformance case that shows it."""


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
        "older words for allow and deny",
        shown="test_a_deny_under_a_key_that_is_given_twice_is_lost",
    ),
    Comparison(
        "`decision: allow` before a tool",
        SAME,
        "no opinion; reported",
        shown="test_a_hook_with_nothing_to_object_answers_the_question",
    ),
    Comparison(
        "several hooks in parallel",
        SAME,
        "a deny is never lost, whichever hook is faster",
        shown="claude-a-rewritten-input-is-seen-by-the-other-guards",
    ),
    Comparison(
        "two hooks that each return the whole input",
        DIFFERENT,
        "their changes are merged",
        "there, the hook that finishes last overwrites the other's changes",
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
        "the model continues with a default text; reported",
        shown="test_a_stop_hook_that_blocks_without_a_reason_lets_the_turn_end",
    ),
    Comparison(
        "context from Stop hooks and from async hooks",
        SAME,
        "reaches the model with the next request, including in `wave -p`",
        shown="test_what_an_async_hook_adds_is_lost_when_there_is_one_prompt_alone",
    ),
    Comparison(
        "an empty alternative in a matcher (`Bash|`)",
        SAME,
        "is ignored",
        shown="test_a_stroke_too_many_in_a_matcher_switches_its_guards_off",
    ),
    Comparison(
        "JSON without a known key, on SessionStart and UserPromptSubmit",
        DIFFERENT,
        "is context, like plain text",
        "there, it is dropped; text that a hook prints is worth reading",
        "claude-an-object-without-a-known-key-is-context",
    ),
    Comparison(
        "`CLAUDE_PROJECT_DIR`, `CLAUDE_ENV_FILE`; for plugins `CLAUDE_PLUGIN_ROOT`, `_DATA`",
        SAME,
        "are set; variables exported by SessionStart, CwdChanged and FileChanged hooks reach the session's commands, "
        "not hooks",
    ),
    Comparison(
        "unusual shapes: no `type`, no inner `hooks`, a bare string, comments",
        STRICTER,
        "are accepted",
        "there, a guard like this does not run",
    ),
    Comparison(
        "`tool_result`, `tool_output`, `user_prompt` on stdin; `CLAUDE_SESSION_ID`",
        DIFFERENT,
        "copies under names that some hooks read",
        "there, they do not exist",
    ),
    Comparison(
        "a decision in the wrong place, or under another event's name",
        STRICTER,
        "restrictions apply and are reported",
        "the hook meant to restrict",
        "claude-a-deny-in-the-wrong-place-denies",
    ),
    Comparison(
        'an invalid decision (`"Deny"`, `5`)',
        STRICTER,
        "asks before a tool; elsewhere, a failure",
        "the hook meant to decide",
    ),
    Comparison("JSON with an exit code other than 0 and 2", SAME, "is used: a deny with exit 1 denies"),
    Comparison(
        "text before the JSON",
        STRICTER,
        "restrictions apply and are reported",
        "an `echo` must not cancel a deny",
    ),
    Comparison(
        "a duplicate key",
        STRICTER,
        "the stricter value is used; reported",
        "there is no way to know which was meant",
        "test_a_deny_under_a_key_that_is_given_twice_is_lost",
    ),
    Comparison(
        "`continue: false` before a tool",
        STRICTER,
        "the tool does not run",
        "the turn ends, so nothing may run first",
        "claude-continue-false-before-a-tool-keeps-it-from-running",
    ),
    Comparison(
        "a hook's allow in plan mode, on a protected path, or against a rule that asks",
        STRICTER,
        "overrides none of them",
        "a hook answers questions; it does not lift restrictions",
        "claude-an-allow-does-not-lift-plan-mode",
    ),
    Comparison(
        "an input rewritten by a hook",
        STRICTER,
        "guards that saw the old input run again on the new one",
        "nothing runs unless the guards have seen it",
        "claude-a-rewritten-input-is-seen-by-the-other-guards",
    ),
    Comparison(
        "one invalid entry in a file",
        STRICTER,
        "is reported; the rest still runs",
        "a typo must not disable guards",
        "claude-one-broken-entry-leaves-the-others",
    ),
    Comparison(
        "malformed JSON on SessionStart and UserPromptSubmit",
        SAME,
        "is reported and never used as context (older releases did)",
        shown="claude-broken-json-of-a-prompt-hook-is-no-context",
    ),
    Comparison(
        '`permissionDecision: "defer"`',
        STRICTER,
        "where a user can be asked, or next to other calls, it is an ask; the input of a rule that denies is denied at "
        "once. The result has `deferred_tool_use` and the status `stopped`",
        "there, it is ignored in these cases and the call may run",
        "test_a_call_is_deferred_and_runs_once_somebody_has_decided",
    ),
    Comparison(
        "`disableAllHooks`",
        STRICTER,
        "in a project's file, a plugin or a file of another agent, it disables the hooks of that file only; in your "
        "own settings for Wave, yours and the project's. Managed hooks run unless managed settings say it",
        "a project must not disable your guards",
        "test_a_file_disables_the_hooks_that_it_may_disable_and_says_so",
    ),
    Comparison(
        "`continue: false` on TaskCreated and PermissionDenied",
        STRICTER,
        "ends the turn",
        "a hook can always end the turn",
        "task-created-continue-false-ends-the-turn",
    ),
    Comparison(
        "names in matchers", STRICTER, "are case-insensitive: `bash` is `Bash`", "a guard should not depend on case"
    ),
    Comparison(
        "settings in parent directories",
        STRICTER,
        "apply too, from the root of the repository",
        "starting in a subdirectory must not disable a guard",
    ),
    Comparison(
        "a project's hooks",
        STRICTER,
        "need trust, in settings and in definitions of subagents, and a changed script does not run",
        "checking out code must not execute it",
        "test_a_hook_of_a_definition_is_bound_to_the_script_it_names",
    ),
    Comparison(
        "a project's agents, skills and commands",
        STRICTER,
        "need trust, and are left out without it; the user's own win over them",
        "they steer the model, and may run commands",
        "test_untrusted_ones_are_left_out_with_one_notice_and_the_session_starts",
    ),
    Comparison(
        "hooks in subagents",
        SAME,
        "all hooks of the session run there, with `agent_id` and `agent_type`; SubagentStart and SubagentStop come in "
        "pairs, and `Stop` in a definition means the end of its subagent",
        shown="test_start_and_stop_come_in_pairs_whatever_happens",
    ),
    Comparison(
        "definitions of subagents",
        DIFFERENT,
        "a subagent starts no others; `memory`, `background`, `effort`, `isolation` and `initialPrompt` are reported "
        "and have no effect",
        shown="test_what_is_wrong_is_reported_with_its_field",
    ),
    Comparison(
        "permission rules",
        STRICTER,
        "a pattern that a tool does not have (`WebFetch(https://…)`) restricts every call and allows none",
        "a rule that is not understood may only restrict",
    ),
    Comparison(
        "hooks that fail",
        STRICTER,
        "are reported and counted; they block with `onFailure` or `--strict-hooks`",
        "a failure is not a success",
    ),
    Comparison(
        "Stop hooks that block forever",
        SAME,
        "after 8 blocks in a row without a tool call the turn ends, here as `stop_limit` (`maxStopBlocks`)",
        shown="test_a_loop_that_makes_progress_is_cut_by_the_limit_of_stops",
    ),
    Comparison(
        "`timeout`",
        DIFFERENT,
        "1000 or more is read as milliseconds and reported",
        "many public hooks use milliseconds",
    ),
    Comparison(
        "PermissionDenied",
        DIFFERENT,
        "runs for every call that a rule, the mode, a protected path, the sandbox, the user or the lack of one denies; "
        "`denied_by` says which. Not for a hook's own deny",
        "there, only the classifier of auto mode counts, which Wave does not have",
        "test_a_denied_call_is_known_to_hooks_and_the_model_may_be_invited_to_try_again",
    ),
    Comparison(
        "TaskCreated and TaskCompleted",
        DIFFERENT,
        "items of TodoWrite; an item is known by its text, which `task_id` is made from",
        "there, tasks have tools of their own",
        "test_hooks_decide_what_is_on_the_todo_list_and_what_is_done",
    ),
    Comparison(
        "PostToolBatch",
        DIFFERENT,
        "a block's reason goes to the user only; each call also has `success`, and `error` if it failed",
        "there, the model reads it when the conversation continues",
        "post-tool-batch-exit-2-ends-the-turn",
    ),
    Comparison(
        "FileChanged",
        DIFFERENT,
        "runs for files that calls and their background commands change, in any directory of the project, up to 1,000 "
        "per call and one after another; a matcher may use `*` and `?`; there is no `watchPaths`",
        "there, a file watcher sees named files only, whoever changes them",
        "test_hooks_hear_of_instructions_changed_files_and_a_new_directory",
    ),
    Comparison(
        "InstructionsLoaded",
        DIFFERENT,
        "runs at the start of a session only, for AGENTS.md and CLAUDE.md",
        "Wave loads no instructions later",
        "test_hooks_hear_of_instructions_changed_files_and_a_new_directory",
    ),
    Comparison(
        "`initialUserMessage`, `asyncRewake`",
        SAME,
        "the message is a prompt of its own, which UserPromptSubmit hooks see; a background block becomes context, and "
        "after the end of `wave -p` a notice",
        shown="test_a_run_without_a_prompt_begins_with_that_of_a_hook_and_guards_see_it",
    ),
    Comparison("`shell`", DIFFERENT, "`bash`; an entry for another shell is invalid", "commands run in Bash"),
    Comparison(
        "`effort`, `background_tasks`, `session_crons`",
        DIFFERENT,
        "always the same values: Wave does not have these features",
    ),
    Comparison(
        "`tool_response` of other tools (Grep, Glob, TodoWrite)",
        DIFFERENT,
        "`success`, `content` and the tool's own fields",
        "public hooks rarely read them",
    ),
    Comparison("`error` on PostToolUseFailure", DIFFERENT, "the text the model sees"),
    Comparison(
        "`structuredPatch`", DIFFERENT, "at most 200 lines, long lines cut", "a patch can be as long as two files"
    ),
    Comparison(
        "tools and events that Wave does not have",
        DIFFERENT,
        "are accepted; hooks on such events are reported and do not run",
    ),
    Comparison(
        "the transcript",
        DIFFERENT,
        "at `transcript_path`; `session` and `system` lines are specific to Wave. Nothing is written to `~/.claude`",
    ),
    Comparison("names of hooks", DIFFERENT, "a short form of the command"),
)
