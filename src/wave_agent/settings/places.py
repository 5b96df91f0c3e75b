"""Where settings, agents, skills and commands are, and how a settings file is read."""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.settings.hook_entries import SettingsSource, parse_settings
from wave_agent.system.project import Project
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import resolve_or_keep

SourceName: TypeAlias = Literal["managed", "user", "project", "local"]
"""One of `DEFAULT_SOURCES`, as users write it."""


DEFAULT_SOURCES = (Layer.MANAGED, Layer.USER, Layer.PROJECT, Layer.LOCAL)


OF_THE_PROJECT = (Layer.PROJECT, Layer.LOCAL)
"""Layers that come with a project: used only if it is trusted."""


MANAGED_FILE = Path("/etc/wave/settings.json")


OWN_FILES: Mapping[str, Layer] = {".wave/settings.json": Layer.PROJECT, ".wave/settings.local.json": Layer.LOCAL}
"""In each directory of a project."""


LARGEST_FILE = 4 << 20
"""Bytes of a settings file."""


class LayerFile(Struct, frozen=True):
    """A file that may contain settings of a project."""

    layer: Layer
    file: Path
    inner: str = ""
    """The directory it applies to, if that is below the project's root."""
    root: str = "/"
    """Real path of the directory it must not lead out of: the project, for a project's file."""


def project_places(home: Path, project: Project, names: Mapping[str, Layer] | None = None) -> tuple[LayerFile, ...]:
    """The places where a project may have settings, or files with these `names`; outermost directory first.

    If a directory's `.wave` is the agent's own state, it holds no project settings.
    """
    wanted = OWN_FILES if names is None else names
    is_state = _state_test(home)
    return tuple(
        LayerFile(layer, file, inner, project.root)
        for level, inner in zip(project.levels, project.inner, strict=True)
        for name, layer in wanted.items()
        if not is_state(file := Path(level) / name)
    )


class ExtensionKind(StrEnum):
    """What a directory of settings may hold besides settings, each kind in a directory of its name."""

    AGENTS = "agents"
    SKILLS = "skills"
    COMMANDS = "commands"


class ExtensionPlace(Struct, frozen=True):
    """A directory with agents, skills or commands."""

    kind: ExtensionKind
    directory: str
    layer: Layer
    dialect: Dialect = Dialect.WAVE
    inner: str = ""
    """The directory of the project it belongs to, if that is below the project's root."""
    root: str = "/"
    """Real path of the directory it must not lead out of: the project, for a project's place."""


def extension_places(
    home: Path, project: Project, layers: Collection[Layer], claude_home: Path | None
) -> tuple[ExtensionPlace, ...]:
    """Those that exist, the ones that win over others first: the user's, then the project's, innermost directory first.

    `claude_home` is the user's directory for another agent, if what is in there and in `.claude` is used.
    """
    bases: list[tuple[Path, Layer, Dialect, str, str]] = []
    if Layer.USER in layers:
        bases.append((home, Layer.USER, Dialect.WAVE, "", "/"))
        bases += [(claude_home, Layer.USER, Dialect.CLAUDE, "", "/")] if claude_home is not None else []
    if Layer.PROJECT in layers:
        names = {".wave": Dialect.WAVE, **({".claude": Dialect.CLAUDE} if claude_home is not None else {})}
        for level, inner in zip(reversed(project.levels), reversed(project.inner), strict=True):
            bases += [(Path(level) / name, Layer.PROJECT, one, inner, project.root) for name, one in names.items()]
    users = {resolve_or_keep(str(one)) for one in (home, *([claude_home] if claude_home is not None else []))}
    return tuple(
        ExtensionPlace(kind, os.path.join(base, kind), layer, dialect, inner, root)
        for base, layer, dialect, inner, root in bases
        if os.path.isdir(base) and (layer is Layer.USER or resolve_or_keep(str(base)) not in users)
        for kind in ExtensionKind
        if os.path.isdir(os.path.join(base, kind))
    )


def has_settings(directory: str, home: Path, names: Iterable[str]) -> bool:
    """Whether one of these files exists. True as well if one cannot be checked; reading it reports the problem."""
    is_state = _state_test(home)
    return any(_may_exist(file := Path(directory) / name) and not is_state(file) for name in names)


