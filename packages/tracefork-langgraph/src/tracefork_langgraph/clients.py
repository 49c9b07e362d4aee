"""Find the HTTP clients of a chat model, wherever its SDK objects keep them.

There is no table of providers. The search follows the model's own fields and takes every client of
httpx, httpx2 or aiohttp that it finds. It skips the fields that every chat model has (cache,
callbacks, rate limiter): their requests are not the model's.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from langchain_core.language_models import BaseChatModel

_DEEPEST = 6
_NOT_SDKS = frozenset(
    "aiohttp builtins httpx httpx2 langchain_core langgraph langsmith pydantic".split()
)
_CLIENTS = {
    "httpx": ("Client", "AsyncClient"),
    "httpx2": ("Client", "AsyncClient"),
    "aiohttp": ("ClientSession",),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference from one object to another: an entry in its attribute dictionary."""

    attributes: dict[str, object]
    name: str

    @property
    def value(self) -> object:
        """The object that is referred to."""
        return self.attributes[self.name]

    def put(self, value: object) -> None:
        """Replace the object, bypassing `__setattr__`: the holder may be frozen."""
        self.attributes[self.name] = value


def held_clients(model: BaseChatModel) -> list[Reference]:
    """Return every reference to an HTTP client that the fields of a model lead to."""
    return [
        reference
        for holder in holders(model)
        for reference in _references(holder)
        if is_http_client(reference.value)
    ]


def holders(model: BaseChatModel) -> Iterator[object]:
    """Yield a model and each SDK object that its fields lead to, once."""
    seen: set[int] = set()
    waiting: list[tuple[object, int]] = [(model, 0)]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if depth < _DEEPEST:
            parts = (reference.value for reference in _references(value))
            waiting.extend((part, depth + 1) for part in parts if _is_of_an_sdk(part))


def is_http_client(value: object) -> bool:
    """Return whether `value` is a client of httpx or httpx2, or a session of aiohttp."""
    for library, classes in _CLIENTS.items():
        module = sys.modules.get(library)
        if module and isinstance(value, tuple(getattr(module, name) for name in classes)):
            return True
    return False


def _references(holder: object) -> Iterator[Reference]:
    common: Container[str] = ()
    if isinstance(holder, BaseChatModel):
        _wake(holder)
        common = BaseChatModel.model_fields
    for kept_in in ("__dict__", "__pydantic_private__"):
        # Look at the class first: a missing attribute can make an SDK object load something.
        attributes = getattr(holder, kept_in, None) if hasattr(type(holder), kept_in) else None
        if isinstance(attributes, dict):
            for name in attributes:
                if name not in common:
                    yield Reference(attributes, name)


def _wake(model: BaseChatModel) -> None:
    """Make a model create the clients that it normally creates on first use."""
    for kind in type(model).__mro__:
        for name, declared in vars(kind).items():
            if isinstance(declared, cached_property) and name.endswith("client"):
                with suppress(Exception):  # The same error is raised where the client is used.
                    getattr(model, name)


def _is_of_an_sdk(value: object) -> bool:
    if isinstance(value, BaseChatModel):
        return True  # A class of the user's that wraps another model.
    package = type(value).__module__.partition(".")[0]
    return not (
        package in _NOT_SDKS
        or package in sys.stdlib_module_names
        or isinstance(value, type)
        or is_http_client(value)
    )
