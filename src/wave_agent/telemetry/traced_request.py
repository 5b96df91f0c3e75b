"""One model request, as a span."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from wave_agent.telemetry.spans import TraceSpan
from wave_agent.telemetry.token_count import TokenCount


class RequestOutcome(Struct, frozen=True, kw_only=True):
    """What came of a request."""

    tokens: TokenCount = TokenCount()
    finish: str = ""
    """Why it ended: `stop`, `tool_calls`, `length` or `content_filter`. Empty: it broke off."""
    retries: int = 0
    error: str = ""
    """What went wrong, in one word."""
    cost: float | None = None
    """US dollars, if known."""
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name and arguments of each."""

    def messages(self) -> list[dict[str, Any]]:
        """As the conventions write an answer."""
        parts: list[dict[str, Any]] = [{"type": "text", "content": self.text}] if self.text else []
        parts += [
            {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
            for call_id, name, arguments in self.calls
        ]
        return [{"role": "assistant", "parts": parts, "finish_reason": self.finish or "error"}]


class TracedRequest:
    def __init__(self, span: TraceSpan, ended: Callable[[TraceSpan, RequestOutcome], None]) -> None:
        self._span = span
        self._ended = ended

    def end(self, answer: RequestOutcome) -> None:
        about: dict[str, Any] = answer.tokens.attributes()
        if answer.finish:
            about["gen_ai.response.finish_reasons"] = (answer.finish,)
        if answer.retries:
            about["wave.retries"] = answer.retries
        if answer.cost is not None:
            about["wave.cost"] = answer.cost
        self._ended(self._span, answer)
        self._span.end(answer.error, **about)
