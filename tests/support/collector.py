"""A collector of OpenTelemetry on loopback: takes OTLP over HTTP, decodes the protobuf, remembers it.

Spans are compared as `Seen`, whether they came here or were printed as OTLP/JSON.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.loopback import LoopbackRequest, LoopbackServer
from support.patience import seconds

__all__ = ["Collector", "Seen", "of_json", "paths"]


@dataclass(frozen=True)
class Seen:
    """A span; times in nanoseconds since 1970.

    `links` are (trace, span), `events` (time, name, attributes).
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    status: int
    attributes: dict[str, Any] = field(hash=False)
    events: tuple[tuple[int, str, dict[str, Any]], ...] = field(hash=False)
    links: tuple[tuple[str, str], ...]


class Collector(LoopbackServer):
    """A server.

    `status` is what it answers with, `door` what it waits for before that.
    """

    def __init__(self) -> None:
        super().__init__(_Talk)
        self.status = 200
        self.door = threading.Event()
        self.door.set()
        self.spans: list[Seen] = []
        self.metrics: dict[str, list[Any]] = {}
        self.headers: list[Mapping[str, str]] = []
        self.resource: dict[str, Any] = {}
        self._change = threading.Condition()

    def __exit__(self, *error: object) -> None:
        """Close it, with what it holds back."""
        self.door.set()
        super().__exit__(*error)

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Take a request; return the status of the answer."""
        with self._change:
            self.headers.append({name.lower(): value for name, value in headers.items()})
            if self.status == 200 and path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                for of_resource in request.resource_spans:
                    self.resource = _attributes(of_resource.resource.attributes)
                    for scope in of_resource.scope_spans:
                        self.spans += [_seen(span) for span in scope.spans]
            elif self.status == 200 and path == "/v1/metrics":
                for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for scope in of_resource.scope_metrics:
                        self.metrics |= {metric.name: _points(metric) for metric in scope.metrics}
            self._change.notify_all()
            return self.status

    def wait(self, *names: str) -> list[Seen]:
        """Wait until spans of all these names have come; return all that came."""

        def came() -> bool:
            return {*names} <= {span.name for span in self.spans}

        with self._change:
            is_there = self._change.wait_for(came, seconds(30))
            assert is_there, f"only {[span.name for span in self.spans]} came, not all of {names}"
            return list(self.spans)

    def wait_requests(self, count: int) -> None:
        """Wait until so many requests have come, whatever was answered."""
        with self._change:
            came = self._change.wait_for(lambda: len(self.headers) >= count, seconds(30))
            assert came, f"only {len(self.headers)} of {count} requests came"


class _Talk(LoopbackRequest):
    server: Collector

    def do_POST(self) -> None:
        """Take what is exported."""
        status = self.server.take(self.path, dict(self.headers), self.content())
        self.server.door.wait(seconds(60))
        self.reply(status)


# Protobuf -----------------------------------------------------------------------------------------


def _seen(span: Any) -> Seen:
    return Seen(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        status=span.status.code,
        attributes=_attributes(span.attributes),
        events=tuple(
            (event.time_unix_nano, event.name, _attributes(event.attributes))
            for event in span.events
        ),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


def _points(metric: Any) -> list[Any]:
    data = getattr(metric, metric.WhichOneof("data"))
    return [
        (_attributes(point.attributes), getattr(point, "as_int", None) or point.sum)
        if metric.WhichOneof("data") == "histogram"
        else (_attributes(point.attributes), point.as_int)
        for point in data.data_points
    ]


# OTLP/JSON ----------------------------------------------------------------------------------------


def of_json(document: Any) -> list[Seen]:
    """Read the spans of a request of OTLP/JSON."""
    return [
        _seen_in_json(span)
        for of_resource in document["resourceSpans"]
        for scope in of_resource["scopeSpans"]
        for span in scope["spans"]
    ]


def _seen_in_json(span: dict[str, Any]) -> Seen:
    return Seen(
        trace=span["traceId"],
        id=span["spanId"],
        parent=span.get("parentSpanId", ""),
        name=span["name"],
        kind=span["kind"],
        start=int(span["startTimeUnixNano"]),
        end=int(span["endTimeUnixNano"]),
        status=span["status"].get("code", 0),
        attributes=_json_attributes(span["attributes"]),
        events=tuple(
            (int(event["timeUnixNano"]), event["name"], _json_attributes(event["attributes"]))
            for event in span["events"]
        ),
        links=tuple((link["traceId"], link["spanId"]) for link in span["links"]),
    )


def _json_attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _json_value(pair["value"]) for pair in pairs}


def _json_value(value: dict[str, Any]) -> Any:
    ((kind, found),) = value.items()
    if kind == "arrayValue":
        return [_json_value(item) for item in found["values"]]
    return int(found) if kind == "intValue" else found


# Trees --------------------------------------------------------------------------------------------


def paths(spans: Iterable[Seen]) -> list[str]:
    """Return each span as the names from its root to it, sorted; a parent that is missing is `?`."""
    spans = list(spans)
    known = {(span.trace, span.id): span for span in spans}
    assert len(known) == len(spans), "a span came twice"

    def path(span: Seen) -> str:
        if not span.parent:
            return span.name
        above = known.get((span.trace, span.parent))
        return f"{path(above) if above else '?'} > {span.name}"

    return sorted(path(span) for span in spans)
