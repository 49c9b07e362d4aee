"""Read spans of OpenTelemetry: OTLP JSON, lines of it, and the JSON that Python's SDK prints.

OTLP JSON is what collectors write to files and what exporters send: `resourceSpans`, and
`resourceLogs` with the messages of conventions whose messages are events. Python's SDK has a form
of its own (`ReadableSpan.to_json`), which programs keep as a list of spans; Phoenix exports that
form too, with its attributes nested or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.interop.importing.span_values import nanoseconds
from tracefork_core.interop.span import Span, SpanEvent
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, parse, text

_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR", "error")


def is_otlp(document: Json) -> bool:
    """Return whether a document is OTLP JSON: an export, or several."""
    first = mapping(document) or next(iter(mappings(document)), {})
    return any(name in first for name in ("resourceSpans", "resource_spans", "resourceLogs"))


def is_sdk(document: Json) -> bool:
    """Return whether a document is a list of spans as Python's SDK or Phoenix writes them."""
    first = next(iter(_sdk_spans(document)), {})
    return isinstance(first.get("context"), dict) or "context.span_id" in first


def read_otlp(document: Json) -> list[Span]:
    """Return the spans of an export or of several, with the events that were logged for them."""
    spans: list[Span] = []
    logged: dict[str, list[SpanEvent]] = {}
    for export in [mapping(document)] if isinstance(document, dict) else mappings(document):
        for resource in mappings(field(export, "resourceSpans", "resource_spans")):
            for scope in _scopes(resource, "Spans"):
                spans += [_otlp_span(span) for span in mappings(scope.get("spans"))]
        for resource in mappings(field(export, "resourceLogs", "resource_logs")):
            for scope in _scopes(resource, "Logs"):
                for record in mappings(field(scope, "logRecords", "log_records")):
                    asked_in = text(field(record, "spanId", "span_id")) or ""
                    logged.setdefault(asked_in, []).append(_logged(record))
    for span in spans:
        span.events += logged.get(span.id, [])
    return spans


def read_sdk(document: Json) -> list[Span]:
    """Return the spans of a list that Python's SDK or Phoenix wrote."""
    return [_sdk_span(span) for span in _sdk_spans(document)]


def _scopes(resource: dict[str, Json], of: str) -> Iterator[dict[str, Json]]:
    yield from mappings(
        field(resource, f"scope{of}", f"scope_{of.lower()}", f"instrumentationLibrary{of}")
    )


def _otlp_span(span: dict[str, Json]) -> Span:
    status = mapping(span.get("status"))
    failed = field(status, "code") in _FAILED
    return Span(
        id=text(field(span, "spanId", "span_id")) or "",
        name=text(span.get("name")) or "",
        parent=text(field(span, "parentSpanId", "parent_span_id")),
        started=nanoseconds(field(span, "startTimeUnixNano", "start_time_unix_nano")) or 0,
        ended=nanoseconds(field(span, "endTimeUnixNano", "end_time_unix_nano")),
        error=(text(status.get("message")) or "error") if failed else None,
        attributes=_attributes(span.get("attributes")),
        events=[
            SpanEvent(text(event.get("name")) or "", _attributes(event.get("attributes")))
            for event in mappings(span.get("events"))
        ],
        links=[
            link
            for each in mappings(span.get("links"))
            if (link := text(field(each, "spanId", "span_id")))
        ],
    )


def _logged(record: dict[str, Json]) -> SpanEvent:
    attributes = _attributes(record.get("attributes"))
    name = text(record.get("eventName")) or text(attributes.get("event.name")) or ""
    body = _value(mapping(record.get("body")))
    if isinstance(body, dict):
        attributes |= body
    elif body is not None:
        attributes.setdefault("body", body)
    return SpanEvent(name, attributes)


def _attributes(value: Json) -> dict[str, Json]:
    if isinstance(value, dict):
        return value
    pairs = mappings(value)
    return {text(pair.get("key")) or "": _value(mapping(pair.get("value"))) for pair in pairs}


def _value(value: dict[str, Json]) -> Json:
    """Return the JSON of an OTLP value, whose 64-bit integers are texts."""
    for kind, held in value.items():
        if kind in ("intValue", "int_value"):
            return int(held) if isinstance(held, str) and held.lstrip("-").isdigit() else held
        if kind in ("arrayValue", "array_value"):
            return [_value(mapping(each)) for each in items(mapping(held).get("values"))]
        if kind in ("kvlistValue", "kvlist_value"):
            return _attributes(mapping(held).get("values"))
        return held
    return None


def _sdk_spans(document: Json) -> list[dict[str, Json]]:
    if isinstance(document, dict):
        document = field(document, "spans", "data")
    return mappings(document)


def _sdk_span(span: dict[str, Json]) -> Span:
    status = span.get("status")
    code = field(mapping(status), "status_code", "code") or status or span.get("status_code")
    failed = code in _FAILED
    said = text(field(mapping(status), "description", "message") or span.get("status_message"))
    return Span(
        id=_id(mapping(span.get("context")).get("span_id") or span.get("context.span_id")) or "",
        name=text(span.get("name")) or "",
        parent=_id(span.get("parent_id")) or _id(mapping(span.get("parent")).get("span_id")),
        started=nanoseconds(span.get("start_time")) or 0,
        ended=nanoseconds(span.get("end_time")),
        error=(said or "error") if failed else None,
        attributes=_sdk_attributes(span),
        events=[
            SpanEvent(text(event.get("name")) or "", _sdk_attributes(event))
            for event in mappings(_json(span.get("events")))
        ],
        links=[
            link
            for each in mappings(_json(span.get("links")))
            if (link := _id(mapping(each.get("context")).get("span_id")))
        ],
    )


def _json(value: Json) -> Json:
    return parse(value) if isinstance(value, str) else value


def _sdk_attributes(span: dict[str, Json]) -> dict[str, Json]:
    """Return attributes by their dotted names, also where Phoenix nested them or made columns."""
    prefix = "attributes."
    columns: dict[str, Json] = {
        name.removeprefix(prefix): value
        for name, value in span.items()
        if name.startswith(prefix) and value is not None
    }
    return dict(_dotted(mapping(_json(span.get("attributes"))) | columns, ""))


_GROUPS = ("llm", "gen_ai", "input", "output", "openinference", "tool", "message", "embedding")
_KEPT = ("llm.invocation_parameters", "tool.parameters", "llm.prompt_template.variables")


def _dotted(value: dict[str, Json], prefix: str) -> Iterator[tuple[str, Json]]:
    """Yield nested attributes of the conventions under the dotted names that they have there."""
    for name, held in value.items():
        full = f"{prefix}{name}"
        if (
            isinstance(held, dict)
            and full not in _KEPT
            and full.split(".", maxsplit=1)[0] in _GROUPS
        ):
            yield from _dotted(held, f"{full}.")
        elif isinstance(held, list) and full.split(".", maxsplit=1)[0] == "llm" and mappings(held):
            for n, item in enumerate(mappings(held)):
                yield from _dotted(item, f"{full}.{n}.")
        else:
            yield full, held


def _id(value: Json) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:016x}"
    found = text(value)
    return found.removeprefix("0x") if found else None
