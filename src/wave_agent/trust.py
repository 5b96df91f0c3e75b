"""Which hooks of a project may run.

Trust is bound to what a hook says and to the content of every file of the project that its command names. It is kept
under the agent's own directory, by the real path of the project: nothing in a repository can point to it.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.config import SettingsSource, load_hooks
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.named_files import hook_files
from wave_agent.settings import RESTRICTIONS, require_sound_owner

UNREADABLE = "cannot be relied on: "
RUNS = "+x"
"""Ends the digest of a file that can be run."""

Digest = Callable[[str], str | None]
"""The digest of a file's content, by absolute path; None if there is no such file."""


class Candidate(Struct, frozen=True):
    """A hook of the project, with all that trust in it is bound to."""

    hook: HookDefinition
    fingerprint: str
    """Of a hook in the settings of a directory below the project's own, that directory stands before it."""
    files: Mapping[str, str | None]
    """Path, relative to the project → digest; None: not there."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user trusts in one project."""

    hooks: Mapping[str, Mapping[str, str | None]] = {}
    """Fingerprint of a hook → the files that it names."""
    settings: Mapping[str, str] = {}
    """Settings file, relative to the project → digest of what it says beside hooks and restrictions."""
    shown: Mapping[str, str] = {}
    """Fingerprint of a hook → what to call it when it is no longer there."""
    allow: tuple[str, ...] = ()
    """Rules that the user gave as an answer for always."""
    told: bool = False
    """The user knows that the project has hooks for other agents."""

    def only(self, directories: Collection[str]) -> "Record":
        """What it says about the settings of these directories, relative to the project."""
        return replace(
            self,
            hooks={key: files for key, files in self.hooks.items() if _directory(key) in directories},
            shown={key: text for key, text in self.shown.items() if _directory(key) in directories},
            settings={name: digest for name, digest in self.settings.items() if _level(name) in directories},
        )

    def laid_over(self, other: "Record") -> "Record":
        """Both; where they differ, what this one says."""
        return replace(
            self,
            hooks={**other.hooks, **self.hooks},
            shown={**other.shown, **self.shown},
            settings={**other.settings, **self.settings},
        )

    @property
    def directories(self) -> frozenset[str]:
        """Those that it speaks of."""
        return frozenset((*map(_directory, self.hooks), *map(_level, self.settings)))

    def why_not(self, candidate: Candidate) -> str | None:
        """Why this hook is not trusted; None if it is."""
        files = self.hooks.get(candidate.fingerprint)
        if files is None:
            return "not trusted yet" if not self.hooks else "new or changed"
        changed = [name for name, digest in candidate.files.items() if files.get(name) != digest]
        return f"changed since it was trusted: {', '.join(changed)}" if changed else None

    def missing(self, found: Iterable[Candidate]) -> tuple[str, ...]:
        """The hooks that are trusted and not there: a guard that somebody has removed or switched off."""
        there = {candidate.fingerprint for candidate in found}
        return tuple(self.shown.get(one, "a hook") for one in self.hooks if one not in there)

    def covers(self, source: SettingsSource, project: str) -> bool:
        """Everything that this file says beside its hooks is trusted."""
        return self.settings.get(_relative(source.name, project)) == rest_digest(source)


def candidates(sources: Iterable[SettingsSource], project: str, digest: Digest) -> tuple[Candidate, ...]:
    """The hooks in these settings that would run."""
    by_name = {source.name: source for source in sources}
    root = _root(project)
    return tuple(
        Candidate(hook, _bound(hook, by_name[hook.source]), dict(_named(hook, project, root, digest)))
        for hook in load_hooks(by_name.values()).hooks
        if hook.enabled
    )


