"""Trust in the content of a git ref: for CI, where anyone may have written the working tree."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.settings.disabled_hooks import DisabledHooks
from wave_agent.settings.hook_entries import SettingsSource, parse_settings
from wave_agent.settings.layers import wants_foreign
from wave_agent.settings.other_agents import PROJECT_FILES, as_foreign
from wave_agent.settings.places import LayerFile, project_places
from wave_agent.settings.trust import Record, TrustCandidate, candidates, digest_of, file_digest, record_of
from wave_agent.system.credentials import is_own
from wave_agent.system.project import Project
from wave_agent.system.trusted_git import find_git

if TYPE_CHECKING:  # loaded only if there are any
    from wave_agent.settings.extension_files import FoundExtension

_PATIENCE = 30.0


def resolve_ref(ref: str, project: str) -> str:
    """The id of the commit that this ref names now: unlike the ref, nothing can change what it means.

    Raises `SettingsError`.
    """
    return CommitTree(ref, project).commit


def record_at(
    ref: str, project: Project, home: Path, *, foreign: bool, texts: "Sequence[FoundExtension]" = ()
) -> Record:
    """The project's hooks and settings at this ref. Includes those for other agents if they are used now (`foreign`)
    or were used at the ref. `texts` are its agents, skills and commands now. Raises `SettingsError`."""
    tree = CommitTree(ref, project.directory)
    sources: list[SettingsSource] = []
    for place in project_places(home, project):
        try:
            sources += _settings_at(tree, place)
        except SettingsError as error:
            raise SettingsError(f"At {ref}: {error}") from None
    for place in project_places(home, project, PROJECT_FILES) if foreign or wants_foreign(sources) else ():
        # An unreadable file is not trusted, and is reported if it still exists.
        with suppress(SettingsError):
            sources += map(as_foreign, _settings_at(tree, place))
    sources = DisabledHooks(sources).take(sources)
    found = candidates(sources, project.directory, tree.digest, digest_of_program=tree.digest_of_program)
    found += _definition_hooks_at(tree, texts, project.directory)
    return record_of(sources, project.directory, found, extensions=_extensions_at(tree, texts, project.directory))


def _definition_hooks_at(
    tree: "CommitTree", texts: "Sequence[FoundExtension]", project: str
) -> tuple[TrustCandidate, ...]:
    """The hooks in the definitions of subagents that the commit contains."""
    if not texts:
        return ()
    from wave_agent.settings.definition_hooks import definition_candidates  # lazy: most projects have none

    then = [replace(one, content=content) for one in texts if (content := tree.read(one.path)) is not None]
    return definition_candidates(then, project, tree.digest, digest_of_program=tree.digest_of_program)


def _extensions_at(tree: "CommitTree", texts: "Sequence[FoundExtension]", project: str) -> dict[str, dict[str, str]]:
    """Those of the given ones that the commit contains, in the form of a record."""
    record: dict[str, dict[str, str]] = {}
    for one in texts:
        content = tree.read(one.path) if one.digest else None
        if content is None:
            continue
        from wave_agent.settings.extension_files import digest_of_files  # lazy: most projects have none

        then = tuple(path for path in tree.files_below(one.whole) if path != one.path) if one.is_skill else ()
        digest = digest_of_files(one.whole, content, one.others, tree.digest)
        if digest is not None and sorted(then) == sorted(one.others):
            record.setdefault(one.place.inner, {})[one.shown(project)] = digest
    return record


def _settings_at(tree: "CommitTree", place: LayerFile) -> list[SettingsSource]:
    """The file's settings at the commit, if it existed."""
    content = tree.read(str(place.file))
    if content is None:
        return []
    found = parse_settings(content.decode(errors="replace"), place.layer, str(place.file))
    return [replace(found, inner=place.inner)]


class GitFile(Struct, frozen=True):
    """A file as git stores it."""

    mode: str
    blob: str
    """The id of its content."""


