"""Reads of state that outlives a run: what a database, a store or a cache of the user's gave.

An answer is JSON. Where a framework has a serialisation of its own, the answer holds the indices of
`values`, each stored under the sha256 of its bytes. Only the framework's adapter makes objects of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape.checkpoint import Value

STATE = "state"
"""The kind of these events."""


class StateRead(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to read number `n` of `key`, in one `store`. Several events of one read add up."""

    store: str
    key: str
    n: Annotated[int, msgspec.Meta(ge=0)]
    answer: Any = None
    values: list[Value] = []


def values_in(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the values in the document of an event, with the store's name, to be changed in place.

    Raises:
        TapeError: the document is corrupt.
    """
    try:
        for value in document.get("values", ()):
            _, _ = value
            yield document["store"], value
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TapeError(
            f"tracefork: the tape is corrupt: a read of state cannot be read: {error!r}."
        ) from error
