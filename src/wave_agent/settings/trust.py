"""Which hooks of a project may run.

Trust is bound to the hook's definition and to the content of every project file that its command names. It is stored
in the agent's own directory, by the project's real path: nothing in a repository can point to it.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.programs import Programs, describe_moves, programs_of
from wave_agent.settings.hook_entries import SettingsSource, load_hooks
from wave_agent.settings.layers import RESTRICTIONS
from wave_agent.settings.places import OF_THE_PROJECT, require_sound_owner
from wave_agent.settings.values import MCP_KEYS
from wave_agent.system.ancestry import handed_down
from wave_agent.system.private_files import unwritten
from wave_agent.system.project import branch_of

UNREADABLE = "cannot be relied on: "
RUNS = "+x"
"""Ends the digest of an executable file."""

_CONFIRM = "Only the user can approve this, with wave hooks trust; it then runs in a new session."
"""The model reads this too, and must not think that it could do this itself."""
_BRANCHES = 100
"""Branches remembered per project."""

_PLACES = 8
"""Locations remembered per program."""

_PROGRAM = "the program "

_NAME = 200
"""Characters of a hook's name that are handed down."""

Digest = Callable[[str], str | None]
"""The digest of a file's content, by absolute path; None if the file does not exist."""


class TrustCandidate(Struct, frozen=True):
    """A hook of the project, with everything that trust in it is bound to."""

    hook: HookDefinition
    fingerprint: str
    """For a hook in a subdirectory's settings, prefixed with that directory."""
    files: Mapping[str, str | None]
    """Path, relative to the project → digest; None: not found."""
    programs: Programs = Programs()


CHANGED = "changed since it was trusted"
NOT_TRUSTED = "not trusted yet"


