"""The metrics of the vocabulary as instruments of a meter."""

from opentelemetry.metrics import Counter, Histogram, Meter

from wave_agent.telemetry.redaction import Redaction
from wave_agent.telemetry.spans import Measurement
from wave_agent.telemetry.vocabulary import Instrument, MetricRow


class Instruments:
    """Makes each instrument with its first measurement."""

    def __init__(self, meter: Meter, redaction: Redaction) -> None:
        self._meter = meter
        self._redaction = redaction
        self._made: dict[str, Counter | Histogram] = {}

    def record(self, measurement: Measurement) -> None:
        row = measurement.metric
        found = self._made.get(row.name)
        if found is None:
            found = self._made[row.name] = self._make(row)
        attributes = self._redaction.of_measurement(measurement)
        if isinstance(found, Counter):
            found.add(measurement.value, attributes)
        else:
            found.record(measurement.value, attributes)

    def _make(self, row: MetricRow) -> Counter | Histogram:
        if row.instrument is Instrument.COUNTER:
            return self._meter.create_counter(row.name, row.unit, row.meaning)
        return self._meter.create_histogram(
            row.name, row.unit, row.meaning, explicit_bucket_boundaries_advisory=row.boundaries
        )
