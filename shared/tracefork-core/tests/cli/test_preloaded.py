"""The Python that waits for commands runs those of its own environment, and says when it died."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .preloaded import Preloaded


def test_a_dead_one_is_named_and_another_environment_is_not_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python reads at its start is that of the one that waits, whatever was set since."""
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
