"""Convert what tools return: classes of the SDK to data and back, and other classes to text."""

from __future__ import annotations

import dataclasses
from typing import Any

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


VALUES = Values()
