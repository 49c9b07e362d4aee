"""Find the secrets that are on a tape, in everything that its files hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tracefork_core.masking.masks import Masks
from tracefork_core.redaction.redaction import Redaction
from tracefork_core.tape import Tape, journal
from tracefork_core.tape.event import EXCHANGE
from tracefork_core.tape.journal import exchanges_in_flight
from tracefork_core.tape.rewrite import decoded

JOURNAL = "journal"


def scan(tape: Tape, masks: Masks, search: Redaction | None = None) -> Redaction:
    """Return what was found on a tape: of a branch, what does not lie on its parents.

    Args:
        tape: the tape.
        masks: what is secret besides the variables of this environment and known tokens.
        search: takes what is found, so that it is there even where the tape turns out damaged.

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
    """Search what lies in the journal besides what is in flight: that is among the exchanges."""
    flights = journal.read(tape.path, tape.key.seal if tape.key else None)
    for exchange in exchanges_in_flight(tape, flights, ()):
        if tape.complete or exchange.n in landed:
            search.exchange(exchange, decoded(exchange.canonical), decoded(exchange.beside))
    return search
