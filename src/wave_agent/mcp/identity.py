"""What a server is: its entry with the variables filled in, and the files that it runs or names. Consent is bound to
this."""

import hashlib
from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct

from wave_agent.mcp.file_digests import FileDigests
from wave_agent.mcp.loaded_files import LoadedFiles
from wave_agent.mcp.values import ServerEntry
from wave_agent.system.project import Project


class Binding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that consent to a server is bound to."""

    entry: str = ""
    """Digest of the entry with its variables filled in."""
    variables: Mapping[str, str] = {}
    """Variable → digest of its value."""
    files: Mapping[str, str] = {}
    """File, relative to the project (absolute if it is outside) → digest; `program NAME` → its path. A file that is
    missing is not listed, and will be once it exists."""
    runs: tuple[str, ...] = ()
    """Those of them in the project that exist, and are run or decide what is run."""
    unbound: str = ""
    """Why it cannot be bound to what it runs; then it needs consent in every session, and never starts headless."""
    loads_project: bool = False
    """It runs code of the project."""
    unwatched: str = ""
    """It runs code of the project, and not all of that is among `files`: a phrase that says what is not."""

    @property
    def identity(self) -> str:
        """One digest of all this."""
        return _digest([self.entry, self.variables, self.files, self.unbound, self.unwatched])

    def changes(self, before: "Binding") -> tuple[str, ...]:
        """What is different now: `the value of TOKEN`, `its entry`, `server.py`."""
        names = sorted({*self.variables, *before.variables})
        found = [f"the value of {one}" for one in names if self.variables.get(one) != before.variables.get(one)]
        if self.entry != before.entry and not found:  # a value is part of the entry
            found.append("its entry")
        if self.unwatched != before.unwatched:
            found.append("how much of the project is watched")
        files = sorted({*self.files, *before.files})
        found += [one for one in files if self.files.get(one) != before.files.get(one)]
        return tuple(found)

    def lost(self, before: "Binding", unset: Collection[str]) -> tuple[str, ...]:
        """Of the variables that are unset now, those that had a value. Empty if anything else is different."""
        found = tuple(one for one in unset if self.variables.get(one) != before.variables.get(one))
        return found if len(found) == len(self.changes(before)) else ()


def bind(
    entry: ServerEntry,
    project: Project,
    environment: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    *,
    digests: FileDigests | None = None,
) -> Binding:
    """What a project's server is. `environment` is the server's own, `variables` those that its entry uses, with their
    values. Never raises."""
    look = LoadedFiles(entry, project, environment, digests or FileDigests(), is_of_project=True)
    unbound = look.everything()
    found = look.files.found
    return Binding(
        entry=entry_digest(entry),
        variables={name: _digest([name, value]) for name, value in sorted((variables or {}).items())},
        files={} if unbound else {name: one.digest for name, one in sorted(found.items()) if one.digest is not None},
        runs=look.runs(),
        unbound=unbound,
        loads_project=look.loads_project(),
        unwatched=look.unwatched,
    )


def bind_code(
    entry: ServerEntry, project: Project, environment: Mapping[str, str], *, digests: FileDigests | None = None
) -> Binding:
    """What a server of the user would run of this project: nothing, as a rule. Then `runs` is empty.

    A directory of the project that the user has put on PATH is the user's decision.
    """
    look = LoadedFiles(entry, project, environment, digests or FileDigests(), is_of_project=False)
    unbound = look.everything()
    found = look.files.found
    runs = look.runs()
    files = sorted({*runs, *look.files.all_code})
    return Binding(
        entry=entry_digest(entry),
        files={name: digest for name in files if (digest := found[name].digest) is not None},
        runs=runs,
        unbound=unbound if runs else "",
        loads_project=look.loads_project(),
        unwatched=look.unwatched,
    )


def entry_digest(entry: ServerEntry) -> str:
    """Of the entry alone: the identity of a server that the user configured."""
    return _digest(msgspec.to_builtins(entry))


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
