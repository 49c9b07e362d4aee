"""A divergence in a test shows the card, and hardly anything else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tracefork_testkit import ProviderServer

TEST = """
import asyncio, os, pathlib
import openai, httpx2
import tracefork_core as tracefork

TAPE = pathlib.Path(__file__).with_name("run.tape")
URL = os.environ["PROVIDER"]

def agent(question):
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none")
    messages = [{"role": "user", "content": question}]
    return client.chat.completions.create(model="gpt-5-mini", messages=messages)

async def async_agent(question):
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key="none")
    messages = [{"role": "user", "content": question}]
    return await client.chat.completions.create(model="gpt-5-mini", messages=messages)

def test_sync():
    with tracefork.replay(TAPE):
        agent("Where is order 18?")

def test_async():
    with tracefork.replay(TAPE):
        asyncio.run(async_agent("Where is order 18?"))

@tracefork.replay(TAPE)
def test_decorated():
    agent("Where is order 18?")

def test_plain_client():
    with tracefork.replay(TAPE):
        httpx2.post(f"{URL}/v1/chat/completions", json={"model": "gpt-5-mini", "messages": []})

def test_never_asked():
    with tracefork.replay(TAPE):
        pass
"""
NAMES = ["sync", "async", "decorated", "plain_client", "never_asked"]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what pytest prints of five tests that diverge."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_agent.py").write_text(TEST)
    with ProviderServer() as server:
        code = "import test_agent; test_agent.agent('Where is order 17?')"
        environment = {
            **os.environ,
            "PROVIDER": server.url,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        record = f"import tracefork_core as t\nwith t.record('run.tape'): exec({code!r})"
        subprocess.run([sys.executable, "-c", record], cwd=folder, env=environment, check=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1, done.stdout
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_at_most_25_lines_around_it(failed: str, name: str) -> None:
    """Of the SDK and of tracefork no frame is shown; what differs stands there once."""
    section = failed.partition(f" test_{name} _")[2].partition("\n____")[0].partition("\n====")[0]
    lines = section.splitlines()
    card = [line for line in lines if line.startswith("E ")]
    assert "tracefork:" in card[0]
    assert len(lines) - len(card) <= 25, section
    assert "site-packages" not in section
    assert "scope.py" not in section
    assert section.count("tracefork: ") == 1
