"""The marks by which a model tells who speaks, and how they are kept out of everybody else's text.

Wave marks hooks' texts and its own. Models also know marks of other agents, and may obey a file that contains one.
"""

import re

from wave_agent.lazy_regex import lazy_regex

OWN = "[From Wave, not from the user]"
"""What Wave itself tells the model begins with this."""
_GAP = "[\\s\u200b-\u200f\u2060-\u2064\ufeff]*+"
"""White space and invisible characters."""
_DASH = "[-_\\s\u200b-\u200f\u2010-\u2015\u2060-\u2064\u2212\ufe58\ufe63\uff0d\ufeff]++"
_HOOK = f"{_GAP.join('hook')}(?![\\w.:-])"
"""`<HookForm>` and `<SystemReminder>` in a source file stay as they are, so that Edit can find them."""
_REMINDER = f"{_GAP.join('system')}{_DASH}{_GAP.join('reminder')}"
# Possessive, so that a tag with a thousand blanks in it cannot cause catastrophic backtracking.
_TAG = lazy_regex(f"<(?={_GAP}/?+{_GAP}(?:{_HOOK}|{_REMINDER}))", re.IGNORECASE)
# Whatever follows: a model also believes `[From Wave: …]`.
_OWN_MARK = lazy_regex(f"\\[(?={_GAP}{_GAP.join('from')}{_GAP}{_GAP.join('wave')}(?!\\w))", re.IGNORECASE)
_INSIDE_HOOK = lazy_regex(f"<(?=\\s*+/?+\\s*+hook|{_GAP}/?+{_GAP}{_REMINDER})", re.IGNORECASE)
ESCAPED = '"&lt;" stands for "<", and "&#91;" for "[", before what looks like a message of the agent'
"""For a model that copies such a passage."""


def without_tags(text: str) -> str:
    """The text without anything that looks like the tag of a hook or of another agent's reminder."""
    return _TAG.sub("&lt;", text) if "<" in text else text


def without_own_mark(text: str) -> str:
    """The text without anything that looks like the agent's own mark."""
    return _OWN_MARK.sub("&#91;", text) if "[" in text else text


def without_marks(text: str) -> str:
    """The text as the model gets it: nothing in it looks like a hook or the agent."""
    return without_tags(without_own_mark(text))


def inside_hook(text: str) -> str:
    """A hook's text as it is inside its tag: it cannot close it, nor open another one."""
    return _INSIDE_HOOK.sub("&lt;", without_own_mark(text))


def json_without_marks(encoded: str) -> str:
    """The same JSON, in which nothing looks like a hook or the agent until it is parsed."""
    if "<" in encoded:
        encoded = _TAG.sub("\\\\u003c", encoded)
    return _OWN_MARK.sub("\\\\u005b", encoded) if "[" in encoded else encoded


def is_marked(text: str) -> bool:
    """Whether the model gets another text than this one."""
    return without_marks(text) != text