class CommitTree:
    """The files of a project at one commit, read without running anything that the repository configures."""

    def __init__(self, ref: str, project: str) -> None:
        self._project = project
        self._ref = ref
        program = find_git(os.environ.get("PATH", os.defpath), project)
        if program is None:
            raise SettingsError(f"--trust-ref {ref}: git is not installed, or only in the project itself.")
        self._program = program
        asked = self._git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        if asked.returncode != 0:
            raise SettingsError(f"--trust-ref {ref}: {_reason(asked, ref)}")
        if b"ambiguous" in asked.stderr:
            raise SettingsError(f"--trust-ref {ref}: the name is ambiguous; use the full ref (refs/…).")
        self.commit = asked.stdout.decode().strip()
        self._prefix = self._git("rev-parse", "--show-prefix").stdout.decode(errors="surrogateescape").rstrip("\n")

    def read(self, path: str) -> bytes | None:
        """A file's content, by its path in the working tree; None if the commit does not contain it."""
        found = self._git("cat-file", "blob", f"{self.commit}:{self._inside(path)}")
        return found.stdout if found.returncode == 0 else None

    @property
    def root(self) -> str:
        """The repository's root, as the project's path names it."""
        return os.path.normpath(os.path.join(self._project, *[".."] * len(Path(self._prefix).parts)))

    def listing(self) -> dict[str, GitFile]:
        """Every file of the commit, by its path in the working tree."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", self.commit).stdout
        found: dict[str, GitFile] = {}
        for line in filter(None, listed.decode(errors="surrogateescape").split("\0")):
            facts, _, name = line.partition("\t")
            mode, _, blob = facts.split(" ")
            found[os.path.join(self.root, name)] = GitFile(mode, blob)
        return found

    def tracked(self) -> frozenset[str]:
        """The files that git tracks in the working tree, by their paths."""
        listed = self._git("ls-files", "-z", "--full-name", "--", ":/").stdout
        names = filter(None, listed.decode(errors="surrogateescape").split("\0"))
        return frozenset(os.path.join(self.root, name) for name in names)

    def files_below(self, directory: str) -> list[str]:
        """The files below a directory, by their paths in the working tree."""
        inside = self._inside(directory)
        listed = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", self.commit, "--", f"{inside}/").stdout
        names = listed.decode(errors="surrogateescape").split("\0")
        return [os.path.join(directory, os.path.relpath(name, inside)) for name in names if name]

    def digest(self, path: str) -> str | None:
        content = self.read(path)
        if content is None:
            return None
        listed = self._git("ls-tree", "--full-tree", self.commit, "--", self._inside(path)).stdout
        return digest_of(hashlib.sha256(content).hexdigest(), runs=listed.startswith(b"100755"))

    def digest_of_program(self, path: str) -> str | None:
        """The digest at the ref. A program that is not tracked, such as one in a virtual environment that CI has just
        created, is taken as it is."""
        found = self.digest(path)
        tracked = found is None and self._git("ls-files", "--", os.path.relpath(path, self._project)).stdout
        return found if found is not None or tracked else file_digest(path)

    def _inside(self, path: str) -> str:
        """The path relative to the repository root."""
        return os.path.normpath(os.path.join(self._prefix, os.path.relpath(path, self._project)))

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        # A repository's configuration can name programs to run; reading a blob needs none of them.
        quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
        environment = {
            **{name: value for name, value in os.environ.items() if not is_own(name)},
            "LC_ALL": "C",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        try:
            return subprocess.run(
                [self._program, *quiet, *arguments],
                cwd=self._project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SettingsError(f"--trust-ref {self._ref}: git did not respond: {error}") from None


def _reason(answer: subprocess.CompletedProcess[bytes], ref: str) -> str:
    text = answer.stderr.decode(errors="replace").strip()
    if "not a git repository" in text:
        return "this is not a git repository."
    if not text or "Needed a single revision" in text:
        return f'ref "{ref}" not found. Fetch it first, or name another one.'
    return text.splitlines()[-1].removeprefix("fatal: ").rstrip(".") + "."
