"""Python functions as hooks: whatever they do, it becomes a result."""

import asyncio
import functools
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest

from wave_agent.hooks.authoring import HookCall, deny
from wave_agent.hooks.events import Decision, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.runners.function import FAILED, call_function
from wave_agent.hooks.semantics import read

PAYLOAD = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls", "tags": ["a"]}}
STDIN = json.dumps(PAYLOAD).encode()
LONG = 30.0
"""Seconds that no test waits for."""
SOON = 0.02
"""A timeout that is wanted: what is called never ends by itself."""


async def call(function: Callable[..., Any], seconds: float = LONG) -> HookExecutionResult:
    return await call_function(function, STDIN, seconds)


async def arrives(event: threading.Event) -> bool:
    """Whether the event is set, without holding the loop."""
    return await asyncio.to_thread(event.wait, 10)


# -------------------------------------------------------------------------------------------------------------- answers


def sync_function(_: HookCall) -> Any:
    return deny("no")


async def async_function(_: HookCall) -> Any:
    return deny("no")


class SyncObject:
    def __call__(self, _: HookCall) -> Any:
        return deny("no")

    def method(self, _: HookCall) -> Any:
        return deny("no")


class AsyncObject:
    async def __call__(self, _: HookCall) -> Any:
        return deny("no")

    async def method(self, _: HookCall) -> Any:
        return deny("no")


def returns_a_coroutine(event: HookCall) -> Awaitable[Any]:
    return async_function(event)


def with_an_option(event: HookCall, *, reason: str) -> Any:
    return deny(reason)


@pytest.mark.parametrize(
    "function",
    [
        sync_function,
        async_function,
        SyncObject(),
        AsyncObject(),
        SyncObject().method,
        AsyncObject().method,
        returns_a_coroutine,
        functools.partial(with_an_option, reason="no"),
        functools.partial(async_function),
        functools.partial(AsyncObject()),
        lambda _: deny("no"),
    ],
    ids=[
        *("function", "async function", "object", "async object", "method", "async method", "awaitable returned"),
        *("partial", "async partial", "partial of an async object", "lambda"),
    ],
)
async def test_every_kind_of_callable_is_called_and_its_answer_read(function: Callable[..., Any]) -> None:
    result = await call(function)
    assert (result.exit_code, result.stderr, result.timed_out) == (0, "", False)
    assert json.loads(result.stdout) == {"decision": "block", "reason": "no"}
    assert result.duration > 0


async def test_none_is_no_opinion() -> None:
    result = await call(lambda _: None)
    assert (result.exit_code, result.stdout) == (0, "")
    assert read(HookEvent.PRE_TOOL_USE, result, name="f", on_failure=OnFailure.BLOCK).effects == ()


async def test_a_function_gets_the_event_typed() -> None:
    seen: list[HookCall] = []
    await call(seen.append)
    assert isinstance(seen[0], HookCall)
    assert seen[0].payload == PAYLOAD


async def test_what_one_function_does_to_its_event_no_other_sees() -> None:
    seen: list[Any] = []

    def meddles(event: HookCall) -> None:
        event.payload["tool_input"]["tags"].append("b")  # type: ignore[index]
        event.payload["tool_input"]["command"] = "rm"  # type: ignore[index]
        event.payload["extra"] = True  # type: ignore[index]

    await asyncio.gather(call(meddles), call(meddles))
    await call(lambda event: seen.append(event.payload))
    assert seen == [PAYLOAD]


async def test_a_sync_function_does_not_hold_the_loop() -> None:
    entered, release = threading.Event(), threading.Event()

    def waits(_: HookCall) -> Any:
        entered.set()
        assert release.wait(10)
        return {}

    running = asyncio.create_task(call(waits))
    assert await arrives(entered)
    assert not running.done()
    release.set()
    assert (await running).stdout == "{}"


async def test_an_async_function_runs_on_the_loop_of_the_agent() -> None:
    seen: list[asyncio.AbstractEventLoop] = []

    async def looks(_: HookCall) -> None:
        seen.append(asyncio.get_running_loop())

    await call(looks)
    assert seen == [asyncio.get_running_loop()]


# ------------------------------------------------------------------------------------------------------------- failures


def fails(error: BaseException) -> Callable[[HookCall], NoReturn]:
    def function(_: HookCall) -> NoReturn:
        raise error

    return function


def fails_later(error: BaseException) -> Callable[[HookCall], Awaitable[None]]:
    async def function(_: HookCall) -> None:
        raise error

    return function


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize("kind", [fails, fails_later], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("bad value"), "ValueError: bad value"),
        (KeyError("command"), "KeyError: 'command'"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup: several (1 sub-exception)"),
        (asyncio.CancelledError(), "CancelledError"),
        (StopIteration(), "StopIteration"),
        (GeneratorExit(), "GeneratorExit"),
        (UnspeakableError(), "UnspeakableError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_an_exception_is_a_failure_that_names_it(kind: Any, error: BaseException, told: str) -> None:
    result = await call(kind(error), seconds=2)
    assert result.exit_code == FAILED
    assert told in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("kind", [fails, fails_later], ids=["sync", "async"])
@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt()], ids=["SystemExit", "KeyboardInterrupt"])
def test_a_function_that_wants_to_end_the_process_has_failed(kind: Any, error: BaseException) -> None:
    try:
        result = asyncio.run(call(kind(error)))
    except (SystemExit, KeyboardInterrupt) as escaped:
        pytest.fail(f"{escaped!r} of a hook function ended the agent")
    assert result.exit_code == FAILED
    assert type(error).__name__ in result.stderr


