"""Where an export is: a directory, or a URL of an object store that fsspec knows."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from wave_agent.errors import ExportError
from wave_agent.replay.export_rows import VERSION
from wave_agent.replay.fleet_extra import load
from wave_agent.replay.snapshot import is_url
from wave_agent.sessions.masking import mask
from wave_agent.system.private_files import make_private

MARK = "wave-export.json"
"""The file that makes a directory an export, with the version of its tables."""

Value = TypeVar("Value")


_GLOB = re.compile(r"[*?\[]")


def without_globs(path: str) -> str:
    """As a pattern that matches this path and nothing else."""
    return _GLOB.sub(lambda found: f"[{found[0]}]", path)


class ExportPlace:
    """The files of an export. Names are relative, with slashes. Raises `ExportError` if it cannot be reached."""

    def __init__(self, place: str) -> None:
        self.name = place
        self._files: Any = None
        """fsspec's file system; None for a directory."""
        if is_url(place):
            fsspec = load("fsspec")
            self._files, root = self._try(lambda: fsspec.core.url_to_fs(place))
            self._root = str(root).rstrip("/")
            self.base = f"{place.partition('://')[0]}://{self._root}"
            """The same as DuckDB names it."""
        else:
            self._root = self.base = os.path.realpath(place)
            if "\\" in self._root:  # in a pattern, DuckDB cannot be told to take it literally
                raise ExportError(f"{self._root} cannot hold an export: a backslash is in its path.")

    def url(self, name: str) -> str:
        """How DuckDB names a file of it, or several: the name may be a pattern."""
        return f"{without_globs(self.base)}/{name}"

    def attach(self, connection: Any) -> None:
        """Lets DuckDB read it."""
        if self._files is not None:
            connection.register_filesystem(self._files)

    def is_export(self) -> bool:
        """Raises `ExportError` for one of a newer version."""
        data = self._try(lambda: self._read(MARK))
        if data is None:
            return False
        try:
            version = msgspec.json.decode(data, type=dict[str, int]).get("version", 0)
        except msgspec.DecodeError:
            raise ExportError(f"{self.name}/{MARK} cannot be read: it is not an export, or it is damaged.") from None
        if version > VERSION:
            raise ExportError(f"{self.name} is an export of a newer version ({version}): update wave-agent.")
        return True

    def prepare(self) -> None:
        """Makes it an export, if it is none. Raises `ExportError` for a place with other files."""
        if self.is_export():
            return
        if self._files is None and os.path.isdir(self._root) and os.listdir(self._root):
            raise ExportError(f"{self.name} is not empty and not an export: choose another directory.")
        data = msgspec.json.encode({"version": VERSION})
        if self._files is not None:
            self._try(lambda: self._files.pipe_file(f"{self._root}/{MARK}", data))
        else:
            self._try(lambda: make_private(Path(self._root)))
            self._try(lambda: Path(self._root, MARK).write_bytes(data))

    def days(self, table: str, source: str) -> set[str]:
        """The days for which a table has a file from this source."""
        pattern = f"{table}/day=*/{source}.parquet"
        if self._files is None:
            found = [str(path) for path in Path(self._root).glob(pattern)]
        else:
            found = self._try(lambda: list(self._files.glob(f"{without_globs(self._root)}/{pattern}", refresh=True)))
        return {path.split("/")[-2].removeprefix("day=") for path in found}

    def put(self, file: Path, name: str) -> None:
        """Adds or replaces a file, in one step."""
        if self._files is not None:
            self._try(lambda: self._files.put_file(str(file), f"{self._root}/{name}"))
            return
        target = Path(self._root, name)

        def replace() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.tmp")
            shutil.copyfile(file, temporary)
            os.replace(temporary, target)

        self._try(replace)

    def remove(self, name: str) -> None:
        def remove() -> None:
            with suppress(FileNotFoundError):
                if self._files is None:
                    Path(self._root, name).unlink()
                else:
                    self._files.rm_file(f"{self._root}/{name}")

        self._try(remove)

    def _read(self, name: str) -> bytes | None:
        try:
            if self._files is None:
                return Path(self._root, name).read_bytes()
            self._files.invalidate_cache()
            return self._files.cat_file(f"{self._root}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _try(self, work: Callable[[], Value]) -> Value:
        try:
            return work()
        except ExportError:
            raise
        except ImportError as error:  # fsspec needs another package for this kind of URL
            raise ExportError(f"{mask(self.name)} cannot be used: {error}") from None
        except Exception as error:  # each kind of object store has exceptions of its own
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ExportError(f"{mask(self.name)} cannot be used: {mask(why)}") from error
