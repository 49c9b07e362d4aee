"""Run the real Claude Code, whose models are on a server on loopback, and record and replay it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore streams that the SDK leaves to the garbage collector where a test makes it fail."""
    config.addinivalue_line("filterwarnings", "ignore:Unclosed <Memory:ResourceWarning")


KEY = "sk-ant-of-the-tests-0123456789"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder in which Claude Code works, and where it keeps its sessions."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def options(server: ProviderServer, home: Path) -> Callable[..., ClaudeAgentOptions]:
    """Make options for a Claude Code that asks the server, and nothing else."""
    environment = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": str(home),
        "DISABLE_AUTOUPDATER": "1",
        "HOME": str(home),
        "PATH": os.environ["PATH"],
    }

    def make(**given: Any) -> ClaudeAgentOptions:
        common: Any = {
            "model": "claude-sonnet-4-5",
            "system_prompt": "You run a desk.",
            "setting_sources": [],
            "cwd": home,
            "env": environment,
        }
        return ClaudeAgentOptions(**{**common, **given})

    return make


@pytest.fixture
def talk() -> Callable[..., list[Any]]:
    """Ask one client prompt after prompt, and return all messages."""

    async def asked(options: ClaudeAgentOptions, prompts: tuple[str, ...]) -> list[Any]:
        messages: list[Any] = []
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                messages += [message async for message in client.receive_response()]
        return messages

    def run(options: ClaudeAgentOptions, *prompts: str) -> list[Any]:
        return asyncio.run(asked(options, prompts))

    return run
