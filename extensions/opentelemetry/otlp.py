"""Sends spans and metrics to a collector by OTLP over HTTP, and writes spans as OTLP/JSON.

The SDK's tracers make random ids and take their own times. Here both are given, so spans are made as its
exporters read them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ... import __version__
from ...gateway.trace_context import TraceContext
from ...machines.errors import UsageError
from ...workflows.extras import how_to_install
from .spans import Attribute, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

SCOPE = "steersman"
BATCH = 512
"""Spans of one request."""
_TOKENS = [4**power for power in range(14)]
_SECONDS = [0.01 * 2**power for power in range(14)]  # both as the conventions advise
_SERVICE: Mapping[str, str] = {"service.name": "steersman", "service.version": __version__}


def address(endpoint: str, signal: str) -> str:
    """Return where a signal, `traces` or `metrics`, is sent. Raises `UsageError`."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            "the address of a collector begins with http:// or https://",
            "for example http://127.0.0.1:4318",
        )
    return f"{endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/{signal}"


class Sender:
    """Sends to one collector. Each call blocks, for at most about `timeout` seconds; none raises.

    Raises `UsageError` when it is made without the extra.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str], timeout: float = 10.0) -> None:
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # no line on a screen
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ModuleNotFoundError as error:
            raise UsageError(
                "telemetry needs the packages of OpenTelemetry", how_to_install("otel")
            ) from error
        self._exporter: SpanExporter = OTLPSpanExporter(
            endpoint=address(endpoint, "traces"), headers=headers, timeout=timeout
        )

    def send(self, spans: Sequence[TraceSpan]) -> int:
        """Send spans, in order, until the collector does not take them; return how many it took."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        for start in range(0, len(spans), BATCH):
            made = list(map(readable, spans[start : start + BATCH]))
            if self._exporter.export(made) is not SpanExportResult.SUCCESS:
                return start
        return len(spans)

    def close(self) -> None:
        """Send nothing more, and do not repeat what fails; from any thread."""
        self._exporter.shutdown()


def readable(span: TraceSpan) -> ReadableSpan:
    """Return a span of the SDK, with the ids and times that it has in the journal."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    above = TraceContext(trace=span.context.trace, span=span.parent)
    code = trace.StatusCode.ERROR if span.error else trace.StatusCode.UNSET
    return ReadableSpan(
        span.name,
        context=_identity(span.context),
        parent=_identity(above) if span.parent else None,
        resource=_resource(),
        attributes=span.attributes,
        events=[
            Event(moment.name, moment.attributes, _nanoseconds(moment.time))
            for moment in span.events
        ],
        links=[trace.Link(_identity(link)) for link in span.links],
        kind=trace.SpanKind.CLIENT if span.is_client else trace.SpanKind.INTERNAL,
        status=trace.Status(code),
        start_time=_nanoseconds(span.start),
        end_time=_nanoseconds(span.end),
        instrumentation_scope=InstrumentationScope(SCOPE, __version__),
    )


@cache
def _resource() -> Resource:
    from opentelemetry.sdk.resources import Resource

    return Resource.create(_SERVICE)


def _identity(context: TraceContext) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(context.trace, 16), int(context.span, 16), False, flags)


def _nanoseconds(seconds: float) -> int:
    """Return nanoseconds that are exact to what a journal's time is exact to, microseconds."""
    return round(seconds * 1_000_000) * 1_000


# Metrics ------------------------------------------------------------------------------------------


class Meters:
    """Counts spans; `reader` takes the sums to the collector."""

    def __init__(self, reader: MetricReader) -> None:
        from opentelemetry.sdk.metrics import MeterProvider

        self._provider = MeterProvider([reader], resource=_resource(), shutdown_on_exit=False)
        meter = self._provider.get_meter(SCOPE, __version__)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of one call of a model.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="How long an operation took.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._turns = meter.create_counter("steersman.turns", "{turn}", "Turns that have ended.")
        self._tools = meter.create_counter("steersman.tool.calls", "{call}", "Calls of tools.")
        self._stops = meter.create_counter("steersman.interrupts", "{interrupt}", "Interrupts.")

    @classmethod
    def to(
        cls, endpoint: str, headers: Mapping[str, str], interval: float, timeout: float
    ) -> Meters:
        """Make meters whose sums a thread sends to a collector, every `interval` seconds."""
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        exporter = OTLPMetricExporter(
            endpoint=address(endpoint, "metrics"), headers=dict(headers), timeout=timeout
        )
        return cls(PeriodicExportingMetricReader(exporter, interval * 1_000, timeout * 1_000))

    def count(self, span: TraceSpan) -> None:
        """Count a span that has ended."""
        operation = span.attributes.get("gen_ai.operation.name")
        if operation is None:
            return
        model = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
        common = _some(span.attributes, *model, "error.type")
        self._seconds.record(span.end - span.start, common)
        is_turn = "steersman.turn" in span.attributes
        # A turn's tokens are those of its calls.
        for kind in () if is_turn else ("input", "output"):
            tokens = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
            if isinstance(tokens, int):
                self._tokens.record(
                    tokens, {**_some(span.attributes, *model), "gen_ai.token.type": kind}
                )
        if is_turn:
            self._turns.add(1, _some(span.attributes, "steersman.turn.status"))
        if operation == "execute_tool":
            self._tools.add(1, _some(span.attributes, "gen_ai.tool.name", "steersman.tool.status"))
        for moment in span.events:
            if moment.name == "interrupt":
                self._stops.add(1, _some(moment.attributes, "steersman.cause"))

    def flush(self) -> None:
        """Send the sums now; blocks."""
        self._provider.force_flush()


def _some(attributes: Mapping[str, Attribute], *names: str) -> dict[str, Attribute]:
    return {name: attributes[name] for name in names if name in attributes}


# OTLP/JSON ----------------------------------------------------------------------------------------


def as_json(spans: Iterable[TraceSpan]) -> dict[str, Any]:
    """Return spans as a request of OTLP/JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding)."""
    scope = {"name": SCOPE, "version": __version__}
    scoped = {"scope": scope, "spans": [_span_json(span) for span in spans]}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes_json(_SERVICE)}, "scopeSpans": [scoped]}
        ]
    }


def _span_json(span: TraceSpan) -> dict[str, Any]:
    found = {
        **_context_json(span.context),
        "parentSpanId": span.parent,
        "name": span.name,
        "kind": 3 if span.is_client else 1,
        "startTimeUnixNano": str(_nanoseconds(span.start)),
        "endTimeUnixNano": str(_nanoseconds(span.end)),
        "attributes": _attributes_json(span.attributes),
        "events": [
            {
                "timeUnixNano": str(_nanoseconds(moment.time)),
                "name": moment.name,
                "attributes": _attributes_json(moment.attributes),
            }
            for moment in span.events
        ],
        "links": [_context_json(link) for link in span.links],
        "status": {"code": 2} if span.error else {},
    }
    return {name: value for name, value in found.items() if value != ""}


def _context_json(context: TraceContext) -> dict[str, str]:
    return {"traceId": context.trace, "spanId": context.span}


def _attributes_json(attributes: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value_json(value)} for name, value in attributes.items()]


def _value_json(value: Attribute) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"arrayValue": {"values": [_value_json(item) for item in value]}}
