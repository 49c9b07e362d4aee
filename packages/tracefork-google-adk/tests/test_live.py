"""Live runs are refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import InMemoryRunner

import tracefork_core as tracefork


def run_live(agent: Any) -> None:
    """Begin a live run."""

    async def begin() -> None:
        runner = InMemoryRunner(agent, app_name="desk")
        events = runner.run_live(
            user_id="ann", session_id="s1", live_request_queue=LiveRequestQueue()
        )
        async for _ in events:
            pass

    asyncio.run(begin())


def connect(_: Any) -> None:
    """Connect to a model, as a run with `support_cfc` does."""

    async def begin() -> None:
        async with Gemini(base_url="http://127.0.0.1:9").connect(LlmRequest(model="gemini-live")):
            pass

    asyncio.run(begin())


@pytest.mark.parametrize("live", [run_live, connect])
def test_a_session_refuses_what_is_live(
    live: Callable[[Any], None], agent: Callable[..., Any], tape: Path
) -> None:
    """It connects to nothing, and says what to do instead."""
    with (
        pytest.raises(tracefork.UsageError, match=r"cannot record Runner\.run_live"),
        tracefork.record(tape),
    ):
        live(agent("helper"))
