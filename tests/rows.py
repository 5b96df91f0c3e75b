"""A table of cases in one test."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

SHOWN = 5
"""How many failures are shown in full."""
_PARAM = type(pytest.param())


def rows(
    names: str | Sequence[str],
    table: Iterable[Any],
    *,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but all rows run in one test, and all failing ones are reported.

    For tests that change nothing: a row takes microseconds, and each test takes pytest some milliseconds.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    every = list(table)
    assert not any(isinstance(row, _PARAM) and row.marks for row in every), "a row cannot have marks"
    values = [row.values if isinstance(row, _PARAM) else (row,) if len(wanted) == 1 else tuple(row) for row in every]
    name = ids if callable(ids) else str
    labels = ["-".join(str(name(value)) for value in row) for row in values]
    if ids is not None and not callable(ids):
        labels = [*map(str, ids)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(*args: Any, **others: Any) -> None:
            failed: dict[str, Exception] = {}
            for label, row in zip(labels, values, strict=True):
                try:
                    test(*args, **others, **dict(zip(wanted, row, strict=True)))
                except Exception as error:
                    error.add_note(f"in the row {label}")
                    failed[label] = error
            if failed:
                summary = f"{len(failed)} of {len(values)} rows failed: {', '.join(failed)}"
                raise ExceptionGroup(summary, list(failed.values())[:SHOWN])

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
