"""A command's output: an excerpt for the model, the full text in a private file."""

import asyncio
import os
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from wave_agent.system.private_files import make_private, open_private
from wave_agent.system.processes import StreamName
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.room import NOTES, USUAL, missing

MODEL_LIMIT = USUAL
"""Maximum length of one output shown to the model, in characters."""
_FILE_LIMIT = 64 << 20
"""Maximum length of one output that is stored at all: a command that prints without end must not fill the disk."""
_UNSEEN_LIMIT = 1 << 16
"""Maximum length of output waiting for a front end that is slower than the command. It gets the newest."""

_Utf8Decoder = getincrementaldecoder("utf-8")
_STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")


class Excerpt:
    """A growing text of which only the start and the end are kept."""

    def __init__(self, limit: int = MODEL_LIMIT) -> None:
        self.length = 0
        self._half = limit // 2
        self._head = ""
        self._tail = ""

    @property
    def left_out(self) -> int:
        return self.length - len(self._head) - len(self._tail)

    def add(self, text: str) -> None:
        self.length += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._half :]

    def text(self, whole: str | None = None) -> str:
        """The kept text, with a note where something is missing and where the `whole` text is."""
        if not self.left_out:
            return self._head + self._tail
        # The note, and what the tool adds, reduce the room for the text.
        spared = (len(missing(self.length, whole)) + NOTES) // 2
        head, tail = self._head[:-spared], self._tail[spared:]
        return f"{head}{missing(self.length - len(head) - len(tail), whole)}{tail}"


def printed_limit(context: ToolContext) -> int:
    """Maximum length of a command's output shown to the model, in characters."""
    return max(context.room().length, NOTES)


def fitted(result: ToolResult, context: ToolContext) -> str:
    """The text of a result shown to the model: all of it, or its start and end with the full text in a private file.

    For callers of tools: it applies to every tool, and to a hook's replacement of a result.
    """
    room = context.room(asked=result.long)
    if room.holds(result.content):
        return result.content
    file = PrivateFile(context.outputs, "result")
    file.write(result.content)
    file.close()
    return room.cut(result.content, file.whereabouts)


class PrivateFile:
    """A file that only the user may read, created on the first write."""

    def __init__(self, directory: Path, stem: str) -> None:
        self.path = directory / f"{stem}-{os.urandom(6).hex()}.txt"
        self.complete = True
        self._written = 0
        self._file: TextIOWrapper | None = None

    @property
    def exists(self) -> bool:
        return self._file is not None

    @property
    def whereabouts(self) -> str | None:
        """Where the full text is, if it is stored."""
        if not self.exists:
            return None
        return str(self.path) if self.complete else f"{self.path} (its start; the rest was dropped)"

    def write(self, text: str) -> None:
        """Never raises: a full disk loses the copy, not the command."""
        if not self.complete:
            return
        try:
            if self._file is None:
                make_private(self.path.parent)
                descriptor = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="")
            self._file.write(text[: _FILE_LIMIT - self._written])
            self._file.flush()
        except OSError:
            self.complete = False
        self._written += len(text)
        self.complete = self.complete and self._written <= _FILE_LIMIT

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


class HeldFile(PrivateFile):
    """The same, in memory until `release`: a hook may yet decide that it must not be seen."""

    def __init__(self, directory: Path, stem: str) -> None:
        super().__init__(directory, stem)
        self._held: list[str] = []

    @property
    def exists(self) -> bool:
        return bool(self._held)

    def write(self, text: str) -> None:
        if self.complete:
            self._held.append(text[: _FILE_LIMIT - self._written])
            self._written += len(text)
            self.complete = self._written <= _FILE_LIMIT

    def release(self) -> None:
        kept = PrivateFile(self.path.parent, self.path.stem)
        kept.path = self.path
        for text in self._held:
            kept.write(text)
        kept.close()


class NoFile(PrivateFile):
    """Stores nothing: a hook decides about each piece of the output, so the full text must not be on disk."""

    @property
    def exists(self) -> bool:
        return False

    def write(self, text: str) -> None:
        pass


class Output:
    """Both streams of one command, decoded as they arrive. May be read while another thread adds to it.

    Excerpts and file contain lines as a terminal would show them. A line is written to the file when it is complete.
    """

    def __init__(self, file: PrivateFile, *, limit: int = MODEL_LIMIT, always_in_file: bool = False) -> None:
        """`limit`: maximum number of characters returned at once."""
        from wave_agent.tools.terminal import TerminalLines  # lazy: a session may never run a command

        self.file = file
        self._limit = limit
        self._in_file = always_in_file
        self._lock = threading.Lock()
        self._decoders = {name: _Utf8Decoder("replace") for name in _STREAMS}
        self._lines = TerminalLines()
        self._unread = Excerpt(limit)
        self._shown = ""
        """What the incomplete line looked like when it was last taken."""
        self._streams = {name: (TerminalLines(), Excerpt()) for name in _STREAMS}
        if always_in_file:
            file.write("")

    def add(self, name: StreamName, data: bytes, *, final: bool = False) -> str:
        """Returns the text completed by these bytes, as it was printed."""
        with self._lock:
            text = self._decoders[name].decode(data, final)
            if text:
                self._keep(self._lines.feed(text))
                lines, excerpt = self._streams[name]
                excerpt.add(lines.feed(text))
            return text

    def finish(self) -> str:
        """Call it when there is no more output. Returns replacements for incomplete characters."""
        rest = self.add("stdout", b"", final=True) + self.add("stderr", b"", final=True)
        with self._lock:
            self._keep(self._lines.finish())
            for lines, excerpt in self._streams.values():
                excerpt.add(lines.finish())
        self.file.close()
        return rest

    def stream(self, name: StreamName) -> str:
        """The output of one stream, once there is no more."""
        with self._lock:
            return self._streams[name][1].text()

    @property
    def has_news(self) -> bool:
        """There is new output since the last `take`."""
        with self._lock:
            return bool(self._unread.length or self._beyond_shown(self._lines.pending))

    def take(self) -> str:
        """The output since the last call. A line that was returned in part is returned whole if it was overwritten."""
        with self._lock:
            taken, self._unread = self._unread, Excerpt(self._limit)
            pending = self._lines.pending
            taken.add(self._beyond_shown(pending))
            self._shown = pending
            return taken.text(self.whereabouts())

    def whereabouts(self) -> str | None:
        """Where the full text is."""
        return self.file.whereabouts

    def _keep(self, done: str) -> None:
        if not done:
            return
        before, self._in_file = self._in_file, self._in_file or self._unread.length + len(done) > self._limit
        if self._in_file:
            self.file.write(done if before else self._unread.text() + done)
        self._unread.add(self._beyond_shown(done))
        self._shown = ""

    def _beyond_shown(self, text: str) -> str:
        return text.removeprefix(self._shown)


class Relay:
    """Passes text from the serving thread to the event loop."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting = ""

    def send(self, text: str) -> None:
        if not text:
            return
        with self._lock:
            idle = not self._waiting
            self._waiting = (self._waiting + text)[-_UNSEEN_LIMIT:]
        if idle:
            with suppress(RuntimeError):  # The loop is closed: there is no reader any more.
                self._loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        with self._lock:
            text, self._waiting = self._waiting, ""
        if text:
            self._emit(text)
