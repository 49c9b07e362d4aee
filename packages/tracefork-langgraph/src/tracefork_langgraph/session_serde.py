"""Serialize states for one session: what it wrote itself as its program does, the rest strictly.

A program's checkpointer may create any type that its states name, or use pickle. That is its own
matter for what this process wrote. Bytes from a tape may come from anywhere, so they are read as a
`TapeSaver` reads a file.
"""

from __future__ import annotations

import hashlib
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from tracefork_langgraph.serde import StrictSerializer, TypeName

declared_types: set[TypeName] = set()
"""The types that attached graphs declare for their states."""


class SessionSerializer(SerializerProtocol):
    """Write as the program's serializer does; read strictly what this object did not write.

    Attributes:
        strict: the serializer of what goes onto a tape and comes from it.
    """

    def __init__(self, own: SerializerProtocol) -> None:
        self._own = own
        self.strict = StrictSerializer(_allowed_by(own))
        self._written: set[bytes] = set()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value as the program does."""
        tag, data = self._own.dumps_typed(obj)
        self._written.add(hashlib.sha256(data).digest())
        return tag, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value.

        Raises:
            UsageError: it is from a tape, and contains a type that is not allowed.
        """
        if hashlib.sha256(data[1]).digest() in self._written:
            return self._own.loads_typed(data)
        self.strict.allowed |= declared_types
        return self.strict.loads_typed(data)


def _allowed_by(serde: SerializerProtocol) -> set[TypeName]:
    """Return the types that the program allows by name in its own serializer."""
    names = getattr(serde, "_allowed_msgpack_modules", None)
    return {tuple(name) for name in names} if isinstance(names, (set, frozenset)) else set()
