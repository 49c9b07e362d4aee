"""Keep CrewAI from reporting or asking while a session is open, and from storing in a replay.

CrewAI's switches are environment variables that it reads at import or at each use. They are set
before the import and restored when the session ends. The user's `.env` is read as usual but does
not override them. `Crew(tracing=True)` would, so the functions that begin an upload are replaced.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tracefork_core import TraceforkError, UsageError
from tracefork_core.adapters import Patches, answering_tape, undisturbed
from tracefork_crewai import ADAPTER

SWITCHES = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TESTING": "true",  # No question about sharing the first run; no .crewai/ is left.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # The price list is the package's, not fetched.
}
_folders: list[Path] = []
_count = itertools.count(1)


def prepare() -> Callable[[], None]:
    """Set CrewAI's switches, and keep replays and forks out of its folder; return the undoing."""
    with ExitStack() as stack:
        # Background threads may still write to it when the session ends.
        folder = tempfile.TemporaryDirectory(prefix="tracefork-crewai-", ignore_cleanup_errors=True)
        stack.callback(folder.cleanup)
        _folders.append(Path(folder.name))
        stack.callback(_folders.pop)
        stack.callback(_forget, folder.name)
        for library, apply in (
            ("crewai_core.paths", _elsewhere),
            ("crewai_core.token_manager", _without_its_key),
        ):
            instrument = ADAPTER.instrument(library, apply)
            instrument.on()
            stack.callback(instrument.off)
        for name, value in SWITCHES.items():
            stack.callback(_put_back, name, os.environ.get(name))
            os.environ[name] = value
        return stack.pop_all().close


def put_in(patches: Patches) -> None:
    """Replace the functions that upload and collect traces."""
    for module, path, instead in _UPLOADS:
        # Some versions lack some of them.
        with suppress(ImportError, AttributeError, UsageError):
            *owners, name = path.split(".")
            owner = reduce(getattr, owners, import_module(module))
            patches.replace(owner, name, instead)


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


def fresh_folder() -> Path:
    """Return the path of a new folder, which is deleted when the last session ends.

    Raises:
        TraceforkError: it has ended. A save in the background may begin after that.
    """
    if not _folders:
        raise TraceforkError("tracefork: the fork has ended, and what it saves now is dropped.")
    return _folders[-1] / str(next(_count))


def _elsewhere(patches: Patches, paths: ModuleType) -> None:
    """Let CrewAI take a temporary folder for the user's in replays and forks.

    It makes the folder wherever it looks up the path, so where it does not exist any more, too.
    """
    patches.wrap(paths, "appdirs", _Folders)


def _without_its_key(patches: Patches, module: ModuleType) -> None:
    """Keep the key of CrewAI's own credentials, which no crew uses, from being noted as an input.

    The first run on a machine makes it, so each replay would name it as a file that has changed.
    """
    patches.wrap(module.TokenManager, "_get_or_create_key", undisturbed())


class _Folders:
    """The library that knows the user's folders."""

    def __init__(self, appdirs: Any) -> None:
        self._appdirs = appdirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._appdirs, name)

    def user_data_dir(self, *args: Any, **options: Any) -> str:
        if answering_tape() is not None and _folders:
            return str(_folders[-1])
        folder: str = self._appdirs.user_data_dir(*args, **options)
        return folder


def _forget(folder: str) -> None:
    """Give a module that was imported in a replay the folder that is the user's."""
    for module in map(sys.modules.get, _IMPORTED):
        path = getattr(module, _PATH, None)
        if path is not None and str(path).startswith(folder):
            paths = import_module("crewai_core.paths")  # Its own function would make the folder.
            users = paths.appdirs.user_data_dir(paths.get_project_directory_name(), "CrewAI")
            setattr(module, _PATH, str(path).replace(folder, users, 1))


_PATH = "DEFAULT_STORAGE_PATH"
_RAG = "crewai.rag"
_IMPORTED = (f"{_RAG}.chromadb.constants", f"{_RAG}.chromadb.config", f"{_RAG}.qdrant.constants")


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
