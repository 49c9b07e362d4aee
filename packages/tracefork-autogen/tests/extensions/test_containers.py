"""Code in containers of Docker runs once: a replay asks no daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeResult
from autogen_ext.code_executors.docker import DockerCommandLineCodeExecutor

import tracefork_core as tracefork

from .docker_api import Docker, docker_daemon

Call = Callable[..., Any]


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Docker]:
    """A daemon that the client of Docker finds."""
    with docker_daemon() as docker:
        monkeypatch.setenv("DOCKER_HOST", docker.url)
        yield docker


async def execute(folder: Path, *codes: str, restart: bool = False) -> list[CodeResult]:
    results: list[CodeResult] = []
    async with DockerCommandLineCodeExecutor(work_dir=folder, container_name="desk") as executor:
        for code in codes:
            blocks = [CodeBlock(code, "python")]
            results.append(await executor.execute_code_blocks(blocks, CancellationToken()))
            if restart:
                await executor.restart()
    return results


@pytest.mark.parametrize("restart", [False, True])
def test_a_replay_asks_no_daemon(
    docker: Docker, twice: Call, paths: Call, tmp_path: Path, restart: bool
) -> None:
    """Its results are the recorded ones. Calls of the daemon are no exchanges of their own."""
    asked = []

    def run() -> list[CodeResult]:
        codes = ("print(id(object()))", "raise SystemExit(3)")
        docker.asked.clear()
        results = asyncio.run(execute(tmp_path, *codes, restart=restart))
        asked.append(list(docker.asked))
        return results

    recorded, again = twice(run)
    assert recorded == again
    assert [result.exit_code for result in recorded] == [0, 3]
    assert asked[1] == []
    assert "POST /containers/c1/start" in asked[0]
    assert "POST /containers/c1/stop" in asked[0]
    assert ("POST /containers/c1/restart" in asked[0]) is restart
    assert paths() == ["tool:execute_code_blocks"] * 2


def test_a_fork_starts_a_container_when_it_first_runs_code(
    docker: Docker, tape: Path, tmp_path: Path
) -> None:
    """It runs code only if writes are allowed."""
    codes = ("print(1)", "print(id(object()))")
    with tracefork.record(tape):
        recorded = asyncio.run(execute(tmp_path, *codes))
    docker.asked.clear()
    with pytest.raises(tracefork.TraceforkError), tracefork.fork(tape, 1):
        asyncio.run(execute(tmp_path, *codes))
    assert docker.asked == []
    with tracefork.fork(tape, 1, writes="allow"):
        forked = asyncio.run(execute(tmp_path, *codes))
    assert forked[0] == recorded[0]
    assert [asked for asked in docker.asked if "/c1/exec" in asked] == ["POST /containers/c1/exec"]
