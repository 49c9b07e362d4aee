"""Code in Jupyter kernels runs once: a replay starts no kernel, here and in a container."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeResult
from autogen_ext.code_executors.docker_jupyter import (
    DockerJupyterCodeExecutor,
    DockerJupyterServer,
)
from autogen_ext.code_executors.docker_jupyter._jupyter_server import JupyterConnectionInfo
from autogen_ext.code_executors.jupyter import JupyterCodeExecutor

from .docker_api import docker_daemon

Call = Callable[..., Any]
SHOW = """
from IPython.display import HTML
n += 1
print(id(object()), n)
HTML("<b>bold</b>")
"""


async def execute(executor: Any) -> list[CodeResult]:
    """Run code whose parts share a variable."""
    results: list[CodeResult] = []
    async with executor:
        for code in ("n = 1", SHOW, "1 / 0"):
            blocks = [CodeBlock(code, "python")]
            results.append(await executor.execute_code_blocks(blocks, CancellationToken()))
    return results


@pytest.fixture(scope="module")
def gateway() -> Iterator[int]:
    """The port of a server of kernels, as it runs in AutoGen's container."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = [sys.executable, "-m", "jupyter", "kernelgateway", f"--KernelGatewayApp.port={port}"]
    words += ["--KernelGatewayApp.auth_token=t", "--KernelGatewayApp.ip=127.0.0.1"]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with closing(socket.socket()) as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait()


def check(recorded: list[Any], again: list[Any]) -> None:
    assert recorded == again
    assert type(again[1]) is type(recorded[1])
    assert [result.exit_code for result in recorded] == [0, 0, 1]
    assert " 2\n" in recorded[1].output
    assert recorded[1].output_files == again[1].output_files != []


def test_a_kernel_on_this_machine_runs_once(twice: Call, paths: Call, tmp_path: Path) -> None:
    """It keeps variables from one call to the next; its pages are written once."""
    made: list[int] = []

    def run() -> list[CodeResult]:
        results = asyncio.run(execute(JupyterCodeExecutor(output_dir=tmp_path / "out")))
        made.append(len(list((tmp_path / "out").iterdir())))
        return results

    check(*twice(run))
    assert made == [1, 1]
    assert paths() == ["tool:execute_code_blocks"] * 3


def test_a_kernel_in_a_container_runs_once(
    twice: Call, paths: Call, tmp_path: Path, gateway: int
) -> None:
    """It is reached over HTTP and a websocket, which a replay opens no more."""
    at = JupyterConnectionInfo(host="127.0.0.1", use_https=False, port=gateway, token="t")

    def run() -> list[CodeResult]:
        return asyncio.run(execute(DockerJupyterCodeExecutor(at, output_dir=tmp_path)))

    check(*twice(run))
    assert paths() == ["tool:execute_code_blocks"] * 3


def test_a_container_with_a_server_of_kernels_starts_once(
    twice: Call, tmp_path: Path, gateway: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts its container when it is made."""
    asked: list[list[str]] = []

    async def converse() -> list[CodeResult]:
        async with DockerJupyterServer(token="t", bind_dir=tmp_path) as server:
            return await execute(DockerJupyterCodeExecutor(server))

    with docker_daemon() as docker:
        docker.published = gateway
        monkeypatch.setenv("DOCKER_HOST", docker.url)

        def run() -> list[CodeResult]:
            docker.asked.clear()
            results = asyncio.run(converse())
            asked.append(list(docker.asked))
            return results

        check(*twice(run))
    assert "POST /containers/c1/start" in asked[0]
    assert "POST /containers/c1/stop" in asked[0]
    assert asked[1] == []
