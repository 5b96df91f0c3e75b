"""What guards say about an event of another agent, as values."""

from msgspec import Struct

from wave_agent.events import HookRun
from wave_agent.guard.answers import HostAnswer
from wave_agent.guard.calls import HostCall, HostEvent


class JudgedHostCall(Struct, frozen=True):
    """One call of ours, and what guards say about it."""

    call: HostCall
    call_id: str
    answer: HostAnswer
    by: str = ""
    """What decided: `rule Bash(rm:*)`, `hook guard` …"""


class JudgedEvent(Struct, frozen=True, kw_only=True):
    """What guards say about an event of a host."""

    event: HostEvent
    answer: HostAnswer
    by: str = ""
    calls: tuple[JudgedHostCall, ...] = ()
    runs: tuple[HookRun, ...] = ()
    duration_ms: float = 0
