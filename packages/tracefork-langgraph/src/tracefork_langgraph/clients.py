"""Find the HTTP clients that a chat model asks through, wherever its SDK objects keep them.

There is no table of providers: what a model's own fields lead to is looked into, and a client of
httpx, httpx2 or aiohttp is one whoever holds it. What every chat model has (its cache, its
callbacks, its rate limiter) asks on somebody else's account, and is left out.
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
    """Where an object refers to another: an entry in the dictionary of its attributes."""

    attributes: dict[str, object]
    name: str

    @property
    def value(self) -> object:
        """Return what is referred to."""
        return self.attributes[self.name]

    def put(self, value: object) -> None:
        """Refer to something else; without asking the object, which may be frozen."""
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
    """Yield a model, and each object of an SDK that its fields lead to, once."""
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
        # Of the class first: asking an SDK's object for what it lacks can make it load something.
        attributes = getattr(holder, kept_in, None) if hasattr(type(holder), kept_in) else None
        if isinstance(attributes, dict):
            for name in attributes:
                if name not in common:
                    yield Reference(attributes, name)


def _wake(model: BaseChatModel) -> None:
    """Let a model make the clients that it would make when they are first used."""
    for kind in type(model).__mro__:
        for name, declared in vars(kind).items():
            if isinstance(declared, cached_property) and name.endswith("client"):
                with suppress(Exception):  # It fails again where it is used, in its own words.
                    getattr(model, name)


def _is_of_an_sdk(value: object) -> bool:
    if isinstance(value, BaseChatModel):
        return True  # A model of the user's own, around another.
    package = type(value).__module__.partition(".")[0]
    return not (
        package in _NOT_SDKS
        or package in sys.stdlib_module_names
        or isinstance(value, type)
        or is_http_client(value)
    )
