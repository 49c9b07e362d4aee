"""Know which objects of a framework are attached, and bind their clients.

A session with `ambient=False` records the clients that are bound. Frameworks make clients late, and
again for each event loop. So a client is bound where an attached object, or one that it runs, asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from tracefork_core.adapters.running_steps import Values
from tracefork_core.patching.instrument import Instrument
from tracefork_core.patching.patch import Patches

_BOUND = "_tracefork_bound"


class Attached:
    """The objects of one framework that are attached: by id, since not all are hashable.

    Attributes:
        works_here: whether an attached object runs this code.
    """

    def __init__(self, framework: str) -> None:
        self.works_here = ContextVar(f"tracefork_{framework}_attached", default=False)
        self._held: dict[int, object] = {}

    def attach(self, x: object, *instruments: Instrument) -> None:
        """Attach an object, and keep the framework's instruments applied; once."""
        if x not in self:
            self._held[id(x)] = x
            for instrument in instruments:
                instrument.attach()

    def detach(self, x: object, *instruments: Instrument) -> None:
        """Undo `attach`."""
        if self._held.pop(id(x), None) is not None:
            for instrument in instruments:
                instrument.detach()

    def __contains__(self, x: object) -> bool:
        return id(x) in self._held

    def __iter__(self) -> Iterator[object]:
        return iter(tuple(self._held.values()))

    def covers(self, x: object) -> bool:
        """Return whether an object is attached, or runs inside of one that is."""
        return self.works_here.get() or x in self

    def around(self, x: object) -> Values:
        """Return the context variables that hold where an object works."""
        return {self.works_here: True} if x in self else {}


def bind_until_undo(patches: Patches, owner: object, name: str) -> None:
    """Bind the client that an attribute holds, if it holds one, until an undo."""
    from tracefork_core.seams.libraries import bind

    client = getattr(owner, name, None)
    if client is None or hasattr(client, _BOUND):
        return
    bound: Any = bind(client)
    setattr(bound, _BOUND, True)
    setattr(owner, name, bound)
    patches.at_undo(partial(setattr, owner, name, client))
