"""The model as telemetry sees it: every request is a span.

Loaded only if telemetry is on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wave_agent.agent.model_choice import endpoint_for
from wave_agent.errors import ModelError, SettingsError
from wave_agent.models.base import CutShort, Delta, Model, ModelRequest, Retry, Text, ToolCall, Usage
from wave_agent.models.prices import Prices
from wave_agent.telemetry.agent_trace import AgentTrace
from wave_agent.telemetry.token_count import TokenCount
from wave_agent.telemetry.traced_request import RequestOutcome

if TYPE_CHECKING:
    from wave_agent.agent.foundation import Foundation

_SENT = 0.3
"""Seconds until a request is surely sent, even if connecting takes long."""
_PROVIDERS: Mapping[str, str] = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "api.mistral.ai": "mistral_ai",
    "openrouter.ai": "openrouter",
}
"""As the conventions name them, by host."""


def server_facts(foundation: "Foundation", model: str) -> dict[str, Any]:
    """Whom requests go to, as attributes."""
    options = foundation.options
    try:
        endpoint = (
            None
            if options.model_client is not None
            else endpoint_for(options.wishes, foundation.settings, foundation.environment, model=model)
        )
        if endpoint is None:
            return {"gen_ai.provider.name": "custom"}
        parts = urlsplit(endpoint.url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except (SettingsError, ValueError):  # the request itself reports it
        return {"gen_ai.provider.name": "custom"}
    host = parts.hostname or ""
    provider = _PROVIDERS.get(host) or endpoint.api.partition("-")[0]
    return {"gen_ai.provider.name": provider, "server.address": host, "server.port": port}


class TracedModel:
    """A model whose requests are reported. Everything else it leaves to the model itself."""

    def __init__(
        self,
        model: Model,
        trace: AgentTrace,
        about: Mapping[str, Any],
        prices: Callable[[str], Prices | None],
    ) -> None:
        """`about`: see `server_facts`."""
        self._model = model
        self._trace = trace
        self._about = about
        self._prices = prices

    def for_agent(self, trace: AgentTrace, prices: Callable[[str], Prices | None]) -> "TracedModel":
        """The same model, for a subagent."""
        return TracedModel(self._model, trace, self._about, prices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        limit = {} if request.max_output_tokens is None else {"gen_ai.request.max_tokens": request.max_output_tokens}
        trace = self._trace.request(request.model, {**self._about, **limit})
        heard, sent = _Heard(), asyncio.get_running_loop().call_later(_SENT, self._trace.sent)
        error = "interrupted"  # unless it ends otherwise
        answer = self._model.stream(request)
        try:
            async for delta in answer:
                if not sent.cancelled():
                    sent.cancel()
                    self._trace.sent()
                heard.add(delta)
                yield delta
            error = ""
        except ModelError as failure:
            error = failure.kind if failure.status is None else str(failure.status)
            raise
        except Exception as failure:
            error = type(failure).__name__
            raise
        finally:
            if (close := getattr(answer, "aclose", None)) is not None:  # the reader may have left early
                await close()
            sent.cancel()
            self._trace.sent()
            trace.end(heard.answer(error, partial(self._cost, request.model)))

    def _cost(self, model: str, usage: Usage) -> float | None:
        prices = self._prices(model)
        return None if prices is None else prices.cost(usage)


class _Heard:
    """What a model has answered so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage = Usage()
        self._retries = 0
        self._finish = ""

    def add(self, delta: Delta) -> None:
        match delta:
            case Text(text=text):
                self._texts.append(text)
            case ToolCall():
                self._calls.append(delta)
            case Usage():
                self._usage += delta
            case Retry():
                self._retries += 1
                self._texts.clear()
            case CutShort(reason=reason):
                self._finish = reason
            case _:
                pass

    def answer(self, error: str, cost: Callable[[Usage], float | None]) -> RequestOutcome:
        used = self._usage
        finish = self._finish or ("tool_calls" if self._calls else "stop")
        return RequestOutcome(
            tokens=TokenCount(
                input=used.input_tokens,
                output=used.output_tokens,
                cache_read=used.cache_read_tokens,
                cache_write=used.cache_write_tokens,
            ),
            finish="" if error else finish,
            retries=self._retries,
            error=error,
            cost=cost(used) if used.input_tokens else None,
            text="".join(self._texts),
            calls=tuple((one.id, one.name, one.arguments) for one in self._calls),
        )