def record_of(sources: Sequence[SettingsSource], project: str, found: Sequence[Candidate]) -> Record:
    """What has to be kept to trust all of this. `found` are the hooks in it, looked at once: what is kept is what was
    judged or shown."""
    return Record(
        hooks={candidate.fingerprint: candidate.files for candidate in found},
        shown={
            candidate.fingerprint: f"{one.event}: {one.shown_command}"
            for candidate in found
            for one in [candidate.hook]
        },
        settings={_relative(source.name, project): rest_digest(source) for source in sources},
    )


def file_digest(path: str) -> str | None:
    """Of what is in the file now, and whether it can be run. What cannot be read has a digest that no file has."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                return f"{UNREADABLE}it is not a file"
            return digest_of(hashlib.file_digest(file, "sha256").hexdigest(), runs=bool(facts.st_mode & stat.S_IXUSR))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return f"{UNREADABLE}{error.strerror}"


def digest_of(content: str, *, runs: bool) -> str:
    """A guard that lost its permission to execute is a guard that is gone."""
    return f"{content}{RUNS}" if runs else content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # nobody may ever write to a FIFO


def rest_digest(source: SettingsSource) -> str:
    """Of what trust in a file lets count beside its hooks: nothing that only restricts."""
    rest = dict(cast(Mapping[str, Any], source.document.value))
    rules: Any = rest.get("permissions")
    if isinstance(rules, Mapping):
        given = cast(Mapping[str, Any], rules)
        rest["permissions"] = {key: value for key, value in given.items() if key not in RESTRICTIONS}
    return _digest_of({key: rest[key] for key in rest if key not in ("hooks", "$schema") and key[:2] != "//"})


def fingerprint(hook: HookDefinition, source: SettingsSource) -> str:
    """Of the entry as it is written, with its event and what its group says. Where it stands does not matter."""
    entry: Any = _at(source.document.value, hook.path)
    group: Any = _at(source.document.value, hook.path[:3]) if len(hook.path) > 3 else {}
    around = {key: value for key, value in group.items() if key != "hooks"}
    return entry_digest(hook.event.value, around, entry)


def _bound(hook: HookDefinition, source: SettingsSource) -> str:
    """To the directory whose settings it stands in: what is trusted there is not trusted everywhere."""
    found = fingerprint(hook, source)
    return f"{hook.inner}:{found}" if hook.inner else found


def _directory(fingerprint: str) -> str:
    return fingerprint.rpartition(":")[0]


def _level(settings: str) -> str:
    """The directory that a settings file stands for, by its path in the project."""
    return os.path.dirname(os.path.dirname(settings))


def entry_digest(event: str, around: Mapping[str, Any], entry: Any) -> str:
    """Of a hook as it is written, with what its group says. Whether it is switched off makes no other hook of it."""
    if isinstance(entry, Mapping):
        entry = {key: value for key, value in cast(Mapping[str, Any], entry).items() if key != "enabled"}
    return _digest_of([event, around, entry])


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _named(hook: HookDefinition, project: str, root: str, digest: Digest) -> Iterator[tuple[str, str | None]]:
    """Those that come with the project."""
    for path in hook_files(hook, project):
        if os.path.commonpath([path, root]) == root:
            yield _relative(path, project), digest(path)


def _root(project: str) -> str:
    """The project, or the repository around it."""
    above = [project, *map(str, Path(project).parents)]
    return next((one for one in above if os.path.exists(os.path.join(one, ".git"))), project)


def _relative(path: str, project: str) -> str:
    return os.path.relpath(path, project)


class ProjectTrust:
    """The project's hooks of one session, each bound to the files that it had when it was trusted."""

    def __init__(
        self, pinned: Iterable[Candidate] = (), *, project: str = "", look_again: Callable[[], Record] = Record
    ) -> None:
        """`look_again` reads what is trusted by now: the user may have agreed to a change meanwhile."""
        self._pinned = {_place(found.hook): found for found in pinned}
        self._project = project
        self._look_again = look_again

    @property
    def record(self) -> Mapping[str, Mapping[str, str | None]]:
        """What is trusted, as a record keeps it."""
        return {found.fingerprint: found.files for found in self._pinned.values()}

    def problem(self, hook: HookDefinition) -> str | None:
        """Why this hook must not run now; None if it may. Hooks that are not the project's are not looked at."""
        pinned = self._pinned.get(_place(hook))
        if pinned is None:
            return None
        now = {name: file_digest(os.path.join(self._project, name)) for name in pinned.files}
        if now == pinned.files:
            return None
        changed = {name: digest for name, digest in now.items() if digest != pinned.files[name]}
        for name, digest in changed.items():
            if digest is not None and digest.startswith(UNREADABLE):
                return f"not run: whether {name} is still what was trusted is not known, it {digest}"
        current = replace(pinned, files=now)
        try:
            agreed = self._look_again().why_not(current) is None
        except SettingsError as error:
            return f"not run: {error}"
        if agreed:
            self._pinned[_place(hook)] = current
            return None
        gone = [name for name, digest in changed.items() if digest is None]
        what = f"{', '.join(gone)} does not exist any more" if gone else f"{', '.join(changed)} has changed"
        return f"not run: {what} since it was trusted. Look at it, then: wave hooks trust"


