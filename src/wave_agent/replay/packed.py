"""A project packed for workers on other machines: what its hooks need, in one piece that is known by its digest."""

import gzip
import hashlib
import os
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from wave_agent.replay.errors import ReplayError
from wave_agent.replay.scratch import CopyLimits, choose_files, needed_files
from wave_agent.system.real_files import is_below

LIMITS = CopyLimits(files=20_000, total=64 << 20, one_file=32 << 20)
"""Of what is sent to each worker."""
_PROJECT, _HOME = "project", "home"


class PackError(ReplayError):
    """Workers cannot get what hooks need."""


class PackedProject(Struct, frozen=True, kw_only=True):
    """Files of a project, and those of the user's home directory that hooks name."""

    digest: str
    data: bytes
    left_out: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Files that hooks name and that have to be on each worker already."""
    has_home: bool

    def unpack(self, directory: Path) -> tuple[str, str]:
        """The project and the home directory, below this one; the latter is empty if nothing of it is needed."""
        if hashlib.sha256(self.data).hexdigest() != self.digest:
            raise PackError("The project did not arrive as it was sent.")
        missing = [file for file in self.elsewhere if not os.path.exists(file)]
        if missing:
            raise PackError(f"A worker lacks {', '.join(missing)}, which hooks name: install it on all workers.")
        (directory / _PROJECT).mkdir()
        with tarfile.open(fileobj=BytesIO(self.data), mode="r:gz") as archive:
            # Links stay as they are, and no file is written outside. Absent in Python 3.11.0 to 3.11.3.
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # pyright: ignore[reportAttributeAccessIssue]
            archive.extractall(directory)
        return str(directory / _PROJECT), str(directory / _HOME) if self.has_home else ""


def pack_project(project: str, home: str, needed: Sequence[str], limits: CopyLimits = LIMITS) -> PackedProject:
    """`needed` are the files that hooks name. Raises `PackError` if one of them is too large."""
    chosen = choose_files(Path(project), needed, limits)
    if lost := [name for name in needed_files(Path(project), needed) if name not in chosen.names]:
        raise PackError(
            f"Hooks need {', '.join(lost)}, which is too large for workers: at most {limits.one_file >> 20} MiB per "
            f"file and {limits.total >> 20} MiB in total are sent."
        )
    outside = [file for file in dict.fromkeys(needed) if os.path.isfile(file) and not is_below(file, project)]
    own = [file for file in outside if is_below(file, home)]
    packed = BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name in sorted(chosen.names):
            archive.add(os.path.join(project, name), f"{_PROJECT}/{name}", recursive=False)
        for file in own:
            archive.add(os.path.realpath(file), f"{_HOME}/{os.path.relpath(file, home)}", recursive=False)
    data = packed.getvalue()
    return PackedProject(
        digest=hashlib.sha256(data).hexdigest(),
        data=data,
        left_out=chosen.left_out,
        elsewhere=tuple(file for file in outside if file not in own),
        has_home=bool(own),
    )