class SourceGuards(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The guards in one of the user's own settings files: see `user_guards`."""

    hooks: Mapping[str, str] = {}
    """Fingerprint → display name."""
    rules: tuple[str, ...] = ()
    files: Mapping[str, str | None] = {}
    """Scripts of the hooks, outside the project → digest."""
    rest: str = ""
    """Digest of the other settings."""


class UserRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the guards in the user's own settings after unattended sessions."""

    before: Mapping[str, SourceGuards] = {}
    """Settings file → its guards before an unattended session changed it, until a person confirms the change."""
    confirmed: Mapping[str, str] = {}
    """Settings file → digest of the guards that a person has confirmed."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user trusts in one project."""

    hooks: Mapping[str, Mapping[str, str | None]] = {}
    """Fingerprint of a hook → the files it names."""
    settings: Mapping[str, str] = {}
    """Settings file, relative to the project → digest of its settings other than hooks and restrictions."""
    shown: Mapping[str, str] = {}
    """Fingerprint of a hook → its display name, for when it is missing."""
    rules: Mapping[str, tuple[str, ...]] = {}
    """Directory, relative to the project → the restrictive rules in its settings: `deny Bash(rm:*)`."""
    programs: Mapping[str, tuple[str, ...]] | None = None
    """Name of a program → where hooks found it when they were trusted; "": not found, the same as not listed. None:
    trusted before this was recorded."""
    extensions: Mapping[str, Mapping[str, str]] = {}
    """Directory, relative to the project → its agents, skills and commands: path in the project → digest."""
    branches: Mapping[str, "Record"] = {}
    """Branch → what was confirmed on it. The fields above hold what was last confirmed or used, on any branch."""
    doubt: str = ""
    """Why a person has to confirm all this again."""
    allow: tuple[str, ...] = ()
    """Rules the user always allows."""
    notice_shown: bool = msgspec.field(default=False, name="told")
    """The user has seen the notice about hooks for other agents."""

    def only(self, directories: Collection[str]) -> "Record":
        """The part about the settings of these directories, relative to the project."""
        return replace(
            self,
            hooks={key: files for key, files in self.hooks.items() if _directory(key) in directories},
            shown={key: text for key, text in self.shown.items() if _directory(key) in directories},
            settings={name: digest for name, digest in self.settings.items() if _level(name) in directories},
            rules={level: rules for level, rules in self.rules.items() if level in directories},
            extensions={level: found for level, found in self.extensions.items() if level in directories},
        )

    def laid_over(self, other: "Record") -> "Record":
        """Both records combined; this one wins on conflict."""
        return replace(
            self,
            hooks={**other.hooks, **self.hooks},
            shown={**other.shown, **self.shown},
            settings={**other.settings, **self.settings},
            rules={**other.rules, **self.rules},
            extensions={**other.extensions, **self.extensions},
            programs=_all_places(self.programs, other.programs),
        )

    def on(self, branch: str) -> "Record":
        """The record for this branch. A branch without confirmations uses what was last confirmed or used, so a new
        branch name removes no guard."""
        own = self.branches.get(branch)
        if own is None:
            return self
        return replace(own, allow=self.allow, notice_shown=self.notice_shown, doubt=self.doubt, branches=self.branches)

    def moved_to(self, directory: str) -> "Record":
        """The guards of a project that is now a directory of another one."""
        return Record(
            hooks={_below(directory, key): {} for key in self.hooks},
            shown={_below(directory, key): text for key, text in self.shown.items()},
            rules={os.path.normpath(os.path.join(directory, level)): rules for level, rules in self.rules.items()},
        )

    @property
    def alone(self) -> "Record":
        """The part confirmed on one branch, without the project-wide fields."""
        return replace(self, allow=(), notice_shown=False, doubt="", branches={})

    @property
    def guards(self) -> frozenset[str]:
        """Everything whose removal must be noticed."""
        return frozenset((*self.hooks, *(f"{level}:{rule}" for level, rules in self.rules.items() for rule in rules)))

    @property
    def directories(self) -> frozenset[str]:
        """The directories it covers."""
        return frozenset((*map(_directory, self.hooks), *map(_level, self.settings), *self.rules, *self.extensions))

    def why_not(self, candidate: TrustCandidate) -> str | None:
        """Why this hook is not trusted; None if it is."""
        files = self.hooks.get(candidate.fingerprint)
        if files is None:
            return NOT_TRUSTED if not self.hooks else "new or changed"
        changed = [name for name, digest in candidate.files.items() if files.get(name) != digest]
        if changed:
            return f"{CHANGED}: {', '.join(changed)}"
        return self._why_not_run(candidate.programs)

    def _why_not_run(self, now: Programs) -> str | None:
        """Which of a hook's programs are no longer the ones that were trusted."""
        if self.programs is None:
            return "trusted by an older version, which did not record where its programs are" if now.names else None
        places = {name: self.programs.get(name, ("",)) for name in {*now.found, *(now.names & self.programs.keys())}}
        moved = [name for name, known in sorted(places.items()) if now.found.get(name, "") not in known]
        moves = describe_moves(moved, now.found, places)
        if not moves:
            return None
        return f"it would run something other than what was trusted: {moves}; wave hooks trust confirms it"

    def gone(self, now: "Record") -> tuple[str, ...]:
        """The guards that were confirmed and are now removed or disabled."""
        hooks = [self.shown.get(one, "a hook") for one in self.hooks if one not in now.hooks]
        rules = [
            rule for level in self.rules for rule in self.rules[level] if not holds(rule, now.rules.get(level, ()))
        ]
        return (*hooks, *(f"the rule {rule}" for rule in rules))

    def covers(self, source: SettingsSource, project: str) -> bool:
        """Whether everything in this file besides its hooks is trusted."""
        return self.settings.get(_relative(source.name, project)) == rest_digest(source)


def candidates(
    sources: Iterable[SettingsSource],
    project: str,
    digest: Digest,
    *,
    path: str | None = None,
    digest_of_program: Digest | None = None,
) -> tuple[TrustCandidate, ...]:
    """The hooks in these settings that would run. `path` is their PATH, if not that of this process; programs in the
    project are digested with `digest_of_program`."""
    by_name = {source.name: source for source in sources}
    root, path = _root(project), search_path(os.environ) if path is None else path
    return tuple(
        TrustCandidate(
            hook,
            _bound(hook, by_name[hook.source]),
            dict(_named(hook, project, root, digest)),
            programs_of(hook, project, root, path, digest_of_program or digest),
        )
        for hook in load_hooks(by_name.values()).hooks
        if hook.enabled
    )


def record_of(
    sources: Sequence[SettingsSource],
    project: str,
    found: Sequence[TrustCandidate],
    before: "Record | None" = None,
    *,
    extensions: Mapping[str, Mapping[str, str]] | None = None,
) -> Record:
    """The record that trusts all of this. `found` are its hooks, read only once: the record contains exactly what was
    judged or shown. `before` is the trust so far, if it is to be kept as well. `extensions`: see `Record`."""
    known = (before and before.programs) or {}
    places = {name: (where,) for candidate in found for name, where in candidate.programs.found.items()}
    nowhere = {name: ("",) for one in found for name in one.programs.names & known.keys() if name not in places}
    return Record(
        programs={**places, **nowhere},
        hooks={candidate.fingerprint: candidate.files for candidate in found},
        shown={candidate.fingerprint: _called(candidate.hook) for candidate in found},
        settings={_relative(source.name, project): rest_digest(source) for source in sources},
        rules=restrictions_of(sources, project),
        extensions=extensions or {},
    )


def _all_places(
    some: Mapping[str, tuple[str, ...]] | None, others: Mapping[str, tuple[str, ...]] | None
) -> Mapping[str, tuple[str, ...]] | None:
    """A program can have several locations: with and without the project's environment activated."""
    if some is None or others is None:
        return others if some is None else some
    names = dict.fromkeys((*others, *some))
    both = {name: dict.fromkeys((*others.get(name, ()), *some.get(name, ()))) for name in names}
    return {name: tuple(places)[-_PLACES:] for name, places in both.items()}


def _called(hook: HookDefinition) -> str:
    return f"{hook.event}: {hook.shown_command}{f' (in the subagent {hook.agent})' if hook.agent else ''}"


def restrictions_of(sources: Iterable[SettingsSource], project: str) -> dict[str, tuple[str, ...]]:
    """The deny and ask rules in these settings, by directory."""
    found: dict[str, tuple[str, ...]] = {}
    for source in sources:
        rules: Any = cast(Mapping[str, Any], source.document.value).get("permissions")
        given: Mapping[str, Any] = cast(Mapping[str, Any], rules) if isinstance(rules, Mapping) else {}
        level = _level(_relative(source.name, project))
        for kind in RESTRICTIONS:
            listed: Any = given.get(kind)
            texts = cast(list[Any], listed) if isinstance(listed, list) else []
            here = (f"{kind} {text}" for text in texts if isinstance(text, str))
            found[level] = tuple(dict.fromkeys((*found.get(level, ()), *here)))
    return {level: rules for level, rules in found.items() if rules}


def holds(rule: str, now: Collection[str]) -> bool:
    """Whether the rule still applies. An ask rule may have become a deny rule."""
    kind, _, text = rule.partition(" ")
    return rule in now or (kind == "ask" and f"deny {text}" in now)


def file_digest(path: str) -> str | None:
    """Of the file's content and whether it is executable. An unreadable file gets a digest that no file has."""
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
    """A guard that is no longer executable is a lost guard."""
    return f"{content}{RUNS}" if runs else content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO may never have a writer


def rest_digest(source: SettingsSource) -> str:
    """Of the settings that trust enables besides hooks: everything that does not merely restrict."""
    rest = dict(cast(Mapping[str, Any], source.document.value))
    if source.layer in OF_THE_PROJECT:  # each of its MCP servers needs a consent of its own
        rest = {key: value for key, value in rest.items() if key not in MCP_KEYS}
    rules: Any = rest.get("permissions")
    if isinstance(rules, Mapping):
        given = cast(Mapping[str, Any], rules)
        rest["permissions"] = {key: value for key, value in given.items() if key not in RESTRICTIONS}
    return _digest_of({key: rest[key] for key in rest if key not in ("hooks", "$schema") and key[:2] != "//"})


def fingerprint(hook: HookDefinition, source: SettingsSource) -> str:
    """Of the entry as written, with its event and the settings of its group. Its position does not matter."""
    entry: Any = _at(source.document.value, hook.path)
    group: Any = _at(source.document.value, hook.path[:3]) if len(hook.path) > 3 else {}
    around = {key: value for key, value in group.items() if key != "hooks"}
    if source.agent:  # it does not take the place of the same hook elsewhere
        around = {"agent": source.agent, "group": around}
    return entry_digest(hook.event.value, around, entry)


def _bound(hook: HookDefinition, source: SettingsSource) -> str:
    """Includes the directory whose settings contain it: trust there is not trust everywhere."""
    found = fingerprint(hook, source)
    return f"{hook.inner}:{found}" if hook.inner else found


def _directory(fingerprint: str) -> str:
    return fingerprint.rpartition(":")[0]


def _below(directory: str, fingerprint: str) -> str:
    inner, _, found = fingerprint.rpartition(":")
    return f"{os.path.join(directory, inner).rstrip('/')}:{found}"


def _level(settings: str) -> str:
    """The directory that a settings file applies to, by its path in the project."""
    return os.path.dirname(os.path.dirname(settings))


def entry_digest(event: str, around: Mapping[str, Any], entry: Any) -> str:
    """Of a hook as written, with the settings of its group. A disabled hook is still the same hook."""
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
    """The files that belong to the project."""
    from wave_agent.hooks.named_files import hook_files  # lazy: a start without hooks of a project needs none of it

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
    """The project's hooks in one session, each pinned to the files it had when it was trusted.

    Trust changed on disk during the session is ignored: the agent may have changed it. Only a person who is asked in
    this session can `accept` a change.
    """

    def __init__(self, pinned: Iterable[TrustCandidate] = (), *, project: str = "", path: str | None = None) -> None:
        """`path` is the PATH of the hooks, if not that of this process."""
        self._pinned = {_place(found.hook): found for found in pinned}
        self._project = project
        self._root = _root(project)
        self._path = search_path(os.environ) if path is None else path
        self._seen: dict[tuple[Any, ...], Programs] = {}
        """Where programs were at the last check, if that differs from the pinned location."""

    @property
    def record(self) -> Mapping[str, Mapping[str, str | None]]:
        """The trusted hooks, in the form of a record."""
        return {found.fingerprint: found.files for found in self._pinned.values()}

    @property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """The locations of its programs, in the form of a record."""
        return {name: (where,) for one in self._pinned.values() for name, where in one.programs.found.items()}

    @property
    def shown(self) -> Mapping[str, str]:
        """The display names of the hooks in the record."""
        return {found.fingerprint: _called(found.hook)[:_NAME] for found in self._pinned.values()}

    def problem(self, hook: HookDefinition) -> str | None:
        """Why this hook must not run now; None if it may. Hooks from outside the project are not checked."""
        pinned = self._pinned.get(_place(hook))
        if pinned is None:
            return None
        changed = self._changed_files(pinned)
        moved = {} if changed else self._moved(pinned)  # a different script may well name different programs
        if moved:
            here = {name: now or "" for name, now in moved.items()}
            before = {name: (where,) for name, where in pinned.programs.found.items()}
            return f"{describe_moves(moved, here, before)}. {_CONFIRM}"
        if not changed:
            return None
        for name, digest in changed.items():
            if digest is not None and digest.startswith(UNREADABLE):
                return f"cannot tell whether {name} is still what you trusted: it {digest}"
        gone = [name for name, digest in changed.items() if digest is None]
        what = f"{', '.join(gone)} has been deleted" if gone else f"{', '.join(changed)} has changed"
        return f"{what} since it was trusted. {_CONFIRM}"

    def changes(self) -> Mapping[str, str | None]:
        """Files of hooks that differ from the trusted ones, as they are now: path in the project → digest."""
        found: dict[str, str | None] = {}
        for pinned in self._pinned.values():
            found |= self._changed(pinned)
        return {name: digest for name, digest in found.items() if not (digest or "").startswith(UNREADABLE)}

    def accept(self, changes: Mapping[str, str | None]) -> None:
        """A person has reviewed these changes, and trusts the files as they were then, for this session."""
        for place, pinned in self._pinned.items():
            agreed = {name: digest for name, digest in changes.items() if name in pinned.files}
            known = (*pinned.programs.found, *self._moved(pinned))
            moved = {name: changes[key] for name in known if (key := f"{_PROGRAM}{name}") in changes}
            found = {name: where for name, where in {**pinned.programs.found, **moved}.items() if where is not None}
            programs = replace(pinned.programs, found=found, watched={})
            self._pinned[place] = replace(pinned, files={**pinned.files, **agreed}, programs=programs)

    def _changed(self, pinned: TrustCandidate) -> dict[str, str | None]:
        return {
            **self._changed_files(pinned),
            **{f"{_PROGRAM}{name}": where for name, where in self._moved(pinned).items()},
        }

    def _moved(self, pinned: TrustCandidate) -> dict[str, str | None]:
        """Programs that have moved: name → new location, None if not found."""
        place = _place(pinned.hook)
        now = self._seen.get(place, pinned.programs)
        if not now.is_fresh:
            now = self._seen[place] = programs_of(pinned.hook, self._project, self._root, self._path, file_digest)
        before = pinned.programs.found
        names = {name for name in {*now.found, *before} if now.found.get(name) != before.get(name)}
        return {name: now.found.get(name) for name in sorted(names)}

    def _changed_files(self, pinned: TrustCandidate) -> dict[str, str | None]:
        now = {name: file_digest(os.path.join(self._project, name)) for name in pinned.files}
        return {name: digest for name, digest in now.items() if digest != pinned.files[name]}


def _place(hook: HookDefinition) -> tuple[Any, ...]:
    return (hook.source, hook.path)


class TrustStore:
    """`trust.json` in the agent's own directory."""

    def __init__(self, home: Path) -> None:
        self.file = home / "trust.json"

    def read(self, project: str) -> Record:
        """What is trusted in this project, on the current branch. Raises `SettingsError` if the store cannot be relied
        on."""
        stored = self._load().get(project)
        return Record() if stored is None else stored.on(branch_of(project))

    def guarded(self) -> frozenset[str]:
        """The projects with guards whose removal must be noticed."""
        return frozenset(project for project, record in self._load().items() if record.guards)

    def trust(self, project: str, record: Record, directories: Collection[str] = ("",), *, doubt: str = "") -> None:
        """Replaces the trust in the settings of these `directories`, relative to the project, on the current branch.

        Trust in other directories stays, and so do the rules that the user always allows. `doubt` says why a person
        must confirm it again.
        """
        branch = branch_of(project)
        with self._changing() as projects:
            before = projects.get(project, Record())
            here = before.on(branch)
            confirmed = record.laid_over(here.only(here.directories - set(directories))).alone
            others = {name: one for name, one in before.branches.items() if name != branch}
            kept = dict([*others.items(), *([(branch, confirmed)] if branch else [])][-_BRANCHES:])
            projects[project] = replace(
                confirmed, branches=kept, doubt=doubt, allow=before.allow, notice_shown=before.notice_shown
            )
            for inner in filter(None, directories):  # once separate projects: their records are now checked here
                if (path := os.path.join(project, inner)) in projects:
                    projects[path] = Record(allow=projects[path].allow, notice_shown=projects[path].notice_shown)

    def use(self, project: str) -> Record:
        """A session starts: from now on, a branch without confirmations is compared with this branch's guards.

        Returns everything stored about the project.
        """
        stored = self._load().get(project, Record())
        here = stored.on(branch_of(project))
        if here.alone == stored.alone:
            return stored
        with self._changing() as projects:
            projects[project] = here
        return here

    def look_back(self, project: str, before: Record, branch: str) -> str:
        """An unattended session has ended: how it changed the trust in its project, empty if it did not.

        The change is stored as a doubt. `before` is what was stored when the session started, on this `branch`.
        """
        now = self._load().get(project, Record())
        here = branch_of(project)
        if (now.allow, now.branches or now.alone) != (before.allow, before.branches or before.alone):
            found = "trust in this project was changed while a session ran unattended"
        elif here != branch and before.on(branch).guards - now.on(here).guards:
            found = f"an unattended session switched from {branch} to {here}, which has fewer guards"
        else:
            return ""
        with self._changing() as projects:
            projects[project] = replace(projects.get(project, Record()), doubt=found)
        return found

    def revoke(self, project: str) -> bool:
        """Forgets the project, including its rules. False if there was nothing to forget."""
        with self._changing() as projects:
            return projects.pop(project, None) is not None

    def remember_rule(self, project: str, rule: str) -> None:
        """Always allows this in the project."""
        with self._changing() as projects:
            before = projects.get(project, Record())
            projects[project] = replace(before, allow=tuple(dict.fromkeys((*before.allow, rule))))

    def remember_notice(self, project: str) -> bool:
        """Records that the user knows of the project's hooks for other agents. False if that was already recorded."""
        before = self.read(project)
        if before.notice_shown:
            return False
        with self._changing() as projects:
            projects[project] = replace(projects.get(project, Record()), notice_shown=True)
        return True

    @property
    def user(self) -> UserRecord:
        """The record of changes to the user's own settings. Raises `SettingsError`."""
        return self._load_all().user

    def remember_user(self, record: UserRecord) -> None:
        """Does nothing if nothing changed."""
        if record != self.user:
            with self._rewriting() as stored:
                stored.user = record

    def _load(self) -> dict[str, Record]:
        return self._load_all().projects

    def _load_all(self) -> "_Stored":
        try:
            with self.file.open("rb") as opened:
                require_sound_owner(opened.fileno(), self.file, levels=1)
                content = opened.read()
        except FileNotFoundError:
            return _Stored()
        except OSError as error:
            raise SettingsError(f"{self.file} cannot be read: {error.strerror}") from None
        try:
            return msgspec.json.decode(content, type=_Stored)
        except msgspec.DecodeError as error:
            what = "Nothing in it is trusted: delete it, and trust your projects again."
            raise SettingsError(f"{self.file} is damaged: {error}. {what}") from None

    @contextmanager
    def _changing(self) -> Generator[dict[str, Record]]:
        """The projects, for modification."""
        with self._rewriting() as stored:
            yield stored.projects

    @contextmanager
    def _rewriting(self) -> Generator["_Stored"]:
        """The whole store, for modification; written atomically, by one process at a time. Not below an agent."""
        if handed_down(os.environ):
            raise SettingsError(
                f"{self.file} cannot be changed by a program that an agent has started: only a person can grant trust."
            )
        import fcntl  # lazy: only needed to change the store

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self.file.with_suffix(".lock"), "w", opener=_private) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                stored = self._load_all()
                yield stored
                written = self.file.with_suffix(".new")
                with open(written, "wb", opener=_private) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(stored), indent=1))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(written, self.file)
        except OSError as error:
            raise SettingsError(unwritten(self.file, error)) from None


class Vigil:
    """Watches the trust in a project during an unattended session; if the session changes it, a person is asked at the
    next start. Never raises: a store that cannot be relied on aborts the next start anyway."""

    def __init__(self, home: Path, project: str, *, is_needed: bool) -> None:
        """`is_needed`: False for an attended session. Below another agent, that agent is watched, and nothing is
        stored."""
        self._store = TrustStore(home)
        self._project = project
        self._is_needed = is_needed
        self._before: Record | None = None
        self._branch = ""

    def begin(self) -> None:
        with suppress(SettingsError):
            self._branch = branch_of(self._project)
            self._before = self._store.use(self._project)

    def end(self) -> str:
        """What the session changed; empty if nothing."""
        before, self._before = self._before, None
        if before is None or not self._is_needed:
            return ""
        with suppress(SettingsError):
            return self._store.look_back(self._project, before, self._branch)
        return ""


class _Stored(Struct, kw_only=True):
    version: int = 1
    projects: dict[str, Record] = {}
    user: UserRecord = UserRecord()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