def _state_test(home: Path) -> Callable[[Path], bool]:
    """Whether a file is in the agent's own directory. Each directory is resolved once: a start asks for many files."""
    real = cache(resolve_or_keep)
    return lambda file: real(str(file.parent)) == real(str(home))


def _may_exist(file: Path) -> bool:
    """True for a dangling link as well: its author meant settings to be there."""
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.islink(file) or (os.path.lexists(file.parent) and not os.path.isdir(file.parent))
    except OSError:
        return True
    return True


def read_place(place: LayerFile) -> SettingsSource | None:
    """The settings there, if there are any. Raises `SettingsError`."""
    found = read_source(place.layer, place.file, place.root)
    return None if found is None else replace(found, inner=place.inner)


def read_source(layer: Layer, file: Path, root: str = "/") -> SettingsSource | None:
    """The settings in this file, if it exists. Never reads outside `root`. Raises `SettingsError`: a file that exists
    but cannot be read may have held guards."""

    def check(_real: str, facts: os.stat_result) -> None:
        if layer is Layer.MANAGED:
            _require_sound_place(facts, file)

    try:
        content = read_project_file(str(file), root, LARGEST_FILE, denied=check)
        if content is None:
            if os.path.islink(file) or (layer is not Layer.USER and _may_exist(file)):
                raise NotReadError("cannot be read: it or its directory is a dangling link, or not a directory")
            return None
        text = content.decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: not valid JSON: not UTF-8 ({error.reason} at byte {error.start})") from None
    return parse_settings(text, layer, str(file))


def read_managed(file: Path, added: str | None) -> list[SettingsSource]:
    """The managed settings: the system's file and its drop-ins, and one file `added` to them.

    The added one comes first, so the system's values win. Of the system's, a drop-in wins over the file and over
    drop-ins before it.
    """
    found: list[SettingsSource | None] = []
    if added:
        more = read_source(Layer.MANAGED, Path(added).absolute())
        if more is None:
            raise SettingsError(f"Managed settings file not found: {added} (named by WAVE_MANAGED_SETTINGS).")
        found.append(more)
    found += [read_source(Layer.MANAGED, one) for one in managed_files(file)]
    return [source for source in found if source is not None]


def drop_ins(file: Path) -> Path:
    """The directory of the files that are read after this managed one."""
    return file.with_suffix(".d")


def managed_files(file: Path) -> tuple[Path, ...]:
    """The system's settings file, whether it exists or not, and the `*.json` in `settings.d` beside it, by name.

    Raises `SettingsError` if the directory is there and cannot be listed: it may hold guards."""
    directory = drop_ins(file)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        if os.path.islink(directory):
            raise SettingsError(f"{directory} is a dangling link.") from None
        return (file,)
    except OSError as error:
        raise SettingsError(f"{directory} cannot be listed: {error.strerror}.") from None
    return (file, *(directory / name for name in names if name.endswith(".json") and not name.startswith(".")))


def require_sound_owner(descriptor: int, file: Path, *, levels: int | None = None) -> None:
    """Raises `SettingsError` if anyone but root or the running user could have written or replaced this file, which
    includes anyone who can write to a directory above it. `levels`: check only this many directories."""
    _require_sound_place(os.fstat(descriptor), file, levels)


def _require_sound_place(facts: os.stat_result, file: Path, levels: int | None = None) -> None:
    _require_sound(str(file), facts)
    written, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))
    for directory in dict.fromkeys((*list(written.parents)[:levels], *list(real.parents)[:levels])):
        _require_sound(str(directory), os.stat(directory))


def _require_sound(name: str, facts: os.stat_result) -> None:
    if facts.st_uid not in (0, os.geteuid()):
        raise SettingsError(f"{name} is owned by user {facts.st_uid}, not by root or you, so it is not trusted.")
    # In a sticky directory only the owner of a file can remove it.
    sticky = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        raise SettingsError(f"{name} is writable by other users, so it is not trusted: chmod go-w {name}")
