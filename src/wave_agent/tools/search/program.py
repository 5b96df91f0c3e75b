"""The program that implements Glob and Grep.

Python's regular expressions block the interpreter while they match, and some patterns take forever on some lines: in
the agent's process that would stop everything, including cancellation. A separate process can be killed. To start
quickly, it has only fast imports.

`rg` narrows the files down, Python decides: so the results are the same with and without it.
"""

import json
import os
import re
import signal
import stat
import sys
from typing import Any

from wave_agent.lazy_regex import lazy_regex
from wave_agent.system.real_files import identity, open_file, read_at_most
from wave_agent.tools.encoding import decode, printable
from wave_agent.tools.room import size_of
from wave_agent.tools.search.gitignore import GlobPattern
from wave_agent.tools.search.matches import LineMatcher
from wave_agent.tools.search.walk import Walk

_COUNTING = 5.0
"""Seconds for counting results that are not shown."""
_HEARTBEAT = 0.5
"""Seconds of work between checks whether the agent is still alive."""
_SIZE = 64 << 20
"""Maximum size of a file that is searched, in bytes."""
_FEW = 64
"""Number of files that are searched before rg would have started."""

# Content that may match differently in rg than in Python: anything but plain ASCII text with Unix newlines. Files
# with these bytes are left to Python whatever rg would say.
_ODD_BYTES = r"(?-u:[\x00-\x08\x0b-\x1f\x7f-\xff])"
# The syntax that means the same to both. If rg refuses a pattern, Python gets all files as well.
_COMMON_SYNTAX = lazy_regex(
    r"""(?: [^\\\[\](){}]
          | \\[dDwWsSbBnt.\\\-+*?()\[\]{}|^$]
          | \{\d+(?:,\d*)?\}
          | \((?:\?:|\?P<\w+>|(?!\?)) | \)
          | \[\^?(?:[^\\\[\]&~|^-]|-(?!-)|\\[dDwWsSnt.\\\-+*?()\[\]{}|^$])+\]
        )*""",
    re.VERBOSE,
)


class ShownLines:
    """The lines to show, up to a limit."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.shown: list[str] = []
        self.cut = False
        self.by_limit = False
        """Cut by the requested number of lines, and not for lack of room."""
        self._limit: int = request["head_limit"] or sys.maxsize
        self._characters: int = request["characters"]
        self._size: int = request["size"]

    def add(self, line: str) -> bool:
        """False: this line, and everything after it, is omitted."""
        line = printable(line)
        characters, size = self._characters - len(line) - 1, self._size - size_of(line) - 1
        if self.cut or len(self.shown) >= self._limit or characters < 0 or size < 0:
            self.by_limit = self.by_limit or (not self.cut and len(self.shown) >= self._limit)
            self.cut = True
            return False
        self._characters, self._size = characters, size
        self.shown.append(line)
        return True


class Totals:
    """How much there is, shown or not."""

    def __init__(self, files: int = 0, kept_back: int = 0) -> None:
        self.files = files
        self.matches = 0
        self.too_large = 0
        self.kept_back = kept_back
        self.counted = True


class CountingTimeoutError(Exception):
    """The lines to show are ready, and counting the rest takes too long."""


class Alarm:
    """Ends the counting: a pattern that takes forever on some line must not lose what was found before it.

    It uses a signal, which interrupts even a match in progress; so it needs a separate process.
    """

    def __init__(self, seconds: float = _COUNTING) -> None:
        self._seconds = seconds
        self._armed = False

    def start(self) -> None:
        self._armed = True
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def stop(self) -> None:
        self._armed = False

    def _ring(self, _number: int, _frame: object) -> None:
        if self._armed:
            self._armed = False
            raise CountingTimeoutError


def search(request: dict[str, Any], *, few: int = _FEW, alarm: Alarm | None = None) -> dict[str, Any]:
    """`kind` is glob or grep; see the tools for the other fields.

    The answer has `lines`, `filenames` and `notes`, whether lines were `cut`, and how many `files` and `matches` there
    are in total, unless these could not be `counted` in time.
    """
    if _is_replaced(request):
        return {"replaced": request["path"]}
    return _glob(request) if request["kind"] == "glob" else _grep(request, few, alarm)


def _is_replaced(request: dict[str, Any]) -> bool:
    """The file at this real path is not the one the call was permitted for."""
    try:
        return list(identity(os.lstat(request["real"]))) != list(request["identity"] or ())
    except OSError:
        return True


def _glob(request: dict[str, Any]) -> dict[str, Any]:
    pattern = GlobPattern(request["pattern"])
    walk = Walk(request["real"], request["project"])
    lines, filenames = ShownLines(request), list[str]()
    found = sorted(path for path, _ in walk.files() if pattern.matches(path))
    found, kept_back = FileReader(request).allowed(found, linked=False)
    for path in found:
        absolute = os.path.join(request["path"], path)
        if not lines.add(_shown(absolute, request["cwd"])):
            break
        filenames.append(printable(absolute))
    answer = _answer(lines, filenames, walk, Totals(files=len(found), kept_back=kept_back))
    inner = str(request["pattern"]).rstrip("/")
    if not found and os.path.isdir(os.path.join(request["real"], inner)):
        answer["notes"].append(f"{inner} is a directory: use {inner}/** to list its files")
    return answer


class KeptBackError(OSError):
    """A rule forbids reading this file."""


class FileReader:
    """Opens the files of a search."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._real: str = request["real"]
        together = "|".join(f"(?:{expression})" for expression in request["unread"])
        self._unread = re.compile(together, re.DOTALL) if together else None

    def allowed(self, paths: list[str], *, linked: bool) -> tuple[list[str], int]:
        """Those of these files that no rule keeps back, and how many are kept back. `linked`: including those with
        other names."""
        if self._unread is None:
            return paths, 0
        left = [path for path in paths if not self._is_kept_back(path, linked=linked)]
        return left, len(paths) - len(left)

    def _is_kept_back(self, path: str, *, linked: bool) -> bool:
        real = os.path.join(self._real, path) if path else self._real
        if self._unread is not None and self._unread.fullmatch(real):
            return True
        try:
            facts = os.lstat(real)
        except OSError:
            return False  # whoever opens it finds out
        return linked and facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode)

    def read(self, path: str) -> bytes | None:
        """The content of a file below the search root, or of the root itself if the path is empty. None: do not search.
        Raises `KeptBackError`."""
        real = os.path.join(self._real, path) if path else self._real
        if self._unread is not None and self._unread.fullmatch(real):
            raise KeptBackError
        try:
            descriptor = open_file(real)
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            if self._unread is not None and facts.st_nlink > 1:
                raise KeptBackError  # a rule may apply to another of its names
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _SIZE:
                return None
            return _content(descriptor)
        finally:
            os.close(descriptor)


