"""An agent in a script, recorded, and replayed with its verifier running again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ProviderServer


def hybrid_replay(agent: str, folder: Path, *options: str) -> dict[str, Any]:
    """Record an agent, stop its provider, and return the document of a hybrid replay.

    The agent finds the provider in the variable PROVIDER.
    """
    (folder / "agent.py").write_text(agent)
    with ProviderServer() as server:
        _tracefork(folder, url := server.url, "record", "-o", "agent.tape", "agent.py")
    words = ("replay", "--mode", "hybrid", "--json", *options, "agent.tape", "agent.py")
    document: dict[str, Any] = json.loads(_tracefork(folder, url, *words))
    return document


def marks(named: str) -> pytest.MarkDecorator:
    """Return the ways to say what a verifier is; the mark stands where the agent says MARK.

    `named` decorates a tool that is a verifier by its name alone.
    """
    declared = "tracefork.tool(verifier=True)"
    ways = [(declared, ()), (named, ("--verifier", "run_tests"))]
    return pytest.mark.parametrize(("mark", "options"), ways)


def check_only_the_verifier_runs_again(
    agent: str, folder: Path, mark: str, options: tuple[str, ...]
) -> None:
    """Replay an agent that edits and tests: the file that the tests read is as it was."""
    (folder / "state").write_text("broken")
    document = hybrid_replay(agent.replace("MARK", mark), folder, *options)
    assert document["exit"] == 0, document["divergence"] or document["reason"]
    (one,) = document["verifications"]
    assert (one["tool"], one["verdict"]) == ("run_tests", "same")
    assert one["now"] == [one["recorded"]]
    assert one["now"][0]["exit_code"] == 1
    assert (folder / "edits.log").read_text() == "new\n"
    assert (folder / "runs.log").read_text() == "ran\nran\n"


def _tracefork(folder: Path, provider: str, *words: str) -> str:
    environment = {
        **os.environ,
        "PROVIDER": provider,
        "OPENAI_API_KEY": "sk-none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "HOME": str(folder),
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tracefork_core", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 or words[0] == "replay", done.stderr
    assert done.stdout or words[0] == "record", done.stderr
    return done.stdout
