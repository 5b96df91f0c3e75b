"""Who runs this program, on which machine, and in which repository: for the first line of a session."""

import os
import pwd
from collections.abc import Iterator

from wave_agent.system.project import git_directory
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import resolve_or_keep

_LARGEST = 64 << 10
"""Bytes of a repository's configuration."""


def user_name() -> str:
    """The name of the user whose rights this process has."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container with an arbitrary user
        return str(os.geteuid())


def identity(directory: str) -> dict[str, str]:
    """`user`, `hostname` and, in a repository with a remote, `repository`."""
    repository = repository_of(directory)
    found = {"user": user_name(), "hostname": os.uname().nodename}
    return found | ({"repository": repository} if repository else {})


def repository_of(directory: str) -> str:
    """The remote that a repository comes from, such as `github.com/acme/app`: `origin`, else the first one.

    Read from git's own file, without running git. Never contains a user, a password or a token.
    """
    git = git_directory(directory)
    if git is None:
        return ""
    try:
        common = _read(git, "commondir").strip()
        shared = os.path.normpath(os.path.join(git, common)) if common else git  # a worktree shares its configuration
        remotes = dict(_remotes(_read(shared, "config")))
    except (NotReadError, ValueError):
        return ""
    return without_credentials(remotes.get("origin") or next(iter(remotes.values()), ""))


def without_credentials(url: str) -> str:
    """`https://ada:secret@github.com/acme/app.git?x=y` and `git@github.com:acme/app` are `github.com/acme/app`."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        host, colon, path = scheme.partition(":")
        if not colon or "/" in host:  # a directory
            return scheme.partition("?")[0]
        rest = f"{host}/{path}"
    elif scheme == "file":
        return rest
    # Up to the last `@`: a password may contain a slash, and rather a path is cut than a secret shown.
    place, _, path = rest.partition("?")[0].partition("#")[0].rpartition("@")[2].partition("/")
    return f"{place.lower()}/{path.strip('/').removesuffix('.git')}"


def _remotes(config: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in config.splitlines():
        text = line.strip()
        if text.startswith("["):
            kind, _, quoted = text.strip("[]").partition(" ")
            name = quoted.strip().strip('"') if kind.lower() == "remote" else ""
        elif name:
            key, _, value = text.partition("=")
            if key.strip().lower() == "url" and value.strip():
                yield name, value.strip().strip('"')


def _read(directory: str, name: str) -> str:
    data = read_project_file(os.path.join(directory, name), resolve_or_keep(directory), _LARGEST)
    return os.fsdecode(data or b"")
