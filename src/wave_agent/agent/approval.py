"""Asking the embedding program whether a call may run."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from wave_agent.permissions.decision import INSTEAD, Allow, Approver, Deny, PermissionRequest
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

FAILED = Deny(f"the permission to run this could not be obtained. {INSTEAD}")


async def answer_of(
    approver: Approver, request: PermissionRequest, tell: Callable[[str], None], door: Door = no_door
) -> Allow | Deny:
    """The approver's answer. A plain function is called in a thread, so that it may take its time or prompt the user.

    The decision must not fail open: any error is a denial, and `tell` gets the reason. If the wait is cancelled, the
    thread keeps running and its answer is dropped.
    """
    try:
        with door():
            answer: Any = approver(request) if is_async(approver) else await _in_thread(approver, request, door)
            if inspect.isawaitable(answer):
                answer = await answer
    except Exception as error:
        tell(f"can_use_tool failed: {type(error).__name__}: {error}")
        return FAILED
    if isinstance(answer, Allow | Deny):
        return answer
    tell(f"can_use_tool must return Allow() or Deny(message), not {answer!r:.60}; {request.tool_name} was not run.")
    return FAILED


def is_async(function: Callable[..., Any]) -> bool:
    """Calling it returns an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def _in_thread(approver: Approver, request: PermissionRequest, door: Door) -> Any:
    delivery = Delivery[Callable[[], Any]](asyncio.get_running_loop(), Mailbox())

    def work() -> None:
        try:
            with door():
                answer = approver(request)
        except BaseException as error:  # SystemExit too: it must not end the thread silently
            delivery.send(partial(_fail, error))
        else:
            delivery.send(lambda: answer)

    start_in_thread(work)
    return (await delivery.wait())()


def _fail(error: BaseException) -> Any:
    raise error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
