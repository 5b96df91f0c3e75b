"""The program that implements Glob and Grep.

Python's regular expressions block the interpreter while they match, and some patterns take forever on some lines: in
the agent's process that would stop everything, including cancellation. A separate process can be killed. To start
quickly, it has only fast imports.
"""

import json
import os
import signal
import sys
from typing import Any

from wave_agent.system.real_files import identity
from wave_agent.tools.encoding import printable
from wave_agent.tools.search.answer import ShownLines, answer, notes_about, shown_path
from wave_agent.tools.search.file_reader import FileReader
from wave_agent.tools.search.gitignore import GlobPattern
from wave_agent.tools.search.grep_files import grep
from wave_agent.tools.search.ripgrep import FEW
from wave_agent.tools.search.walk import Walk

_HEARTBEAT = 0.5
"""Seconds of work between checks whether the agent is still alive."""


def search(request: dict[str, Any], *, few: int = FEW) -> dict[str, Any]:
    """`kind` is glob or grep; see the tools for the other fields.

    The answer has `lines`, `filenames` and `notes`, and whether lines were `cut`; that of a glob also how many `files`
    there are in total.
    """
    if _is_replaced(request):
        return {"replaced": request["path"]}
    return _glob(request) if request["kind"] == "glob" else grep(request, few=few)


def _is_replaced(request: dict[str, Any]) -> bool:
    """The file at this real path is not the one the call was permitted for."""
    try:
        return list(identity(os.lstat(request["real"]))) != list(request["identity"] or ())
    except OSError:
        return True


def _glob(request: dict[str, Any]) -> dict[str, Any]:
    pattern = GlobPattern(request["pattern"])
    walk, reader = Walk(request["real"], request["project"]), FileReader(request)
    lines, filenames = ShownLines(request), list[str]()
    found = reader.allowed(sorted(path for path, _ in walk.files() if pattern.matches(path)))
    for path in found:
        absolute = os.path.join(request["path"], path)
        if not lines.add(shown_path(absolute, request["cwd"])):
            break
        filenames.append(printable(absolute))
    notes = notes_about(walk, kept_back=reader.kept_back)
    inner = str(request["pattern"]).rstrip("/")
    if not found and os.path.isdir(os.path.join(request["real"], inner)):
        notes.append(f"{inner} is a directory: use {inner}/** to list its files")
    return {**answer(lines, filenames, notes), "files": len(found)}


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
    json.dump(search(request), sys.stdout)
