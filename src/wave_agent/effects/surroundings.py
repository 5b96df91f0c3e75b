"""What the effects of a call depend on besides its input: places, variables, and functions that look something up."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct


def _no_text(_path: str) -> str | None:
    return None


def _no_git_value(_name: str, _directory: str) -> str | None:
    return None


def _no_settings(_directory: str) -> Mapping[str, str] | None:
    return None


def _no_files(_directory: str, _scope: str) -> Sequence[str] | None:
    return None


def _not_known(_path: str) -> bool | None:
    return None


def _no_program(_name: str) -> str | None:
    return None


def _no_names(_directory: str) -> Sequence[str]:
    return ()


def _not_searched(_patterns: Sequence[str], _expression: str) -> bool | None:
    return None


def _no_links(pattern: str) -> Sequence[str] | None:
    return (pattern,)


class Surroundings(Struct, frozen=True, kw_only=True):
    """Where a call runs. Every function may say that it does not know; the effects are then not complete."""

    directory: str
    """The absolute path of the directory that relative paths start from."""
    project: str
    variables: Mapping[str, str] = MappingProxyType({})
    """The environment of commands."""
    read_text: Callable[[str], str | None] = _no_text
    """The text of a file by its absolute path. None: there is no such file, or it is not to be looked into."""
    git_alias: Callable[[str, str], str | None] = _no_git_value
    """What `alias.NAME` is in the repository of a directory."""
    git_remote: Callable[[str, str], str | None] = _no_git_value
    """The URL of a remote in the repository of a directory. An empty name is the remote that `git fetch` would use."""
    git_settings: Callable[[str], Mapping[str, str] | None] = _no_settings
    """All settings that git would use in a directory, with names in lower case. Asked for commands that reach a
    remote, and by `only_reads`."""
    git_files: Callable[[str, str], Sequence[str] | None] = _no_files
    """Of the files in the repository of a directory, those that rules are about: `tracked` ones, those in its `history`
    or those that it would add (`new`). None: not known, or not only these matter."""
    is_there: Callable[[str], bool | None] = _not_known
    """Whether something is at an absolute path."""
    behind: Callable[[str], Sequence[str] | None] = _no_links
    """The real paths, as patterns, of what an absolute pattern matches: to the system, `link/..` is the directory that
    contains the link's target."""
    option_names: Callable[[str], Sequence[str]] = _no_names
    """Names in a directory that start with `-`: a wildcard may turn them into options."""
    splits: Callable[[Sequence[str], str], bool | None] = _not_searched
    """Whether a file that one of these absolute patterns matches has a name in which something matches an expression,
    or that starts with `-`: who prints it, and who reads that as words, then do not speak of the same file."""
    find_program: Callable[[str], str | None] = _no_program
    """The absolute path that PATH has for a name, with links resolved. Only `only_reads` asks for it."""
