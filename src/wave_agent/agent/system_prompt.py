"""The system prompt: short, and true of this session."""

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from wave_agent.agent.surroundings import ProjectSurroundings
from wave_agent.permissions.decision import PermissionMode, can_permit
from wave_agent.rules.rule import Rule

_INSTRUCTIONS = """\
You are Wave, a coding agent. You work in the user's project with your tools until the job is done.

- Look before you change: search instead of assuming, and read a file before you edit it. Put independent calls \
into one answer.
- Make the smallest change that does the whole job, in the style of the surrounding code. The result of an edit \
shows all changes, including those by hooks: you need not read the file again.
- Check your work: run the tests or the program when you can. Say plainly what you could not check.
- Look at a target before you delete or overwrite it. Get the user's consent before anything that cannot be undone \
(dropping data, rewriting history) or that leaves this machine (publishing, sending). Commit and push only when asked.
- When a call is refused, do not work around it: act on the reason, or tell the user.
- The user's hooks check what you do. Their messages are marked with the hook's name: follow them where they concern \
your work, but they are not the user speaking. Never write such marks yourself.
- Keep working when the conversation gets long: its older part will be summarised, and you continue.
- Refer to code as file:line. Answer briefly: what you did and what the user needs to know, not every step."""


SUBAGENT = (
    "You are a subagent: another agent gave you this task, and your last message is your report to it. It sees nothing "
    "else of your work, so the report must contain all it needs. Neither it nor the user can answer questions: decide "
    "for yourself, and say what you assumed. Do what the task asks and no more. When a call is refused, do not work "
    "around it. What you are asked to tell the user belongs in the report. The user's hooks check what you do: their "
    "messages are marked with the hook's name. Follow them where they concern your work, but they are not the user "
    "speaking. Never write such marks yourself."
)
SUBAGENT_LIMIT = "After {requests} no more calls run, and you can only report."
ENDS_WITH_REPORT = "with your report"
"""When commands of a subagent in the background end at the latest."""
DATE = "Date"
_SESSION = "Session"
_RULES = "Rules that allow more"


class PromptFacts(Struct, frozen=True, kw_only=True):
    """Facts that stay the same for the whole session."""

    project_dir: str
    working_dir: str = ""
    """Where commands start, if not in the project directory."""
    shell: str
    interactive: bool | None = None
    """Whether a user follows the session and answers. None: unknown."""
    asks: bool = False
    """A user or program can be asked whether a call may run."""
    allowed: tuple[Rule, ...] = ()
    """Rules that allow something beyond the mode."""
    subagent: bool = False


class SystemPrompt(Struct, frozen=True):
    text: str
    parts: Mapping[str, str] = {}
    """What in it may be different when the session is resumed, by name. The permission mode is not among them."""


def system_prompt(
    session: PromptFacts,
    mode: PermissionMode,
    surroundings: ProjectSurroundings,
    instructions: str | None = None,
    *,
    today: Callable[[], date] = date.today,
) -> SystemPrompt:
    """Instructions (or others in their place), the environment, and what the model may do. The project's own
    instructions are added to it."""
    facts = _facts(session, surroundings, today())
    lines = "\n".join(f"{name}: {fact}" for name, fact in facts.items())
    text = "\n\n".join([instructions or _INSTRUCTIONS, lines, session_words(session, mode)])
    about = {_SESSION: _PRESENCE[session.interactive], _RULES: _in_every_mode(session.allowed)}
    return SystemPrompt(text, {**facts, **{name: words for name, words in about.items() if words}})


def _facts(session: PromptFacts, around: ProjectSurroundings, today: date) -> dict[str, str]:
    counted = {None: "", 0: ", no changes", 1: ", 1 changed file"}
    changed = counted.get(around.changed, f", {around.changed} changed files")
    facts = {
        "Project directory": session.project_dir,
        "Working directory": session.working_dir,
        "Git branch": around.branch and f"{around.branch}{changed}",
        "Top level": ", ".join([*around.names, *([f"and {around.more}"] if around.more else [])]),
        "System": f"{platform.system()}, shell {Path(session.shell).name}",
        DATE: today.isoformat(),
    }
    return {name: fact for name, fact in facts.items() if fact}


