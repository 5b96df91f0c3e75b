"""OpenTelemetry: spans and metrics of a session. Imported only if telemetry is switched on."""
