"""The exports of the package, and the examples of its README."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

import tracefork_testkit

README = Path(__file__).parents[1] / "README.md"


def test_every_public_name_is_in_all() -> None:
    """`__all__` is sorted."""
    public = {
        name
        for name, value in vars(tracefork_testkit).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(public - {"annotations"}) == sorted(tracefork_testkit.__all__)


@pytest.mark.parametrize("number", range(len(re.findall("```python", README.read_text()))))
def test_readme_examples_run(number: int) -> None:
    """Each Python example of the README runs unchanged."""
    source = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[number]
    exec(compile(source, f"README.md example {number}", "exec"), {"__name__": "readme"})
