"""What the user is asked, in words, for the screen and for `wave --plain`. Needs no library for terminals."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wave_agent.permissions.decision import Allow, Deny, PermissionMode, PermissionRequest, RestoreRequest
from wave_agent.screen.call_words import description_of

DIFF = "diff"
"""The style of a part that is a change of a file."""
LISTED = 20
"""Maximum number of files in one question."""


class Choice(NamedTuple):
    value: str
    """The value of the answer."""
    label: str
    key: str = ""
    """A letter that selects it directly."""


class Part(NamedTuple):
    text: str
    style: str = ""


class Dialog(NamedTuple):
    title: str
    parts: Sequence[Part]
    """One text, in pieces."""
    choices: Sequence[Choice]


# ---------------------------------------------------------------------------------------------------------- permissions

ASK_INSTEAD = "Do without it, or ask what to do instead."
YES, NO, TELL, ALWAYS = "yes", "no", "tell", "always:"
BETWEEN = "\0"  # separates rules chosen together: no command contains NUL


def permission_dialog(request: PermissionRequest, diff: str, project: str) -> Dialog:
    """What the call would do, who asks and why. A path outside the project is shown in full."""
    path = request.tool_input.get("file_path")
    shown = path.removeprefix(f"{project}/") if isinstance(path, str) else ""
    what = f"{request.tool_name} {shown}" if shown else request.tool_name
    asker = f" (subagent {request.agent_type})" if request.agent_type else ""
    title = request.question or f"May {what} run?{asker}"
    return Dialog(title, _about(request, diff), permission_choices(request))


def _about(request: PermissionRequest, diff: str) -> list[Part]:
    parts: list[Part] = []
    if diff:
        parts.append(Part(diff, DIFF))
    elif isinstance(command := request.tool_input.get("command"), str):
        parts.append(Part(f"$ {command}"))
        if purpose := description_of(request.tool_input):
            parts.append(Part(f"\nThe model says: {purpose}", "$muted"))
    else:
        parts.append(Part(json.dumps(request.tool_input, indent=2, ensure_ascii=False, default=str)))
    if request.does and not diff:
        parts.append(Part(f"\n\nIt {request.does}.", "$muted"))
    parts.append(Part(f"\n\nAsked by {request.by}" if request.by else "\n\nAsked", "$muted"))
    if request.reason:
        parts.append(Part(f": {request.reason}", "$text-warning"))
    return parts


def permission_choices(request: PermissionRequest) -> list[Choice]:
    """`always` is offered only if rules can answer the question."""
    offered = [(rule,) for rule in request.suggestions] + ([request.together] if request.together else [])
    rules = [
        Choice(f"{ALWAYS}{BETWEEN.join(texts)}", f"Yes, always in this project: {', '.join(texts)}", "a" * (not at))
        for at, texts in enumerate(offered if request.lasting else ())
    ]
    tell = () if request.question else (Choice(TELL, "No, and tell the model …", "t"),)
    return [Choice(YES, "Yes, once", "y"), *rules, Choice(NO, "No", "n"), *tell]


def rules_in(answer: str | None) -> tuple[str, ...]:
    """The rules the user wants to keep."""
    if answer is None or not answer.startswith(ALWAYS):
        return ()
    return tuple(answer.removeprefix(ALWAYS).split(BETWEEN))


def meaning_of(answer: str | None, *, to_user: bool = False) -> Allow | Deny:
    """The answer for the agent. `to_user`: the user wanted the call, and reads what became of it."""
    if answer == YES or rules_in(answer):
        return Allow()
    reason = (answer or "").removeprefix(NO).removeprefix(TELL).removeprefix(":")
    if answer is None:
        return Deny("the user interrupted.")
    if to_user:
        return Deny("you said no.")
    return Deny(f"the user said no: {reason}" if reason else f"the user said no. {ASK_INSTEAD}")


RESTORE, KEEP_CHANGE = "restore", "keep"


def restore_dialog(request: RestoreRequest, project: str) -> Dialog:
    """Answered with `restore` or `keep`; no answer restores as well: that is what the rules say."""
    changes = request.changes
    lines = [
        f"{one.kind} {one.path.removeprefix(f'{project}/')}" + (f" ({one.rule})" if one.rule else "")
        for one in changes[:LISTED]
    ]
    if len(changes) > LISTED:
        lines.append(f"and {len(changes) - LISTED:,} more")
    files = "a file" if len(changes) == 1 else f"{len(changes):,} files"
    doubt = "\n\nSomething else was running meanwhile, and may have done it." if request.meanwhile else ""
    return Dialog(
        f"{request.tool_name} changed {files} that rules protect. Restore?",
        [Part("\n".join(lines)), Part(doubt, "$text-warning")],
        [
            Choice(RESTORE, "Restore; the changed version is kept elsewhere", "r"),
            Choice(KEEP_CHANGE, "Keep the change", "k"),
        ],
    )


# ---------------------------------------------------------------------------------------------------------------- trust

TRUST, KEEP, WITHOUT, LEAVE = "trust", "keep", "without", "leave"
TRUST_CHOICES = (
    Choice(WITHOUT, "Open without them: none of these hooks, servers, agents, skills and commands are used", "o"),
    Choice(TRUST, "I have reviewed them: trust this project for this run", "t"),
    Choice(KEEP, "I have reviewed them: trust them as they are now, until one of them changes", "k"),
    Choice(LEAVE, "Leave", "l"),
)


def trust_dialog(
    project: str,
    hooks: Sequence[str],
    extensions: Sequence[str],
    alarms: Sequence[str] = (),
    servers: Sequence[str] = (),
) -> Dialog:
    """Answered with one of the four; no answer quits."""
    lines: list[str] = []
    if alarms:
        lines.append("Something you trusted in it has changed:")
        lines += [f"  {alarm}" for alarm in alarms]
    if hooks:
        lines.append("It has hooks: commands that run on your machine with your permissions while the agent works.")
        lines += [f"  {hook}" for hook in hooks]
    if servers:
        lines.append("It has MCP servers: programs on your machine, or services elsewhere, whose tools the model uses.")
        lines += [f"  {server}" for server in servers]
        lines.append(
            "Their tools are not known yet: they are accepted as they are when a server is first connected, "
            "and you are asked about later changes. To see them before, leave, and run wave mcp trust."
        )
    if extensions:
        lines.append("It has agents, skills or commands: instructions for the model, which may run commands.")
        lines += [f"  {one}" for one in extensions]
    return Dialog("Do you trust this project?", [Part(project, "bold"), Part("\n\n" + "\n".join(lines))], TRUST_CHOICES)


ACCEPT, REFUSE = "accept", "refuse"


def changed_files_dialog(project: str, changes: Mapping[str, str | None], *, by_user: bool = False) -> Dialog:
    """Asked during a session when a hook did not run because its files changed, or when the user has changed one in an
    editor. No answer refuses."""
    if by_user:
        heading = "These files of a hook are no longer what you trusted. Until you agree, the hook does not run:"
        refusal = "No: hooks that need them stay off, and the actions they guard are denied"
    else:
        heading = "A hook did not run, and the action it guards was denied, because these trusted files have changed:"
        refusal = "I did not change them: hooks that need them stay off, and the actions they guard are denied"
    lines = [heading, *(f"  {name}: {'deleted' if digest is None else 'changed'}" for name, digest in changes.items())]
    choices = (
        Choice(REFUSE, refusal, "n"),
        Choice(ACCEPT, "I have reviewed them: use them as they are now, in this session", "y"),
    )
    return Dialog("A hook has changed", [Part(project, "bold"), Part("\n\n" + "\n".join(lines))], choices)


# ---------------------------------------------------------------------------------------------------------------- plans

GO_ON = "I accept this plan. Carry it out."
"""The prompt sent once the user accepts."""
KEEP_PLANNING = "keep planning"
_MODES: Mapping[str, PermissionMode] = {
    "default": PermissionMode.DEFAULT,
    "acceptEdits": PermissionMode.ACCEPT_EDITS,
}
PLAN_DIALOG = Dialog(
    "Accept this plan?",
    [Part("If you accept, the permission mode changes and the agent carries it out.")],
    [
        Choice("default", "Yes, and ask me before each change (mode default)", "y"),
        Choice("acceptEdits", "Yes, and edit files without asking (mode acceptEdits)", "a"),
        Choice(KEEP_PLANNING, "No, keep planning: say in the prompt what should be different", "n"),
    ],
)
"""Answered with a mode or `keep planning`; no answer also keeps planning."""


def mode_in(answer: str | None) -> PermissionMode | None:
    """The mode in which an accepted plan is carried out."""
    return None if answer is None else _MODES.get(answer)
