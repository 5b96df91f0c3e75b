"""What hooks for other agents have in another way than ours, in words: for the documentation and for whoever asks."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from wave_agent.hooks.dialects import DIALECTS, Dialect, DialectRow
from wave_agent.hooks.events import EventRow, HookEvent


class Column(Struct, frozen=True):
    """What a column means for whoever writes hooks."""

    name: str
    topic: str
    on: Callable[[EventRow], bool]
    """The events that it is about."""
    here: Callable[[DialectRow], str]
    """What holds in a dialect."""


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
    ),
    Column(
        "failed_tool",
        "a tool that ran and failed, such as a command with exit code 1",
        lambda event: event.after_tool,
        lambda row: f"fires `{row.failed_tool}`",
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
    ),
    Column(
        "has_once",
        "`once` in settings",
        _always,
        lambda row: "is honoured" if row.has_once else "is ignored, and reported: the hook runs every time",
    ),
    Column(
        "has_arguments",
        "arguments of a command that is one bare path",
        _always,
        lambda row: "the event's main values" if row.has_arguments else "none",
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
    ),
    Column(
        "follows_session",
        "`cwd` on stdin, and the directory in which a hook runs",
        _always,
        lambda row: (
            "follow the session's current directory, inside the project. A hook stays in the project's directory if it "
            "visibly runs code that is found by a relative path or by where it runs"
            if row.follows_session
            else "where the agent was started; the project's directory"
        ),
    ),
    Column(
        "stdin",
        "more on stdin",
        _always,
        lambda row: _codes(extra.field.name for extra in row.stdin),
    ),
    Column("environment", "more in the environment", _always, lambda row: _codes(row.environment)),
    Column(
        "shapes",
        "`tool_response` in the shape of the agent",
        lambda event: "tool_response" in {field.name for field in event.stdin},
        lambda row: f"of {_codes(row.shapes)}" if row.shapes else "`success`, `content` and the tool's own fields",
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
