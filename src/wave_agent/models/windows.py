"""The size of a model's context window, as reported by its server, and estimates of how many tokens a text needs."""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, cast
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.lazy_regex import lazy_regex
from wave_agent.models.prices import MILLION, Prices, as_count

_SECONDS = 3.0
"""Per request. Servers answer this from memory; if one is too busy to, the answer is not worth waiting for."""
_TOTAL_SECONDS = 6.0
_OLLAMA_DEFAULT = 4096
"""Ollama's default on machines with less than 24 GiB of video memory."""
_ADVISED = 65536
_BY_ENVIRONMENT = "To raise it, start Ollama with OLLAMA_CONTEXT_LENGTH={tokens} in its environment."
_BY_MODELFILE = (
    'To raise it, create your own model: put "FROM {model}" and "PARAMETER num_ctx {tokens}" in a file named Modelfile '
    "and run: ollama create my-model -f Modelfile"
)
_NOTHING: Mapping[str, Any] = {}


class Window(Struct, frozen=True):
    """The context window of a model, as its server runs it."""

    tokens: int
    source: str
    """Where the number comes from."""
    warning: str | None = None
    """A warning for the user: the server silently accepts less than the model could."""
    images: bool | None = None
    """Whether the model accepts images; None if the server does not say."""
    prices: Prices | None = None
    """None if the server does not say."""
    parameters: int | None = None
    """How many parameters the model has; None if the server does not say."""


