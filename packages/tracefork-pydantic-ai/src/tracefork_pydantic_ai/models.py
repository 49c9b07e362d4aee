"""Make a step of each request to a model.

A model may wrap others: it instruments them, limits them, or asks the next one where one fails. The
step belongs to the model that asks the provider. A model that asks the class it derives from is
asked once, too.

A provider's SDK turns a divergence into an error of its own, which a fallback model answers by
asking the next model. So the session's error is raised above each model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from tracefork_core.adapters import (
    BlockIn,
    Patches,
    RunningStep,
    is_recorded_here,
    replace_in_classes,
    session_checked,
    step,
)
from tracefork_pydantic_ai.clients import bind_clients
from tracefork_pydantic_ai.steps import asked_model, in_run

_Call = Callable[..., Any]


def put_in(patches: Patches) -> None:
    """Put requests to models on the tape of the open session, as steps."""
    replace_in_classes(patches, Model, ["request"], partial(_as_step, patches))
    replace_in_classes(patches, Model, ["request_stream"], partial(_as_streamed_step, patches))


def _is_passed_on(model: Any) -> bool:
    """Return whether another step holds the request, or will."""
    wraps_others = isinstance(model, (WrapperModel, FallbackModel))
    return wraps_others or not is_recorded_here() or asked_model.get() is not None


def _name_of(model: Any) -> str:
    name = model.model_name
    return name if isinstance(name, str) and name else "model"


def _as_step(patches: Patches, owner: type, name: str, original: _Call) -> _Call:
    @wraps(original)
    async def request(self: Any, *args: Any, **options: Any) -> Any:
        if _is_passed_on(self):
            return await original(self, *args, **options)
        bind_clients(patches, self)
        with session_checked(), step("model", _name_of(self), {asked_model: self}):
            return await original(self, *args, **options)

    return request


def _as_streamed_step(patches: Patches, owner: type, name: str, original: _Call) -> _Call:
    @wraps(original)
    def request_stream(
        self: Any, messages: Any, model_settings: Any, parameters: Any, run_context: Any = None
    ) -> Any:
        stream = original(self, messages, model_settings, parameters, run_context)
        if _is_passed_on(self):
            return stream
        bind_clients(patches, self)

        def begin() -> RunningStep:
            with in_run(run_context):  # The reader asks in a task of its own.
                return RunningStep.begin("model", _name_of(self), {asked_model: self})

        return BlockIn(begin, stream)

    return request_stream
