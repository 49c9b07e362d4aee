"""One run of `tracefork calibrate`, in a process of its own that writes down what was drawn.

    python -m tracefork_core.cli.calibrate.calibrate_worker NOTES record|replay …

does what `tracefork record|replay …` does, and leaves its notes in the file NOTES.
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
    """What one run leaves besides its tape."""

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
