"""A new result of a tool, in the shape of the old one. Pure.

Some hosts validate a result that a hook replaces, and keep the old one if its shape differs: what a guard withholds
would go out. So the new text takes the place of the old one's text, every other text in it is emptied, and numbers and
flags stay.
"""

from typing import Any, cast

from msgspec import Struct

_TEXTS = ("stdout", "content", "text", "output", "result")
"""Where hosts have the text of a result, in this order."""
_LABELS = frozenset({"type", "mode", "filePath", "file_path", "returnCodeInterpretation"})
"""Words that say what a result is, not what it holds."""


class _Place(Struct):
    """Where the new text goes. It is put there once."""

    text: str | None


def in_shape(old: Any, new: str) -> Any:
    """`new` as a result of the same shape as `old`; itself, if `old` has no place for a text."""
    place = _Place(new)
    found = _filled(old, place)
    return new if place.text is not None else found


def _filled(value: Any, place: _Place, *, here: bool = False) -> Any:
    """`here`: a text at this very place is the result's."""
    if isinstance(value, str):
        if not here or place.text is None:
            return ""
        text, place.text = place.text, None
        return text
    if isinstance(value, list):
        return [_filled(one, place) for one in cast(list[Any], value) if isinstance(one, dict)]
    if not isinstance(value, dict):
        return value
    known = cast(dict[str, Any], value)
    order = sorted(known, key=lambda key: _TEXTS.index(key) if key in _TEXTS else len(_TEXTS))
    found = {key: known[key] if key in _LABELS else _filled(known[key], place, here=key in _TEXTS) for key in order}
    return {key: found[key] for key in known}
