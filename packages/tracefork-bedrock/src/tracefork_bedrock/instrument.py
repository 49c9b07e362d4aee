"""Say what is replaced while a session is open.

Two instruments, because a session with `ambient=False` uses the second only: its clients are those
that `attach` watches.
"""

from __future__ import annotations

from types import ModuleType

from tracefork_bedrock import ADAPTER
from tracefork_core.adapters import Patches


def _watch_clients(patches: Patches, module: ModuleType) -> None:
    # botocore is imported by now, so these imports cost no more time.
    from tracefork_bedrock import clients

    clients.put_in(patches, module)


def _cross_the_seam(patches: Patches, module: ModuleType) -> None:
    from tracefork_bedrock import sending, surroundings

    surroundings.put_in(patches)
    patches.wrap(module.URLLib3Session, "send", sending.crossing)


CLIENTS = ADAPTER.instrument("botocore.client", _watch_clients)
"""Every ambient session applies it: each client is recorded from its first call on."""

SENDING = ADAPTER.instrument("botocore.httpsession", _cross_the_seam)
"""Every session with a client to record applies it."""
