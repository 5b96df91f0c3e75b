"""JSON-RPC messages as lines on stdin and stdout.

Two threads do the reading and writing, so that a slow or dead client never stops the agent, and so that files,
terminals and `/dev/null` work as well as pipes.
"""

import asyncio
import json
import math
import os
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import Any, NamedTuple, cast

LARGEST = 64 << 20
"""Bytes of one message. Prompts may include files and images."""
_CHUNK = 1 << 16
_AFTER_STDERR = 3
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603


class _Outgoing(NamedTuple):
    line: bytes
    sent: asyncio.Future[None]


class _TooLong(NamedTuple):
    """A line was longer than a message may be."""


class StdioTransport:
    """The messages of one client. What is not a message gets an error as its answer, and ends nothing."""

    def __init__(self, source: int, target: int, *, largest: int = LARGEST) -> None:
        """Takes over both descriptors. Needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._largest = largest
        self._incoming: asyncio.Queue[bytes | _TooLong | None] = asyncio.Queue()
        self._outgoing: queue.SimpleQueue[_Outgoing] = queue.SimpleQueue()
        self._is_broken = False
        self._owed = 0
        self._paid = asyncio.Event()
        for work, descriptor in ((self._read, source), (self._write, target)):
            os.set_blocking(descriptor, True)
            threading.Thread(target=work, args=(descriptor,), daemon=True).start()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Returns once it is written. Raises `ConnectionError` if the client has gone."""
        if self._is_broken:
            raise ConnectionError("The client has closed its end.")
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        sent: asyncio.Future[None] = self._loop.create_future()
        self._outgoing.put(_Outgoing(line, sent))
        await sent
        if "method" not in message and message.get("id") is not None:
            self._owed -= 1
            self._paid.set()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end of the input, or once nothing can be sent any more."""
        while (line := await self._incoming.get()) is not None:
            message, problem = _parsed(line, self._largest)
            if message is not None:
                self._owed += "method" in message and message.get("id") is not None
                return message
            if problem:
                with suppress(ConnectionError):
                    await self.send({"jsonrpc": "2.0", "id": None, "error": problem})
        return None

    async def settle(self, seconds: float) -> None:
        """Waits until every request has its answer, if the client takes them in that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._owed > 0 and not self._is_broken:
                    self._paid.clear()
                    await self._paid.wait()

    async def close(self) -> None:
        """Nothing to do: both threads end with the process."""

    # --------------------------------------------------------------------------------------------------- in the threads

    def _read(self, source: int) -> None:
        """Buffered streams of Python have locks, which a process that ends while another thread reads cannot get."""
        pieces: list[bytes] = []
        size = 0
        with suppress(OSError):
            while chunk := os.read(source, _CHUNK):
                *complete, rest = chunk.split(b"\n")
                for line in complete:
                    is_long = size + len(line) > self._largest
                    self._deliver(_TooLong() if is_long else b"".join([*pieces, line]))
                    pieces, size = [], 0
                size += len(rest)
                if size > self._largest:
                    pieces.clear()
                else:
                    pieces.append(rest)
        if pieces:
            self._deliver(b"".join(pieces))
        self._deliver(None)

    def _write(self, target: int) -> None:
        while True:
            line, sent = self._outgoing.get()
            problem: OSError | None = None
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(target, left) :]
            except OSError as error:
                problem = error
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._written, sent, problem)

    def _written(self, sent: "asyncio.Future[None]", problem: OSError | None) -> None:
        if problem is not None and not self._is_broken:
            self._is_broken = True
            self._incoming.put_nowait(None)
        if sent.done():
            return
        if problem is None:
            sent.set_result(None)
        else:
            sent.set_exception(ConnectionError(f"The client cannot be written to: {problem.strerror}"))

    def _deliver(self, line: bytes | _TooLong | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._incoming.put_nowait, line)


Problem = dict[str, Any]


def _parsed(line: bytes | _TooLong, largest: int) -> tuple[dict[str, Any] | None, Problem | None]:
    """The message in a line, or what is wrong with it. Neither: there is nothing in it."""
    if isinstance(line, _TooLong):
        return None, {"code": INVALID_REQUEST, "message": f"Invalid request: longer than {largest:,} bytes"}
    if not line.strip():
        return None, None
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, {"code": PARSE_ERROR, "message": f"Parse error: {error}"}
    if not isinstance(found, dict):
        return None, {"code": INVALID_REQUEST, "message": "Invalid request: a message is a JSON object"}
    message = cast(dict[str, Any], found)
    number = _number(message.get("id"))
    if "method" not in message or (number is not None and ("result" in message or "error" in message)):
        if number is None:
            problem = "Invalid request: neither a request nor an answer to one of ours"
            return None, {"code": INVALID_REQUEST, "message": problem}
        return _sound_answer(message, number, line), None
    if isinstance(message["method"], str) and _is_id(message.get("id")):
        return message, None
    return None, {"code": INVALID_REQUEST, "message": "Invalid request: method is a string, id a string or number"}


def _is_id(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _number(given: object) -> int | None:
    """The number of a question of ours, also if a client has written it in another way: an answer that is not sound
    must not leave the question open."""
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else None
    return int(given) if isinstance(given, int | float) and math.isfinite(given) and given == int(given) else None


def _sound_answer(message: dict[str, Any], number: int, line: bytes) -> dict[str, Any]:
    """An answer that has either a result or an error in the form of errors. Whatever may be read as an error is one,
    and so is what may be read in two ways: an error denies."""
    error: Any = message.get("error")
    if error is None:
        if "method" in message:
            problem = "the answer is a request as well"
        elif "result" not in message:
            problem = "the answer has neither a result nor an error"
        elif type(message["id"]) is not int:
            problem = "the answer has the id of no question"
        elif (key := _duplicate_key(line)) is not None:
            problem = f"the answer has the key {json.dumps(key)} twice"
        else:
            return message
        error = {"message": problem}
    facts = cast(dict[str, Any], error) if isinstance(error, dict) else {"message": json.dumps(error)}
    code: Any = facts.get("code")
    sound = {"code": code if isinstance(code, int) else INTERNAL_ERROR, "message": str(facts.get("message", "Error"))}
    return {"jsonrpc": "2.0", "id": number, "error": sound}


def _duplicate_key(line: bytes) -> str | None:
    """A key that some object in this JSON has twice: which of its values a client means is not known."""
    twice: list[str] = []

    def read(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                twice.append(key)
            seen.add(key)

    json.loads(line, object_pairs_hook=read)
    return twice[0] if twice else None


def take_over_stdio() -> tuple[int, int]:
    """Stdin and stdout for the protocol alone: what else reads gets nothing, and what else prints goes to stderr.

    To be called before anything else opens files, which would get the number of a closed descriptor, as a copy would.
    """
    source, target = (fcntl(one, F_DUPFD_CLOEXEC, _AFTER_STDERR) for one in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if _is_open(2) else nothing, 1)
    os.close(nothing)
    return source, target


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
