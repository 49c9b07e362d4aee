"""Prepare the model of each turn: its name, its client where it is attached, and its requests.

The SDK lists what a request is to include in the order of a set, which hashes decide. A session
sorts that list, so that a replay in another process sends the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from agents.models.openai_responses import OpenAIResponsesModel
from agents.run_internal import run_loop

from tracefork_core.adapters import Attached, Patches, bind_until_undo, in_session
from tracefork_openai_agents.steps import model_name

ATTACHED = Attached("openai_agents")
"""The attached agents."""


def put_in(patches: Patches) -> None:
    """Learn the name of each model of a run, and bind the clients of attached agents."""
    patches.wrap(run_loop, "get_model", partial(_prepared, patches))
    patches.wrap(OpenAIResponsesModel, "_build_response_create_kwargs", _in_order)


def _prepared(patches: Patches, get_model: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_model)
    def got(agent: Any, run_config: Any) -> Any:
        model = get_model(agent, run_config)
        name = getattr(model, "model", None)
        model_name.set(name if isinstance(name, str) and name else "model")
        if agent in ATTACHED:
            bind_until_undo(patches, model, "_client")
        return model

    return got


def _in_order(build: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(build)
    def built(self: Any, *args: Any, **options: Any) -> Any:
        request = build(self, *args, **options)
        if in_session() and isinstance(request.get("include"), list):
            request["include"] = sorted(request["include"])
        return request

    return built
