"""Environment variables that hooks set for the commands of a session.

A hook writes `export` lines to a file. A shell evaluates it once, when the hooks have finished: only a shell knows what
the lines mean, and if the file were read before every command, a command could rewrite it.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookRunner
from wave_agent.hooks.verdicts import Outcome, ToUser
from wave_agent.system.which import which

FILE_VARIABLE = "CLAUDE_ENV_FILE"
PATIENCE = 10.0
"""Seconds for the shell that reads the file."""
_OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD", FILE_VARIABLE})


class SessionVariables(Mapping[str, str]):
    """The environment of a session's commands: the initial one, plus what hooks have exported since."""

    def __init__(self, base: Mapping[str, str], fixed: Mapping[str, str] | None = None) -> None:
        """Exports of hooks cannot override `fixed`."""
        self._fixed = dict(fixed or {})
        self._all = {**base, **self._fixed}

    def fix(self, fixed: Mapping[str, str]) -> None:
        """Fix these variables as well, from now on."""
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
    """A private file to which the hooks of one occasion write exports."""

    def __init__(self, directory: Path) -> None:
        """Raises `OSError`."""
        import tempfile  # lazy: few sessions have hooks that export variables

        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, self.path = tempfile.mkstemp(prefix="exports-", dir=directory)
        """Empty once the file has been removed."""
        os.close(descriptor)

    @property
    def is_empty(self) -> bool:
        try:
            return os.path.getsize(self.path) == 0
        except OSError:  # a hook has removed it
            return True

    def job(self, environment: Mapping[str, str], cwd: str) -> HookJob:
        """The job that prints the environment after evaluating the file."""
        # Looked up now, because the file may change PATH.
        env = which("env", path=environment.get("PATH")) or "/usr/bin/env"
        command = f'. "${FILE_VARIABLE}" >/dev/null; exec {env} -0'
        return HookJob(command=command, env={**environment, FILE_VARIABLE: self.path}, cwd=cwd, timeout=PATIENCE)

    def remove(self) -> None:
        path, self.path = self.path, ""
        Path(path).unlink(missing_ok=True)


class VariableExports:
    """Gives hooks a file to write exports to, and adds what they exported to the session's variables."""

    def __init__(
        self,
        variables: SessionVariables | None,
        directory: Path | None,
        runner: HookRunner,
        environment: Mapping[str, str],
        cwd: str,
    ) -> None:
        """`directory` is where the files go; without it or without `variables`, hooks cannot export any. The shell that
        evaluates a file runs in `cwd`."""
        self._variables = variables
        self._directory = directory
        self._runner = runner
        self._environment = environment
        self._cwd = cwd

    async def around(self, hooks: Callable[[Callable[[], str]], Awaitable[Outcome]]) -> Outcome:
        """Run these hooks. They receive a function that returns the file, or an empty string if there is none."""
        if self._variables is None or self._directory is None:
            return await hooks(str)
        try:
            file = ExportFile(self._directory)
        except OSError as error:
            return _with_problem(await hooks(str), f"hooks cannot set variables: {error}")
        try:
            outcome = await hooks(lambda: file.path)
            return outcome if file.is_empty else _with_problem(outcome, await self._take(file, self._variables))
        finally:
            file.remove()

    async def _take(self, file: ExportFile, variables: SessionVariables) -> str:
        """Add the exported variables to the session. Returns a problem, if any."""
        result = await self._runner.run(file.job(self._environment, self._cwd))
        found, problem = exported(result, self._environment)
        variables.add(found)
        return problem


def _with_problem(outcome: Outcome, problem: str) -> Outcome:
    return replace(outcome, to_user=(*outcome.to_user, ToUser("", problem))) if problem else outcome


def exported(result: HookExecutionResult, before: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The variables the file set or changed, and a problem, if any."""
    pairs = (entry.partition("=") for entry in result.stdout.split("\0") if "=" in entry)
    found = {name: value for name, _, value in pairs if before.get(name) != value and name not in _OF_THE_SHELL}
    if result.success and not result.stderr:
        return found, ""
    why = result.stderr or result.error or ("it timed out" if result.timed_out else "it exits the shell")
    return found if result.success else {}, f"problem in what hooks wrote to {FILE_VARIABLE}: {why}"
