"""Detects a model that makes the same call again and again, with the same result."""

import json
from collections.abc import Mapping
from typing import Any

HINTED = 2
"""From this repetition on, the model gets a hint that it repeats itself."""
NOT_RUN = 5
"""From this repetition on, the call is not run."""
GIVEN_UP = 10
"""At this repetition, the turn ends."""
_LONGEST = 4
"""Calls in a cycle: `A B A B A B` is a repetition too."""


class Repeats:
    """The calls of one turn. The caller does not note calls that only poll."""

    def __init__(self) -> None:
        self._done: list[tuple[str, str]] = []
        """Each call and its result."""
        self._results: dict[str, str] = {}
        """The last result of each call, since something may have changed."""

    def note(self, name: str, parameters: Mapping[str, Any] | None, result: str, *, reads: bool = False) -> bool:
        """Whether this call had the same result before, and nothing can have changed since. `reads`: the call changes
        nothing itself."""
        called = signature(name, parameters)
        self._done.append((called, result))
        del self._done[: -_LONGEST * GIVEN_UP]
        if not reads:
            self._results.clear()
            return False
        again = self._results.get(called) == result
        self._results[called] = result
        return again

    def note_refused(self, name: str, parameters: Mapping[str, Any] | None) -> None:
        """Notes a call that was not run again: its result would have been the same."""
        called = signature(name, parameters)
        self.note(name, parameters, next(result for done, result in reversed(self._done) if done == called))

    def times(self) -> int:
        """How often in a row the last call, or the cycle it completes, was made with the same result."""
        return max((self._cycles(length) for length in range(1, _LONGEST + 1)), default=0)

    def before(self, name: str, parameters: Mapping[str, Any] | None) -> int:
        """How often in a row this exact call, or the cycle it continues, was made with the same result."""
        called = signature(name, parameters)
        lengths = [n for n in range(1, _LONGEST + 1) if len(self._done) >= n and self._done[-n][0] == called]
        return max((self._cycles(length) for length in lengths), default=0)

    def _cycles(self, length: int) -> int:
        last = self._done[-length:]
        if len(last) < length:
            return 0
        times, end = 1, len(self._done) - length
        while end >= length and self._done[end - length : end] == last:
            times, end = times + 1, end - length
        return times


def signature(name: str, parameters: Mapping[str, Any] | None) -> str:
    """The call without its description, which does not change what it does."""
    done = {key: value for key, value in (parameters or {}).items() if key != "description"}
    return f"{name} {json.dumps(done, sort_keys=True, default=str)}"


def hint(times: int, name: str) -> str:
    """`name` is the tool of the repeated call."""
    if times <= HINTED:
        return (
            f"You have made this {name} call before, with the same result. Do not make it again: use the result for "
            "the next step of the task, try something else, or tell the user what is blocking you."
        )
    return (
        f"You have made the same call {times} times in a row, with the same result each time. Do not repeat it: try "
        "something else, or tell the user what is blocking you."
    )


def refusal(times: int) -> str:
    return (
        f"Not run: this call was made {times} times in a row with the same result. Do something else, or tell the user "
        "what is blocking you."
    )
