"""Function hooks: calls a Python function in this process and treats its answer like any other run."""

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from wave_agent.hooks.authoring import HookCall
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.script import encoded
from wave_agent.system.reentrancy import Door, no_door

FAILED = 1
"""The exit code for an exception: a failure, never a block by itself."""


async def call_function(
    function: Callable[..., Any], stdin: bytes, seconds: float, door: Door = no_door
) -> HookExecutionResult:
    """Call the function. At the timeout, an async function is cancelled; the thread of a sync one is abandoned.

    The function runs inside `door`. Raises only `asyncio.CancelledError`.
    """
    started = monotonic()
    call = HookCall(json.loads(stdin))  # its own copy: no hook can change what another one sees
    work = asyncio.ensure_future(_answer(function, call, door))
    try:
        await asyncio.wait({work}, timeout=seconds)
    except asyncio.CancelledError:
        work.cancel()
        raise
    duration = (monotonic() - started) * 1000
    if not work.done():
        work.cancel()  # not awaited: a function that swallows the cancellation must not hang the agent
        return HookExecutionResult(timed_out=True, duration=duration)
    if work.cancelled():
        return HookExecutionResult(exit_code=FAILED, stderr="CancelledError", duration=duration)
    if error := work.exception():
        return HookExecutionResult(exit_code=FAILED, stderr=str(error), duration=duration)
    return _result(work.result(), duration)


async def _answer(function: Callable[..., Any], call: HookCall, door: Door) -> Any:
    """What the function returns. Anything it raises becomes an ordinary exception.

    `SystemExit` and `KeyboardInterrupt` would end the event loop and with it the agent; a future cannot carry
    `StopIteration`.
    """
    try:
        return await _called(function, call, door)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise _FunctionError(_describe(error)) from error


class _FunctionError(Exception):
    """Describes what a function raised."""


async def _called(function: Callable[..., Any], call: HookCall, door: Door) -> Any:
    with door():
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
            return await function(call)
        answer = await _in_thread(function, call, door)
        return await answer if inspect.isawaitable(answer) else answer


def _in_thread(function: Callable[..., Any], call: HookCall, door: Door) -> Awaitable[Any]:
    """Run in a new daemon thread: at exit, the interpreter would wait for an abandoned thread of a pool."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(error)

    def work() -> None:
        answer, error = None, None
        try:
            with door():
                answer = function(call)
        except BaseException as raised:  # SystemExit too: it must not end the thread silently
            error = _FunctionError(_describe(raised))
        with suppress(RuntimeError):  # abandoned, and the loop is already closed
            loop.call_soon_threadsafe(settle, answer, error)

    threading.Thread(target=work, name="wave-hook-function", daemon=True).start()
    return future


def _result(answer: Any, duration: float) -> HookExecutionResult:
    try:
        return HookExecutionResult(exit_code=0, stdout=encoded(answer), duration=duration)
    except TypeError as error:
        return HookExecutionResult(exit_code=FAILED, stderr=str(error), duration=duration)


def _describe(error: BaseException) -> str:
    if isinstance(error, _FunctionError):
        return str(error)
    try:
        text = str(error).strip()
    except Exception:  # an exception whose __str__ fails
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
