"""The effects of a call whose tool is not known: the paths and hosts that its arguments name.

What the tool does with them is not known either, so each path counts as read and as written. All of this can only
restrict: it is used for deny and ask rules, protected paths and hooks, and it is never complete.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from posixpath import join
from typing import Any

from wave_agent.effects.argument_commands import line_effects_in
from wave_agent.effects.argument_hosts import bare_hosts_in, hosts_in
from wave_agent.effects.argument_paths import ArgumentPaths, absolute, read_texts
from wave_agent.effects.argument_texts import texts_in
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import ANY_HOST, Effects, PathOrigin
from wave_agent.shell.values import escape

_EVERYTHING_IN = "[*]"
"""A name that only those rules match which are about every name in a directory."""


def argument_effects(tool_input: Mapping[str, Any], surroundings: Surroundings, bases: Sequence[str] = ()) -> Effects:
    """Total: any input has effects. `bases` are further directories that relative paths may start from."""
    texts = texts_in(tool_input)
    home = surroundings.variables.get("HOME", "")
    starts = (surroundings.directory, surroundings.project, *bases)
    read = read_texts(texts)
    named = ArgumentPaths.of(read, starts, home, surroundings.is_there, complete=texts.complete)
    entire, inside = _directories(named.places, _roots(starts, home), surroundings.is_there)
    places = dict.fromkeys(starts[:2])
    lines = line_effects_in((one.text for one in read if one.may_be_line), places, {"HOME": home} if home else {})
    bare = bare_hosts_in(texts)
    both = (*map(escape, named.paths), *named.patterns, *inside)
    return Effects(
        reads=tuple(dict.fromkeys((*both, *lines.reads))),
        writes=tuple(dict.fromkeys((*both, *entire, *lines.writes))),
        hosts=tuple(dict.fromkeys((*hosts_in(texts), *lines.hosts, *(one for one in bare if one == ANY_HOST)))),
        complete=False,
        bare_hosts=bare,
        origins=tuple(_origins(named, {**inside, **entire})),
    )


def named_paths(
    tool_input: Mapping[str, Any], bases: Sequence[str], home: str, is_there: Callable[[str], bool | None]
) -> ArgumentPaths:
    """See `ArgumentPaths`."""
    texts = texts_in(tool_input)
    return ArgumentPaths.of(read_texts(texts), bases, home, is_there, complete=texts.complete)


def _origins(named: ArgumentPaths, below: Mapping[str, str]) -> Iterable[PathOrigin]:
    """`below` has patterns, each with the path that it comes from."""
    escaped = {escape(path): found for path, found in named.paths.items()}
    known = escaped | dict(named.patterns) | {pattern: named.paths[path] for pattern, path in below.items()}
    return (PathOrigin(path, found.argument, found.word) for path, found in known.items())


def _directories(
    paths: Iterable[str], roots: Sequence[str], is_there: Callable[[str], bool | None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Patterns for paths that may be directories, each with its path: all that is below them, and whatever each has.

    Who names a directory may delete or move it. The places where all work happens are left out: every call of a git
    server names the project.
    """
    there = [path for path in paths if is_there(join(path, ".")) is not False]  # a file contains no such entry
    entire = {join(escape(path), "**"): path for path in there if not any(_is_below(root, path) for root in roots)}
    return entire, {join(escape(path), _EVERYTHING_IN): path for path in there}


def _roots(starts: Sequence[str], home: str) -> list[str]:
    return [path for one in (*starts, home) if (path := absolute(one, home)) is not None]


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")
