"""Convert what tools return: classes of ADK and of the program to data and back, others to JSON.

A tool may return anything. ADK passes it to callbacks as it is, and to the model as JSON.
"""

from __future__ import annotations

from typing import Any

from google.genai import types
from pydantic import BaseModel

from tracefork_core.adapters import ProgramValues


class Values(ProgramValues):
    """Converts the results of one tool."""

    tag = "google-adk"

    def class_named(self, name: str) -> type | None:
        kind = super().class_named(name) or getattr(types, name, None)
        return kind if isinstance(kind, type) else None

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if isinstance(value, BaseModel) and getattr(types, kind.__name__, None) is kind:
            return {"value": value.model_dump(mode="json", exclude_none=True)}
        return super().fields(value)
