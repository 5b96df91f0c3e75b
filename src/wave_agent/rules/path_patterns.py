"""Path patterns as regular expressions, none of which takes longer than pattern length times path length.

The text after a `*` or `**` is matched at its first occurrence, without backtracking. That loses no match: it has the
same number of names wherever it occurs, so the first occurrence leaves the most room for the rest.
"""

import re

from wave_agent.formats.user_regex import matching_glob
from wave_agent.lazy_regex import lazy_regex

_TOKEN = lazy_regex(
    r"(?P<deep>(?:^|(?<=/))\*\*(?:/|$))|(?P<many>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<slash>/)"
)
_NAME = "[^/]"


def path_glob(pattern: str, *, ends: str, dots: bool) -> str:
    """The expression of a glob in which `**` between slashes spans directories.

    `ends` must follow. Without `dots`, no wildcard but `**` matches the leading dot of a name.
    """
    out, chunk, deep, at = "", "", False, 0
    name = [""]
    for token in _TOKEN.finditer(pattern):
        name[-1] += re.escape(pattern[at : token.start()])
        at = token.end()
        if token["deep"] is not None:
            out, chunk, deep = out + _found(chunk, deep), "", True
            if at == len(pattern):
                return f"{out}.*"
        elif token["slash"] is not None:
            chunk, name = f"{chunk}{matching_glob(name, _NAME)}/", [""]
        else:
            begins = name == [""] and token.start() > 0 and pattern[token.start() - 1] == "/"
            if begins and not dots and token["many"] != "**":
                name[0] = r"(?!\.)"
            if token["many"] is not None:
                name.append("")
            else:
                name[-1] += _one(token)
    name[-1] += re.escape(pattern[at:])
    return out + _found(f"{chunk}{matching_glob(name, _NAME)}{ends if deep else ''}", deep)


def _found(chunk: str, deep: bool) -> str:
    """Consecutive names; if directories may precede them, at their first occurrence."""
    return f"(?>(?:[^/]*+/)*?{chunk})" if deep and chunk else chunk


def _one(token: re.Match[str]) -> str:
    """The expression for a single character."""
    if token["set"] is None:
        return _NAME
    members = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", token["set"])
    return f"(?!/)[{'^' if token['not'] else ''}{members}]"
