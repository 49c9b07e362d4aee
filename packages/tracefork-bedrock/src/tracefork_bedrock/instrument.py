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
    from botocore.client import BaseClient

    from tracefork_bedrock import clients

    clients.put_in(patches, BaseClient)


def _cross_the_seam(patches: Patches, module: ModuleType) -> None:
    from botocore.httpsession import URLLib3Session

    from tracefork_bedrock import sending, surroundings

    surroundings.put_in(patches)
    patches.wrap(URLLib3Session, "send", sending.crossing)


def _watch_aio_clients(patches: Patches, module: ModuleType) -> None:
    from aiobotocore.client import AioBaseClient

    from tracefork_bedrock import clients

    clients.put_in(patches, AioBaseClient)


def _cross_the_aio_seam(patches: Patches, module: ModuleType) -> None:
    from aiobotocore.httpsession import AIOHTTPSession

    from tracefork_bedrock.aio import sending, surroundings

    surroundings.put_in(patches)
    patches.wrap(AIOHTTPSession, "send", sending.crossing)


def _refuse_httpx(patches: Patches, module: ModuleType) -> None:
    from tracefork_bedrock.aio import sending

    patches.wrap(module.HttpxSession, "send", sending.refusing)


# An agent may import boto3 in the middle of a session. The module `session` is imported last, so
# all that the seam needs is there when it is: `client` and `httpsession` are still incomplete.
CLIENTS = ADAPTER.instrument("botocore.session", _watch_clients)
AIO_CLIENTS = ADAPTER.instrument("aiobotocore.session", _watch_aio_clients)
"""Every ambient session applies these: each client is recorded from its first call on."""

SENDING = ADAPTER.instrument("botocore.session", _cross_the_seam)
AIO_SENDING = ADAPTER.instrument("aiobotocore.session", _cross_the_aio_seam)
AIO_HTTPX = ADAPTER.instrument("aiobotocore.httpxsession", _refuse_httpx)
"""Every session with a client to record applies these."""
