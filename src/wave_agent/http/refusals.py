"""Explains a server's error response to the user."""

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from wave_agent.errors import ModelError
from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import one_line

_MAX_MESSAGE = 500
_SHORTEST_SECRET = 8
"""Shorter keys are placeholders for local servers, like `EMPTY` or `ollama`: hiding those would hide ordinary text."""
_OVERLONG_STATUSES = frozenset({None, 400, 413, 422, 500})
"""LM Studio reports it with status 200, in the stream; llama.cpp also with 500."""
_OVERLONG = lazy_regex(
    r"context[_ ](length|window|size|limit).{0,40}(exceed|overflow|is only|too small)"
    r"|(exceed|longer than|greater than|larger than|overflow|reached).{0,60}context"
    r"|(maximum|max|model.s|available) (context|prompt|input|model|sequence)[_ ](length|window|size)"
    r"|exceed_context_size|context_length_exceeded|max_prompt_tokens_exceeded|n_keep.{0,20}n_ctx"
    r"|context the overflows|context overflow"
    r"|(prompt|input|request|conversation|messages?) (is |are |was )?too (long|large)"
    r"|(prompt|input)( token count)?.{0,30}exceeds? (the )?(max|limit)"
    r"|exceeded model token limit|too many (input )?tokens|too large for model"
    r"|reduce (the length|your (prompt|message|input))|provide a shorter input"
    r"|request entity too large|range of input length|input tokens exceed"
    r"|tokens in the prompt cannot exceed|must have less than \d+ tokens|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
"""What OpenAI, vLLM, llama.cpp, Ollama, LM Studio, OpenRouter and others say about a request that is too long."""
_NUMBER = r"(\d[\d,_.]*\d)"
_LIMIT = lazy_regex(
    r"(?:length|window|size|limit|maximum|n_ctx|allowed)(?: is| of| to)?(?: only)?[ :(=]{1,3}"
    + _NUMBER
    + r"|> ?"
    + _NUMBER
    + r" maximum",
    re.IGNORECASE,
)
_ASKED = lazy_regex(
    r"(?:requested(?: about)?|resulted in|passed|keep the first|too long:|contains|request|count(?: of)?|input) ?\(?"
    + _NUMBER,
    re.IGNORECASE,
)


def is_too_long(message: str, status: int | None = None) -> bool:
    """Whether the server refuses the request because it is too long: a shorter one may succeed."""
    if status == 413:
        return True
    return status in _OVERLONG_STATUSES and _OVERLONG.search(message) is not None


def shorter(size: int, fixed: int, message: str) -> int:
    """The target for shrinking a request of `size`, based on the server's message. `fixed` of it cannot shrink.

    Always smaller, but never less than a tenth of the rest at once: the numbers may refer to something else.
    """
    limit, asked = _number(_LIMIT.search(message)), _number(_ASKED.search(message))
    rest = size - fixed
    goal = fixed + 0.6 * rest
    if limit:
        goal = min(fixed + 0.8 * rest, size * 0.9 * limit / asked) if limit < asked else min(goal, 0.9 * limit)
    return int(max(goal, fixed + 0.1 * rest))


def _number(found: "re.Match[str] | None") -> int:
    digits = re.sub(r"\D", "", next(filter(None, found.groups()), "")) if found else ""
    return int(digits) if digits else 0


_NO_IMAGES = lazy_regex(
    r"(image|vision|multi-?modal|mmproj).{0,80}(not |n't |un)(be )?(support|allow|enabl|accept|available|configur)"
    r"|(not|n't) (a )?(support|accept|allow|take|multi-?modal).{0,40}(image|vision|model)"
    r"|no endpoints.{0,40}image|unknown variant .?image_url",
    re.IGNORECASE,
)
"""How llama.cpp, vLLM, OpenRouter and others say that a model does not accept images."""
_ABOUT_THE_REQUEST = frozenset({400, 404, 413, 415, 422})


class Refusal(msgspec.Struct, frozen=True):
    """An error in the server's own words."""

    message: str
    code: str = ""


def read_refusal(body: bytes) -> Refusal:
    """The server's message, wherever it is in the body."""
    text = body.decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        page = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return Refusal(one_line(page[1] if page else re.sub(r"<[^>]*>", " ", text), _MAX_MESSAGE))
    return refusal_in(value)


def refusal_in(value: Any) -> Refusal:
    """The same for parsed JSON: `{"error": {"message": …}}`, `{"error": …}`, `{"detail": …}`, a list of these…"""
    if isinstance(value, list):
        return Refusal("; ".join(filter(None, (refusal_in(item).message for item in cast(list[Any], value)))))
    if not isinstance(value, dict):
        return Refusal(one_line("" if value is None else str(value), _MAX_MESSAGE))
    fields = cast(dict[str, Any], value)
    inner = next((fields[name] for name in ("error", "message", "detail", "msg") if fields.get(name)), None)
    if inner is None:
        return Refusal(one_line(msgspec.json.encode(fields).decode(), _MAX_MESSAGE) if fields else "")
    found = refusal_in(inner)
    metadata: Any = fields.get("metadata")
    raw = cast(dict[str, Any], metadata).get("raw") if isinstance(metadata, dict) else None
    message = one_line(f"{found.message} ({raw})", _MAX_MESSAGE) if isinstance(raw, str) and raw else found.message
    return Refusal(message, found.code or str(fields.get("code") or fields.get("type") or ""))


def says_no_images(message: str) -> bool:
    return _NO_IMAGES.search(message) is not None


def refuses_images(error: ModelError) -> bool:
    """Whether a request with images may succeed without them."""
    return error.status in _ABOUT_THE_REQUEST or says_no_images(str(error))


def hiding(secrets: Iterable[str | None]) -> Callable[[str], str]:
    """A function that removes these secrets from a text: servers quote the key they reject."""
    hidden = sorted({secret for secret in secrets if secret and len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in hidden:
            text = text.replace(secret, "[hidden]")
        return text

    return hide


def advice(status: int, model: str, *, has_key: bool = False, key_name: str = "WAVE_API_KEY") -> str:
    """What the user can do about an error status. `key_name` says where the key comes from."""
    if status == 401:
        return f"Check the key in {key_name}." if has_key else f"Set {key_name}."
    return {
        402: "The account has no credit left.",
        403: f'Check that the key in {key_name} may use the model "{model}".',
        404: f'Check the model ("{model}") and the base URL.',
        405: "Check the base URL.",
        407: "Put the user and password in the proxy's URL.",
        413: "The conversation is too long for this server.",
        429: "Wait, or raise the limits of the account.",
    }.get(status, "")
