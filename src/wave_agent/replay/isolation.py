"""Isolates replayed hooks: what they change in the project is discarded, and they have no network access if the system
allows that."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from wave_agent.errors import SandboxError
from wave_agent.permissions.sandbox import find_bubblewrap
from wave_agent.replay.namespace import Overlay
from wave_agent.replay.repository import repository_outside

_SECONDS = 20
_UNSHARE = (("--net",), ("--user", "--map-current-user", "--net"))
"""For root, and for users who may create user namespaces."""
_TRY = "from wave_agent.replay.namespace import main; main()"


class Isolation(Struct, frozen=True):
    """How to start the process that replays hooks."""

    prefix: tuple[str, ...]
    """Words to put before the command."""
    project: str
    """The project directory that hooks see."""
    cut: bool
    """Hooks have no network."""


def overlay_works(overlays: Sequence[Overlay], environment: Mapping[str, str]) -> bool:
    """Whether a process may have a view of its own of these directories."""
    if sys.platform != "linux":
        return False
    return _works((sys.executable, "-P", "-c", _TRY, msgspec.json.encode(overlays).decode()), environment)


def isolate_copy(project: str, copy: str, environment: Mapping[str, str], *, network: bool = False) -> Isolation:
    """The best isolation for a copy of the project. With bubblewrap, the copy is mounted over the project, so that
    paths stay the same; otherwise hooks run in the copy, and recorded paths are changed to match. `network`: it is
    needed."""
    outside = repository_outside(project)
    try:
        bubblewrap = find_bubblewrap(environment, distrusted=(project,))
        binds = () if copy == project else ("--bind", copy, project)
        binds += () if outside is None else ("--ro-bind", outside, outside)
        apart = () if network else ("--unshare-net",)
        prefix = (bubblewrap, "--dev-bind", "/", "/", *binds, *apart)
        if _works((*prefix, "--chdir", project, "true")):
            return Isolation((*prefix, "--chdir", project), project, cut=not network)
    except SandboxError:
        pass
    unshare = shutil.which("unshare", path=environment.get("PATH"))
    for arguments in _UNSHARE if unshare and not network else ():
        if _works((str(unshare), *arguments, "true")):
            return Isolation((str(unshare), *arguments), copy, cut=True)
    return Isolation((), copy, cut=False)


def _works(command: tuple[str, ...], environment: Mapping[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            env=None if environment is None else dict(environment),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
