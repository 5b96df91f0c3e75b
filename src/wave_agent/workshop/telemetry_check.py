"""What `wave doctor` says about telemetry."""

import asyncio
import os
import time
from typing import NamedTuple

from wave_agent.agent.telemetry import find, has_extra
from wave_agent.errors import ModelError
from wave_agent.http.retries import RequestFailure
from wave_agent.http.routes import endpoint_at, proxy_for
from wave_agent.http.transport import Transport
from wave_agent.settings.inheritance import inherited
from wave_agent.settings.layers import Settings
from wave_agent.system.credentials import public_url
from wave_agent.system.extras import install_extra
from wave_agent.telemetry.target import Signal, TelemetryTarget

_PATIENCE = 5.0
"""Seconds for a receiver to answer."""


class TelemetryCheck(NamedTuple):
    status: str
    detail: str


async def check_telemetry(settings: Settings) -> TelemetryCheck:
    """Whether it is on, where it goes, and whether the receiver answers. Sends an empty request."""
    found = find(settings, os.environ, is_below=inherited(os.environ) is not None)
    if found.target is None:
        if found.problem:
            return TelemetryCheck("warning", f"off: {found.problem}")
        return TelemetryCheck("skipped", "off: neither OTEL_EXPORTER_OTLP_ENDPOINT nor telemetry.endpoint is set")
    if not has_extra():
        return TelemetryCheck("warning", f"off: it needs an extra: {install_extra('otel')}")
    target = found.target
    signals = [signal for signal in (target.traces, target.metrics) if signal is not None]
    answers = await asyncio.gather(*(_answer(target, signal) for signal in signals))
    content = "with content" if settings.telemetry_content else "without content"
    by = ", set by managed settings" if target.is_managed else ""
    said = f"on, {content}{by}: {'; '.join(detail for _, detail in answers)}"
    return TelemetryCheck("ok" if all(fine for fine, _ in answers) else "warning", said)


async def _answer(target: TelemetryTarget, signal: Signal) -> tuple[bool, str]:
    """An empty body is a valid request without any telemetry."""
    where = public_url(signal.url)
    try:
        endpoint = endpoint_at(signal.url)
        proxy = None if target.is_managed else proxy_for(endpoint.place, os.environ)
        headers = [("Content-Type", "application/x-protobuf"), *signal.headers]
        transport = Transport(endpoint, proxy, os.environ, headers, _PATIENCE)
    except ModelError as error:
        return False, str(error)
    try:
        async with transport.post(b"", _PATIENCE, time.monotonic() + _PATIENCE) as response:
            await response.body(_PATIENCE, 1 << 16)
            return 200 <= response.status < 300, f"{where} answers {response.status}"
    except RequestFailure as failure:
        return False, failure.reason
    except TimeoutError:
        return False, f"{where} does not answer"
    finally:
        await transport.close()
