"""A folder, a provider, and the variables that point SDKs of any language at it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Desk:
    """A folder in which tracefork runs programs of other languages, and their provider."""

    folder: Path
    provider: ProviderServer

    def tracefork(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command."""
        surroundings = {
            "OPENAI_BASE_URL": f"{self.provider.url}/v1",
            "OPENAI_API_KEY": "sk-none-0123456789",
            "ANTHROPIC_BASE_URL": self.provider.url,
            "ANTHROPIC_API_KEY": "sk-ant-none-0123456789",
            "TRACEFORK_HOME": str(self.folder / "home"),
        }
        return subprocess.run(
            [sys.executable, "-m", "tracefork_core", *words],
            cwd=self.folder,
            env={**os.environ, **surroundings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a folder with a provider of its own."""
    with ProviderServer() as provider:
        yield Desk(tmp_path, provider)
