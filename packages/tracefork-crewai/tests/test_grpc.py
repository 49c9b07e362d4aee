"""CrewAI loads gRPC and hardly ever uses it: a channel is named, a loaded module is not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

import tracefork_core as tracefork


class _Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details: object) -> object:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


@pytest.fixture
def target() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((_Echo(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


@tracefork.tool(effect="read")
def look_up() -> str:
    return "found"


def test_the_target_of_a_channel_is_named(tape: Path, target: str) -> None:
    """What goes over it is not on the tape, and a replay cannot refuse it."""
    with tracefork.record(tape) as run:
        look_up()
        with grpc.insecure_channel(target) as channel:
            assert channel.unary_unary("/test/Echo")(b"hello") == b"hello"
    assert run.receipt is not None
    assert run.receipt.strays == [f"{target} (grpc)"]
    assert "grpc" in run.receipt.unwatched
    assert (run.receipt.connections, run.receipt.crossed) == (1, 0)


def test_a_channel_alone_is_no_proof(tape: Path, target: str) -> None:
    """Nothing was captured, and the replay says so."""

    def run() -> None:
        with grpc.insecure_channel(target) as channel:
            channel.unary_unary("/test/Echo")(b"hello")

    with tracefork.record(tape):
        run()
    with pytest.raises(tracefork.ReplayError, match=r"\(grpc\)"), tracefork.replay(tape):
        run()
