"""Convert what tools return: classes of the SDK to data and back, and other classes to text."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from agents.editor import ApplyPatchResult
from agents.tool import (
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    _FunctionToolInvocationResult,
)

from tracefork_core.adapters import FrameworkValues

Invoked = _FunctionToolInvocationResult
"""What the SDK makes of a call: the output, and whether it is a text about an error."""

_MODELS = {kind.__name__: kind for kind in (ToolOutputText, ToolOutputImage, ToolOutputFileContent)}
_DATACLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (ApplyPatchResult, ShellCallOutcome, ShellCommandOutput, ShellResult, Invoked)
}
_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}
_CONTAINERS = (list, tuple, set, frozenset)


class Values(FrameworkValues):
    """Converts the classes that the SDK documents as results of tools."""

    tag = "openai-agents"

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if _MODELS.get(kind.__name__) is kind:
            return dict(value.model_dump(mode="json"))  # type: ignore[attr-defined] # of pydantic
        if _DATACLASSES.get(kind.__name__) is kind:
            return {it.name: getattr(value, it.name) for it in dataclasses.fields(kind)}
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return (_MODELS.get(name) or _DATACLASSES[name])(**fields)

    def hold(self, value: Any) -> bool:
        """Return whether a replay can rebuild a value without an annotation."""
        if isinstance(value, _CONTAINERS):
            return all(map(self.hold, value))
        if type(value) is dict:
            return all(self.hold(part) for pair in value.items() for part in pair)
        if (fields := self.fields(value)) is not None:
            return self.hold(fields)
        return type(value) in _PLAIN


VALUES = Values()
