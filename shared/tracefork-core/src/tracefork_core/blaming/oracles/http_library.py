"""The HTTP library that blame asks through where it asks by itself: whichever is installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def http_library() -> ModuleType | None:
    """Return httpx2 or httpx; None where neither is installed."""
    for name in ("httpx2", "httpx"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None
