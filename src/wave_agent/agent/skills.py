"""Skills for the model: a list of them, and the tool that loads one. Loaded only if there are any."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from wave_agent.agent.command_text import RunLine, empty_placeholders, fill_arguments, unfilled_pieces
from wave_agent.permissions.decision import PermissionMode, ToolKind, can_permit
from wave_agent.rules.rule import Rule, RuleError, parse_rule
from wave_agent.settings.extensions import ExtensionFile, Extensions
from wave_agent.settings.places import ExtensionKind
from wave_agent.text import did_you_mean, one_line, reveal
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult

SHARE = 0.02
"""How much of the model's window the list may take."""
_ASSUMED_WINDOW = 100_000
"""Tokens, if the model's window is not known."""
_CHARACTERS = 4
"""Per token, roughly."""
_MOST_NAMES = 50
"""Skills that an error names."""
_SHORT = 100
"""Characters of a description when all of them do not fit."""


def model_skills(extensions: Extensions | None) -> dict[str, ExtensionFile]:
    """The skills that the model may load."""
    found = {} if extensions is None else extensions.of(ExtensionKind.SKILLS)
    return {name: one for name, one in found.items() if not one.flag("disable-model-invocation", default=False)}


def user_skills(extensions: Extensions) -> frozenset[str]:
    """The skills that only the user may call."""
    return frozenset(extensions.of(ExtensionKind.SKILLS)) - frozenset(model_skills(extensions))


def listed_skills(skills: Iterable[ExtensionFile], window: int | None) -> str:
    """The list for the model: within its share of the window, shorter descriptions, then names only, then some."""
    room = int((window or _ASSUMED_WINDOW) * SHARE * _CHARACTERS)
    ordered = sorted(skills, key=lambda one: one.name)
    for limit in (0, _SHORT, -1):
        lines = [_line(one, limit) for one in ordered]
        if sum(len(line) + 1 for line in lines) <= room:
            return "\n".join(lines)
    kept: list[str] = []
    for line in (_line(one, -1) for one in ordered):
        if sum(len(one) + 1 for one in kept) + len(line) > room:
            break
        kept.append(line)
    return "\n".join([*kept, f"and {len(ordered) - len(kept)} more, which are not listed for want of room"])


def _line(skill: ExtensionFile, limit: int) -> str:
    """A limit of 0 is none; with -1 the name stands alone."""
    when = skill.front.get("when_to_use")
    about = " ".join(filter(None, (skill.description, one_line(when) if isinstance(when, str) else "")))
    return f"- {skill.name}" if limit < 0 else f"- {skill.name}: {one_line(about, limit)}"


def skill_text(skill: ExtensionFile) -> str:
    """A skill as the model reads it."""
    return f"Skill {skill.name}. Its files are in {os.path.dirname(skill.path)}\n\n{skill.body}"


def allowed_by(file: ExtensionFile) -> tuple[tuple[Rule, ...], list[str]]:
    """The calls that its `allowed-tools` permit, and what is wrong with others."""
    given: Any = file.front.get("allowed-tools") or []
    listed = cast(list[Any], given) if isinstance(given, list) else [given]
    texts = list(_separate(given)) if isinstance(given, str) else listed
    rules: list[Rule] = []
    problems: list[str] = []
    for text in texts:
        try:
            rules.append(parse_rule(str(text)))
        except RuleError as error:
            problems.append(reveal(f"{file.place('allowed-tools')}: ignored: {error}"))
    return tuple(rules), problems


def _separate(given: str) -> Iterator[str]:
    """The rules in a line, which commas or blanks separate. What is in parentheses belongs to its rule, also if they
    are not closed: half a rule could permit more than the whole."""
    rule, depth = "", 0
    for character in given:
        depth = max(0, depth + (character == "(") - (character == ")"))
        if depth or not (character == "," or character.isspace()):
            rule += character
        elif rule:
            yield rule
            rule = ""
    if rule:
        yield rule


def permits_words(rules: Sequence[Rule], mode: PermissionMode | None) -> str:
    """What is permitted in this mode, for the model; empty if nothing is."""
    listed = ", ".join(rule.text for rule in rules if mode is None or can_permit(rule, mode))
    return f"Until the end of this turn, these calls need no consent: {listed}." if listed else ""


def _gaps(skill: ExtensionFile, arguments: str) -> Iterator[str]:
    """What a skill that the model loads leaves undone."""
    if any(isinstance(piece, RunLine) for piece in unfilled_pieces(skill.body)):
        yield "The lines after ! were not run: only the user's /command runs them. Run with Bash what you need."
    if empty := empty_placeholders(skill.body, arguments):
        yield f"No argument was given for {', '.join(empty)}."


class SkillInput(Struct, frozen=True, forbid_unknown_fields=True):
    skill: Annotated[str, Meta(description="Its name, as listed.")]
    args: Annotated[str, Meta(description="What it is to be used on, as the user would write it after its name.")] = ""


class Skill(Tool):
    """Loads a skill that was there when the session started."""

    name = "Skill"
    description = (
        "Loads a skill: instructions for a kind of task, written by the user or the project. The system prompt lists "
        "the skills. Load one before you begin a task that it describes, then follow it; `args` is passed on to it."
    )
    kind = ToolKind.READS
    Input = SkillInput

    def __init__(
        self, skills: Mapping[str, ExtensionFile], *, permits: bool = True, for_user: Collection[str] = ()
    ) -> None:
        """`permits`: what a skill allows without asking is allowed once it is loaded. `for_user`: the skills that only
        the user may call."""
        self._skills = skills
        self._for_user = for_user
        self._permits = permits

    async def run(self, arguments: SkillInput, context: ToolContext) -> ToolResult:
        name = arguments.skill.strip().removeprefix("/")
        skill = self._skills.get(name)
        if skill is None:
            raise ToolInputError(self._why_none(name))
        if skill.has_changed:
            raise ToolInputError(
                f"The skill {skill.name} has changed since this session started, so it cannot be used. Only the user "
                "can approve the change, with wave hooks trust; it is then used in a new session."
            )
        rules, problems = allowed_by(skill) if self._permits else ((), [])
        allowed = permits_words(rules, None if context.mode is None else context.mode())
        notes = "".join(f"\n\n[{note}]" for note in (*_gaps(skill, arguments.args), allowed, *problems) if note)
        return ToolResult(
            content=fill_arguments(skill_text(skill), arguments.args, keeps_empty=True) + notes,
            response={"skill": skill.name, "path": skill.path},
            permits=rules,
        )

    def _why_none(self, name: str) -> str:
        if name in self._for_user:
            return f"Only the user may call the skill {name}, as /{name}. Do without it, or tell the user about it."
        names = sorted(self._skills)
        listed = ", ".join(names[:_MOST_NAMES]) + (" …" if len(names) > _MOST_NAMES else "")
        hint = did_you_mean(name, self._skills)
        return f'There is no skill "{one_line(name, 80)}"{hint}. The skills are: {listed}.'
