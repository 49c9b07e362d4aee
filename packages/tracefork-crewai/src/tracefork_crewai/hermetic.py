"""While a session is open CrewAI keeps to itself: nothing is reported, asked or kept elsewhere.

Its switches are environment variables, which it reads when it is imported or each time: they are
set before that, and put back when the session ends. A `.env` of the user's is read as ever, but
does not undo them. `Crew(tracing=True)` would: what begins an upload is replaced.
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
    "CREWAI_TESTING": "true",  # Nobody is asked whether to share a first run; no .crewai/ is left.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # The price list is the package's, not fetched.
}
STORAGE = "CREWAI_STORAGE_DIR"
"""Where memory, knowledge and the states of flows go: to a folder that ends with the session.

A recording that begins with what an earlier run has remembered asks for what no replay asks for.
Who sets the variable has said where it all is, and has it there.
"""


def prepare() -> Callable[[], None]:
    """Set CrewAI's switches and give it a storage of its own; return the undoing."""
    with ExitStack() as stack:
        settings = dict(SWITCHES)
        if not os.environ.get(STORAGE):
            # Background threads may still write into it when the session ends.
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
    """Replace what begins to upload a trace and what collects it; return the undoing."""
    with ExitStack() as stack:
        for module, path, instead in _UPLOADS:
            with suppress(ImportError, AttributeError):  # Not every version has all.
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
    (_BATCHES, "TraceBatchManager.is_batch_initialized", _yes),  # So that nobody begins one.
    (_BATCHES, "TraceBatchManager.add_event", _nothing),
]


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
