"""Tell the texts of an event from the fields of its format.

Hashes, lanes, step ids and kinds are never masked, even if a pattern matches them: replay compares
them, and they contain no data of the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tracefork_core.tape.blobs import BLOB, BlobRecord
from tracefork_core.tape.event import (
    DRAWS,
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    STEP,
    STEP_END,
    Draws,
    Environment,
    ExchangeAside,
    ExchangePayload,
    FailureRecord,
    GeneratorState,
    Reads,
    Receipt,
    RequestRecord,
    ResponseRecord,
    StepEnd,
    StepRecord,
)
from tracefork_core.tape.served import SERVED, Arguments, Served
from tracefork_core.tape.surroundings import (
    FILES,
    INPUT,
    SURROUNDINGS,
    Files,
    FileState,
    Input,
    Read,
    Seen,
    Surroundings,
)

Mask = Callable[[str, str], str]
"""Takes the place of a text in its document, and the text; returns the masked text."""

_RECORDS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    EXCHANGE: (ExchangePayload, RequestRecord, ResponseRecord, FailureRecord, ExchangeAside),
    STEP: (StepRecord,),
    STEP_END: (StepEnd,),
    DRAWS: (Draws, Reads, GeneratorState),
    SURROUNDINGS: (Surroundings, Seen),
    INPUT: (Input, Read),
    FILES: (Files, FileState),
    ENVIRONMENT: (Environment,),
    SERVED: (Served, Arguments),
    RECEIPT: (Receipt,),
    BLOB: (BlobRecord,),
}
_FIELDS = {
    kind: frozenset(name for record in records for name in record.__struct_fields__)
    for kind, records in _RECORDS.items()
}
_FORMAT = {
    EXCHANGE: frozenset(
        "request/method request/body response/body failure/kind "
        "lane seam step end http_version unsearched".split()
    ),
    STEP: frozenset({"id", "parent", "kind"}),
    STEP_END: frozenset({"id"}),
    DRAWS: frozenset(
        "reads/source reads/lane seed generators/name generators/state generators/lane "
        "ambient".split()
    ),
    SURROUNDINGS: frozenset({"seen/kind", "seen/name"}),
    FILES: frozenset({"files/how", "files/sha"}),
    ENVIRONMENT: frozenset({"masks", "hash_seed", "tools", "tools_of"}),
    SERVED: frozenset({"kind", "interface", "method", "data", "answer", "outcome"}),
    RECEIPT: frozenset({"digest", "outcome", "secrets"}),
    BLOB: frozenset({"sha", "base"}),
}
_HEADERS = {
    "request/headers": "request header",
    "sent": "request header",
    "response/headers": "response header",
}
_NAMED = {
    "request/url": "url",
    "response/reason": "reason",
    "failure/message": "failure",
}
_RECEIVED = "received/"


def masked(kind: str, document: dict[str, Any], mask: Mask) -> dict[str, object]:
    """Return a document of an event with all its texts masked."""
    return _Event(kind, mask).named(document, "")


def texts(document: object) -> Iterator[str]:
    """Yield every text of a document, the names in it too."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        yield from (name for name in document if isinstance(name, str))
        for value in document.values():
            yield from texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)


class _Event:
    """The documents of one kind of event. A `place` is a path of names, without list indices."""

    def __init__(self, kind: str, mask: Mask) -> None:
        self._mask = mask
        self._format = _FORMAT.get(kind, frozenset())
        self._fields = _FIELDS.get(kind, frozenset())
        self._headers = _HEADERS if kind == EXCHANGE else {}

    def value(self, value: object, place: str) -> object:
        if place in self._format:
            return value
        if isinstance(value, str):
            return self._mask(self._shown(place), value)
        if isinstance(value, dict):
            return self.named(value, place)
        if isinstance(value, list) and (headers := self._headers.get(place)):
            return [self._pair(pair, headers) for pair in value]
        if isinstance(value, list):
            return [self.value(item, place) for item in value]
        return value

    def named(self, values: dict[str, Any], place: str) -> dict[str, object]:
        return {
            self._name(name, place): self.value(value, f"{place}/{name}".lstrip("/"))
            for name, value in values.items()
        }

    def _name(self, name: str, place: str) -> str:
        return name if name in self._fields else self._mask(self._shown(place), name)

    def _pair(self, pair: object, headers: str) -> object:
        """Mask the value of a header, but not its name."""
        match pair:
            case [str(name), str(value)]:
                return [name, self._mask(f"{headers} {name}", value)]
        return self.value(pair, headers)

    def _shown(self, place: str) -> str:
        if self._headers and place.startswith(_RECEIVED):
            return f"response header {place.removeprefix(_RECEIVED)}"
        return _NAMED.get(place, place) if self._headers else place
