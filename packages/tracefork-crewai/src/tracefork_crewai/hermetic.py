"""Keep CrewAI from reporting, asking or storing anything outside while a session is open.

CrewAI's switches are environment variables that it reads at import or at each use. They are set
before the import and restored when the session ends. The user's `.env` is read as usual but does
not override them. `Crew(tracing=True)` would, so the functions that begin an upload are replaced.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import reduce
from importlib import import_module

SWITCHES = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TESTING": "true",  # No question about sharing the first run; no .crewai/ is left.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # The price list is the package's, not fetched.
}
STORAGE = "CREWAI_STORAGE_DIR"
"""The folder of memory, knowledge and the states of flows: a temporary one for each session.

A recording that starts with the memory of earlier runs sends requests that no replay sends. If you
set the variable yourself, your folder is used.
"""


def prepare() -> Callable[[], None]:
    """Set CrewAI's switches and give it a temporary storage folder; return the undoing."""
    with ExitStack() as stack:
        settings = dict(SWITCHES)
        if not os.environ.get(STORAGE):
            # Background threads may still write to it when the session ends.
            folder = tempfile.TemporaryDirectory(
                prefix="tracefork-crewai-", ignore_cleanup_errors=True
            )
            stack.callback(folder.cleanup)
            settings[STORAGE] = folder.name
        for name, value in settings.items():
            stack.callback(_put_back, name, os.environ.get(name))
            os.environ[name] = value
        return stack.pop_all().close


def instrument() -> Callable[[], None]:
    """Replace the functions that upload and collect traces; return the undoing."""
    with ExitStack() as stack:
        for module, path, instead in _UPLOADS:
            with suppress(ImportError, AttributeError):  # Some versions lack some of them.
                *owners, name = path.split(".")
                owner = reduce(getattr, owners, import_module(module))
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, instead)
        return stack.pop_all().close


def _nothing(*_: object, **__: object) -> None:
    """Stand in for a part of an upload."""


def _yes(_: object) -> bool:
    return True


_BATCHES = "crewai.events.listeners.tracing.trace_batch_manager"
_UPLOADS = [
    ("crewai.execution", "_start_tracing", _nothing),
    (_BATCHES, "TraceBatchManager.is_batch_initialized", _yes),  # So no batch is begun.
    (_BATCHES, "TraceBatchManager.add_event", _nothing),
]


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
