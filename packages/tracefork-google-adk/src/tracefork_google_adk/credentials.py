"""Let Vertex AI be replayed without Google credentials.

A client of Vertex AI asks `google.auth` for credentials first. Without a key file, google.auth
looks for the metadata server of a virtual machine, and it posts to another host to get a token.
That is not part of the run. A recording lets it happen off the tape, so no token lands there. A
replay gets credentials whose token is a placeholder, and the project that the recording found.

A fork is live from its fork point on, so it uses the real credentials, like a recording.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_core.adapters import (
    Patches,
    State,
    answering_tape,
    fork_point,
    replace_in_classes,
    state_of,
    undisturbed,
)
from tracefork_google_adk import ADAPTER

TOKEN = "tracefork-replay"  # noqa: S105 - it opens nothing
_KEY = "default"


def put_in(patches: Patches, module: ModuleType) -> None:
    """Keep what google.auth does off the tape, and away from the network in a replay."""
    from google.auth.credentials import Credentials

    patches.wrap(module, "default", _found)
    replace_in_classes(patches, Credentials, ["refresh"], _refreshed)


def _is_replay() -> bool:
    return answering_tape() is not None and fork_point() is None


class _Found:
    """The default credentials of one session: their project, or that there are none."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, own: Callable[[], tuple[Any, str | None]]) -> tuple[Any, str | None]:
        from google.auth.exceptions import DefaultCredentialsError

        n = self._state.number(_KEY)
        if _is_replay():
            noted = self._state.recorded(_KEY, n)
            answer = noted[-1].answer if noted else {"error": "the recording did not ask for them"}
            found = None if "error" in answer else (_placeholder(), answer["project"])
        else:
            try:
                with undisturbed():
                    found = own()
                answer = {"project": found[1]}
            except DefaultCredentialsError as error:
                found, answer = None, {"error": str(error)}
        self._state.note(_KEY, n, answer)
        if found is None:
            raise DefaultCredentialsError(answer["error"])
        return found


def _found(default: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(default)
    def asked(*args: Any, **options: Any) -> Any:
        found = state_of(default, "Google credentials", _Found)
        if found is None:
            return default(*args, **options)
        return found.find(lambda: default(*args, **options))

    return asked


def _refreshed(owner: type, name: str, refresh: Any) -> Any:
    @wraps(refresh)
    def refreshed(self: Any, request: Any) -> None:
        if _is_replay():
            self.token, self.expiry = TOKEN, None
            return
        with undisturbed():
            refresh(self, request)

    return refreshed


def _placeholder() -> Any:
    """Return credentials that are valid for ever and open nothing."""
    from google.oauth2.credentials import Credentials

    return Credentials(TOKEN)


INSTRUMENT = ADAPTER.instrument("google.auth", put_in)
"""A session applies it without google.adk, too: other clients ask Vertex AI as well."""
