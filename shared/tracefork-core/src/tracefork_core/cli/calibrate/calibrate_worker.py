"""One run of `tracefork calibrate`, in a process of its own that notes each draw.

    python -m tracefork_core.cli.calibrate.calibrate_worker NOTES record|replay …

This does what `tracefork record|replay …` does, and writes its notes to the file NOTES.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from tracefork_core.chance.draws import observers
from tracefork_core.cli.agent import child_python
from tracefork_core.cli.main import main
from tracefork_core.explaining.draws import Draw, Notebook
from tracefork_core.masking.names import is_secret_name


class Notes(msgspec.Struct, frozen=True):
    """The notes of one run, besides its tape.

    Attributes:
        draws: its draws, in order.
        environment: its environment variables, without secret ones.
        process: its process id.
    """

    draws: list[Draw] = []
    environment: dict[str, str] = {}
    process: int = 0


def _run(notes: Path, words: list[str]) -> int:
    notebook = Notebook()
    observers.append(notebook)
    try:
        return main(words)
    finally:
        observers.remove(notebook)
        plain = {name: value for name, value in os.environ.items() if not is_secret_name(name)}
        written = Notes(notebook.draws, plain, os.getpid())
        child_python.leave(notes, written)


if __name__ == "__main__":
    sys.exit(_run(Path(sys.argv[1]), sys.argv[2:]))
