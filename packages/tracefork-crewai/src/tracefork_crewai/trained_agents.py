"""Stand in for the files of trained agents: a recording reads them, and a replay does not.

CrewAI stores them with pickle. What was read is on the tape as data, and nothing is unpickled.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from crewai.utilities.file_handler import PickleHandler

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed
from tracefork_crewai.reads import Reads


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each file of trained agents."""
    put_in_front(
        patches, PickleHandler, ("load", "save"), TrainedAgents, kind="trained agents", same=_same
    )


def _same(handler: Any) -> Hashable:
    return Path(handler.file_path).name


class TrainedAgents:
    """The content of one file, as one session sees it."""

    def __init__(self, _: object, state: State) -> None:
        self._is_answered = state.is_answered
        self._reads = Reads(state, nothing={})
        self._saved: list[Any] = []

    def load(self, own: Any) -> Any:
        """Return what the file holds."""
        if not self._saved:
            return self._reads.read("agents", own)
        if self._is_answered:
            return copy.deepcopy(self._saved[-1])
        with undisturbed():
            return own()

    def save(self, own: Any, data: Any) -> None:
        """Replace what the file holds."""
        self._saved = [copy.deepcopy(data)]
        if not self._is_answered:
            with undisturbed():
                own(data)
