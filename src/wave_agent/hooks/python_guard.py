"""Protects the Python that hooks run, so that a project's modules cannot shadow Python's own.

Inline Python (`python3 -c`, `-m`, `-`) in hooks that are not the project's runs with PYTHONSAFEPATH, unless that would
take away something it needs. Modules that a hook loads from the project are compiled into a directory of the agent, so
the project's `__pycache__` is never used. Older Pythons ignore PYTHONSAFEPATH: if the project contains a module that
one would load, the hook does not run.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.named_files import hook_files
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.python_modules import HookPython, PythonRun, python_of, shadows
from wave_agent.system.real_files import is_below

CACHE = "pycache"
"""Subdirectory of the agent's own directory."""
_OF_THE_PROJECT = (Layer.PROJECT, Layer.LOCAL)
_FOR_A_PROJECT = (Layer.FLAG, Layer.CODE)
"""Layers specific to one run: if their hooks name a module of the project, they mean it. A user's hooks are for any
project."""
_VERSION = re.compile(r"(?:python|pypy)3\.(\d+)")
_SINCE = 11
"""Python 3.11 introduced PYTHONSAFEPATH."""
_PATIENCE = 5.0
WhyNot = Callable[[HookDefinition], str | None]
_Stamps = tuple[tuple[int, int, int] | None, ...]


class PythonGuard:
    """Guards the Python hooks of one session."""

    def __init__(self, project: str, home: Path, environment: Mapping[str, str]) -> None:
        """`environment` is the agent's own."""
        self._project = project
        self._cache = str(home / CACHE)
        self._has_cache = bool(environment.get("PYTHONPYCACHEPREFIX"))
        self._path = search_path(environment)
        self._known: dict[tuple[object, ...], tuple[_Stamps, HookPython]] = {}
        self._heed: dict[str, bool] = {}

    def environment(self, hook: HookDefinition) -> Mapping[str, str]:
        """Extra environment variables for this hook."""
        python = self._python(hook)
        given: dict[str, str] = {}
        if not self._has_cache and any(is_below(file, self._project) for file in self._shadows(python)):
            # Without a cache, each run would compile everything it imports; there it does not clutter the project.
            given |= {"PYTHONPYCACHEPREFIX": self._cache, "PYTHONDONTWRITEBYTECODE": ""}
        if self._is_safe_with(hook, python):
            given["PYTHONSAFEPATH"] = "1"
        return given

    def problem(self, hook: HookDefinition) -> str | None:
        """Why this hook must not run now; None if it may. The project's own hooks are covered by trust."""
        python = self._python(hook)
        if hook.layer in _OF_THE_PROJECT or not self._looks_around(hook, python):
            return None
        found = self._shadows(python, inline=True)
        deaf = [run.program for run in python.inline if found and not self._heeds(run)]
        if not deaf:
            return None
        name = os.path.relpath(found[0], self._project)
        return (
            f"not run: the project contains {name}, which {deaf[0]} would load instead of its own module. Use "
            f"{os.path.basename(deaf[0])} -I in this hook, or use Python 3.{_SINCE} or newer without -E."
        )

    def after(self, first: WhyNot) -> WhyNot:
        """A check that calls `first`, then this one."""
        return lambda hook: first(hook) or self.problem(hook)

    def _is_safe_with(self, hook: HookDefinition, python: HookPython) -> bool:
        """Whether PYTHONSAFEPATH excludes only what the hook does not need."""
        if not self._looks_around(hook, python):
            return False
        if hook.layer in _OF_THE_PROJECT:  # what it loads is trusted with it
            return python.is_command and not python.names
        return python.is_command or bool(self._shadows(python, inline=True))

    def _looks_around(self, hook: HookDefinition, python: HookPython) -> bool:
        """Whether it runs Python that imports from the working directory without needing to."""
        if not python.inline or python.runs_project:
            return False
        held = {os.path.basename(file).partition(".")[0] for file in self._shadows(python, inline=True)}
        return not (hook.layer in _FOR_A_PROJECT and held & python.names)

    @staticmethod
    def _shadows(python: HookPython, *, inline: bool = False) -> list[str]:
        return [file for place in python.places if not (inline and place.script) for file in shadows(place)]

    def _python(self, hook: HookDefinition) -> HookPython:
        """The Python this hook runs, read again when one of its files has changed."""
        place = (hook.source, hook.path, hook.position)
        now = tuple(_stamp(file) for file in hook_files(hook, self._project))
        before = self._known.get(place)
        if before is None or before[0] != now:
            self._known[place] = before = (now, python_of(hook, self._project))
        return before[1]

    def _heeds(self, run: PythonRun) -> bool:
        if run.ignores:
            return False
        if run.program not in self._heed:
            self._heed[run.program] = self._is_new(run.program)
        return self._heed[run.program]

    def _is_new(self, program: str) -> bool:
        file = shutil.which(os.path.expanduser(program), path=self._path)
        if file is None:
            return True  # it will not start either
        if version := _VERSION.fullmatch(os.path.basename(os.path.realpath(file))):
            return int(version[1]) >= _SINCE
        code = f"import sys; print(sys.version_info >= (3, {_SINCE}))"
        try:  # may be a version manager's shim: only running it tells the version. With -I it loads nothing from here.
            done = subprocess.run(
                [file, "-I", "-c", code],
                cwd=self._project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.stdout.strip() == b"True"


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        facts = os.stat(file)
    except (OSError, ValueError):
        return None
    return facts.st_ino, facts.st_size, facts.st_ctime_ns
