"""Environment variables that hooks set for the commands of a session.

Each hook writes `export` lines to a file of its own, which is read when the hooks have finished. Commands of the model
may run meanwhile, so the file has a name that cannot be guessed, in a directory that cannot be listed; it is read from
the descriptor it was created with, and only if it is still that file.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from wave_agent.hooks.verdicts import Outcome, ToUser
from wave_agent.system.private_files import keep_private, open_private

FILE_VARIABLE = "CLAUDE_ENV_FILE"
DIRECTORY = "exports"
"""In the agent's own directory. It is a protected path."""
LONGEST_FILE = 1024 * 1024
_OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD", FILE_VARIABLE})
_NOT_LISTABLE = 0o300
_MOST_LINES = 3
"""Ignored lines of one hook that are reported one by one."""


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

    def add(self, exported: Mapping[str, str | None]) -> None:
        """Set these variables; None removes one."""
        kept = {name: value for name, value in {**self._all, **exported}.items() if value is not None}
        self._all = {**kept, **self._fixed}

    def __getitem__(self, key: str) -> str:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class ExportFile:
    """The file to which one hook writes."""

    def __init__(self, directory: Path, hook: str) -> None:
        """Raises `OSError`."""
        self.hook = hook
        self.path = str(directory / os.urandom(16).hex())
        self._descriptor = open_private(Path(self.path), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)

    def read(self) -> tuple[str, str]:
        """What the hook has written, and a problem, if any. Raises `OSError`."""
        facts = os.fstat(self._descriptor)
        try:
            now = os.lstat(self.path)
        except FileNotFoundError:  # the hook has removed it
            return "", ""
        if not os.path.samestat(facts, now) or facts.st_nlink != 1:
            return "", f"{FILE_VARIABLE} was replaced by another file, or linked: nothing in it applies"
        if facts.st_size > LONGEST_FILE:
            return "", f"it wrote more than 1 MiB to {FILE_VARIABLE}: nothing in it applies"
        return os.pread(self._descriptor, LONGEST_FILE, 0).decode(errors="replace"), ""

    def close(self) -> None:
        os.close(self._descriptor)


class ExportFiles:
    """The files of the hooks of one occasion, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self._parent = directory
        self._directory: Path | None = None
        self._files: list[ExportFile] = []
        self._is_closed = False
        self.problem = ""
        """Why there are no files."""

    def file(self, hook: str) -> str:
        """A new file for this hook, or an empty string if it cannot have one any more."""
        if self._is_closed:
            return ""
        try:
            if self._directory is None:
                self._directory = self._made()
            self._files.append(ExportFile(self._directory, hook))
        except OSError as error:
            self.problem = f"hooks cannot set variables: {error}"
            return ""
        return self._files[-1].path

    def _made(self) -> Path:
        import tempfile  # lazy: few sessions have hooks that export variables

        keep_private(self._parent)
        made = Path(tempfile.mkdtemp(dir=self._parent))
        made.chmod(_NOT_LISTABLE)
        return made

    def read(self, environment: Mapping[str, str]) -> tuple[dict[str, str | None], list[str]]:
        """The variables that the hooks set, in the order of the hooks, and problems."""
        found: dict[str, str | None] = {}
        problems = [self.problem] if self.problem else []
        for file in self._files:
            try:
                text, problem = file.read()
            except OSError as error:
                text, problem = "", f"what it wrote to {FILE_VARIABLE} cannot be read: {error}"
            if text:
                known = {name: value for name, value in {**environment, **found}.items() if value is not None}
                variables, problem = _read(text, known)
                found |= {name: value for name, value in variables.items() if name not in _OF_THE_SHELL}
            if problem:
                problems.append(f"hook {file.hook}: {problem}")
        return found, problems

    def close(self) -> None:
        """Remove the files and their directory, with whatever else is in it."""
        self._is_closed = True
        for file in self._files:
            file.close()
        if self._directory is not None:
            import shutil  # lazy: see above

            with suppress(OSError):
                self._directory.chmod(0o700)
            shutil.rmtree(self._directory, ignore_errors=True)


def _read(text: str, environment: Mapping[str, str]) -> tuple[Mapping[str, str | None], str]:
    """The variables, and a problem, if any."""
    from wave_agent.hooks.export_lines import read_exports  # lazy: few sessions have hooks that export variables

    exports = read_exports(text, environment)
    if not exports.ignored:
        return exports.variables, ""
    lines = [f"line {one.number} ({one.why}): {one.text}" for one in exports.ignored[:_MOST_LINES]]
    more = len(exports.ignored) - _MOST_LINES
    lines += [f"and {more} more"] if more > 0 else []
    return exports.variables, f"ignored in {FILE_VARIABLE}, which takes only assignments: " + "; ".join(lines)


class VariableExports:
    """Gives hooks files to write exports to, and adds what they exported to the session's variables."""

    def __init__(
        self, variables: SessionVariables | None, directory: Path | None, environment: Mapping[str, str]
    ) -> None:
        """`directory` is where the files go; without it or without `variables`, hooks cannot export any. Exports can
        refer to the variables of `environment`."""
        self._variables = variables
        self._directory = directory
        self._environment = environment

    async def around(self, hooks: Callable[[Callable[[str], str]], Awaitable[Outcome]]) -> Outcome:
        """Run these hooks. They receive a function from a hook's name to its file, or to an empty string."""
        if self._variables is None or self._directory is None:
            return await hooks(no_file)
        files = ExportFiles(self._directory)
        try:
            outcome = await hooks(files.file)
            found, problems = files.read(self._environment)
            self._variables.add(found)
            told = tuple(ToUser("", problem) for problem in problems)
            return replace(outcome, to_user=(*outcome.to_user, *told)) if told else outcome
        finally:
            files.close()


def no_file(_hook: str) -> str:
    """For hooks that cannot export variables."""
    return ""
