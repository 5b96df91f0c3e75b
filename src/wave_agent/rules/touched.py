"""What a call would do that a rule is about: files it reads or writes, hosts it reaches.

The paths of effects are patterns (see `Effects`). A pattern without wildcards is one path. Of any other, a rule covers
what it matches by its form: `cat vendor/*` reads below `vendor`, whatever is there. Whether `grep -r x .` reads `.env`
depends on the files that exist: whoever knows them adds their paths to the effects.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from wave_agent.effects.values import ANY_HOST, Effects, PathOrigin
from wave_agent.lazy_regex import lazy_regex

_TOKEN = lazy_regex(r"\*+|\?|\[(?P<not>[!^]?)(?P<first>.)[^\]]*\]", re.DOTALL)
_SOME = "\ue000"
"""A character that is in no name and in no rule."""


def read_paths(effects: Effects) -> Iterable[tuple[str, str]]:
    return (("read", path) for path in effects.reads)


def changed_paths(effects: Effects) -> Iterable[tuple[str, str]]:
    yield from (("write", path) for path in effects.writes)
    yield from (("delete", path) for path in effects.deletes)


PATHS: Mapping[str, Callable[[Effects], Iterable[tuple[str, str]]]] = {
    "read": read_paths,
    **dict.fromkeys(("edit", "write", "multiedit", "notebookedit"), changed_paths),
}
"""By the tool of a rule: the paths it is about, and what would happen to each."""


def touched_path(tool: str, matches: Callable[[str], object], effects: Effects, project: str) -> str | None:
    """What of this would happen to a path that matches, such as `read .env`. None: nothing that is known."""
    for verb, pattern in PATHS[tool](effects):
        if matches(an_instance(pattern)):
            return f"{verb} {(literal(pattern) or pattern).removeprefix(f'{project}/')}"
    return None


def origin(tool: str, matches: Callable[[str], object], effects: Effects) -> PathOrigin | None:
    """Which argument names the path that matches. None: none does by itself, or it is not known."""
    known = {one.path: one for one in effects.origins}
    touched = (pattern for _, pattern in PATHS[tool](effects) if matches(an_instance(pattern)))
    return next((known[pattern] for pattern in touched if pattern in known), None)


def touched_host(pattern: str | None, hosts: Iterable[str]) -> str | None:
    """The first of these hosts that a `Net` rule is certainly about."""
    for host in hosts:
        if pattern is None or host_matches(pattern, host):
            return "reach a host that is not known" if host == ANY_HOST else f"reach {host}"
    return None


def host_matches(pattern: str, host: str) -> bool:
    """Whether a restriction of these hosts means this one: also under another name of this machine."""
    local = _LOOPBACK.fullmatch(pattern) is not None and _LOOPBACK.fullmatch(host) is not None
    return local or covers_host(pattern, host)


def covers_host(pattern: str, host: str) -> bool:
    """`*.example.com` is every name below `example.com`, but not that name itself."""
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) >= len(pattern)
    return host == pattern


_LOOPBACK = lazy_regex(r"(?:.+\.)?localhost|127(?:\.\d+){3}|0\.0\.0\.0|::1?")
"""Names and addresses of this machine."""


@lru_cache(maxsize=4096)
def literal(pattern: str) -> str | None:
    """The only path that a pattern matches; None if it matches several."""
    return an_instance(pattern) if all(map(_is_one, _TOKEN.finditer(pattern))) else None


@lru_cache(maxsize=4096)
def an_instance(pattern: str) -> str:
    """A path that a pattern matches, and that nothing else in a rule would match by chance."""
    return _TOKEN.sub(lambda found: (found["first"] if not found["not"] else None) or _SOME, pattern)


def _is_one(found: re.Match[str]) -> bool:
    """A bracket with a single character: it quotes."""
    return found["first"] is not None and len(found[0]) == 3