def _grep(request: dict[str, Any], few: int, alarm: Alarm | None) -> dict[str, Any]:
    try:
        matcher = LineMatcher(request)
    except (re.error, OverflowError, RecursionError) as error:
        literally = "To match a bracket or another special character itself, put a backslash before it: \\("
        return {"error": f"the pattern is not a valid regular expression: {error}. {literally}"}
    walk = Walk(request["real"], request["project"])
    in_directory = os.path.isdir(request["real"])
    root = request["path"] if in_directory else os.path.dirname(request["path"])
    reader, kept_back = FileReader(request), 0
    candidates = _candidates(request, walk)
    if in_directory:
        # Before anything reads the files: whether one is kept back must not depend on what is in it.
        candidates, kept_back = reader.allowed(candidates, linked=True)
    if request["rg"] and len(candidates) > few and _means_the_same_to_rg(request, matcher):
        candidates = _narrowed(candidates, root, request)
    lines, filenames, totals = ShownLines(request), list[str](), Totals(kept_back=kept_back)
    try:
        for path in candidates:
            absolute = os.path.join(root, path)
            try:
                data = reader.read(path if in_directory else "")
            except KeptBackError:
                totals.kept_back += 1
                continue
            totals.too_large += data is None
            text = decode(data) if data else None
            if text is None or not (found := matcher.lines(text.content)):
                continue
            totals.files += 1
            totals.matches += len(found.matching)
            if lines.cut:
                continue
            shown = _shown(absolute, request["cwd"])
            filenames.append(printable(absolute))
            if not all(lines.add(line) for line in matcher.show(shown, found, first=not lines.shown)) and alarm:
                alarm.start()
        if alarm:
            alarm.stop()
    except CountingTimeoutError:
        totals.counted = False
    return _answer(lines, filenames, walk, totals)


def _candidates(request: dict[str, Any], walk: Walk) -> list[str]:
    """The files to search, relative to the directory they are in."""
    if os.path.isdir(request["real"]):
        candidates = sorted(path for path, is_link in walk.files() if not is_link)
    else:
        candidates = [os.path.basename(request["path"])]
    if request["glob"]:
        wanted = GlobPattern(request["glob"])
        candidates = [path for path in candidates if wanted.matches(path)]
    return candidates


