"""Record single clients: in sessions with ambient=False, and of any service in all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import botocore.client
import botocore.session

from tracefork_bedrock import attempts
from tracefork_bedrock.clients import SERVICES, service_of
from tracefork_bedrock.instrument import AIO_HTTPX, AIO_SENDING, SENDING
from tracefork_core import UsageError

T = TypeVar("T")

_OWNER = "attached"
_INSTRUMENTS = (SENDING, AIO_SENDING, AIO_HTTPX)
_attached: WeakKeyDictionary[Any, tuple[Any, frozenset[str]]] = WeakKeyDictionary()
"""The events and the services of each attached client or session."""


def attach(target: T, *, services: Collection[str] = ()) -> T:
    """Record a client, or the later clients of a session, and return it.

        bedrock = attach(boto3.client("bedrock-runtime"))
        session = attach(boto3.Session(), services=["s3"])

    Needed only in sessions with `ambient=False`, and for other services than those of Bedrock.
    Outside a session nothing changes. Attaching twice has no further effect.

    Args:
        target: a client or a session, of boto3, botocore or aiobotocore.
        services: other services to record of a session, as `boto3.client` names them.

    Raises:
        UsageError: it is neither, or it knows no such service.
    """
    events, names = _watched(target, services)
    attempts.watch(events, names, _OWNER)
    if target not in _attached:
        for instrument in _INSTRUMENTS:
            instrument.attach()
    before = _attached.get(target, (events, frozenset()))[1]
    _attached[target] = events, before | names
    return target


def detach(target: T) -> T:
    """Undo `attach`, and return the client or the session."""
    if (found := _attached.pop(target, None)) is not None:
        attempts.leave(*found, _OWNER)
        for instrument in _INSTRUMENTS:
            instrument.detach()
    return target


def _watched(target: Any, services: Collection[str]) -> tuple[Any, frozenset[str]]:
    if isinstance(target, botocore.client.BaseClient):
        return target.meta.events, frozenset({service_of(target)})
    if not hasattr(target, "get_available_services"):
        raise UsageError(
            f"tracefork: cannot attach to {target!r:.80}: it is neither a client nor a session of "
            "boto3, botocore or aiobotocore."
        )
    if unknown := sorted(set(services).difference(target.get_available_services())):
        raise UsageError(
            f"tracefork: boto3 knows no service {unknown[0]!r}. Give names as boto3.client takes "
            'them: services=["s3", "dynamodb"].'
        )
    is_botocore = isinstance(target, botocore.session.Session)
    events = target.get_component("event_emitter") if is_botocore else target.events
    return events, SERVICES | set(services)