def _place(hook: HookDefinition) -> tuple[Any, ...]:
    return (hook.source, hook.path)


class TrustStore:
    """`trust.json` in the agent's own directory."""

    def __init__(self, home: Path) -> None:
        self.file = home / "trust.json"

    def read(self, project: str) -> Record:
        """What is trusted in this project. Raises `SettingsError` if the store cannot be relied on."""
        return self._load().get(project, Record())

    def trust(self, project: str, record: Record, directories: Collection[str] = ("",)) -> None:
        """From now on exactly this of what is in the settings of these `directories`, relative to the project.

        What is trusted in others stays, and so do rules that the user allowed for always.
        """
        with self._changing() as projects:
            before = projects.get(project, Record())
            kept = before.only(before.directories - set(directories))
            projects[project] = replace(record.laid_over(kept), allow=before.allow, told=before.told)

    def revoke(self, project: str) -> bool:
        """Forgets the project, its rules included. False if there was nothing to forget."""
        with self._changing() as projects:
            return projects.pop(project, None) is not None

    def remember_rule(self, project: str, rule: str) -> None:
        """Allows this in the project for always."""
        with self._changing() as projects:
            before = projects.get(project, Record())
            projects[project] = replace(before, allow=tuple(dict.fromkeys((*before.allow, rule))))

    def remember_told(self, project: str) -> bool:
        """The user knows now that the project has hooks for other agents. False if that was known."""
        before = self.read(project)
        if before.told:
            return False
        with self._changing() as projects:
            projects[project] = replace(projects.get(project, Record()), told=True)
        return True

    def _load(self) -> dict[str, Record]:
        try:
            with self.file.open("rb") as opened:
                require_sound_owner(opened.fileno(), self.file, levels=1)
                content = opened.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SettingsError(f"{self.file} cannot be read: {error.strerror}") from None
        try:
            return msgspec.json.decode(content, type=_Stored).projects
        except msgspec.DecodeError as error:
            what = "Nothing in it is relied on: remove it, and trust your projects anew."
            raise SettingsError(f"{self.file} is damaged: {error}. {what}") from None

    @contextmanager
    def _changing(self) -> Generator[dict[str, Record]]:
        """The projects, to be changed; written whole, and by one process at a time."""
        import fcntl  # lazy: only whoever changes the store needs it

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self.file.with_suffix(".lock"), "w", opener=_private) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                projects = self._load()
                yield projects
                written = self.file.with_suffix(".new")
                with open(written, "wb", opener=_private) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(_Stored(projects=projects)), indent=1))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(written, self.file)
        except OSError as error:
            raise SettingsError(f"{self.file} cannot be written: {error.strerror}") from None


class _Stored(Struct, frozen=True, kw_only=True):
    version: int = 1
    projects: dict[str, Record] = {}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
