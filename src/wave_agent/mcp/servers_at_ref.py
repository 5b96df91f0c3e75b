"""Whether a project's server is the same at a git ref: its entry, lists of servers, and the files that it runs."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.entries import RawEntry
from wave_agent.mcp.identity import Binding
from wave_agent.mcp.project_code import may_be_code
from wave_agent.settings.git_refs import CommitTree, GitFile
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.places import project_places
from wave_agent.system.project import Project
from wave_agent.system.real_files import is_below

_LISTS = ("allowedMcpServers", "deniedMcpServers", "disabledMcpjsonServers")
_LINK = "120000"


class ServersAtRef:
    """Compares servers with those at one ref. Files that no commit has, such as packages that CI has just installed,
    are taken as they are."""

    def __init__(self, ref: str, project: Project, home: Path) -> None:
        """Raises `SettingsError`."""
        self._project = project
        self._tree = CommitTree(ref, project.directory)
        self._root = self._tree.root
        self._then: Mapping[str, GitFile] | None = None
        self._tracked: frozenset[str] = frozenset()
        self._lists = tuple(self._changed_lists(home))

    def differences(self, raw: RawEntry | None, binding: Binding) -> tuple[str, ...]:
        """What is not as at the ref: `its entry`, `server.py`. `raw` is None for a server that the user configured."""
        found = list(self._lists) if raw is not None else []
        if raw is not None and self._settings_at(raw.source).get("mcpServers", {}).get(raw.name) != raw.value:
            found.append("its entry")
        found += [name for name in binding.files if not self._is_same(name)]
        found += [binding.unwatched] if binding.unwatched else []
        if binding.loads_project:
            found += self._missing()
        return tuple(dict.fromkeys(found))

    def _settings_at(self, file: str) -> Mapping[str, Any]:
        content = self._tree.read(file)
        if content is None:
            return {}
        try:
            found = parse_settings(content.decode(errors="replace"), Layer.PROJECT, file).document.value
        except SettingsError:
            return {}
        servers = found.get("mcpServers")
        return {**found, "mcpServers": cast(Any, servers) if isinstance(servers, Mapping) else {}}

    def _changed_lists(self, home: Path) -> Iterator[str]:
        """A list that the branch has removed may have kept a server from starting."""
        for place in project_places(home, self._project):
            file = str(place.file)
            then = self._settings_at(file)
            try:
                now: Mapping[str, Any] = parse_settings(place.file.read_text(), Layer.PROJECT, file).document.value
            except (OSError, SettingsError, UnicodeDecodeError):
                now = {}
            yield from (f"{key} in {file}" for key in _LISTS if then.get(key) != now.get(key))

    def _files(self) -> Mapping[str, GitFile]:
        if self._then is None:
            self._then, self._tracked = self._tree.listing(), self._tree.tracked()
        return self._then

    def _is_same(self, name: str) -> bool:
        """`name` is one of `Binding.files`."""
        path = os.path.normpath(os.path.join(self._project.directory, name))
        if name.startswith("program ") or name.endswith("/") or not is_below(path, self._root):
            return True  # where a program is found, and directories, whose files are listed one by one
        then = self._files().get(path)
        if then is None:
            return path not in self._tracked and self._is_same_above(path)
        try:
            return _now(path, then) == then and self._leads_to_same(path)
        except OSError:
            return False

    def _is_same_above(self, path: str) -> bool:
        """For a file that is not tracked: it is not in a submodule, which has commits of its own, and a link on the way
        to it is as it was."""
        for above in map(str, Path(path).parents):
            if above in self._tracked or above in self._files():
                there = self._is_same(os.path.relpath(above, self._project.directory))
                real = os.path.relpath(os.path.realpath(path), self._project.directory)
                return os.path.islink(above) and there and self._is_same(real)
        return True

    def _leads_to_same(self, path: str) -> bool:
        """A link is the same only if what it leads to is."""
        real = os.path.realpath(path)
        if real == path or os.path.isdir(real) or not is_below(real, self._root):
            return True
        return self._is_same(os.path.relpath(real, self._project.directory))

    def _missing(self) -> Iterator[str]:
        """Code that the branch has removed: something else may be loaded in its place."""
        for path, file in self._files().items():
            if not os.path.lexists(path) and may_be_code(os.path.basename(path), int(file.mode, 8)):
                yield os.path.relpath(path, self._project.directory)


def _now(path: str, then: GitFile) -> GitFile:
    """The file as git would store it. Raises `OSError`."""
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        mode, content = _LINK, os.fsencode(os.readlink(path))
    else:
        mode = "100755" if facts.st_mode & stat.S_IXUSR else "100644"
        with open(path, "rb") as file:
            content = file.read()
    make = hashlib.sha1 if len(then.blob) == _SHA1 else hashlib.sha256
    return GitFile(mode, make(b"blob %d\0%s" % (len(content), content)).hexdigest())


_SHA1 = 40
