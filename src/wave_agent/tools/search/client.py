"""The agent's side of a search: starts the search program, and can end it."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from wave_agent.system.cores import cores
from wave_agent.system.real_files import Seen, look
from wave_agent.system.slots import Slots
from wave_agent.tools.base import ToolContext, ToolInputError
from wave_agent.tools.files import FileRefusedError, missing
from wave_agent.tools.process import Launch, Process, StreamName
from wave_agent.tools.room import NOTES

_SECONDS = 60.0
_SLOTS = Slots(2 * cores())
"""For the searches of all sessions in this process: more at once take longer for each, and all their memory."""
_PACKAGES = str(Path(__file__).parents[3])
# With -I and -S only the standard library is found, and no start-up files are run.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from wave_agent.tools.search.program import main; main()"


def search_root(path: str, context: ToolContext, *, only_directory: bool = False) -> tuple[str, Seen]:
    """The absolute path to search, and what it points to. Raises `FileRefusedError` if it cannot be searched."""
    root = os.path.normpath(os.path.join(context.cwd, path))
    if ".git" in root.split("/"):
        raise FileRefusedError(f"{root} is inside .git, which is not searched. Use git commands with Bash.")
    if not os.path.exists(root):
        raise FileRefusedError(missing(root))
    if only_directory and not os.path.isdir(root):
        raise FileRefusedError(f"{root} is a file: path must be a directory.")
    try:
        return root, context.seen(root) or look(root)
    except OSError as error:
        raise FileRefusedError(f"{root} cannot be searched: {error.strerror}") from None


async def run_search(
    request: dict[str, Any], seen: Seen, context: ToolContext, *, asked: bool = False
) -> dict[str, Any]:
    """The answer of `search`, limited to the length of one result. `seen` is where it may look; `asked`: the call asks
    for more than usual.

    Raises `ToolInputError` and `FileRefusedError`.
    """
    sandbox = context.sandbox
    rg = shutil.which("rg", path=context.environment.get("PATH", os.defpath))
    if rg is not None and sandbox is not None and sandbox.may_have_changed(rg):
        rg = None  # a search runs outside the sandbox, so it must not use what a command may have put there
    room = context.room(asked=asked).without(NOTES)
    limits = {"characters": room.characters, "size": room.size}
    request = {
        **request,
        **limits,
        "real": seen.real,
        "identity": seen.file,
        "unread": context.unread,
        "agent": os.getpid(),
        "project": str(context.project_dir),
        "cwd": str(context.cwd),
        "rg": rg,
    }
    received: dict[StreamName, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    launch = Launch(
        argv=[sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, _PACKAGES, json.dumps(request)],
        cwd=str(context.cwd),
        ledger=context.ledger,
        environment=context.environment if sandbox is None else sandbox.outside(context.environment),
        seconds=_SECONDS,
    )
    try:
        async with _SLOTS.one():  # the time limit begins with the search, not with waiting for others
            ending = await Process(launch, lambda stream, data: received[stream].extend(data)).run()
    except (OSError, RuntimeError) as error:
        raise FileRefusedError(f"The search cannot be started: {error}") from None
    if ending.cut_short:
        raise FileRefusedError(
            f"The search was ended after {_SECONDS:g} s. Search fewer files (path, glob), or use a simpler pattern."
        )
    if ending.exit_code != 0:
        why = ending.error or received["stderr"].decode(errors="replace").strip().rpartition("\n")[2]
        raise FileRefusedError(f"The search failed: {why}")
    answer: dict[str, Any] = json.loads(received["stdout"])
    if "replaced" in answer:
        raise FileRefusedError(f"{answer['replaced']} was moved or replaced meanwhile; try again.")
    if "error" in answer:
        raise ToolInputError(answer["error"])
    return answer
