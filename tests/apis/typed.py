"""Whether JSON is what a provider's SDK says a request is: no unknown field, none missing, no other type."""

import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict


def problems(value: Any, kind: Any, place: str = "") -> Iterator[str]:
    """What is wrong, and where. Nothing is converted: an integer is not a string."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired, Annotated):
        yield from problems(value, inner[0], place)
    elif is_typeddict(kind):
        yield from _object(value, kind, place)
    elif origin in (Union, types.UnionType):
        yield from _one_of(value, inner, place)
    elif inner and isinstance(origin, type) and issubclass(origin, Iterable) and origin is not dict:
        yield from _list(value, inner[0], place)
    elif not _fits(value, kind):
        yield f"{place}: {value!r:.80} is not {kind}"


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is dict:
        return isinstance(value, dict)
    if kind in (object, Any):
        return True
    if kind is float:
        return isinstance(value, int | float)
    # SDKs also take their own objects and open files, which are no JSON.
    return kind in (str, int, bool, type(None)) and type(value) is kind


def _list(value: Any, inner: Any, place: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{place}: must be a list, not {value!r:.80}"
        return
    for index, one in enumerate(value):
        yield from problems(one, inner, f"{place}.{index}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _object(value: Any, kind: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: must be an object, not {value!r:.80}"
        return
    hints = _hints(kind)
    for key in value.keys() - hints.keys():
        yield f"{place}.{key}: Extra inputs are not permitted"
    # `__required_keys__` is wrong for annotations that are strings.
    for key in {key for key, hint in hints.items() if get_origin(hint) is Required} - value.keys():
        yield f"{place}.{key}: Field required"
    for key in value.keys() & hints.keys():
        yield from problems(value[key], hints[key], f"{place}.{key}")


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Iterator[str]:
    found: list[list[str]] = []
    for kind in kinds:
        found.append([*problems(value, kind, place)])
        if not found[-1]:
            return
    yield max(found, key=lambda one: one[0].partition(":")[0].count("."))[0]  # the one that fits best
