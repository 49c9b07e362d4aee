"""Make exchanges of what a memory is asked and told: a replay needs no database of memories.

`ListMemory` is a list in the program, `TextCanvasMemory` is text there: both work as they are.
Every other memory may keep what it remembers beyond the run, so `query`, `add`, `clear` and `reset`
(ChromaDB) are exchanges. What agents call, `update_context`, asks by `query`, and runs in a replay.
"""

from __future__ import annotations

import inspect
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from autogen_core import Image
from autogen_core.memory import (
    ListMemory,
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
)

from tracefork_autogen.exchanges import exchange
from tracefork_autogen.values import Values
from tracefork_core.adapters import Effect, Patches, is_recorded_here, replace_in_classes, step

_EFFECTS: dict[str, Effect] = {
    "query": "read",
    **dict.fromkeys(("add", "clear", "reset"), "write"),
}
_CONTENTS = ("query", "content")
_CANVAS = "autogen_ext.memory.canvas._text_canvas_memory"


class _Values(Values):
    """Converts what memories hold. AutoGen's own classes do not read the JSON that they write."""

    def fields(self, value: object) -> dict[str, Any] | None:
        if isinstance(value, MemoryQueryResult):
            return {"results": list(value.results)}
        if isinstance(value, MemoryContent):
            kind = _plain(value.mime_type)
            return {"content": _plain(value.content), "kind": kind, "metadata": value.metadata}
        return super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == MemoryQueryResult.__name__:
            return MemoryQueryResult(**fields)
        if name == MemoryContent.__name__:
            content, kind = _built(fields["content"]), _built(fields["kind"])
            return MemoryContent(content=content, mime_type=kind, metadata=fields["metadata"])
        return super().built(name, fields)


_VALUES = _Values()


def _plain(part: Any) -> object:
    if isinstance(part, Image):
        return {"image": part.to_base64()}
    if isinstance(part, MemoryMimeType):
        return {"mime": part.value}
    return {"bytes": b64encode(part).decode()} if isinstance(part, bytes) else part


def _built(plain: Any) -> Any:
    match plain:
        case {"image": str(data)}:
            return Image.from_base64(data)
        case {"mime": str(name)}:
            return MemoryMimeType(name)
        case {"bytes": str(data)}:
            return b64decode(data)
    return plain


def put_in(patches: Patches) -> None:
    """Make the calls of memories exchanges of the open session."""
    replace_in_classes(patches, Memory, list(_EFFECTS), _instead)


def _instead(
    owner: type, name: str, original: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    if issubclass(owner, ListMemory) or owner.__module__ == _CANVAS:
        return original
    signature = inspect.signature(original)

    @wraps(original)
    async def called(self: Any, *args: Any, **options: Any) -> Any:
        if not is_recorded_here():
            return await original(self, *args, **options)
        given = dict(signature.bind(self, *args, **options).arguments)

        async def work(**told: Any) -> Any:
            for key, value in told.items():
                if key in _CONTENTS:
                    given[key] = _VALUES.decode(value)
            return await original(**given)

        told = {key: _VALUES.encode(given[key]) for key in _CONTENTS if key in given}
        memory = str(getattr(self, "name", type(self).__name__))
        with step("memory", memory):
            return await exchange(f"memory.{name}", told, work, _VALUES, effect=_EFFECTS[name])

    return called
