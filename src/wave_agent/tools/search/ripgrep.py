"""Batches of files, and `rg`, which finds those of a batch that may match. Has only fast imports."""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wave_agent.lazy_regex import lazy_regex
from wave_agent.tools.search.byte_pattern import byte_pattern
from wave_agent.tools.search.walk import FileRun

if TYPE_CHECKING:
    import subprocess

FEW = 300
"""Number of files that are searched before rg would have started."""
_FIRST = 512
"""Files of the first batch for rg: enough for a word that is in most files."""
_LARGEST = 1 << 15
"""Files of the largest batch."""
_AHEAD = 2
"""Batches that rg works on while the files of an earlier one are searched."""

# For a pattern that spans lines: content that may match differently in rg than in Python, which is anything but plain
# ASCII text with Unix newlines. Files with these bytes are left to Python whatever rg would say.
_ODD_BYTES = r"(?-u:[\x00-\x08\x0b-\x1f\x7f-\xff])"
# The syntax that means the same to both. If rg refuses a pattern, Python gets all files as well.
_COMMON_SYNTAX = lazy_regex(
    r"""(?: [^\\\[\](){}\x00]
          | \\[dDwWsSbBnt.\\\-+*?()\[\]{}|^$]
          | \{\d+(?:,\d*)?\}
          | \((?:\?:|\?P<\w+>|(?!\?)) | \)
          | \[\^?(?:[^\\\[\]&~|^\x00-]|-(?!-)|\\[dDwWsSnt.\\\-+*?()\[\]{}|^$])+\]
        )*""",
    re.VERBOSE,
)


class Batch:
    """Some files in the order of their paths."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.arguments: list[str] = []
        """The same files for rg: directories of which it is to search all files, and other files by their paths."""
        self._room = os.sysconf("SC_ARG_MAX") // 4

    def add(self, run: FileRun) -> None:
        paths = [run.directory + name for name in run.names]
        arguments = [run.directory] if run.is_whole and run.directory else paths
        self.paths += paths
        self.arguments += arguments
        self._room -= sum(len(os.fsencode(argument)) + 16 for argument in arguments)

    @property
    def is_full(self) -> bool:
        """No more fits on one command line."""
        return self._room <= 0


def batches(runs: Iterable[FileRun], few: int = FEW) -> Iterator[Batch]:
    """The files in batches that grow: the first of `few` files, so that a search that soon has enough costs little."""
    batch, size = Batch(), few
    for run in runs:
        for part in _parts(run):
            if len(batch.paths) >= size or batch.is_full:
                yield batch
                batch, size = Batch(), min(max(size * 4, _FIRST), _LARGEST)
            batch.add(part)
    yield batch


def _parts(run: FileRun) -> Iterator[FileRun]:
    """A run that fits into a batch for certain."""
    if run.is_whole and run.directory:
        yield run
        return
    for start in range(0, len(run.names), _FIRST):
        yield FileRun(run.directory, run.names[start : start + _FIRST], is_whole=False)


class Ripgrep:
    """`rg` narrows the files down, Python decides: so the results are the same with and without it."""

    def __init__(self, program: str, root: str, options: list[str]) -> None:
        # Directories are searched without what is below them, and without rules of rg's own: the walk has applied ours.
        common = ["--no-config", "--no-messages", "--no-ignore", "--hidden", "--max-depth=1", "-l", "-0", "-a"]
        self._command = [program, *common, *options, "--"]
        self._root = root

    def narrowed(self, all_batches: Iterable[Batch]) -> Iterator[list[str]]:
        """The files of each batch without those that certainly do not match, in the same order. The next batches are
        searched meanwhile; closing the iterator ends that."""
        running: deque[tuple[Batch, subprocess.Popen[bytes] | None]] = deque()
        try:
            for batch in all_batches:
                running.append((batch, self._start(batch)))
                if len(running) > _AHEAD:
                    yield _result(*running.popleft())
            while running:
                yield _result(*running.popleft())
        finally:
            for _, search in running:
                if search is not None:
                    search.kill()
                    search.communicate()

    def _start(self, batch: Batch) -> "subprocess.Popen[bytes] | None":
        """None: it cannot be started."""
        import subprocess  # lazy: small searches do not need it

        # With ./, no name is read as an option, nor "-" as stdin.
        names = [os.fsencode(f"./{argument}") for argument in batch.arguments]
        try:
            return subprocess.Popen(
                [*self._command, *names], cwd=self._root, stdin=subprocess.DEVNULL, stdout=-1, stderr=-3
            )
        except OSError:
            return None


def _result(batch: Batch, search: "subprocess.Popen[bytes] | None") -> list[str]:
    if search is None:
        return batch.paths
    output, _ = search.communicate()
    if search.returncode not in (0, 1):
        return batch.paths
    found = {os.fsdecode(name[2:]) for name in output.split(b"\0")}
    return [path for path in batch.paths if path in found]


def ripgrep_for(request: dict[str, Any], root: str, pattern: "re.Pattern[str]") -> Ripgrep | None:
    """None: there is no rg, or the pattern may mean something else to it."""
    options = _options(request, pattern) if request["rg"] else None
    return None if options is None else Ripgrep(request["rg"], root, options)


def _options(request: dict[str, Any], pattern: "re.Pattern[str]") -> list[str] | None:
    written: str = request["pattern"]
    if pattern.search(""):  # implementations differ on whether there is an empty match at the very end of a file
        return None
    case = ["-i"] if request["ignore_case"] else []
    if not request["multiline"]:
        wider = byte_pattern(written, ignore_case=request["ignore_case"])
        return None if wider is None else [*case, "-e", f"(?-u){wider}"]
    if re.search(r"\\b", written, re.IGNORECASE) or not _COMMON_SYNTAX.fullmatch(written):
        return None
    return [*case, "-E", "none", "-U", "--multiline-dotall", "-e", written, "-e", _ODD_BYTES]