def test_exit_2_in_a_function_is_a_failure_and_not_a_block() -> None:
    result = asyncio.run(call(lambda _: sys.exit(2)))
    verdict = read(HookEvent.PRE_TOOL_USE, result, name="f", on_failure=OnFailure.CONTINUE)
    assert verdict.decision is Decision.NONE
    assert verdict.failure is not None


async def test_a_failure_blocks_where_the_hook_says_so() -> None:
    result = await call(fails(ValueError("x")))
    failure = read(HookEvent.PRE_TOOL_USE, result, name="f", on_failure=OnFailure.BLOCK).failure
    assert failure is not None
    assert failure.blocks
    assert "ValueError: x" in failure.message


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("deny", "str"), (True, "bool"), (2, "int"), ([deny("x")], "list"), (object(), "object"), (b"{}", "bytes")],
)
async def test_an_answer_of_another_type_is_a_failure(answer: object, kind: str) -> None:
    result = await call(lambda _: answer)
    assert result.exit_code == FAILED
    assert result.stderr == f"a hook function must return None, a dict or an answer, not {kind}"


async def test_an_async_generator_is_no_answer() -> None:
    async def generates(_: HookCall) -> Any:
        yield deny("no")

    result = await call(generates)
    assert result.exit_code == FAILED
    assert "not async_generator" in result.stderr


def circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def deep() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(100_000):
        made = {"in": made}
    return made


@pytest.mark.parametrize(
    "answer",
    [
        {"reason": object()},
        {"reason": b"bytes"},
        {("a", "b"): 1},
        {"n": float("nan")},
        {"n": float("inf")},
        circle(),
        {"hookSpecificOutput": {"updatedInput": {"x": {1, 2}}}},
    ],
    ids=["an object", "bytes", "a tuple as key", "NaN", "infinity", "a circle", "a set deep inside"],
)
async def test_an_answer_that_is_not_json_is_a_failure(answer: dict[Any, Any]) -> None:
    result = await call(lambda _: answer)
    assert result.exit_code == FAILED
    assert result.stdout == ""
    assert result.stderr.startswith("the hook function returned something that is not JSON: ")


async def test_an_answer_nested_too_deeply_is_a_failure() -> None:
    answer = deep()
    result = await call(lambda _: answer)
    verdict = read(HookEvent.PRE_TOOL_USE, result, name="f", on_failure=OnFailure.BLOCK)
    assert verdict.failure is not None


# ------------------------------------------------------------------------------------------------ timeout, cancellation


async def test_an_async_function_is_cancelled_at_the_timeout() -> None:
    cancelled = asyncio.Event()

    async def waits(_: HookCall) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    result = await call(waits, SOON)
    assert result.timed_out
    assert result.exit_code is None
    assert result.duration >= SOON * 1000
    await asyncio.wait_for(cancelled.wait(), 10)


async def test_an_async_function_that_swallows_the_cancellation_does_not_hold_the_agent() -> None:
    swallowed, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn(_: HookCall) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await release.wait()
        ended.set()
        return deny("too late")

    result = await call(stubborn, SOON)
    assert result.timed_out
    assert result.stdout == ""
    await asyncio.wait_for(swallowed.wait(), 10)
    release.set()
    await asyncio.wait_for(ended.wait(), 10)


async def test_a_sync_function_is_abandoned_at_the_timeout_and_its_late_answer_is_lost() -> None:
    release, ended = threading.Event(), threading.Event()

    def waits(_: HookCall) -> Any:
        assert release.wait(10)
        ended.set()
        return deny("too late")

    result = await call(waits, SOON)
    assert result.timed_out
    assert result.stdout == ""
    release.set()
    assert await arrives(ended)


def test_a_sync_function_that_ends_after_the_loop_troubles_nobody() -> None:
    release, threads = threading.Event(), list[threading.Thread]()

    def waits(_: HookCall) -> None:
        threads.append(threading.current_thread())
        assert release.wait(10)

    assert asyncio.run(call(waits, SOON)).timed_out
    assert threads[0].daemon
    release.set()
    threads[0].join(10)
    assert not threads[0].is_alive()


async def test_an_awaitable_that_a_sync_function_returned_is_under_the_same_timeout() -> None:
    def waits(_: HookCall) -> Awaitable[Any]:
        return asyncio.Event().wait()

    assert (await call(waits, SOON)).timed_out


@pytest.mark.parametrize("swallows", [False, True], ids=["that lets go", "that swallows it"])
async def test_cancelling_the_turn_cancels_an_async_function(swallows: bool) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def waits(_: HookCall) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            if not swallows:
                raise

    running = asyncio.create_task(call(waits))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait_for(cancelled.wait(), 10)


async def test_cancelling_the_turn_abandons_a_sync_function() -> None:
    entered, release, ended = threading.Event(), threading.Event(), threading.Event()

    def waits(_: HookCall) -> None:
        entered.set()
        assert release.wait(10)
        ended.set()

    running = asyncio.create_task(call(waits))
    assert await arrives(entered)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    release.set()
    assert await arrives(ended)
