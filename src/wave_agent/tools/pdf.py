"""The text of a PDF, extracted with `pdftotext`."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from tempfile import TemporaryFile

from msgspec.structs import replace

from wave_agent.tools.base import ToolContext
from wave_agent.tools.files import FileRefusedError
from wave_agent.tools.process import Launch, Process, StreamName

_SECONDS = 30.0
_LONGEST = 8 << 20
"""Maximum size of the text, in bytes."""


async def pdf_lines(path: str, data: bytes, context: ToolContext) -> list[str]:
    """The text of what was read from `path`, page by page. Raises a `FileRefusedError` that says what to do instead."""
    program = shutil.which("pdftotext", path=context.environment.get("PATH", os.defpath))
    if program is None:
        raise FileRefusedError(
            f"{path} is a PDF, and pdftotext, which extracts its text, is not installed. Install it (Debian: "
            "poppler-utils, macOS: brew install poppler), or ask the user for the text."
        )
    received: dict[StreamName, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def receive(stream: StreamName, data: bytes) -> None:
        received[stream].extend(data[: _LONGEST - len(received[stream])])

    try:
        with _in_memory(data) as file:
            argv = [program, "-q", "-layout", "-enc", "UTF-8", f"/dev/fd/{file}", "-"]
            ending = await Process(replace(_confined(argv, context), kept=(file,)), receive).run()
    except (OSError, RuntimeError) as error:
        raise FileRefusedError(f"{path} is a PDF, and pdftotext cannot be started: {error}") from None
    if ending.cut_short:
        raise FileRefusedError(f"{path} is a PDF that pdftotext did not finish within {_SECONDS:g} s.")
    if ending.exit_code != 0:
        why = ending.error or received["stderr"].decode(errors="replace").strip() or f"exit code {ending.exit_code}"
        raise FileRefusedError(f"{path} is a PDF that pdftotext cannot read: {why}")
    pages = received["stdout"].decode(errors="replace").removesuffix("\f").split("\f")
    if not any(page.strip() for page in pages):
        raise FileRefusedError(
            f"{path} is a PDF of {len(pages)} pages without text, such as a scan. With Bash, "
            "`pdftoppm -r 100 -png FILE PREFIX` makes images of its pages."
        )
    lines: list[str] = []
    for number, page in enumerate(pages, 1):
        lines += [f"[Page {number} of {len(pages)}]", *page.rstrip().split("\n")]
    if len(received["stdout"]) == _LONGEST:
        lines.append(f"[The rest is omitted: the text is longer than {_LONGEST >> 20} MiB]")
    return lines


@contextmanager
def _in_memory(data: bytes) -> Generator[int]:
    """A descriptor to read the data from: given a path, the program might read a different file than was judged."""
    with open(os.memfd_create("pdf"), "w+b") if hasattr(os, "memfd_create") else TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def _confined(argv: list[str], context: ToolContext) -> Launch:
    """In the sandbox, if there is one: files crafted to attack programs like this are common."""
    cwd, sandbox = str(context.project_dir), context.sandbox
    launch = Launch(argv=argv, cwd=cwd, environment=context.environment, ledger=context.ledger, seconds=_SECONDS)
    if sandbox is None:
        return launch
    return replace(
        launch,
        argv=sandbox.command(argv, context.environment, cwd=cwd),
        environment=sandbox.outside(context.environment),
    )
