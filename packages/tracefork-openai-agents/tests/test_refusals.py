"""Sessions refuse what they cannot record, and say what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents.realtime import RealtimeAgent, RealtimeModel, RealtimeRunner

import tracefork_core as tracefork


class _Model(RealtimeModel):
    """A model that needs no network."""

    async def connect(self, options: Any) -> None:
        """Do nothing."""

    def add_listener(self, listener: Any) -> None:
        """Do nothing."""

    def remove_listener(self, listener: Any) -> None:
        """Do nothing."""

    async def send_event(self, event: Any) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


async def _talk() -> None:
    runner = RealtimeRunner(RealtimeAgent(name="Voice"), model=_Model())
    async with await runner.run():
        pass


def test_a_session_refuses_realtime(tape: Path) -> None:
    """Nothing is connected; outside of a session it works as always."""
    asyncio.run(_talk())
    with (
        pytest.raises(tracefork.UsageError, match="cannot record a RealtimeSession"),
        tracefork.record(tape),
    ):
        asyncio.run(_talk())


def test_a_session_refuses_voice(tape: Path) -> None:
    """The SDK has it in an extra of its own."""
    from agents.voice import AudioInput, SingleAgentVoiceWorkflow, VoicePipeline

    pipeline = VoicePipeline(workflow=SingleAgentVoiceWorkflow(None))
    with (
        pytest.raises(tracefork.UsageError, match="cannot record a VoicePipeline"),
        tracefork.record(tape),
    ):
        asyncio.run(pipeline.run(AudioInput(buffer=None)))
