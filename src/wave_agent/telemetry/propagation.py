"""The position of a span in its trace, and how other programs learn of it: the W3C header `traceparent`."""

from collections.abc import Mapping

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

VARIABLE = "TRACEPARENT"
STATE_VARIABLE = "TRACESTATE"
_HEADER = lazy_regex(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class Position(Struct, frozen=True):
    """A span, as its children and other programs name it."""

    trace_id: int
    span_id: int
    sampled: bool = True
    state: str = ""
    """`tracestate`, which belongs to whoever started the trace."""
    is_joined: bool = False
    """The trace began in another program, which has decided whether it is sampled."""

    @property
    def traceparent(self) -> str:
        """Empty if spans are not sent."""
        return "" if self == NOWHERE else f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


NOWHERE = Position(0, 0, sampled=False)
"""Where every span is if only metrics are sent."""


def position_in(environment: Mapping[str, str]) -> Position | None:
    """The span that the program which started us named; None if it named none, or none that is valid."""
    found = _HEADER.fullmatch(environment.get(VARIABLE, "").strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    sampled = bool(int(found[4], 16) & _SAMPLED)
    return Position(trace_id, span_id, sampled, environment.get(STATE_VARIABLE, "").strip(), is_joined=True)
