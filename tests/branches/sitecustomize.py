"""Let audit hooks be traced in each Python that has this folder on its path: for coverage."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

_add = sys.addaudithook


def _add_traced(hook: Callable[[str, tuple[Any, ...]], Any]) -> None:
    with contextlib.suppress(AttributeError):  # A built-in function takes no attributes.
        hook.__cantrace__ = True  # type: ignore[attr-defined]
    _add(hook)


sys.addaudithook = _add_traced
