"""Turn the arguments of a tool's call into data to compare, and back after a fork's edit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

_UNNAMED = "*"
_VALUES = (str, int, float, bytes, date, time, timedelta, Decimal, UUID, PurePath, Enum)


class Arguments:
    """The arguments of one call: `told` is compared, `given` returns those of the real call."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._args = args
        self._kwargs = kwargs
        self.told: dict[str, object] = {name: plain(item) for name, item in kwargs.items()}
        if args:
            self.told[_UNNAMED] = plain(args)

    def given(self, told: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the original objects, except for arguments that a fork has changed in `told`."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, item in told.items():
            same = name in self.told and self.told[name] is item
            if name == _UNNAMED:
                args = list(self._args) if same else item
            else:
                kwargs[name] = self._kwargs[name] if same else item
        return args, kwargs


def plain(value: object) -> object:
    """Return a value as data that can be compared; for any other object, the name of its class."""
    if value is None or isinstance(value, _VALUES):
        return value
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {str(name): plain(item) for name, item in value.items()}
        return sorted(([plain(name), plain(item)] for name, item in value.items()), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    return f"a {type(value).__module__}.{type(value).__qualname__}"
