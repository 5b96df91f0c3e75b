"""Which hooks of a project may run.

Trust is bound to what a hook says and to the content of every file of the project that its command names. It is kept
under the agent's own directory, by the real path of the project: nothing in a repository can point to it.
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
from wave_agent.hooks.config import SettingsSource, load_hooks
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.named_files import hook_files
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.programs import Programs, describe_move, programs_of
from wave_agent.settings.layers import RESTRICTIONS, require_sound_owner
from wave_agent.system.ancestry import handed_down
from wave_agent.system.project import branch_of

UNREADABLE = "cannot be relied on: "
RUNS = "+x"
"""Ends the digest of a file that can be run."""

_CONFIRM = "Only the user can agree to that, with wave hooks trust; a new session then runs it."
"""The model reads this too, and must not take it for something that it could do."""
_BRANCHES = 100
"""Branches of one project that are remembered."""

_PLACES = 8
"""Places of one program that are remembered."""

_PROGRAM = "the program "

_NAME = 200
"""Characters of a hook's name that are handed down."""

Digest = Callable[[str], str | None]
"""The digest of a file's content, by absolute path; None if there is no such file."""


class TrustCandidate(Struct, frozen=True):
    """A hook of the project, with all that trust in it is bound to."""

    hook: HookDefinition
    fingerprint: str
    """Of a hook in the settings of a directory below the project's own, that directory stands before it."""
    files: Mapping[str, str | None]
    """Path, relative to the project → digest; None: not there."""
    programs: Programs = Programs()


CHANGED = "changed since it was trusted"


