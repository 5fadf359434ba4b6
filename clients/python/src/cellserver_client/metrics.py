"""Measurements by the OpenTelemetry API, if it is installed. No measurement has a key of a client."""

from __future__ import annotations

from typing import Any, Protocol


class Metrics(Protocol):
    """What a limiter reports."""

    def decision(self, policy: str, result: str, source: str) -> None:
        """Counts a decision. result is allowed or denied."""

    def duration(self, seconds: float) -> None:
        """Adds the time that a call has taken."""

    def breaker(self, change: int) -> None:
        """Counts breakers that are open: 1 for one that opens, -1 for one that closes."""

    def unavailable(self, reason: str) -> None:
        """Counts a call without an answer."""


class NoMetrics:
    """Metrics without OpenTelemetry."""

    def decision(self, policy: str, result: str, source: str) -> None:
        """See Metrics."""

    def duration(self, seconds: float) -> None:
        """See Metrics."""

    def breaker(self, change: int) -> None:
        """See Metrics."""

    def unavailable(self, reason: str) -> None:
        """See Metrics."""


_BOUNDARIES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)


class OpenTelemetryMetrics:
    """Metrics of the global meter provider. Without an SDK they cost next to nothing."""

    def __init__(self, api: Any) -> None:
        meter = api.get_meter("cellserver_client")
        self._decisions = meter.create_counter(
            "cellserver.client.decisions", unit="{decision}", description="Decisions of limiters."
        )
        self._duration = meter.create_histogram(
            "cellserver.client.duration",
            unit="s",
            description="Time of calls to the server.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._open = meter.create_up_down_counter(
            "cellserver.client.breaker.open", unit="{breaker}", description="Breakers that are open."
        )
        self._unavailable = meter.create_counter(
            "cellserver.client.unavailable", unit="{call}", description="Calls without an answer."
        )
        self._attributes: dict[tuple[str, str, str], dict[str, str]] = {}

    def decision(self, policy: str, result: str, source: str) -> None:
        """See Metrics."""
        which = (policy, result, source)
        attributes = self._attributes.get(which)
        if attributes is None:
            attributes = self._attributes[which] = {"policy": policy, "result": result, "source": source}
        self._decisions.add(1, attributes)

    def duration(self, seconds: float) -> None:
        """See Metrics."""
        self._duration.record(seconds)

    def breaker(self, change: int) -> None:
        """See Metrics."""
        self._open.add(change)

    def unavailable(self, reason: str) -> None:
        """See Metrics."""
        self._unavailable.add(1, {"reason": reason})


def default() -> Metrics:
    """The metrics of OpenTelemetry if its API is installed."""
    try:
        from opentelemetry import metrics as api
    except ImportError:
        return NoMetrics()
    return OpenTelemetryMetrics(api)
