"""How the texts of a call are read: as paths, or as prose that mentions some. The names of their fields say which."""

from collections.abc import Iterable
from enum import Enum, IntEnum
from functools import lru_cache

from wave_agent.effects.argument_texts import SHORT, ArgumentText
from wave_agent.lazy_regex import lazy_regex

_LONGEST_NAME = 200
_PART = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLACE = lazy_regex(
    r"(?!profile)\w*(?:path|file|dir|folder|root|uri|url|cwd)s?|(?:\w*filename|pathspec|location|src|source|dest"
    r"|destination|base|parent|workspace|worktree|mount|volume|glob|pattern|cmd|command|arg|argument|argv|line|script"
    r"|program|config|attachment|output|include)s?|\w*director(?:y|ies)|shell|exec|spec"
)
_OF_A_PLACE = lazy_regex(r"names?|list|prefix|suffix|to|from|pattern|spec")
"""As the last part of a name: what is before it matters, as in `file_name`."""
_PROSE = lazy_regex(
    r"(?:message|content|description|title|comment|note|observation|thought|instruction|paragraph|caption)s?"
    r"|body|bodies|summary|reason|subject|explanation|feedback|markdown|replacement"
)
_TALK = lazy_regex(r"(?:text|prompt|question|input)s?|query|queries")
_LABEL = lazy_regex(r"branch(?:es)?|(?:tag|label|milestone)s?|timezone")
_OF_AN_EDIT = frozenset({"old", "new", "find", "search", "replace"})
_LEFT_OUT = frozenset({"exclude", "excludes", "excluded", "ignore", "ignores", "ignored", "skip"})
_MANY = frozenset({"pattern", "patterns", "glob", "globs", "paths", "files", "dirs", "directories", "folders", "names"})
"""After `exclude`. A single `ignore_file` may well be read."""
_LIKE_A_PATH = lazy_regex(r"[/.~\\]")
_SEPARATOR = lazy_regex(r"[/\\]")


class ArgumentRole(Enum):
    """What the name of a field says about its text."""

    PLACE = "a path, a URL, a pattern or a command"
    ANY = "nothing"
    TALK = "something said, or typed into a terminal"
    PROSE = "something written for people, or the content of a file"
    LABEL = "a name with slashes that is no path, such as that of a branch"
    LEFT_OUT = "what the tool must not touch"


class Reading(IntEnum):
    """What in a text is a path, the strictest first."""

    WORDS = 0
    """Every word."""
    PATHS = 1
    """Words with a dot, a slash or a tilde."""
    FILES = 2
    """Words with a slash that are the path of an existing file."""
    NOTHING = 3

    def takes(self, word: str) -> bool:
        if self is Reading.WORDS:
            return True
        return (_LIKE_A_PATH if self is Reading.PATHS else _SEPARATOR).search(word) is not None


def role_of(fields: Iterable[str]) -> ArgumentRole:
    """The name of the innermost field decides. If that says nothing, one around it may be a place, or left out."""
    roles = [_role(name[:_LONGEST_NAME]) for name in reversed([*fields]) if name]
    around = (one for one in roles if one in (ArgumentRole.PLACE, ArgumentRole.LEFT_OUT))
    if roles and roles[0] is not ArgumentRole.ANY:
        return roles[0]
    return next(around, ArgumentRole.ANY)


@lru_cache(maxsize=1024)
def _role(name: str) -> ArgumentRole:
    parts = [one.lower() for one in _PART.findall(name)]
    last = parts[-1] if parts else ""
    if _LEFT_OUT.intersection(parts[-2:]) and (last in _LEFT_OUT or last in _MANY):
        return ArgumentRole.LEFT_OUT
    if _PROSE.fullmatch(last) or (last in ("text", "string", "str") and _OF_AN_EDIT.intersection(parts)):
        return ArgumentRole.PROSE
    if _TALK.fullmatch(last):
        return ArgumentRole.TALK
    if any(map(_LABEL.fullmatch, parts)):
        return ArgumentRole.LABEL
    telling = parts if _OF_A_PLACE.fullmatch(last) else parts[-1:]
    return ArgumentRole.PLACE if any(map(_PLACE.fullmatch, telling)) else ArgumentRole.ANY


def reading_of(text: ArgumentText, role: ArgumentRole) -> Reading:
    if role is ArgumentRole.LEFT_OUT:
        return Reading.NOTHING
    if role is ArgumentRole.PLACE:
        return Reading.WORDS
    if role is ArgumentRole.LABEL:
        return Reading.FILES
    is_prose = role is not ArgumentRole.ANY
    if len((text.text if is_prose else text.text.strip()).split()) < 2 and not (is_prose and "\n" in text.text):
        return Reading.WORDS  # all of it may be one path
    if is_prose or len(text.text) > SHORT:
        return Reading.FILES
    lines = text.text.strip().splitlines()
    return Reading.PATHS if len(lines) < 2 or all(len(one.split()) < 2 for one in lines) else Reading.FILES


def is_bare(word: str) -> bool:
    """Nothing says that it is a path: `tests`."""
    return _LIKE_A_PATH.search(word) is None
