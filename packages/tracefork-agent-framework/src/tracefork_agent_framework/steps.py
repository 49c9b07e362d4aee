"""Make steps of agents and model calls.

The framework offers middleware for this, and it does not suffice: it would run inside the user's
own, and what that asks would belong to no agent. So the methods themselves are replaced, in each
class that defines them, also in those that the program defines later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from agent_framework import BaseAgent, BaseChatClient

from tracefork_agent_framework.clients import ATTACHED, bind_client
from tracefork_agent_framework.places import Place, stable
from tracefork_agent_framework.streams import within
from tracefork_core.adapters import Patches, in_session, replace_in_classes


def put_in(patches: Patches) -> None:
    """Put agents and model calls on the tape of the open session, as steps."""
    replace_in_classes(patches, BaseAgent, ["run"], _as_agent)
    replace_in_classes(
        patches, BaseChatClient, ["_inner_get_response"], partial(_as_model, patches)
    )


def _as_agent(owner: type, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def ran(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return run(self, *args, **options)
        place = Place("agent", stable(self.name, "agent"), ATTACHED.around(self))
        return within(place, lambda: run(self, *args, **options))

    return ran


def _as_model(
    patches: Patches, owner: type, name: str, get_response: Callable[..., Any]
) -> Callable[..., Any]:
    @wraps(get_response)
    def got(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return get_response(self, *args, **options)
        bind_client(patches, self)
        place = Place("model", _model(self, options), is_branch=False)
        return within(place, lambda: get_response(self, *args, **options))

    return got


def _model(client: Any, options: dict[str, Any]) -> str:
    asked = (options.get("options") or {}).get("model")
    named = asked or getattr(client, "model", None) or getattr(client, "model_id", None)
    return named if isinstance(named, str) else "model"
