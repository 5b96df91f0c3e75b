"""`@hook`: turns a function into a hook, called in the agent's process or run as a script.

Imports no more than a script that reads the JSON itself would.
"""

import os
import sys

from wave_agent.hooks.authoring import HookCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, NoReturn

    Answered = dict[str, Any] | None
    HookFunction = Callable[[HookCall], Answered | Awaitable[Answered]]

FAILED = 1


class Hook:
    """A function that is a hook, called in the agent's process or run as a script.

    Make one with `@hook`.
    """

    def __init__(self, function: "HookFunction") -> None:
        self.__wrapped__ = function
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = function.__doc__
        self.used = False
        """Whether it was called or run as a script."""

    def __call__(self, call: HookCall) -> "Answered | Awaitable[Answered]":
        self.used = True
        return self.__wrapped__(call)

    def main(self) -> "NoReturn":
        """Run this hook as a script: read the event from stdin, write the answer to stdout, and exit.

        The exit status is 0 with an answer. Without one it is 1, with a traceback on stderr: a failure of the hook,
        never an opinion.
        """
        self.used = True
        raise SystemExit(run(self.__wrapped__))


def hook(function: "HookFunction") -> Hook:
    """Turn a function into a hook. It takes a `HookCall` and returns an answer such as `deny("…")`, or None.

    A script ends with `if __name__ == "__main__": guard.main()`.
    """
    made = Hook(function)
    if getattr(function, "__module__", "") == "__main__":
        _expect_main()
    return made


def run(function: "HookFunction") -> int:
    """Read one event from stdin and write one answer to stdout. Returns the exit status; never raises."""
    try:
        answers = os.dup(1)
        # Output of the function and its children must not mix with the answer: text before a deny would hide it.
        os.dup2(2, 1)
        text = encoded(_called(function, _event()))
        sys.stdout.flush()
        _write(answers, f"{text}\n" if text else "")
    except _NoEventError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BaseException as error:  # SystemExit too: whatever the hook meant by it, it did not answer
        _show(error)
        return FAILED
    return 0


def encoded(answer: "Any") -> str:
    """The answer as a hook prints it; empty for None. Raises `TypeError` if it is not a valid answer."""
    if answer is None:
        return ""
    if not isinstance(answer, dict):
        raise TypeError(f"a hook function must return None, a dict or an answer, not {type(answer).__name__}")
    import json  # lazy: not needed by a hook without an answer

    try:
        return json.dumps(answer, allow_nan=False)
    except Exception as error:  # a subclass of dict can raise anything
        raise TypeError(f"the hook function returned something that is not JSON: {error}") from None


def _expect_main() -> None:
    """Make a script that the agent runs as a hook fail if it never runs its hooks.

    Without its last line, a guard would silently do nothing.
    """
    if "HOOK_EVENT" in os.environ:
        import atexit  # lazy: only a hook's process needs it

        atexit.register(_complain)


def _complain() -> None:
    script = sys.modules["__main__"]
    hooks = [(name, found) for name, found in vars(script).items() if isinstance(found, Hook)]
    if not hooks or any(found.used for _, found in hooks) or _names_main(getattr(script, "__file__", None)):
        return
    name = hooks[-1][0]
    print(
        f'The hook {name} was never run. End its script with: if __name__ == "__main__": {name}.main()', file=sys.stderr
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)


def _names_main(file: str | None) -> bool:
    """Whether the script contains a call of `main`: it may simply have exited before reaching it."""
    try:
        with open(file or "", encoding="utf-8", errors="replace") as opened:
            return ".main(" in opened.read()
    except OSError:
        return False


def _show(error: BaseException) -> None:
    """Print the traceback, starting at the hook's own code."""
    import traceback  # lazy: only a failure needs it

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(error.with_traceback(trace))


class _NoEventError(Exception):
    """stdin does not contain an event."""


def _event() -> HookCall:
    import json  # lazy: not needed to define a hook

    if sys.stdin is None or sys.stdin.isatty():
        raise _NoEventError("A hook reads its event as JSON from standard input. To try it, run: wave hooks test")
    try:
        payload = json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        raise _NoEventError(f"Standard input is not valid JSON: {error}") from None
    if not isinstance(payload, dict):
        raise _NoEventError(f"The event on standard input must be a JSON object, not {type(payload).__name__}.")
    return HookCall(payload)  # pyright: ignore[reportUnknownArgumentType]


def _called(function: "HookFunction", call: HookCall) -> "Any":
    answer: Any = function(call)
    if not hasattr(answer, "__await__"):
        return answer
    import asyncio  # lazy: only an async function needs it

    async def awaited() -> "Any":
        return await answer

    return asyncio.run(awaited())


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode())
    while data:
        data = data[os.write(descriptor, data) :]
