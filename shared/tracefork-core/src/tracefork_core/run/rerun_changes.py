"""Say where a run that was run again differs from the tape that it was run from."""

from __future__ import annotations

from urllib.parse import urlsplit

from tracefork_core.explaining.differences import body_differences
from tracefork_core.printable import printable
from tracefork_core.tape import Exchange, Tape


def difference(url: str, body: bytes, place: Exchange | None) -> str:
    """Return where a request differs from the recorded one whose place it takes, in a line."""
    parts = urlsplit(url)
    asked = printable(parts.path if parts.netloc else url)
    if place is None:
        return f"{asked}, which the recorded run did not ask"
    found = body_differences(place.request_body, body) if place.has_bodies else []
    if not found:
        return f"{asked}, instead of exchange {place.n}"
    left = len(found) - 1
    more = f", and {left} more place{'' if left == 1 else 's'}" if left else ""
    change = printable(f"{found[0].pointer} was {found[0].recorded!r}, is {found[0].actual!r}")
    return f"{asked}, instead of exchange {place.n}: {change}{more}"


def asked_live(branch: Tape) -> list[str]:
    """Return what the run asked that its parent does not answer, a line for each request."""
    recorded = branch.parent.exchanges if branch.parent else []
    return [
        difference(
            one.url,
            one.request_body if one.has_bodies else b"",
            None if one.aside.place is None else recorded[one.aside.place],
        )
        for one in branch.exchanges
        if not one.aside.answered
    ]


def not_asked(branch: Tape) -> list[Exchange]:
    """Return the exchanges of the parent that the run asked for neither alike nor differently."""
    return _without({one.aside.place for one in branch.exchanges}, branch)


def not_answered(branch: Tape) -> list[Exchange]:
    """Return the exchanges of the parent that answered nothing in the run."""
    return _without({one.aside.place for one in branch.exchanges if one.aside.answered}, branch)


def _without(taken: set[int | None], branch: Tape) -> list[Exchange]:
    recorded = branch.parent.exchanges if branch.parent else []
    return [one for one in recorded if one.n not in taken and not one.is_auxiliary]
