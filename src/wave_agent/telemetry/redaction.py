"""What leaves the process of a span or a measurement."""

from collections.abc import Callable, Mapping
from typing import Any

from wave_agent.telemetry.spans import Measurement, TraceSpan

Redact = Callable[[Any], str]
"""The text of content, without secrets."""
_NAMED = "wave.hook.name"
"""A hook without a name is called by the first words of its command, which may contain a key."""
_MOST_NAMES = 1000


class Redaction:
    """Masks secrets. Used where it delays nobody: that takes longer than all the rest."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._names: dict[str, str] = {}

    def of_span(self, span: TraceSpan) -> dict[str, Any]:
        """All its attributes."""
        content = {name: self._redact(value) for name, value in span.content.items()}
        return {**self.known(span.attributes), **content}

    def of_measurement(self, measurement: Measurement) -> dict[str, Any]:
        return self.known(measurement.attributes)

    def known(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes that are no content."""
        name = attributes.get(_NAMED)
        return dict(attributes) if name is None else {**attributes, _NAMED: self._masked(name)}

    def _masked(self, name: str) -> str:
        if name not in self._names:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[name] = self._redact(name)
        return self._names[name]
