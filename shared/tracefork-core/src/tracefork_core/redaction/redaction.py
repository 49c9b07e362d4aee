"""Mask the secrets on an existing tape as a recording masks them, and note where they were.

`tracefork scan` and `tracefork redact` cannot disagree: a scan runs the same change and writes
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.exchange.contract import Head, Headers, Request
from tracefork_core.masking.body import Masked
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.spellings import Match
from tracefork_core.matching.comparable import form
from tracefork_core.redaction.event_texts import masked, texts
from tracefork_core.tape import Exchange, Tape, journal
from tracefork_core.tape.checkpoint import SAVED
from tracefork_core.tape.event import ENVIRONMENT, EXCHANGE, RECEIPT
from tracefork_core.tape.journal import exchanges_in_flight
from tracefork_core.tape.rewrite import Change, Document, bodies, decoded

BODY = "body"
JOURNAL = "journal"
_CODING = "content-encoding"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a secret is: in an exchange, or in another event of this `kind`; and its name."""

    exchange: int | None
    kind: str
    where: str
    secret: str


class Redaction(Change):
    """Masks a tape on its way into another file.

    Attributes:
        found: how often each secret occurred in each place.
        odd: content codings that could not be removed; only the packed bytes of their bodies were
            searched.
    """

    def __init__(self, masks: Masks) -> None:
        self.found: Counter[Place] = Counter()
        self.odd: set[str] = set()
        self._masks = masks
        self._masking = _Noting(masks)
        self._kind = ""
        self._exchange: int | None = None

    @property
    def secrets(self) -> dict[str, int]:
        """How often each secret was found; 0 for a named variable that never appeared."""
        counts: Counter[str] = Counter(dict.fromkeys(self._masks.names, 0))
        for place, count in self.found.items():
            counts[place.secret] += count
        return dict(sorted(counts.items()))

    def exchange(
        self, exchange: Exchange, payload: Document, aside: Document
    ) -> tuple[bytes, list[bytes]]:
        self._kind, self._exchange = EXCHANGE, exchange.n
        request, pieces = bodies(exchange)
        unsearched = ["request"] if self._is_unsearched(exchange.request_headers, request) else []
        request = self._request(exchange, request, payload, aside)
        if exchange.payload.response is not None:
            if self._is_unsearched(exchange.response_headers, b"".join(pieces)):
                unsearched.append("response")
            pieces = self._response(exchange, pieces, payload, aside)
        _set(aside, "unsearched", unsearched)
        self._texts(payload, aside)
        return request, pieces

    def event(self, kind: str, payload: Document, aside: Document) -> None:
        self._kind, self._exchange = kind, None
        self._texts(payload, aside)
        if kind == ENVIRONMENT:
            aside["masks"] = self._masks.described()
        if kind == RECEIPT:
            counts: Counter[str] = Counter(aside.get("secrets", {}))
            counts.update(self.secrets)
            _set(aside, "secrets", dict(sorted(counts.items())))

    def body(self, data: bytes) -> bytes:
        self._kind, self._exchange = BODY, None
        redacted = self._masking.request(Request("POST", "", (), data, "")).body
        self._note("of no exchange", self._masking.taken(), changed=redacted != data)
        return redacted

    def value(self, data: bytes) -> bytes:
        self._kind, self._exchange = SAVED, None
        redacted = self._masking.packed(data)
        self._note("value of a checkpoint", self._masking.taken(), changed=redacted != data)
        return redacted

    def text(self, text: str) -> str:
        """Return a text without secrets, without counting them."""
        redacted = self._masking.text(text)
        self._masking.taken()
        return redacted

    def _request(
        self, exchange: Exchange, body: bytes, payload: Document, aside: Document
    ) -> bytes:
        headers = tuple(exchange.request_headers)
        request = Request(exchange.method, exchange.url, headers, body, exchange.aside.seam)
        redacted = self._masking.request(request)
        self._masking.taken()
        if redacted == request:
            return body
        self._note_parts(request)
        try:
            comparable = form(redacted)
        except ValueError as error:
            raise TapeError(
                f"tracefork: exchange {exchange.n} of the tape has an invalid URL."
            ) from error
        address = payload["request"]["body"]
        payload["request"] |= msgspec.to_builtins(comparable.record)
        payload["request"]["body"] = address  # The rewrite sets the new hash of the body.
        _set(aside, "url", comparable.url if comparable.url != comparable.record.url else None)
        _set(aside, "sent", [list(pair) for pair in comparable.sent])
        return comparable.body

    def _note_parts(self, request: Request) -> None:
        """Note the parts of a request that contain secrets."""
        coded = _coded(request.headers)
        empty = request._replace(url="", headers=(), body=b"")
        parts = [
            ("url", empty._replace(url=request.url)),
            *(
                (f"request header {pair[0]}", empty._replace(headers=(pair,)))
                for pair in request.headers
            ),
            ("request body", empty._replace(headers=coded, body=request.body)),
        ]
        for where, part in parts:
            redacted = self._masking.request(part)
            self._note(where, self._masking.taken(), changed=redacted != part)

    def _response(
        self, exchange: Exchange, pieces: list[bytes], payload: Document, aside: Document
    ) -> list[bytes]:
        headers = tuple(exchange.response_headers)
        head = Head(exchange.status or 0, exchange.reason, headers, exchange.aside.http_version)
        whole = exchange.end == "eof"
        body = self._body(head, pieces, whole=whole)
        redacted = self._masking.head(head)
        if redacted != head:
            self._masking.taken()
            for pair in headers:
                self._note_head(
                    f"response header {pair[0]}", head._replace(reason="", headers=(pair,))
                )
            self._note_head("reason", head._replace(headers=()))
        response = payload["response"]
        response["reason"] = redacted.reason
        if "received" in aside:
            values = {name.lower(): value for name, value in redacted.headers}
            aside["received"] = {
                name: values.get(name, value) for name, value in aside["received"].items()
            }
        shown = [
            (name, None if recorded[1] is None else value)
            for recorded, (name, value) in zip(response["headers"], redacted.headers, strict=True)
        ]
        if body is not None:
            shown = body.agreeing(shown, b"".join(pieces), whole=whole)
        response["headers"] = shown
        return pieces if body is None else body.pieces

    def _body(self, head: Head, pieces: list[bytes], *, whole: bool) -> Masked | None:
        """Return the body of a response as a recording masks it, or None if it stays."""
        body = self._masking.body(head)
        if body is None:
            return None
        for piece in pieces:
            body.feed(piece)
        redacted = body.finish(pieces, whole=whole)
        if redacted is None or redacted.pieces == pieces:
            return None
        self._masking.count(redacted.matches)
        self._note("response body", self._masking.taken())
        return redacted

    def _note_head(self, where: str, part: Head) -> None:
        redacted = self._masking.head(part)
        self._note(where, self._masking.taken(), changed=redacted != part)

    def _is_unsearched(self, pairs: Iterable[tuple[str, str]], body: bytes) -> bool:
        """Note a content coding that cannot be removed here, or not within the bound."""
        headers = tuple(pairs)
        if not self._masking.is_unsearched(headers, body):
            return False
        coding = ", ".join(value for _, value in _coded(headers))
        self.odd.add(coding.strip().lower())
        return True

    def _texts(self, *documents: Document) -> None:
        """Mask the remaining texts of an event in place."""
        for document in documents:
            try:
                if self._masks.patterns or self._is_dirty(document):
                    redacted = masked(self._kind, document, self._mask_text)
                    document.clear()
                    document.update(redacted)
            except RecursionError as error:
                raise TapeError(
                    f"tracefork: an event of the tape ({self._kind}) is nested too deeply."
                ) from error

    def _is_dirty(self, document: Document) -> bool:
        """Return whether any text holds a secret, with a single search."""
        everything = "\0".join(texts(document))
        return everything != "" and self.text(everything) != everything

    def _mask_text(self, where: str, text: str) -> str:
        redacted = self._masking.text(text)
        self._note(where, self._masking.taken(), changed=redacted != text)
        return redacted

    def _note(self, where: str, met: Mapping[str, int], *, changed: bool = True) -> None:
        if not changed or not met:
            return  # A pattern may also match placeholders, which stay as they are.
        where = self.text(where)
        for secret, count in met.items():
            self.found[Place(self._exchange, self._kind, where, secret)] += count


