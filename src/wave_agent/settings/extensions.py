"""The agents, skills and commands of a session: which ones may be used, and which one wins.

What a project brings needs trust, as its hooks do. But these are no guards: one that is not trusted is left out, and
the session starts without it. Everything is bound at the start: what changes on disk later is not used in its new form.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.front_matter import FrontMatterError, parse_front_matter
from wave_agent.formats.strict_json import Document, type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.settings.extension_files import FoundExtension, digest_now
from wave_agent.settings.places import OF_THE_PROJECT, ExtensionKind
from wave_agent.settings.trust import CHANGED, NOT_TRUSTED, Record
from wave_agent.text import one_line, reveal

DESCRIPTION = 1024
"""Characters of a description; the rest is cut."""
_SKILL_NAME = re.compile(r"[a-z0-9-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)
_SINGULAR: Mapping[ExtensionKind, str] = {
    ExtensionKind.AGENTS: "agent",
    ExtensionKind.SKILLS: "skill",
    ExtensionKind.COMMANDS: "command",
}
_NAMED_IN_NOTICE = 10


class ExtensionFile(Struct, frozen=True, kw_only=True):
    """An agent, a skill or a command that may be used, as it was when the session started."""

    kind: ExtensionKind
    name: str
    path: str
    """Its file; of a skill, `SKILL.md`."""
    layer: Layer
    dialect: Dialect
    front: Mapping[str, Any]
    body: str
    document: Document
    """`front` with its lines in the file."""
    inner: str = ""
    """The directory of the project it belongs to, if that is below the project's root."""
    key: str = ""
    """Its path in the project, for the record of trust."""
    others: tuple[str, ...] = ()
    """The other files of a project's skill."""
    digest: str = ""
    """What trust in it is bound to; empty for the user's own."""

    @property
    def what(self) -> str:
        """`skill`, `command` or `agent`."""
        return _SINGULAR[self.kind]

    @property
    def description(self) -> str:
        """On one line; the first line of the body, if it has no description."""
        given = self.front.get("description")
        return one_line(given if isinstance(given, str) else self.body.split("\n", 1)[0].lstrip("# "), DESCRIPTION)

    def place(self, *path: str | int) -> str:
        """The location of a value: `file:line`."""
        return f"{self.path}:{self.document.line(path) or 1}"

    def flag(self, name: str, *, default: bool) -> bool:
        value: Any = self.front.get(name)
        return value if isinstance(value, bool) else default

    @property
    def has_changed(self) -> bool:
        """Whether a skill of the project is no longer what was trusted: its other files are read where they are."""
        return (
            self.kind is ExtensionKind.SKILLS
            and bool(self.digest)
            and self.digest != digest_now(self.path, self.others)
        )


class ShadowedExtension(Struct, frozen=True):
    """One that is not used because another one has the same name."""

    file: ExtensionFile
    by: ExtensionFile


class UnusedExtension(Struct, frozen=True, kw_only=True):
    """One that may not or cannot be used."""

    kind: ExtensionKind
    path: str
    """As shown: relative to the project, if it is in there."""
    why: str
    untrusted: bool = False
    types: tuple[str, ...] = ()
    """Of an agent that the user wrote or once trusted: what it may be called."""


class Extensions(Struct, frozen=True, kw_only=True):
    """Those of a session."""

    files: tuple[ExtensionFile, ...] = ()
    shadowed: tuple[ShadowedExtension, ...] = ()
    unused: tuple[UnusedExtension, ...] = ()
    notices: tuple[str, ...] = ()

    def of(self, kind: ExtensionKind) -> dict[str, ExtensionFile]:
        """Those of a kind, by name."""
        return {one.name: one for one in self.files if one.kind is kind}

    @property
    def record(self) -> Mapping[str, Mapping[str, str]]:
        """Those of the project, in the form of a record of trust."""
        found: dict[str, dict[str, str]] = {}
        for one in (*self.files, *(shadowed.file for shadowed in self.shadowed)):
            if one.digest:
                found.setdefault(one.inner, {})[one.key] = one.digest
        return found


ExtensionTrust = Callable[[FoundExtension], str | None]
"""Why one of the project's is not trusted; None if it is."""


def load_extensions(
    found: Iterable[FoundExtension], project: str, why_not: ExtensionTrust, *, comparing: str = ""
) -> Extensions:
    """`comparing` is the git ref that the project is compared with, if it is."""
    files: dict[tuple[ExtensionKind, str], ExtensionFile] = {}
    shadowed: list[ShadowedExtension] = []
    unused: list[UnusedExtension] = []
    notices: list[str] = []
    for one in found:
        where, kind = reveal(one.shown(project)), one.place.kind
        why = why_not(one) if one.place.layer in OF_THE_PROJECT else None
        try:
            file = _usable(one, why, project, notices)
        except _UnusableError as error:
            untrusted = why is not None and str(error) == why
            types = () if why == NOT_TRUSTED else _types_of(one)
            unused.append(
                UnusedExtension(kind=kind, path=where, why=str(error), untrusted=untrusted, types=types),
            )
            continue
        # A call of a subagent finds its type in any case: the project's must not be found instead of the user's.
        known_as = file.name.casefold() if kind is ExtensionKind.AGENTS else file.name
        first = files.setdefault((kind, known_as), file)
        if first is not file:
            shadowed.append(ShadowedExtension(file, first))
    notices += [f"{one.path} is not used: it {one.why}." for one in unused if not one.untrusted]
    notices += _untrusted_notice([one for one in unused if one.untrusted], comparing)
    return Extensions(
        files=tuple(files.values()), shadowed=tuple(shadowed), unused=tuple(unused), notices=tuple(notices)
    )


