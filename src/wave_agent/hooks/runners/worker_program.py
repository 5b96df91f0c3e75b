"""The worker program: calls the functions of one file, one call at a time, until its socket closes.

Run as a script by the agent's interpreter; imports next to nothing. `worker_pool` is the other end:

    request     two lengths (4 bytes each), a head in JSON {"call", "function", "environment", "removed"}, the hook's
                stdin
    answer      two lengths, a head in JSON {"exit"} or {"failed"} or {"stale"}, always with {"call", "memory"}; the
                output
"""

import json
import os
import sys
from contextlib import suppress

FAILED = 1
"""The exit code for an exception: a failure, never a block by itself."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class UncallableError(Exception):
    """The function cannot be called at all."""


def pack(head: "dict[str, Any]", body: bytes) -> bytes:
    encoded = json.dumps(head).encode()
    return len(encoded).to_bytes(4, "big") + len(body).to_bytes(4, "big") + encoded + body


class LoadedFile:
    """The file, loaded as `python FILE` would load it, with the last change of it and its modules."""

    def __init__(self, path: str, wrap: "Callable[[Any], Any]") -> None:
        self._path = path
        self._wrap = wrap
        self._names: dict[str, Any] = {}
        self._watched: dict[str, Any] = {}
        self._modules = 0
        self._loop: Any = None

    def load(self) -> None:
        """Raises `UncallableError`."""
        import types

        self._watched[self._path] = _state(self._path)
        module = types.ModuleType("__hook__")
        module.__file__ = self._path
        sys.modules["__hook__"] = module
        sys.path.insert(0, os.path.dirname(self._path))
        try:
            with open(self._path, "rb") as file:
                code = compile(file.read(), self._path, "exec")
            exec(code, module.__dict__)
        except OSError as error:
            if error.filename != self._path:
                raise UncallableError(f"{self._path} cannot be loaded: {self.describe(error)}") from None
            raise UncallableError(f"{self._path} cannot be read: {error.strerror}") from None
        except BaseException as error:
            raise UncallableError(f"{self._path} cannot be loaded: {self.describe(error)}") from None
        self._names = module.__dict__

    def is_stale(self, project: str) -> bool:
        """Whether anything loaded from the script's directory or the project has changed since."""
        self.watch(project)
        return any(_state(path) != state for path, state in self._watched.items())

    def watch(self, project: str) -> None:
        """Record modules that were loaded since the last check."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        places = (os.path.join(os.path.dirname(self._path), ""), os.path.join(project, ""))
        library = os.path.join(os.path.dirname(os.__file__), "")
        for module in list(sys.modules.values()):
            path = str(getattr(module, "__file__", None) or "")
            installed = path.startswith(library) or "/site-packages/" in path
            if path.startswith(places) and not installed and path not in self._watched:
                self._watched[path] = _state(path)

    def function(self, name: str) -> "Callable[..., Any]":
        first, *inner = name.split(".")
        found = self._names.get(first)
        for step in inner:
            found = getattr(found, step, None)
        if not callable(found):
            raise UncallableError(f'{self._path} has no function "{name}"')
        return found

    def call(self, name: str, payload: bytes) -> "tuple[int, str]":
        """Exit code, and the output or what went wrong."""
        function = self.function(name)
        try:
            answer = function(self._wrap(json.loads(payload)))
            if hasattr(answer, "__await__"):
                answer = self._awaited(answer)
        except BaseException as error:  # SystemExit too: it must not end the worker
            return FAILED, self.describe(error)
        if answer is None:
            return 0, ""
        if not isinstance(answer, dict):
            return FAILED, f"a hook function must return None, a dict or an answer, not {type(answer).__name__}"
        try:
            return 0, json.dumps(answer, allow_nan=False)
        except Exception as error:
            return FAILED, f"the hook function returned something that is not JSON: {error}"

    def _awaited(self, answer: "Any") -> "Any":
        import asyncio  # lazy: most functions are not async

        async def wait() -> "Any":
            return await answer

        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(wait())

    def describe(self, error: BaseException) -> str:
        """The exception, and the line of the script it came from."""
        try:
            text = str(error).strip()
        except Exception:
            text = ""
        line, trace = getattr(error, "lineno", None), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._path:
                line = trace.tb_lineno
            trace = trace.tb_next
        said = f"{type(error).__name__}: {text}" if text else type(error).__name__
        named = f"line {line}" in text or line is None
        return said if named else f"{said} ({os.path.basename(self._path)}, line {line})"


def _state(path: str) -> "tuple[int, ...] | None":
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHUNK = 1 << 16


class Environment:
    """The environment variables. What a function changed is undone before the next call."""

    def __init__(self) -> None:
        self._wanted = dict(os.environ)
        self._left = _variables()

    def change(self, values: "dict[str, str]", removed: "list[str]") -> None:
        self._wanted.update(values)
        for name in removed:
            self._wanted.pop(name, None)
        if _variables() != self._left:
            os.environ.clear()
            os.environ.update(self._wanted)
        elif values or removed:
            os.environ.update(values)
            for name in removed:
                os.environ.pop(name, None)
        else:
            return
        self._left = _variables()


def _variables() -> "dict[Any, Any]":
    """To compare. As bytes if possible: decoding all of them takes longer than most functions."""
    raw: Any = getattr(os.environ, "_data", os.environ)
    return dict(raw)


def _memory() -> int:
    """Bytes this process uses now; if the system does not report that, its peak usage."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(file, 256).split()[1]) * _PAGE
        finally:
            os.close(file)
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Channel:
    """The worker's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()
        self._call = 0
        self._received = bytearray()

    def receive(self) -> "tuple[dict[str, Any], bytes]":
        lengths = self._exactly(8)
        head = json.loads(self._exactly(int.from_bytes(lengths[:4], "big")))
        self._call = head["call"]
        return head, self._exactly(int.from_bytes(lengths[4:], "big"))

    def answer(self, head: "dict[str, Any]", body: str = "") -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a function may have closed or replaced it
                stream.flush()  # so that output arrives before the answer
        if os.getpid() != self._process:
            os._exit(FAILED)  # a forked child that a function left running: only the parent may answer
        unsent = memoryview(pack({**head, "call": self._call, "memory": _memory()}, body.encode(errors="replace")))
        while unsent:
            unsent = unsent[os.write(self._descriptor, unsent) :]

    def _exactly(self, length: int) -> bytes:
        while len(self._received) < length:  # usually, the whole request is there at once
            part = os.read(self._descriptor, max(_CHUNK, length - len(self._received)))
            if not part:
                os._exit(0)  # the agent is done with this worker, or dead; leftover threads of functions do not matter
            self._received += part
        found = bytes(self._received[:length])
        del self._received[:length]
        return found


def main(script: LoadedFile, project: str, descriptor: int) -> None:
    os.set_inheritable(descriptor, False)  # a process started by a function must not keep the socket open
    line = Channel(descriptor)
    environment, loaded = Environment(), False
    while True:
        head, payload = line.receive()
        environment.change(head["environment"], head["removed"])
        try:
            os.chdir(project)
            if not loaded:
                script.load()
                loaded = True
            if script.is_stale(project):
                line.answer({"stale": True})
                continue
            exit_code, text = script.call(head["function"], payload)
            script.watch(project)
        except (UncallableError, OSError) as error:
            line.answer({"failed": str(error)})
        else:
            line.answer({"exit": exit_code}, text)


if __name__ == "__main__":
    _, _path, _project, _descriptor, _package = sys.argv
    try:
        from wave_agent.hooks.authoring import HookCall
    except ImportError:  # the agent found its package in a way this interpreter does not
        sys.path.append(_package)
        from wave_agent.hooks.authoring import HookCall
    sys.argv[:] = [_path]
    main(LoadedFile(_path, HookCall), _project, int(_descriptor))
