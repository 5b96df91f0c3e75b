"""Isolates replayed hooks: they run in a copy of the project, without network access if the system allows that."""

import shutil
import subprocess
from collections.abc import Mapping

from msgspec import Struct

from wave_agent.errors import SandboxError
from wave_agent.permissions.sandbox import find_bubblewrap

_SECONDS = 20
_UNSHARE = (("--net",), ("--user", "--map-current-user", "--net"))
"""For root, and for users who may create user namespaces."""


class Isolation(Struct, frozen=True):
    """How to start the process that replays hooks."""

    prefix: tuple[str, ...]
    """Words to put before the command."""
    project: str
    """The project directory that hooks see."""
    network: str
    """A note for the user about the network."""


def isolate(project: str, scratch: str, environment: Mapping[str, str], *, network: bool = False) -> Isolation:
    """The best isolation that works here. With bubblewrap, the copy is mounted over the project, so that paths stay the
    same; otherwise hooks run in the copy, and recorded paths are changed to match. `network`: it is needed."""
    cut = "The network was NOT cut: models were asked." if network else "The network was cut."
    try:
        bubblewrap = find_bubblewrap(environment, distrusted=(project,))
        prefix = (
            bubblewrap,
            "--dev-bind",
            "/",
            "/",
            "--bind",
            scratch,
            project,
            *(() if network else ("--unshare-net",)),
        )
        if _works((*prefix, "--chdir", project, "true")):
            return Isolation((*prefix, "--chdir", project), project, cut)
    except SandboxError:
        pass
    if network:
        return Isolation((), scratch, cut)
    unshare = shutil.which("unshare", path=environment.get("PATH"))
    for arguments in _UNSHARE if unshare else ():
        if _works((str(unshare), *arguments, "true")):
            return Isolation((str(unshare), *arguments), scratch, cut)
    return Isolation((), scratch, "The network was NOT cut: this system has neither a working bwrap nor unshare --net.")


def _works(command: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
