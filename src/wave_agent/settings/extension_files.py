"""Finds agents, skills and commands, and reads them, without judging whether they may be used.

A freshly cloned project controls these files: they are read as settings are, and never parsed here.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.settings.places import OF_THE_PROJECT, ExtensionKind, ExtensionPlace
from wave_agent.settings.trust import Digest, file_digest
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import is_below, resolve_or_keep

LARGEST = 256 << 10
"""Bytes of one file."""
MOST = 500
"""Extensions in one directory; the rest is reported."""
MOST_FILES = 1_000
"""Files of one skill."""
MOST_BYTES = 64 << 20
"""Bytes of all files of one skill together."""
_MOST_ENTRIES = 5_000
"""Entries looked at below one directory."""
SKILL_FILE = "SKILL.md"


class FoundExtension(Struct, frozen=True, kw_only=True):
    """An agent, a skill or a command as it is on disk."""

    place: ExtensionPlace
    path: str
    """Its file; of a skill, `SKILL.md`."""
    content: bytes = b""
    others: tuple[str, ...] = ()
    """The other files of a skill: absolute paths."""
    digest: str = ""
    """Of everything that trust in it is bound to. Empty if it is the user's own, which needs no trust."""
    problem: str = ""
    """Why it cannot be used; a phrase that follows its name."""
    is_place: bool = False
    """It is the whole directory that has a problem."""

    @property
    def is_skill(self) -> bool:
        return self.place.kind is ExtensionKind.SKILLS

    @property
    def whole(self) -> str:
        """The file, or the directory of a skill."""
        return os.path.dirname(self.path) if self.is_skill and not self.is_place else self.path

    @property
    def stem(self) -> str:
        """The name that its file or directory gives it."""
        return os.path.basename(self.whole).removesuffix(".md")

    def shown(self, project: str) -> str:
        """Its path as users are shown it: relative to the project, if it is in there."""
        return os.path.relpath(self.whole, project) if is_below(self.whole, project) else self.whole


def find_extensions(places: Iterable[ExtensionPlace]) -> Iterator[FoundExtension]:
    """What is in these places, in their order. A directory that is another one under a second name is skipped."""
    seen: set[str] = set()
    for place in places:
        real = resolve_or_keep(place.directory)
        if real not in seen:
            seen.add(real)
            yield from _in_place(place, real)


def _in_place(place: ExtensionPlace, real: str) -> Iterator[FoundExtension]:
    try:
        if not is_below(real, place.root):
            raise NotReadError(f"leads out of the project, to {real}")
        for count, path in enumerate(_files(place)):
            if count == MOST:
                raise NotReadError(f"has more than {MOST} {place.kind}; the rest is ignored")
            yield _read(place, path)
    except NotReadError as error:
        yield FoundExtension(place=place, path=place.directory, problem=str(error), is_place=True)


def _files(place: ExtensionPlace) -> Iterator[str]:
    """The files that may be extensions, in a stable order. Raises `NotReadError`."""
    if place.kind is not ExtensionKind.SKILLS:
        yield from (path for path in _below(place.directory) if path.endswith(".md"))
        return
    try:
        names = sorted(os.listdir(place.directory))[:_MOST_ENTRIES]
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from None
    files = (os.path.join(place.directory, name, SKILL_FILE) for name in names)
    yield from (file for file in files if os.path.lexists(file))


def _below(directory: str) -> Iterator[str]:
    """All files below a directory, without following links to directories. Raises `NotReadError` if not all of it can
    be looked at."""
    waiting, left = [directory], _MOST_ENTRIES
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(current) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise NotReadError(f"cannot be read: {current}: {error.strerror}") from None
        left -= len(listed)
        if left < 0:
            raise NotReadError(f"has more than {_MOST_ENTRIES:,} entries")
        waiting += [entry.path for entry in reversed(listed) if entry.is_dir(follow_symlinks=False)]
        yield from (entry.path for entry in listed if not entry.is_dir(follow_symlinks=False))


def _read(place: ExtensionPlace, path: str) -> FoundExtension:
    found = FoundExtension(place=place, path=path)
    needs_trust = place.layer in OF_THE_PROJECT
    try:
        content = read_project_file(path, place.root, LARGEST)
        if content is None:
            raise NotReadError("cannot be read: it is a dangling link")
        others = tuple(_others(found.whole)) if needs_trust and found.is_skill else ()
        digest = digest_of_files(found.whole, content, others, file_digest) if needs_trust else ""
    except NotReadError as error:
        return replace(found, problem=str(error))
    if digest is None:
        return replace(found, problem="has changed while it was read")
    return replace(found, content=content, others=others, digest=digest)


def _others(directory: str) -> Iterator[str]:
    """The files of a skill besides `SKILL.md`. Raises `NotReadError` if they are not all files of its own."""
    real, size = resolve_or_keep(directory), 0
    for count, path in enumerate(_below(directory)):
        if count >= MOST_FILES:
            raise NotReadError(f"has more than {MOST_FILES:,} files")
        name = os.path.relpath(path, directory)
        try:
            facts = os.stat(path)
        except OSError as error:
            raise NotReadError(f"has a file {name} that cannot be read: {error.strerror}") from None
        if not is_below(resolve_or_keep(path), real):
            raise NotReadError(f"has a link {name} to something outside its directory")
        if not stat.S_ISREG(facts.st_mode):
            raise NotReadError(f"has a file {name} that is not a regular file, or a link to a directory")
        size += facts.st_size
        if size > MOST_BYTES:
            raise NotReadError(f"is larger than {MOST_BYTES >> 20} MiB")
        if name != SKILL_FILE:
            yield path


def digest_of_files(whole: str, content: bytes, others: Iterable[str], digest: Digest) -> str | None:
    """Of an extension with these other files. None if one of them is missing, according to `digest`."""
    own = hashlib.sha256(content).hexdigest()
    lines = [own]
    for path in others:
        found = digest(path)
        if found is None:
            return None
        lines.append(f"{os.path.relpath(path, whole)}\0{found}")
    return own if len(lines) == 1 else hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def digest_now(path: str, others: Iterable[str]) -> str | None:
    """The digest of a skill as it is on disk now; None if it cannot be used any more."""
    directory = os.path.dirname(path)
    try:
        content = read_project_file(path, "/", LARGEST)
        now = tuple(_others(directory))
    except NotReadError:
        return None
    if content is None or now != tuple(others):
        return None
    return digest_of_files(directory, content, now, file_digest)