class Fetch(Protocol):
    def __call__(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> Awaitable[Any]:
        """Send one request with `body` as JSON. Returns status and parsed JSON; raises if none comes in time."""
        ...


async def context_window(
    base_url: str, model: str, fetch: Fetch, *, seconds: float = _SECONDS, total_seconds: float = _TOTAL_SECONDS
) -> Window | None:
    """The context window of `model` as reported by the server at `base_url`; None if it does not say, or not in time.

    Each endpoint is asked at most once, and no other server is contacted.
    """
    try:
        async with asyncio.timeout(total_seconds):
            return await _Server(base_url, model, fetch, seconds).window()
    except (TimeoutError, ValueError):  # ValueError: an invalid base URL
        return None


class _Server:
    def __init__(self, base_url: str, model: str, fetch: Fetch, seconds: float) -> None:
        parts = urlsplit(base_url.strip())
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        self._base = f"{parts.scheme}://{parts.netloc}{path}"
        self._root = self._base.removesuffix("/v1")
        self._model, self._fetch, self._seconds = model, fetch, seconds
        self._parameters: int | None = None

    async def window(self) -> Window | None:
        listing = await self._ask("GET", f"{self._base}/models")
        if listing is None:
            return None
        row = self._row(listing.get("data"))
        self._parameters = _parameters(listing.get("data"), row)
        if tokens := _tokens(row, "max_model_len"):
            return Window(tokens, "vLLM")
        if "top_provider" in row:
            lengths = (_tokens(row, "context_length"), _tokens(_mapping(row["top_provider"]), "context_length"))
            known = [length for length in lengths if length]
            taken = _images_in(_mapping(row.get("architecture")).get("input_modalities"), "image")
            prices = _prices(_mapping(row.get("pricing")))
            return Window(min(known), "OpenRouter", images=taken, prices=prices) if known else None
        # These report the window the model actually runs with. Model lists report what it was trained for, if anything.
        asks = [self._ollama, self._lm_studio, self._llama_cpp]
        if row.get("owned_by") == "llamacpp":
            asks.reverse()
        for ask in asks:
            if found := await ask():
                return found
        known = [_tokens(row, key) for key in ("context_length", "context_window", "max_context_length")]
        sees = _mapping(row.get("capabilities")).get("vision")  # Mistral's format
        images = sees if isinstance(sees, bool) else None
        return next((Window(tokens, "the server's list of models", images=images) for tokens in known if tokens), None)

    async def _ollama(self) -> Window | None:
        shown = await self._ask("POST", f"{self._root}/api/show", {"model": self._model}) or _NOTHING
        info = _mapping(shown.get("model_info"))
        trained = _tokens(info, f"{info.get('general.architecture')}.context_length")
        if trained is None:
            return None
        images = _images_in(shown.get("capabilities"), "vision")
        found = await self._ollama_window(shown, trained)
        return replace(found, images=images, parameters=_tokens(info, "general.parameter_count"))

    async def _ollama_window(self, shown: Mapping[str, Any], trained: int) -> Window:
        if "remote_model" in shown:  # runs in Ollama's cloud, with its full window
            return Window(trained, "Ollama")
        if chosen := re.search(r"^num_ctx\s+([0-9]{1,9})\s*$", str(shown.get("parameters")), re.MULTILINE):
            return self._run_by_ollama(int(chosen[1]), trained, "runs", _BY_MODELFILE)
        running = await self._ask("GET", f"{self._root}/api/ps") or _NOTHING
        names = {self._model, f"{self._model}:latest"}
        loaded = next((row for row in _rows(running.get("models")) if row.get("name") in names), _NOTHING)
        if tokens := _tokens(loaded, "context_length"):
            return self._run_by_ollama(tokens, trained, "runs", _BY_ENVIRONMENT)
        return self._run_by_ollama(_OLLAMA_DEFAULT, trained, "is likely to run", _BY_ENVIRONMENT)

    def _run_by_ollama(self, tokens: int, trained: int, runs: str, advice: str) -> Window:
        if tokens >= trained:
            return Window(trained, "Ollama")
        size = f"Ollama {runs} {self._model} with a window of {tokens} tokens, of the {trained} that the model supports"
        how = advice.format(tokens=min(trained, _ADVISED), model=self._model)
        return Window(tokens, "Ollama", f"{size}, and silently drops the start of longer input. {how}")

    async def _lm_studio(self) -> Window | None:
        row = self._row((await self._ask("GET", f"{self._root}/api/v0/models") or _NOTHING).get("data"))
        images = {"vlm": True, "llm": False}.get(str(row.get("type")))
        if tokens := _tokens(row, "loaded_context_length"):
            return Window(tokens, "LM Studio", images=images)
        longest = _tokens(row, "max_context_length")
        if longest is None:
            return None
        advice = f"lms load {self._model} --context-length {min(longest, _ADVISED)}"
        warning = (
            f"{self._model} is not loaded, and LM Studio may load it with less than its {longest} tokens: {advice}"
        )
        return Window(longest, "LM Studio", warning, images)

    async def _llama_cpp(self) -> Window | None:
        # If one server runs several models, the query says which, and that asking must not load it.
        url = f"{self._root}/props?model={quote(self._model, safe='')}&autoload=false"
        properties = await self._ask("GET", url) or _NOTHING
        tokens = _tokens(_mapping(properties.get("default_generation_settings")), "n_ctx")
        sees = _mapping(properties.get("modalities")).get("vision")
        images = sees if isinstance(sees, bool) else None
        return Window(tokens, "llama.cpp", images=images, parameters=self._parameters) if tokens else None

    def _row(self, rows: object) -> Mapping[str, Any]:
        return next((row for row in _rows(rows) if row.get("id") == self._model), _NOTHING)

    async def _ask(self, method: str, url: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
        """The JSON object in the response; empty for any other response, None if there is none."""
        try:
            async with asyncio.timeout(self._seconds):
                status, answer = await self._fetch(method, url, body, self._seconds)
        except Exception:  # the window is then unknown, and real requests will report what is wrong
            return None
        return _mapping(answer) if status == 200 else _NOTHING


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else _NOTHING


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [_mapping(row) for row in cast(list[object], value)] if isinstance(value, list) else []


def _tokens(row: Mapping[str, Any], key: str) -> int | None:
    return as_count(row.get(key)) or None


def _prices(pricing: Mapping[str, Any]) -> Prices | None:
    """OpenRouter's format: dollars per token, as text. Negative: it depends on the request."""
    found: list[float | None] = []
    for kind in ("prompt", "completion", "input_cache_read", "input_cache_write"):
        try:
            price = round(float(pricing[kind]) * MILLION, 6)
        except (KeyError, TypeError, ValueError):
            price = None
        found.append(price if price is not None and 0 <= price < MILLION else None)
    asked, answered, *cached = found
    return None if asked is None or answered is None else Prices(asked, answered, *cached)


def _parameters(rows: object, row: Mapping[str, Any]) -> int | None:
    """According to a list of llama.cpp. A server of one model answers to any name."""
    alone = _rows(rows)
    meant = row or (alone[0] if len(alone) == 1 and alone[0].get("owned_by") == "llamacpp" else _NOTHING)
    return _tokens(_mapping(meant.get("meta")), "n_params")


def _images_in(capabilities: object, name: str) -> bool | None:
    """Whether a list of capabilities contains this name; None if it is not a list."""
    return name in cast(list[object], capabilities) if isinstance(capabilities, list) else None


_WIDE = lazy_regex(r"[\u0800-\U0010ffff]+")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens in `text`: a quarter per ASCII character, one per Chinese or Japanese character.

    Adding text anywhere never lowers the estimate.
    """
    if text.isascii():
        return -(-len(text) // 4)
    wide = len(text) - len(_WIDE.sub("", text))
    return -(-(len(text.encode("utf-8", "surrogatepass")) + wide) // 4)
