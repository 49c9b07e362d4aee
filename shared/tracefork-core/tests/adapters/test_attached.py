"""What is attached is known by its identity, and its clients are bound until an undo."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import httpx

from tracefork_core.adapters import Attached, Instrument, Patches, bind_until_undo, values_set


def test_an_object_is_attached_once_with_what_it_runs() -> None:
    """Objects that are equal are still two, and need no hash."""
    instrument = Mock(spec=Instrument)
    attached, agent, other = Attached("acme"), ["agent"], ["agent"]
    for _ in range(2):
        attached.attach(agent, instrument)
    assert agent in attached
    assert other not in attached
    assert not attached.covers(other)
    with values_set(attached.around(agent)), values_set(attached.around(other)):
        assert attached.covers(other), "it runs inside of one that is attached"
    attached.detach(agent, instrument)
    attached.detach(agent, instrument)
    assert agent not in attached
    assert (instrument.attach.call_count, instrument.detach.call_count) == (1, 1)


def test_a_client_is_bound_until_the_undo() -> None:
    """An attribute that holds none, or one that is bound already, stays as it is."""
    patches, client = Patches(), httpx.Client()
    model = SimpleNamespace(client=client, other=None)
    for _ in range(2):
        for name in ("client", "other", "missing"):
            bind_until_undo(patches, model, name)
    assert model.other is None
    assert model.client is not client
    patches.undo()
    assert model.client is client
    client.close()
