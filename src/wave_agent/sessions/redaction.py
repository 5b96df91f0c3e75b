"""Removes prompts that must not reach the disk wherever a hook quotes them."""

import json
from typing import Any, cast

_QUOTE = 12
"""Minimum length of a quotation, in characters."""
_LONGEST = 200_000
"""How many characters of a prompt are searched for. No hook text is nearly as long."""


class ErasedPrompt:
    """A prompt that must not reach the disk: the whole text, its lines and its passages, also in JSON-escaped form."""

    def __init__(self, prompt: str) -> None:
        prompt = prompt[:_LONGEST]
        escaped = (json.dumps(prompt, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
        forms = {form.strip() for form in (prompt, *escaped)} - {""}
        lines = {line.strip() for form in forms for line in form.splitlines() if len(line.strip()) >= _QUOTE * 2 // 3}
        self._whole = sorted({*forms, *lines}, key=len, reverse=True)
        self._passages = {form[at : at + _QUOTE] for form in forms for at in range(len(form) - _QUOTE + 1)}
        self.fresh = True
        """No other prompt has come since. Afterwards a short prompt is no longer searched for: it would match in every
        second sentence."""

    def taken_out_of(self, text: str) -> str:
        for piece in self._whole:
            if self.fresh or len(piece) >= _QUOTE:
                text = text.replace(piece, "[prompt]")
        spots = [at for at in range(len(text) - _QUOTE + 1) if text[at : at + _QUOTE] in self._passages]
        for first, last in reversed(_runs(spots)):
            text = f"{text[:first]}[prompt]{text[last + _QUOTE :]}"
        return text


def _runs(spots: list[int]) -> list[tuple[int, int]]:
    """Joins overlapping passages."""
    joined: list[tuple[int, int]] = []
    for spot in spots:
        if joined and spot <= joined[-1][1] + _QUOTE:
            joined[-1] = (joined[-1][0], spot)
        else:
            joined.append((spot, spot))
    return joined


def without(value: Any, prompts: list[ErasedPrompt]) -> Any:
    """The value without quotations of erased prompts."""
    if isinstance(value, str):
        for prompt in prompts:
            value = prompt.taken_out_of(value)
        return value
    if isinstance(value, dict):
        return {key: without(item, prompts) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [without(item, prompts) for item in cast(list[Any], value)]
    return value
