"""What a framework's tools return, as data: its classes by a name and their fields, and back.

    {"langchain": "ToolMessage", "content": "sunny", "status": "error"}
    {"langchain": "dict", "pairs": [["langchain", "a dictionary that would look like one of them"]]}

A name on a tape is looked up in a table of its framework's adapter, and nowhere else. What is of
none of its classes stays as it is: `values` holds plain values, and refuses others by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tracefork_core.errors import ReplayError

_DICT = "dict"


class FrameworkValues:
    """Tells values in plain ones, and means them again. A framework's adapter has one of its own.

    Attributes:
        tag: the name of the framework: what is told of its classes has it as a key.
    """

    tag: ClassVar[str]

    def fields(self, value: object) -> dict[str, Any] | None:
        """Return what a value is made of; None where its class is none of the framework's."""
        raise NotImplementedError

    def built(self, name: str, fields: dict[str, Any]) -> object:
        """Return what has these fields, of the class of that name; any exception is a refusal."""
        raise NotImplementedError

    def told(self, value: object) -> object:
        """Return `value` without the framework's classes; what is not theirs stays as it is."""
        if (fields := self.fields(value)) is not None:
            told = {name: self.told(field) for name, field in fields.items()}
            return {self.tag: type(value).__name__, **told}
        if type(value) is dict:
            if self.tag in value:
                return {self.tag: _DICT, "pairs": [self.told([*pair]) for pair in value.items()]}
            return {name: self.told(item) for name, item in value.items()}
        return _each(value, self.told)

    def meant(self, value: object) -> object:
        """Return what `told` was given.

        Raises:
            ReplayError: it is nothing that `told` returns.
        """
        if type(value) is not dict:
            return _each(value, self.meant)
        fields: dict[str, Any] = {name: self.meant(item) for name, item in value.items()}
        if self.tag not in fields:
            return fields
        name = fields.pop(self.tag)
        try:
            return dict(fields["pairs"]) if name == _DICT else self.built(name, fields)
        except Exception as error:  # whatever a class makes of fields that it does not expect
            raise ReplayError(
                f"tracefork: what the tape holds of a tool is no {name!r:.60} as its code has it "
                f"now: {error!r:.200}"
            ) from error


def _each(value: Any, change: Callable[[Any], object]) -> object:
    kind = type(value)
    return kind(map(change, value)) if kind is list or kind is tuple else value
