"""Telemetry of a session: whether it is on, and where it goes.

Loaded only if something may switch it on: a variable, a setting, or the embedding program.
"""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from wave_agent.system.extras import install_extra
from wave_agent.telemetry.agent_trace import AgentTrace
from wave_agent.telemetry.pipeline import Sender, shared_pipeline
from wave_agent.telemetry.program import ProgramSink, meter_provider, tracer_provider
from wave_agent.telemetry.propagation import position_in
from wave_agent.telemetry.spans import Sink
from wave_agent.telemetry.target import Found, Telemetry, TelemetryTarget, find_target, is_disabled

if TYPE_CHECKING:
    from wave_agent.agent.foundation import Foundation
    from wave_agent.settings.layers import Settings

_LONGEST = 8192
"""Characters of one text; more are cut off."""


def open_trace(
    foundation: "Foundation", session_id: str, notices: list[str], protocol_of: Callable[[str], str]
) -> AgentTrace | None:
    """Telemetry's view of a new session; None if telemetry is off. `notices` gets why, if it was asked for."""
    sink = _sink(foundation, notices)
    if sink is None:
        return None
    return AgentTrace(
        sink,
        session_id=session_id,
        version=_version(),
        started_by=position_in(foundation.environment),
        with_content=foundation.settings.telemetry_content,
        protocol_of=protocol_of,
    )


def _sink(foundation: "Foundation", notices: list[str]) -> Sink | None:
    settings = foundation.settings
    if "telemetry_endpoint" not in settings.managed and not is_disabled(foundation.environment):
        tracers, meters = tracer_provider(), meter_provider()
        if tracers is not None or meters is not None:
            return ProgramSink(tracers, meters, redact, version=_version())
    found = find(settings, foundation.environment, is_below=foundation.above is not None)
    if found.problem:
        notices.append(f"Telemetry is off: {found.problem}.")
    if found.target is None:
        return None
    if not has_extra():
        notices.append(f"Telemetry is off: it needs an extra: {install_extra('otel')}")
        return None
    return shared_pipeline(found.target, _load)


def find(settings: "Settings", environment: Mapping[str, str], *, is_below: bool) -> Found:
    """Where telemetry goes. An agent that another agent's tool has started does not believe the variables: the tool
    could have set them."""
    wanted = Telemetry(
        endpoint=settings.telemetry_endpoint or "",
        is_managed="telemetry_endpoint" in settings.managed,
    )
    return find_target({} if is_below else environment, wanted, version=_version())


def has_extra() -> bool:
    try:
        names = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:  # a package above it
        return False


def _load(target: TelemetryTarget) -> Sender:
    from wave_agent.telemetry.sdk import SdkSender  # lazy: 150 ms, in a thread of its own

    return SdkSender(target, redact, version=_version())


def _version() -> str:
    return str(getattr(sys.modules["wave_agent"], "__version__", ""))  # an import of the package would be a cycle


def redact(content: Any) -> str:
    """The text of content, with secrets masked and of limited length. Masked first: half a key looks like none."""
    from wave_agent.sessions.masking import mask, masked  # lazy: only if content is sent

    if isinstance(content, str):
        return _cut(mask(content))
    return json.dumps(_each_cut(masked(content)), ensure_ascii=False, default=str)


def _each_cut(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, Mapping):
        return {key: _each_cut(inner) for key, inner in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_each_cut(inner) for inner in cast(Sequence[Any], value)]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… [{len(text) - _LONGEST} more characters]"


async def leave(trace: AgentTrace) -> None:
    """The session is over: waits a moment until everything is sent."""
    with suppress(RuntimeError):  # no more threads: nothing that fails here keeps a session open
        await asyncio.to_thread(trace.leave)
