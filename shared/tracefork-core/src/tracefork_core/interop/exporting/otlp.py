"""Write spans as OTLP: as JSON to a file, or as protobuf to a collector over HTTP.

The JSON is that of https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: ids are
hexadecimal, 64-bit integers are texts. A collector is asked by OpenTelemetry's own exporter, which
reads its headers, certificates and timeouts from the environment (`OTEL_EXPORTER_OTLP_HEADERS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tracefork_core.errors import UsageError
from tracefork_core.interop import conventions
from tracefork_core.interop.span import Span
from tracefork_core.providers import Json
from tracefork_core.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

SERVICE = "service.name"
_KINDS = {"internal": 1, "client": 3}
_ERROR = 2
_EXTRA = "pip install 'tracefork-core[otel]'"


def document(spans: Sequence[Span], trace: str, resource: Mapping[str, Json]) -> dict[str, Any]:
    """Return the spans of one trace as OTLP JSON.

    Args:
        spans: the spans.
        trace: the id of the trace.
        resource: the attributes of what was traced.
    """
    scope = {"name": "tracefork", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [
                    {
                        "scope": scope,
                        "spans": [_span(span, trace) for span in spans],
                        "schemaUrl": conventions.SCHEMA_URL,
                    }
                ],
            }
        ]
    }


def send(spans: Sequence[Span], trace: str, resource: Mapping[str, Json], url: str) -> None:
    """Send the spans of one trace to a collector; `url` is that of its traces.

    Raises:
        UsageError: the extra `otel` is not installed, or the collector did not take the spans.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError as error:
        raise UsageError(
            f"tracefork: to send spans, export needs an extra ({error.name} is not installed): "
            f"{_EXTRA}."
        ) from error
    exporter = OTLPSpanExporter(endpoint=url)
    try:
        result = exporter.export(readable(spans, trace, resource))
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    if result is not SpanExportResult.SUCCESS:
        raise UsageError(
            f"tracefork: {url} did not take the spans (see above). Is it the address of a "
            "collector's traces, as http://127.0.0.1:4318/v1/traces is? Headers are read from "
            "OTEL_EXPORTER_OTLP_HEADERS."
        )


def check_extra() -> None:
    """Check that the libraries of the extra `otel` are installed.

    Raises:
        UsageError: they are not.
    """
    if find_spec("opentelemetry.sdk") is None:
        raise UsageError(
            "tracefork: export_spans needs an extra (opentelemetry-sdk is not installed): "
            f"{_EXTRA}."
        )


def readable(spans: Sequence[Span], trace: str, resource: Mapping[str, Json]) -> list[ReadableSpan]:
    """Return spans as those of OpenTelemetry's SDK, which any of its exporters takes."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(span: str) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=flags)

    about = Resource(dict(_flat(resource)))
    scope = InstrumentationScope("tracefork", __version__, conventions.SCHEMA_URL)
    return [
        ReadableSpan(
            name=span.name,
            context=context(span.id),
            parent=context(span.parent) if span.parent else None,
            resource=about,
            attributes=_flat(span.attributes),
            events=[
                Event(event.name, _flat(event.attributes), span.ended) for event in span.events
            ],
            links=[Link(context(link)) for link in span.links],
            kind=SpanKind.CLIENT if span.kind == "client" else SpanKind.INTERNAL,
            instrumentation_scope=scope,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.started,
            end_time=span.ended,
        )
        for span in spans
    ]


def _flat(attributes: Mapping[str, Json]) -> dict[str, Any]:
    """Return the attributes; each is a value or a list of values of one type already."""
    return {name: value for name, value in attributes.items() if value is not None}


def _span(span: Span, trace: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "traceId": trace,
        "spanId": span.id,
        "parentSpanId": span.parent or "",
        "flags": 1,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.started),
        "endTimeUnixNano": str(span.ended or span.started),
        "attributes": _attributes(span.attributes),
        "events": [
            {
                "timeUnixNano": str(span.ended or span.started),
                "name": event.name,
                "attributes": _attributes(event.attributes),
            }
            for event in span.events
        ],
        "links": [{"traceId": trace, "spanId": link} for link in span.links],
        "status": {"code": _ERROR, "message": span.error} if span.error else {},
    }
    return {name: value for name, value in written.items() if value not in ([], "")}


def _attributes(attributes: Mapping[str, Json]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": _value(value)}
        for name, value in attributes.items()
        if value is not None
    ]


def _value(value: Json) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}
