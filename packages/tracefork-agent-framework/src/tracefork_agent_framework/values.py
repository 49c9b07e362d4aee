"""Convert what tools return: classes that can be rebuilt to data and back, others to JSON.

A tool may return anything. Unless it has a parser of its own, the framework makes JSON of it for
the model. A tool may also ask the user for something, by an exception.
"""

from __future__ import annotations

import json
from typing import Any

from agent_framework import Content, FunctionTool
from agent_framework.exceptions import UserInputRequiredException

from tracefork_core.adapters import ProgramValues


class Values(ProgramValues):
    """Converts the results of one tool."""

    tag = "agent-framework"

    def fields(self, value: object) -> dict[str, Any] | None:
        if isinstance(value, Content):
            return {"value": value.to_dict()}
        if type(value) is UserInputRequiredException:
            asks: Any = value
            return {"contents": list(asks.contents), "message": str(asks)}
        return super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == Content.__name__:
            return Content.from_dict(fields["value"])
        if name == UserInputRequiredException.__name__:
            return UserInputRequiredException(**fields)
        return super().built(name, fields)

    def storable(self, value: object) -> object:
        if self.hold(value):
            return value
        return json.loads(json.dumps(FunctionTool._make_dumpable(value), default=str))  # noqa: SLF001
