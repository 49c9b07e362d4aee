"""The guide and the README work as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs.pages import blocks, follow

from tracefork_testkit import ProviderServer

from .conftest import KEYS


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The model and the keys are taken away and brought back."""
    typed = follow("docs/how-to/record-amazon-bedrock.md", tmp_path)
    assert len([command for command, _ in typed if " replay " in command]) == 2


def test_the_example_of_the_readme_works(
    server: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It records an answer and replays it without keys."""
    monkeypatch.chdir(tmp_path)
    example = next(
        block.text
        for block in blocks("packages/tracefork-bedrock/README.md")
        if block.kind == "python"
    )
    given: Any = {"region_name": "us-east-1", "endpoint_url": server.url, **KEYS}
    made = ", ".join(f"{name}={value!r}" for name, value in given.items())
    example = example.replace('"bedrock-runtime")', f'"bedrock-runtime", {made})')
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert len(server.requests) == 1
