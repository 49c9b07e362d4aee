"""The waiting Python runs commands of its own environment, and reports when it has died."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .preloaded import Preloaded


def test_a_dead_python_is_reported_and_other_environments_get_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reads some variables only when it starts."""
    waits = Preloaded()
    assert waits.run(["--version"], tmp_path, os.environ).returncode == 0
    assert waits.process is not None
    waits.process.kill()
    waits.process.wait()
    with monkeypatch.context() as changed:
        changed.setenv("PYTHONHASHSEED", "1")
        assert waits.run(["--version"], tmp_path, os.environ).returncode == 0
    with pytest.raises(RuntimeError, match=r"has died \(exit status -9\)"):
        waits.run(["--version"], tmp_path, os.environ)