class SourceGuards(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one of the user's own settings files says, as far as it would be missed: see `user_guards`."""

    hooks: Mapping[str, str] = {}
    """Fingerprint → what to call it."""
    rules: tuple[str, ...] = ()
    files: Mapping[str, str | None] = {}
    """Scripts of the hooks, outside the project → digest."""
    rest: str = ""
    """Digest of the other settings."""


class UserRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What sessions that nobody attended have left of the guards in the user's own settings."""

    before: Mapping[str, SourceGuards] = {}
    """Settings file → what it said before such a session changed it, until a person confirms the change."""
    confirmed: Mapping[str, str] = {}
    """Settings file → digest of what a person has confirmed."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user trusts in one project."""

    hooks: Mapping[str, Mapping[str, str | None]] = {}
    """Fingerprint of a hook → the files that it names."""
    settings: Mapping[str, str] = {}
    """Settings file, relative to the project → digest of what it says beside hooks and restrictions."""
    shown: Mapping[str, str] = {}
    """Fingerprint of a hook → what to call it when it is no longer there."""
    rules: Mapping[str, tuple[str, ...]] = {}
    """Directory, relative to the project → the rules that its settings restrict by: `deny Bash(rm:*)`."""
    programs: Mapping[str, tuple[str, ...]] | None = None
    """Name of a program → where hooks found it when they were trusted; "": nowhere, as one that is not listed. None:
    trusted before this was kept."""
    branches: Mapping[str, "Record"] = {}
    """Branch → what was confirmed on it. The fields above are what was confirmed or used last, on whichever branch."""
    doubt: str = ""
    """Why a person has to confirm all this once more."""
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
            rules={level: rules for level, rules in self.rules.items() if level in directories},
        )

    def laid_over(self, other: "Record") -> "Record":
        """Both; where they differ, what this one says."""
        return replace(
            self,
            hooks={**other.hooks, **self.hooks},
            shown={**other.shown, **self.shown},
            settings={**other.settings, **self.settings},
            rules={**other.rules, **self.rules},
            programs=_all_places(self.programs, other.programs),
        )

    def on(self, branch: str) -> "Record":
        """What counts on this branch. One that nothing was confirmed on has what was confirmed or used last: a new name
        for a branch takes no guard away."""
        own = self.branches.get(branch)
        if own is None:
            return self
        return replace(own, allow=self.allow, told=self.told, doubt=self.doubt, branches=self.branches)

    def moved_to(self, directory: str) -> "Record":
        """The guards of a project that is a directory of another one now."""
        return Record(
            hooks={_below(directory, key): {} for key in self.hooks},
            shown={_below(directory, key): text for key, text in self.shown.items()},
            rules={os.path.normpath(os.path.join(directory, level)): rules for level, rules in self.rules.items()},
        )

    @property
    def alone(self) -> "Record":
        """What is confirmed on one branch, without what holds for the project as a whole."""
        return replace(self, allow=(), told=False, doubt="", branches={})

    @property
    def guards(self) -> frozenset[str]:
        """All that would be missed if it were gone."""
        return frozenset((*self.hooks, *(f"{level}:{rule}" for level, rules in self.rules.items() for rule in rules)))

    @property
    def directories(self) -> frozenset[str]:
        """Those that it speaks of."""
        return frozenset((*map(_directory, self.hooks), *map(_level, self.settings), *self.rules))

    def why_not(self, candidate: TrustCandidate) -> str | None:
        """Why this hook is not trusted; None if it is."""
        files = self.hooks.get(candidate.fingerprint)
        if files is None:
            return "not trusted yet" if not self.hooks else "new or changed"
        changed = [name for name, digest in candidate.files.items() if files.get(name) != digest]
        if changed:
            return f"{CHANGED}: {', '.join(changed)}"
        return self._why_not_run(candidate.programs)

    def _why_not_run(self, now: Programs) -> str | None:
        """Which of a hook's programs lead elsewhere than when they were trusted."""
        if self.programs is None:
            return "trusted by an older version, which did not note where its programs are" if now.names else None
        places = {name: self.programs.get(name, ("",)) for name in {*now.found, *(now.names & self.programs.keys())}}
        moved = [name for name, known in sorted(places.items()) if now.found.get(name, "") not in known]
        told = [describe_move(name, now.found.get(name, ""), places[name]) for name in moved]
        return f"it would run something else than when it was trusted: {', '.join(told)}" if told else None

    def gone(self, now: "Record") -> tuple[str, ...]:
        """The guards that were confirmed and are not there now: somebody has removed them, or switched them off."""
        hooks = [self.shown.get(one, "a hook") for one in self.hooks if one not in now.hooks]
        rules = [
            rule for level in self.rules for rule in self.rules[level] if not holds(rule, now.rules.get(level, ()))
        ]
        return (*hooks, *(f"the rule {rule}" for rule in rules))

    def covers(self, source: SettingsSource, project: str) -> bool:
        """Everything that this file says beside its hooks is trusted."""
        return self.settings.get(_relative(source.name, project)) == rest_digest(source)


def candidates(
    sources: Iterable[SettingsSource],
    project: str,
    digest: Digest,
    *,
    path: str | None = None,
    digest_of_program: Digest | None = None,
) -> tuple[TrustCandidate, ...]:
    """The hooks in these settings that would run. `path` is where they find programs, if not where this process does;
    those of them that lie in the project have a `digest_of_program`."""
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
    sources: Sequence[SettingsSource], project: str, found: Sequence[TrustCandidate], before: "Record | None" = None
) -> Record:
    """What has to be kept to trust all of this. `found` are the hooks in it, looked at once: what is kept is what was
    judged or shown. `before` is what was trusted so far, if that is to be kept along with it."""
    known = (before and before.programs) or {}
    places = {name: (where,) for candidate in found for name, where in candidate.programs.found.items()}
    nowhere = {name: ("",) for one in found for name in one.programs.names & known.keys() if name not in places}
    return Record(
        programs={**places, **nowhere},
        hooks={candidate.fingerprint: candidate.files for candidate in found},
        shown={candidate.fingerprint: _called(candidate.hook) for candidate in found},
        settings={_relative(source.name, project): rest_digest(source) for source in sources},
        rules=restrictions_of(sources, project),
    )


