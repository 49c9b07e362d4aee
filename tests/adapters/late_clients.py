"""Collect clients that a program leaves to the garbage collector, before pytest ends.

Some frameworks keep the last clients of HTTP until the interpreter ends. pytest collects garbage
once more when its filters of warnings are gone, and reports their connections as errors.
"""

from __future__ import annotations

import gc
import warnings

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Collect the last clients before pytest does, which knows no filter any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(5):
            gc.collect()
