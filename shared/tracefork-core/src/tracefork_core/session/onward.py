"""Hold a change of a question for the questions after it that are alike.

A fork that changes a system prompt or a model at one question mostly means the agent that asks it:
its next questions bring the same prompt and ask the same model. Those of other agents do not, and
stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from tracefork_core.exchange.contract import Request
from tracefork_core.providers import ModelCall, Part
from tracefork_core.providers.decode import decode, model_call
from tracefork_core.session.interventions import Edit
from tracefork_core.tape import Exchange

_INSTRUCTIONS = frozenset({"system", "developer"})


class Onward:
    """The change of a fork's question, for what is asked after it.

    Args:
        edit: the change at the fork point. Its model, temperature and system prompt hold on.
        first: the recorded exchange at the fork point.
    """

    def __init__(self, edit: Edit, first: Exchange) -> None:
        self._edit = Edit(model=edit.model, temperature=edit.temperature, system=edit.system)
        self._asked = model_call(first)

    def edit_of(self, request: Request) -> Edit | None:
        """Return what is changed in a later request; None if nothing is."""
        call = decode(request.method, request.url, request.headers, request.body, None, (), b"")
        if call is None or self._asked is None:
            return None
        edit = self._edit
        if call.request_model != self._asked.request_model:
            edit = replace(edit, model=None, temperature=None)
        if _instructions(call) != _instructions(self._asked):
            edit = replace(edit, system=None)
        return None if edit == Edit() else edit


def _instructions(call: ModelCall) -> tuple[Part, ...]:
    if call.system:
        return call.system
    first = call.input[0] if call.input else None
    return first.parts if first is not None and first.role in _INSTRUCTIONS else ()
