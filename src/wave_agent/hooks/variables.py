"""Variables that hooks set for the commands of a session.

A hook writes `export` lines to a file that it is given. A shell reads them once, when the hooks are through: what they
mean is a shell's to say, and a file that were read before every command could be rewritten by one of them.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from wave_agent.hooks.execution import HookExecutionResult, HookJob

FILE_VARIABLE = "CLAUDE_ENV_FILE"
PATIENCE = 10.0
"""Seconds for the shell that reads the file."""
_OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD", FILE_VARIABLE})


class SessionVariables(Mapping[str, str]):
    """The environment of a session's commands: what it began with, and what hooks have exported since."""

    def __init__(self, base: Mapping[str, str], fixed: Mapping[str, str] | None = None) -> None:
        """Nothing that a hook exports takes the place of what is `fixed`."""
        self._fixed = dict(fixed or {})
        self._all = {**base, **self._fixed}

    def fix(self, fixed: Mapping[str, str]) -> None:
        """From now on these too."""
        self._fixed |= fixed
        self._all |= fixed

    def add(self, exported: Mapping[str, str]) -> None:
        self._all |= {**exported, **self._fixed}

    def __getitem__(self, key: str) -> str:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class ExportFile:
    """A private file for the hooks of one occasion."""

    def __init__(self, directory: Path) -> None:
        """Raises `OSError`."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, self.path = tempfile.mkstemp(prefix="exports-", dir=directory)
        os.close(descriptor)

    @property
    def is_empty(self) -> bool:
        try:
            return os.path.getsize(self.path) == 0
        except OSError:  # a hook has removed it
            return True

    def job(self, environment: Mapping[str, str], cwd: str) -> HookJob:
        """What has to be run to learn what the file exports."""
        # Looked up here: the file may change PATH.
        env = shutil.which("env", path=environment.get("PATH")) or "/usr/bin/env"
        command = f'. "${FILE_VARIABLE}" >/dev/null; exec {env} -0'
        return HookJob(command=command, env={**environment, FILE_VARIABLE: self.path}, cwd=cwd, timeout=PATIENCE)

    def remove(self) -> None:
        Path(self.path).unlink(missing_ok=True)


def exported(result: HookExecutionResult, before: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The variables that the file set or changed, and what is wrong with it."""
    pairs = (entry.partition("=") for entry in result.stdout.split("\0") if "=" in entry)
    found = {name: value for name, _, value in pairs if before.get(name) != value and name not in _OF_THE_SHELL}
    if result.success and not result.stderr:
        return found, ""
    why = result.stderr or result.error or ("it takes too long" if result.timed_out else "it ends the shell")
    return found if result.success else {}, f"what hooks wrote to {FILE_VARIABLE}: {why}"
