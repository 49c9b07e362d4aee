"""Blame runs a failed pytest test by its node id, and grades it by its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

pytestmark = pytest.mark.many_processes

TEST = """\
import os

import httpx2


def test_refund():
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "refund?"}]}
    with httpx2.Client(verify=False, timeout=30) as client:
        answer = client.post(f"{os.environ['PROVIDER']}/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == "yes"


def test_other():
    assert False
"""
NODE = ["-m", "pytest", "--", "-q", "-p", "no:cacheprovider", "test_desk.py::test_refund"]


def test_blame_runs_one_pytest_test_by_its_node_id(tmp_path: Path) -> None:
    """Only that test runs in each fork; it fails as recorded and passes with another answer."""
    (tmp_path / "test_desk.py").write_text(TEST)
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Reply:
        asked.append(request)
        return Reply("yes" if len(asked) > 1 else "no")

    with ProviderServer(answer) as provider:
        assert tracefork(tmp_path, provider, "record", "-o", "run.tape", *NODE).returncode == 1
        words = ["--oracle", "exit", "--budget", "3 calls", "--yes", "--json", "run.tape"]
        done = tracefork(tmp_path, provider, "blame", *words, *NODE)
    document = json.loads(done.stdout)
    whole, none = document["curve"][1], document["curve"][0]
    assert whole["forks"] == whole["failures"] >= 5
    assert none["forks"] == len(asked) - 1 == document["ledger"]["live_calls"] > 0
    assert none["failures"] == 0
    assert document["undefined"]["forks"] == 0


def tracefork(
    folder: Path, provider: ProviderServer, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PROVIDER": provider.url, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
