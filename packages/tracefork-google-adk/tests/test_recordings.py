"""A recording of ADK's own plugin becomes a tape that can be read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.cli.plugins.recordings_plugin import RecordingsPlugin
from google.adk.runners import InMemoryRunner
from google.genai import types

import tracefork_core as tracefork
from tracefork_google_adk import import_recording

QUESTION = '@call weather {"city": "Rome"}\n@then\n@say Take a hat.'


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


@pytest.fixture
def recorded(agent: Callable[..., Any], tmp_path: Path) -> Path:
    """A folder that ADK's own plugin has recorded a run in."""
    folder = tmp_path / "case"
    folder.mkdir()

    async def run() -> None:
        app = App(
            name="desk",
            root_agent=agent("helper", "Be brief.", tools=[weather]),
            plugins=[RecordingsPlugin()],
        )
        runner = InMemoryRunner(app=app)
        config = {"dir": str(folder), "user_message_index": 0, "streaming_mode": "none"}
        session = await runner.session_service.create_session(
            app_name="desk", user_id="ann", state={"_adk_recordings_config": config}
        )
        message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        async for _ in runner.run_async(user_id="ann", session_id=session.id, new_message=message):
            pass

    asyncio.run(run())
    return folder


def test_an_imported_recording_can_be_shown(recorded: Path, tape: Path) -> None:
    """Its calls stand in order, by agent; it says that bytes and times are missing."""
    imported = import_recording(recorded, tape)
    assert (imported.models, imported.tools, imported.fidelity) == (2, 1, "decoded")
    assert "times" in imported.missing
    shown = subprocess.run(
        [Path(sys.executable).with_name("tracefork"), "show", tape],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "helper" in shown
    assert "weather" in shown
    with tracefork.Tape.open(tape) as opened:
        first, tool, last = opened.exchanges
        assert b"Be brief." in first.request_body
        assert b"sunny in Rome" in tool.response_body
        assert b"Take a hat." in last.response_body


def test_a_folder_without_a_recording_is_refused(tmp_path: Path, tape: Path) -> None:
    """The message names the file that is missing; nothing is written."""
    with pytest.raises(tracefork.UsageError, match=r"has no generated-recordings\.yaml"):
        import_recording(tmp_path, tape)
    (tmp_path / "generated-recordings.yaml").write_text("recordings: [{agent_name: 3}]")
    with pytest.raises(tracefork.UsageError, match="is not a recording of ADK"):
        import_recording(tmp_path, tape)
    assert not tape.exists()
