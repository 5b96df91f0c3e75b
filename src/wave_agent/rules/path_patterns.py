"""Patterns of paths as regular expressions, of which none takes longer than the pattern times the path.

What stands behind a `*` or `**` is taken where it comes first and is not looked for again. That loses no match: it is
as many names long wherever it stands, so that what follows has the most room behind the first of them.
"""

import re

from wave_agent.formats.user_regex import matching_glob

_TOKEN = re.compile(
    r"(?P<deep>(?:^|(?<=/))\*\*(?:/|$))|(?P<many>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<slash>/)"
)
_NAME = "[^/]"


def path_glob(pattern: str, *, ends: str, dots: bool) -> str:
    """The expression of a glob in which `**` between slashes spans directories.

    `ends` is what has to follow. Without `dots`, no wildcard but `**` stands for the dot that a name begins with.
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
    """Names in a row; where directories may be in front of them, in the first place in which they are found."""
    return f"(?>(?:[^/]*+/)*?{chunk})" if deep and chunk else chunk


def _one(token: re.Match[str]) -> str:
    """What stands for a single character."""
    if token["set"] is None:
        return _NAME
    members = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", token["set"])
    return f"(?!/)[{'^' if token['not'] else ''}{members}]"
