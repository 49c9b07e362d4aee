"""The span of a trace, as the readers and the writers of traces have it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracefork_core.providers.lenient import Json, text


@dataclass(slots=True)
class SpanEvent:
    """Something that a span noted: a message in conventions before 1.37, an exception."""

    name: str
    attributes: dict[str, Json]


@dataclass(slots=True)
class Span:
    """One span. Times are nanoseconds since the epoch.

    Attributes:
        id: unique within its trace; of a span that is exported, 16 hexadecimal digits.
        parent: the id of the span around it.
        kind: "internal" or "client".
        error: what it failed with; None if it did not.
        links: the ids of spans that it continues, besides its parent.
    """

    id: str
    name: str
    parent: str | None = None
    kind: str = "internal"
    started: int = 0
    ended: int | None = None
    error: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def get(self, *names: str) -> Json:
        """Return the first of these attributes that has a value; None if none has."""
        attributes = self.attributes
        return next((attributes[name] for name in names if attributes.get(name) is not None), None)

    def text(self, *names: str) -> str | None:
        """Return the first of these attributes that is a text with something in it."""
        return next((found for name in names if (found := text(self.attributes.get(name)))), None)
