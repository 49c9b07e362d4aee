"""`attach` is for sessions with `ambient=False`; another version of ADK is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import InMemoryRunner, Runner

import tracefork_core as tracefork
import tracefork_google_adk
from tracefork_google_adk import attach, detach

Call = Callable[..., Any]


@pytest.mark.parametrize("kind", ["agent", "app", "runner"])
def test_an_attached_agent_replays_without_ambient_patching(
    agent: Call, ask: Call, twice: Call, paths: Call, kind: str
) -> None:
    """Its model gets clients of the session, and its own back at the end."""
    root = agent("helper", "@say Hello.")
    app = App(name="desk", root_agent=root)
    x: Any = {"agent": root, "app": app, "runner": InMemoryRunner(app=app)}[kind]
    assert attach(x) is x
    try:
        recorded, again = twice(lambda: ask(root).model_dump_json(), ambient=False)
    finally:
        assert detach(x) is x
    assert recorded == again
    assert paths() == ["run:desk ▸ agent:helper ▸ model:gemini-2.5-flash"]


def test_a_detached_agent_is_not_on_a_tape_without_ambient_patching(
    agent: Call, ask: Call, tape: Path, server: Any
) -> None:
    """The control: only `attach` puts its requests and steps on the tape."""
    root = detach(attach(agent("helper", "@say Hello.")))
    with tracefork.record(tape, ambient=False):
        ask(root)
    assert len(server.requests) == 1
    with tracefork.Tape.open(tape) as opened:
        assert (len(opened.exchanges), len(opened.steps)) == (0, 0)


def test_only_agents_and_tools_are_accepted() -> None:
    """Anything else is named in the error."""
    with pytest.raises(tracefork.UsageError, match="cannot attach to 3: it is no App, Runner or"):
        attach(3)
    with pytest.raises(tracefork.UsageError, match="3 is neither a tool of ADK nor a function"):
        tracefork_google_adk.leave_live(3)


def test_an_unsupported_version_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and ADK is left unchanged."""
    before = Runner.run_async
    monkeypatch.delattr(PluginManager, "run_on_tool_error_callback")
    with (
        pytest.raises(tracefork.UsageError, match=r"google-adk 2\..* is made for google-adk<2\.14"),
        tracefork.record(tape),
    ):
        pass
    assert Runner.run_async is before
    monkeypatch.undo()
    with tracefork.record(tape, overwrite=True):
        assert Runner.run_async is not before


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_google_adk.__all__:
        assert getattr(tracefork_google_adk, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tracefork_google_adk.no_such_name
