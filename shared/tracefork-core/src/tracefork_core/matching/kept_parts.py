"""Compare a request with an imported one: only as far as the imported file has it.

Recorders of HTTP drop headers and query parameters through filters, keep some bodies as JSON values
and some not at all. What a file does not have is no difference. So a request has one key for each
set of parts that some exchange of the tape has, and an exchange has the key of its own parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tracefork_core.masking.names import without_masked
from tracefork_core.matching.comparable import SEMANTIC_HEADERS, Form
from tracefork_core.matching.matchers import matched
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.digest import canonical, sha256
from tracefork_core.tape.imported import Imported


class _Parts(NamedTuple):
    """What is compared: the headers with these names; of the body its bytes, values or nothing."""

    headers: frozenset[str]
    body: str


class KeptParts:
    """Makes the keys by which requests find the exchanges of an imported tape.

    Args:
        tape: the tape, or a branch of it; what a branch recorded itself is compared whole.
        imported: where it was imported from.
        matchers: the named matchers that widen what counts as equal.
    """

    def __init__(self, tape: Tape, imported: Imported, matchers: Sequence[str]) -> None:
        self._filtered = "headers" in imported.not_compared
        self._values, self._unknown = set(imported.json_bodies), set(imported.unknown_bodies)
        self._end = tape.origin.at if tape.origin is not None else len(tape.exchanges)
        self._matchers = tuple(matchers)
        parts = {self._parts(exchange) for exchange in tape.exchanges}
        self._all = sorted(parts, key=lambda each: (-len(each.headers), each.body, each))

    def key(self, exchange: Exchange) -> bytes:
        """Return the key of a recorded exchange."""
        record = exchange.request
        form = Form(record, exchange.url, exchange.request_body, tuple(exchange.request_headers))
        return self._key(form, self._parts(exchange))

    def keys(self, form: Form) -> list[bytes]:
        """Return the keys by which a request is looked up, the strictest first."""
        return [self._key(form, parts) for parts in self._all]

    def as_kept(self, form: Form, exchange: Exchange) -> Form:
        """Return a request without the headers and parameters that an exchange does not have."""
        return self._without(form, self._parts(exchange).headers)

    def _parts(self, exchange: Exchange) -> _Parts:
        if exchange.n >= self._end:
            return _Parts(SEMANTIC_HEADERS, "bytes")
        names = {name for name, _ in exchange.request.headers}
        body = "values" if exchange.n in self._values else "bytes"
        return _Parts(
            frozenset(names) if self._filtered else SEMANTIC_HEADERS,
            "unknown" if exchange.n in self._unknown else body,
        )

    def _key(self, form: Form, parts: _Parts) -> bytes:
        record = self._without(form, parts.headers).record
        if parts.body == "unknown":
            record = msgspec.structs.replace(record, body="")
        elif parts.body == "values" or self._matchers:
            matchers = [*self._matchers, "json"] if parts.body == "values" else self._matchers
            record = msgspec.structs.replace(record, body=sha256(matched(form.body, matchers)))
        return canonical([sorted(parts.headers), parts.body, record])

    def _without(self, form: Form, names: frozenset[str]) -> Form:
        if not self._filtered:
            return form
        headers = [pair for pair in form.record.headers if pair[0] in names]
        url = without_masked(form.record.url)
        record = msgspec.structs.replace(form.record, headers=headers, url=url)
        return form._replace(record=record)


def kept_parts(tape: Tape, matchers: Sequence[str]) -> KeptParts | None:
    """Return what compares requests with a tape, if it was imported; None for any other tape."""
    imported = tape.imported
    return None if imported is None else KeptParts(tape, imported, matchers)
