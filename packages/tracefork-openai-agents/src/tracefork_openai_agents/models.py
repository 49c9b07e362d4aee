"""Prepare the model of each turn: its name for the steps, and its client where it is attached."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from agents.run_internal import run_loop

from tracefork_core import bind
from tracefork_core.adapters import Patches
from tracefork_openai_agents.steps import model_name

_ORIGINAL = "_tracefork_original"
_attached: dict[int, object] = {}


def put_in(patches: Patches) -> None:
    """Learn the name of each model of a run, and bind the clients of attached agents."""
    patches.wrap(run_loop, "get_model", partial(_prepared, patches))


def attached_agents() -> dict[int, object]:
    """Return the attached agents, by id: agents are not hashable."""
    return _attached


def _prepared(patches: Patches, get_model: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_model)
    def got(agent: Any, run_config: Any) -> Any:
        model = get_model(agent, run_config)
        name = getattr(model, "model", None)
        model_name.set(name if isinstance(name, str) and name else "model")
        if id(agent) in _attached:
            _bind(patches, model)
        return model

    return got


def _bind(patches: Patches, model: Any) -> None:
    """Give a model of an attached agent a client that is recorded with `ambient=False` too."""
    client = getattr(model, "_client", None)
    if client is None or hasattr(client, _ORIGINAL):
        return
    bound: Any = bind(client)
    setattr(bound, _ORIGINAL, client)
    model._client = bound  # noqa: SLF001 - as the SDK itself sets it
    patches.at_undo(partial(setattr, model, "_client", client))