def _files(number: int) -> str:
    return "1 file was" if number == 1 else f"{number:,} files were"


def _answer(lines: ShownLines, filenames: list[str], walk: Walk, totals: Totals) -> dict[str, Any]:
    notes: list[str] = []
    if walk.unreadable:
        notes.append(f"{walk.unreadable} directories could not be read")
    notes += [f"{file} was not used: it {why}" for file, why in walk.skipped]
    if totals.kept_back:
        files = "1 file is" if totals.kept_back == 1 else f"{totals.kept_back:,} files are"
        them = "it" if totals.kept_back == 1 else "them"
        notes.append(f"{files} not shown: a permission rule denies reading {them}")
    if totals.too_large:
        notes.append(f"{_files(totals.too_large)} skipped: larger than {_SIZE >> 20} MiB, or unreadable")
    return {
        "lines": lines.shown,
        "filenames": filenames,
        "cut": lines.cut,
        "by_limit": lines.by_limit,
        "notes": notes,
        "files": totals.files,
        "matches": totals.matches,
        "counted": totals.counted,
    }


def _shown(path: str, directory: str) -> str:
    """Relative to where the agent was started: every tool accepts that."""
    return path.removeprefix(directory.rstrip("/") + "/")


def _content(descriptor: int) -> bytes | None:
    try:
        head, complete = read_at_most(descriptor, 8192)
        # Read completely only if it may be text. A byte order mark explains the zeros of UTF-16.
        if complete or (b"\0" in head and head[:1] not in (b"\xff", b"\xfe", b"\0")):
            return head
        os.lseek(descriptor, 0, os.SEEK_SET)
        data, complete = read_at_most(descriptor, _SIZE)
    except OSError:
        return None
    return data if complete else None


def _means_the_same_to_rg(request: dict[str, Any], matcher: LineMatcher) -> bool:
    pattern: str = request["pattern"]
    # Implementations differ on whether there is an empty match at the very end of a file.
    may_be_empty = matcher.pattern.search("") or (request["multiline"] and re.search(r"\\b", pattern, re.IGNORECASE))
    return not may_be_empty and _COMMON_SYNTAX.fullmatch(pattern) is not None


def _narrowed(candidates: list[str], root: str, request: dict[str, Any]) -> list[str]:
    """The candidates without those that certainly do not match, in the same order."""
    import subprocess  # lazy: small searches do not need it

    command = [request["rg"], "--no-config", "--no-messages", "-l", "-0", "-a", "-E", "none"]
    command += ["-i"] if request["ignore_case"] else []
    command += ["-U", "--multiline-dotall"] if request["multiline"] else []
    command += ["-e", request["pattern"], "-e", _ODD_BYTES, "--"]
    left: list[str] = []
    for batch in _batches(candidates):
        names = [os.fsencode(f"./{path}") for path in batch]  # With ./, no name is read as an option, nor "-" as stdin.
        try:
            done = subprocess.run(
                [*command, *names], cwd=root, stdin=subprocess.DEVNULL, stdout=-1, stderr=-3, check=False
            )
        except OSError:
            return candidates
        if done.returncode not in (0, 1):
            left += batch
            continue
        found = set(done.stdout.split(b"\0"))
        left += [path for path, name in zip(batch, names, strict=True) if name in found]
    return left


def _batches(paths: list[str]) -> list[list[str]]:
    """As many as fit on one command line."""
    room = limit = os.sysconf("SC_ARG_MAX") // 4
    batches: list[list[str]] = [[]]
    for path in paths:
        room -= len(os.fsencode(path)) + 16
        if room < 0:
            room = limit
            batches.append([])
        batches[-1].append(path)
    return batches


def _end_with(agent: int) -> None:
    """Ends this process when the agent that started it is dead: the answer would not be read, and a search can take
    forever. The timer counts CPU time and fires even during a match."""

    def look(_number: int, _frame: object) -> None:
        if os.getppid() != agent:
            os._exit(1)

    signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HEARTBEAT, _HEARTBEAT)


def main() -> None:
    """The request is the last argument, the answer goes to stdout, both as JSON."""
    request = json.loads(sys.argv[-1])
    _end_with(request["agent"])
    json.dump(search(request, alarm=Alarm()), sys.stdout)