def _usable(found: FoundExtension, why_untrusted: str | None, project: str, notices: list[str]) -> ExtensionFile:
    """Raises `_UnusableError`."""
    if found.problem:
        raise _UnusableError(found.problem)
    if why_untrusted is not None:
        raise _UnusableError(_mistake_in(found, project) or why_untrusted)
    return _parsed(found, project, notices)


def _types_of(found: FoundExtension) -> tuple[str, ...]:
    """What an agent may be called, even if it cannot be used: after its file, and as it says."""
    if found.place.kind is not ExtensionKind.AGENTS or found.is_place:
        return ()
    with suppress(FrontMatterError):
        front = parse_front_matter(found.content.decode(errors="replace"), forgiving=True)
        return (found.stem, str(front.values.get("name", found.stem)))
    return (found.stem,)


def _mistake_in(found: FoundExtension, project: str) -> str:
    """Why it would be left out even if it were trusted, as a phrase that follows "it"; empty if it would be used."""
    try:
        file = _parsed(found, project, [])
    except _UnusableError as error:
        return str(error)
    if file.kind is not ExtensionKind.AGENTS:
        return ""
    from wave_agent.settings.agent_definitions import definitions_in  # lazy: only for what is not trusted

    _, problems = definitions_in([file])
    return next((f"has a mistake: {reveal(str(one))}" for one in problems if one.left_out), "")


def _untrusted_notice(unused: list[UnusedExtension], comparing: str) -> list[str]:
    if not unused:
        return []
    shown = [one.path if comparing else f"{one.path} ({one.why})" for one in unused[:_NAMED_IN_NOTICE]]
    listed = ", ".join([*shown, *([f"{len(unused) - len(shown)} more"] if len(unused) > len(shown) else [])])
    if comparing:
        return [f"Not used, because they are not the same at {comparing}: {listed}."]
    return [
        f"Not used until you trust them: {listed}. Review them with wave hooks trust; they are used in a new session."
    ]


def why_untrusted(record: Record, project: str) -> ExtensionTrust:
    """The judgement of this record."""

    def why_not(found: FoundExtension) -> str | None:
        known = record.extensions.get(found.place.inner, {}).get(found.shown(project))
        if known is None:
            return NOT_TRUSTED
        return None if known == found.digest else CHANGED

    return why_not


def trusted_record(found: Iterable[FoundExtension], project: str) -> Mapping[str, Mapping[str, str]]:
    """Trust in all of these, in the form of a record."""
    record: dict[str, dict[str, str]] = {}
    for one in found:
        if one.digest:
            record.setdefault(one.place.inner, {})[one.shown(project)] = one.digest
    return record


class _UnusableError(Exception):
    """Why an extension cannot be used; a phrase that follows "it"."""


def _parsed(found: FoundExtension, project: str, notices: list[str]) -> ExtensionFile:
    dialect = found.place.dialect
    try:
        text = found.content.decode()
        front = parse_front_matter(text, forgiving=dialect is not Dialect.WAVE)
    except UnicodeDecodeError as error:
        raise _UnusableError(f"is not UTF-8 ({error.reason} at byte {error.start})") from None
    except FrontMatterError as error:
        raise _UnusableError(f"has an invalid front matter, line {error.line}: {error.problem}") from None
    values, problems = _checked(front.values)
    name = _name(found, values)
    for key, problem in problems:
        notices.append(reveal(f"{found.path}:{front.line(key)}: {problem}"))
    if found.is_skill and values.get("name", name) != name:
        at = f"{found.path}:{front.line('name')}"
        notices.append(reveal(f'{at}: the skill is called {name}, as its directory is, not "{values["name"]}"'))
    if not front.body:
        raise _UnusableError("has no text")
    return ExtensionFile(
        kind=found.place.kind,
        name=name,
        path=found.path,
        layer=found.place.layer,
        dialect=dialect,
        front=values,
        body=front.body,
        document=front.document,
        inner=found.place.inner,
        key=found.shown(project),
        others=found.others,
        digest=found.digest,
    )


def _name(found: FoundExtension, front: Mapping[str, Any]) -> str:
    """Agents are called what they say; others what their file or directory is called."""
    if found.is_skill:
        if not _SKILL_NAME.fullmatch(found.stem):
            raise _UnusableError("needs a name of 1 to 64 lower-case letters, digits and hyphens")
        return found.stem
    given: Any = front.get("name", found.stem) if found.place.kind is ExtensionKind.AGENTS else found.stem
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise _UnusableError("needs a name of 1 to 64 letters, digits, hyphens and underscores")
    return given


_TEXTS = ("name", "description", "argument-hint", "model", "when_to_use")
_FLAGS: Mapping[str, bool] = {"disable-model-invocation": True, "user-invocable": True}
"""Each with its value if the given one is invalid: one that opens nothing."""


def _checked(front: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[tuple[str, str]]]:
    """The values that can be used, and what is wrong with the others. Unknown keys are left alone."""
    kept, problems = dict(front), list[tuple[str, str]]()
    for key in _TEXTS:
        value: Any = front.get(key)
        if key == "argument-hint" and isinstance(value, list):  # `[file]`, which YAML reads as a list
            kept[key] = f"[{', '.join(map(str, cast(list[Any], value)))}]"
        elif value is None:
            kept.pop(key, None)
        elif not isinstance(value, str):
            problems.append((key, f"{key} must be a string, not {type_name(value)}"))
            del kept[key]
        elif key == "description" and len(value) > DESCRIPTION:
            problems.append((key, f"the description is longer than {DESCRIPTION:,} characters; the rest is cut"))
    for key, instead in _FLAGS.items():
        if key in front and not isinstance(front[key], bool):
            problems.append((key, f"{key} must be true or false, not {type_name(front[key])}"))
            kept[key] = instead
    return kept, problems