class _Noting(Masking):
    """A masking that reports the secrets since the last report."""

    def __init__(self, masks: Masks) -> None:
        self._met: Counter[str] = Counter()
        super().__init__("safe", masks)

    def count(self, matches: Iterable[Match]) -> None:
        self._met.update(match.name for match in matches)

    def taken(self) -> Counter[str]:
        """Return how often each secret was masked since the last call."""
        met, self._met = self._met, Counter()
        return met


def _coded(headers: Headers) -> Headers:
    return tuple(pair for pair in headers if pair[0].lower() == _CODING)


def _set(document: Document, name: str, value: object) -> None:
    """Set a value in a document, or remove it if it is empty."""
    document.pop(name, None)
    if value:
        document[name] = value


def scan(tape: Tape, masks: Masks, search: Redaction | None = None) -> Redaction:
    """Find the secrets on a tape; on a branch, without those on its parents.

    Args:
        tape: the tape.
        masks: secrets besides the variables of this environment and known tokens.
        search: collects the findings, so that they survive if the tape turns out corrupt.

    Raises:
        TapeError: the tape cannot be read to its end.
    """
    masks = masks.named_on(tape.environment)
    search = search or Redaction(masks)
    landed: set[object] = set()
    for event in tape.events:
        payload, aside = decoded(event.payload), decoded(event.aside)
        if event.kind == EXCHANGE:
            landed.add(payload.get("n"))
        else:
            search.event(event.kind, payload, aside)
    seen: set[str | None] = set()
    for exchange in tape.exchanges[tape.origin.at if tape.origin else 0 :]:
        search.exchange(exchange, decoded(exchange.canonical), decoded(exchange.beside))
        response = exchange.payload.response
        seen |= {exchange.request.body, response.body if response else None}
    for sha in tape.blobs:
        if sha not in seen:
            search.body(tape.blob(sha))
    left = _left_in_journal(tape, landed, Redaction(masks))
    search.found += Counter({replace(place, kind=JOURNAL): n for place, n in left.found.items()})
    return search


def _left_in_journal(tape: Tape, landed: set[object], search: Redaction) -> Redaction:
    """Search the journal, without the exchanges in flight that the tape lists anyway."""
    flights = journal.read(tape.path, tape.key.seal if tape.key else None)
    for exchange in exchanges_in_flight(tape, flights, ()):
        if tape.complete or exchange.n in landed:
            search.exchange(exchange, decoded(exchange.canonical), decoded(exchange.beside))
    return search
