"""Whether an entry of the effects names a path. Written for the tests alone, from the description of `Effects`."""

import re
from collections.abc import Iterable


def names(entry: str, path: str) -> bool:
    return re.fullmatch(_expression(entry), path, re.DOTALL) is not None


def any_names(entries: Iterable[str], path: str) -> bool:
    return any(names(entry, path) for entry in entries)


def _expression(entry: str) -> str:
    out, at = "", 0
    while at < len(entry):
        if entry.startswith("/**/", at):
            out, at = f"{out}/(?:.*/)?", at + 4
        elif entry.startswith("**", at):
            out, at = f"{out}.*", at + 2
        elif entry[at] == "*":
            out, at = f"{out}[^/]*", at + 1
        elif entry[at] == "?":
            out, at = f"{out}[^/]", at + 1
        elif entry[at] == "[" and (end := entry.find("]", at + 2)) > 0:
            inside = entry[at + 1 : end]
            sign = "^" if inside[0] in "!^" else ""
            out, at = f"{out}[{sign}{'/' if sign else ''}{re.escape(inside[len(sign) :])}]", end + 1
        else:
            out, at = out + re.escape(entry[at]), at + 1
    return out