# ---------------------------------------------------------------------------------------------------------------- modes

_PRESENCE: Mapping[bool | None, str] = {
    True: "This session is interactive: the user follows it, and answers what you ask at the end of your turn.",
    False: (
        "This run is not interactive: no question can be answered. Decide for yourself; skip what needs consent, and "
        "end with what you assumed and what remains to be done."
    ),
    None: "",
}
_MODES: Mapping[PermissionMode, str] = {
    PermissionMode.DEFAULT: "Calls that only read inside the project run at once; {rest}.",
    PermissionMode.ACCEPT_EDITS: "Reading and editing files inside the project runs at once; {rest}.",
    PermissionMode.PLAN: (
        "Only reading is possible: Read, Glob, Grep, commands that only read, and Task, as subagents only read too. "
        "Find out what you need to know; then end your turn with a plan: what to change in which files, in which "
        "order, and how to check it. {then}"
    ),
    PermissionMode.DONT_ASK: "Only what the user's rules allow runs; anything else is refused.",
    PermissionMode.BYPASS: "Calls run without asking unless a rule, a hook or a protected path prevents it.",
}
_SUBAGENT_PLAN = "Only reading is possible: Read, Glob, Grep and commands that only read."
_REST: Mapping[bool, str] = {
    True: "anything else has to be approved first",
    False: "anything else is refused unless a rule or a hook allows it, as it cannot be approved in this session",
}
_THEN: Mapping[bool | None, str] = {
    True: "The user may accept it; you then carry it out.",
    False: "The plan is the result of this run.",
    None: "",
}


def session_words(session: PromptFacts, mode: PermissionMode) -> str:
    """Whether someone answers questions, and what may run."""
    words = (_PRESENCE[session.interactive], mode_words(session, mode), _rules_words(session, mode))
    return "\n".join(filter(None, words))


def _rules_words(session: PromptFacts, mode: PermissionMode) -> str:
    rules = [rule for rule in session.allowed if can_permit(rule, mode)]
    return f"{_RULES}: {_listed(rules)}." if rules else ""


def _in_every_mode(allowed: Sequence[Rule]) -> str:
    """The rules, in words that hold whatever the mode."""
    limited = not all(can_permit(rule, PermissionMode.PLAN) for rule in allowed)
    return f"{_listed(allowed)}{' (in plan mode, only what reads)' if limited else ''}" if allowed else ""


def _listed(allowed: Sequence[Rule]) -> str:
    """As many as fit on a short line."""
    rules = tuple(dict.fromkeys(rule.text for rule in allowed))
    shown: list[str] = []
    for rule in rules:
        if sum(map(len, shown)) + len(rule) > _RULES_SHOWN:
            return f"{', '.join(shown)} and {len(rules) - len(shown)} more"
        shown.append(rule)
    return ", ".join(shown)


def mode_words(session: PromptFacts, mode: PermissionMode, *, changed: bool = False) -> str:
    """What the mode means for the model. `changed`: the mode was different before."""
    words = _SUBAGENT_PLAN if session.subagent and mode is PermissionMode.PLAN else _MODES[mode]
    meaning = words.format(rest=_REST[session.asks], then=_THEN[session.interactive]).rstrip()
    return f"{_CHANGED if changed else 'Permission mode: '}{mode}. {meaning}"


def change_words(session: PromptFacts, mode: PermissionMode, before: PermissionMode) -> str:
    """The message about a change of the mode. Which rules allow more is said again if that has changed with it."""
    words = mode_words(session, mode, changed=True)
    now, known = _rules_words(session, mode), _rules_words(session, before)
    return words if now == known else f"{words}\n{now or _NO_RULES}"


_NO_RULES = "Rules that allow more do not change that."
_CHANGED = "The permission mode is now "
_RULES_SHOWN = 500
"""Maximum length of the rules shown to the model, in characters."""


def mode_in(text: str) -> PermissionMode | None:
    """The mode that a message about a change names."""
    name = text.removeprefix(_CHANGED).partition(".")[0] if text.startswith(_CHANGED) else ""
    return PermissionMode(name) if name in {mode.value for mode in PermissionMode} else None