def _all_places(
    some: Mapping[str, tuple[str, ...]] | None, others: Mapping[str, tuple[str, ...]] | None
) -> Mapping[str, tuple[str, ...]] | None:
    """A program may be here or there: in a terminal with an environment of the project, and in one without."""
    if some is None or others is None:
        return others if some is None else some
    names = dict.fromkeys((*others, *some))
    both = {name: dict.fromkeys((*others.get(name, ()), *some.get(name, ()))) for name in names}
    return {name: tuple(places)[-_PLACES:] for name, places in both.items()}


def _called(hook: HookDefinition) -> str:
    return f"{hook.event}: {hook.shown_command}"


def restrictions_of(sources: Iterable[SettingsSource], project: str) -> dict[str, tuple[str, ...]]:
    """The rules by which these settings deny or ask, by directory."""
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
    """A rule that asked may deny by now."""
    kind, _, text = rule.partition(" ")
    return rule in now or (kind == "ask" and f"deny {text}" in now)


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


def _below(directory: str, fingerprint: str) -> str:
    inner, _, found = fingerprint.rpartition(":")
    return f"{os.path.join(directory, inner).rstrip('/')}:{found}"


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
    """The project's hooks of one session, each bound to the files that it had when it was trusted.

    What is trusted anew on disk meanwhile does not count: whoever did that may have been the agent. Only a person who
    is asked in this session can `accept` a change.
    """

    def __init__(self, pinned: Iterable[TrustCandidate] = (), *, project: str = "", path: str | None = None) -> None:
        """`path` is where hooks find programs, if not where this process does."""
        self._pinned = {_place(found.hook): found for found in pinned}
        self._project = project
        self._root = _root(project)
        self._path = search_path(os.environ) if path is None else path
        self._seen: dict[tuple[Any, ...], Programs] = {}
        """Where programs were when it was last looked, if not where they are pinned."""

    @property
    def record(self) -> Mapping[str, Mapping[str, str | None]]:
        """What is trusted, as a record keeps it."""
        return {found.fingerprint: found.files for found in self._pinned.values()}

    @property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """Where its programs are, as a record keeps it."""
        return {name: (where,) for one in self._pinned.values() for name, where in one.programs.found.items()}

    @property
    def shown(self) -> Mapping[str, str]:
        """What to call the hooks of the record."""
        return {found.fingerprint: _called(found.hook)[:_NAME] for found in self._pinned.values()}

    def problem(self, hook: HookDefinition) -> str | None:
        """Why this hook must not run now; None if it may. Hooks that are not the project's are not looked at."""
        pinned = self._pinned.get(_place(hook))
        if pinned is None:
            return None
        changed = self._changed_files(pinned)
        moved = {} if changed else self._moved(pinned)  # another script may well name other programs
        if moved:
            told = [
                describe_move(name, now or "", [pinned.programs.found.get(name, "")]) for name, now in moved.items()
            ]
            return f"{', '.join(told)}. {_CONFIRM}"
        if not changed:
            return None
        for name, digest in changed.items():
            if digest is not None and digest.startswith(UNREADABLE):
                return f"whether {name} is still what you trusted is not known, it {digest}"
        gone = [name for name, digest in changed.items() if digest is None]
        what = f"{', '.join(gone)} does not exist any more" if gone else f"{', '.join(changed)} has changed"
        return f"{what} since it was trusted. {_CONFIRM}"

    def changes(self) -> Mapping[str, str | None]:
        """The files of hooks that are not what was trusted, as they are now: path in the project → digest."""
        found: dict[str, str | None] = {}
        for pinned in self._pinned.values():
            found |= self._changed(pinned)
        return {name: digest for name, digest in found.items() if not (digest or "").startswith(UNREADABLE)}

    def accept(self, changes: Mapping[str, str | None]) -> None:
        """A person has looked at these changes, and trusts the files as they were then, for this session."""
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
        """Programs that are not where they were: name → where they are, None if nowhere."""
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
        """What is trusted in this project, on the branch that is checked out. Raises `SettingsError` if the store
        cannot be relied on."""
        stored = self._load().get(project)
        return Record() if stored is None else stored.on(branch_of(project))

    def guarded(self) -> frozenset[str]:
        """The projects that have guards which would be missed."""
        return frozenset(project for project, record in self._load().items() if record.guards)

    def trust(self, project: str, record: Record, directories: Collection[str] = ("",), *, doubt: str = "") -> None:
        """From now on exactly this of what is in the settings of these `directories`, relative to the project, on the
        branch that is checked out.

        What is trusted in others stays, and so do rules that the user allowed for always. `doubt` says why a person is
        to confirm it once more.
        """
        branch = branch_of(project)
        with self._changing() as projects:
            before = projects.get(project, Record())
            here = before.on(branch)
            confirmed = record.laid_over(here.only(here.directories - set(directories))).alone
            others = {name: one for name, one in before.branches.items() if name != branch}
            kept = dict([*others.items(), *([(branch, confirmed)] if branch else [])][-_BRANCHES:])
            projects[project] = replace(confirmed, branches=kept, doubt=doubt, allow=before.allow, told=before.told)
            for inner in filter(None, directories):  # once projects of their own: what they had is looked at here now
                if (path := os.path.join(project, inner)) in projects:
                    projects[path] = Record(allow=projects[path].allow, told=projects[path].told)

    def use(self, project: str) -> Record:
        """A session begins: a branch that nothing was confirmed on is compared with this one's guards from now on.

        Returns all that is kept about the project.
        """
        stored = self._load().get(project, Record())
        here = stored.on(branch_of(project))
        if here.alone == stored.alone:
            return stored
        with self._changing() as projects:
            projects[project] = here
        return here

    def look_back(self, project: str, before: Record, branch: str) -> str:
        """A session that nobody attended has ended: what it did to the trust in its project, empty if nothing.

        It is kept as a doubt. `before` is what was kept when it began, on this `branch`.
        """
        now = self._load().get(project, Record())
        here = branch_of(project)
        if (now.allow, now.branches or now.alone) != (before.allow, before.branches or before.alone):
            found = "trust in this project was changed while a session ran unattended"
        elif here != branch and before.on(branch).guards - now.on(here).guards:
            found = f"a session that ran unattended has left {branch} for {here}, which has fewer guards"
        else:
            return ""
        with self._changing() as projects:
            projects[project] = replace(projects.get(project, Record()), doubt=found)
        return found

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

    @property
    def user(self) -> UserRecord:
        """What is known of changes to the user's own settings. Raises `SettingsError`."""
        return self._load_all().user

    def remember_user(self, record: UserRecord) -> None:
        """Does nothing if that is known."""
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
            what = "Nothing in it is relied on: remove it, and trust your projects anew."
            raise SettingsError(f"{self.file} is damaged: {error}. {what}") from None

    @contextmanager
    def _changing(self) -> Generator[dict[str, Record]]:
        """The projects, to be changed."""
        with self._rewriting() as stored:
            yield stored.projects

    @contextmanager
    def _rewriting(self) -> Generator["_Stored"]:
        """All of it, to be changed; written whole, and by one process at a time. Below an agent nothing is."""
        if handed_down(os.environ):
            raise SettingsError(
                f"{self.file} is not changed by what an agent has started: trust is a person's to give."
            )
        import fcntl  # lazy: only whoever changes the store needs it

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
            raise SettingsError(f"{self.file} cannot be written: {error.strerror}") from None


class Vigil:
    """Over the trust in a project while a session runs that nobody attends: what it did to it, a person is asked about
    at the next start. Never raises: a store that cannot be relied on stops the next start by itself."""

    def __init__(self, home: Path, project: str, *, is_needed: bool) -> None:
        """`is_needed`: False for a session that somebody attends. Below another agent it is that one which is watched,
        and the store takes no notes."""
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
        """What it did; empty if nothing."""
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
