"""Async code on another event loop than asyncio's is refused before it sends anything.

If trio is installed, each process that uses httpx loads it, and takes half as long again to start.
So it is installed in one environment only, for this file.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tracefork_core import UsageError, record, replay
from tracefork_testkit import ProviderServer


@pytest.mark.parametrize("run", [record, replay])
def test_trio_is_refused(run: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """The same code works on asyncio."""

    async def agent(url: str = f"{provider.url}/echo") -> int:
        async with httpx.AsyncClient() as client:
            return (await client.get(url)).status_code

    tape = tmp_path / "run.tape"
    with record(tape):
        assert asyncio.run(agent()) == 200
    with (
        pytest.raises(UsageError),
        run(tmp_path / "new.tape" if run is record else tape),
    ):
        trio.run(agent)
    assert len(provider.requests) == 1
