"""Which clients are recorded: those of these services, and what they leave to other seams.

A client is watched from its first call in a session on, so it does not matter when it was made. The
end of the last session leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any
from weakref import WeakSet

from tracefork_bedrock import attempts
from tracefork_core.adapters import Patches, in_session

SERVICES = frozenset({"bedrock-agent-runtime", "bedrock-agentcore", "bedrock-runtime"})
"""The services that are recorded by default, by their names in boto3."""

_added: set[str] = set()
_lock = Lock()


def add_services(*services: str) -> None:
    """Record the clients of other AWS services too, in every session of this process.

        add_services("s3", "dynamodb")

    Args:
        services: names as `boto3.client` takes them.
    """
    _added.update(services)


def is_recorded(client: Any) -> bool:
    """Return whether an ambient session records a client."""
    name = client.meta.service_model.service_name
    return name in SERVICES or name in _added


def service_of(client: Any) -> str:
    """Return the name of a client's service in the names of its events."""
    return str(client.meta.service_model.service_id.hyphenize())


def put_in(patches: Patches, base: type) -> None:
    """Watch each client that makes a call, of a base class."""
    watched: WeakSet[Any] = WeakSet()

    def watching(make_call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(make_call)
        def called(self: Any, operation_name: str, *args: Any, **options: Any) -> Any:
            if self not in watched and in_session() and is_recorded(self):
                with _lock:
                    attempts.watch(self.meta.events, [service_of(self)], "session")
                    watched.add(self)
            return make_call(self, operation_name, *args, **options)

        return called

    def leave() -> None:
        for client in watched:
            attempts.leave(client.meta.events, [service_of(client)], "session")

    patches.at_undo(leave)
    patches.wrap(base, "_make_api_call", watching)
