"""Recorded programs, sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import Timeout

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach
from tracefork_testkit import ProviderServer

from .program import START, Program, Shape


@pytest.fixture
def model(model: Callable[..., Any]) -> Callable[..., Any]:
    """Make a chat model that closes its connections: LangChain caches no client with this timeout.

    LangChain caches 128 clients. More models would evict one that another test left open.
    """
    return partial(model, timeout=Timeout(60), default_headers={"Connection": "close"})


@pytest.fixture(params=["sync", "async"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner | None]:
    """The event loop of an async program. There is one: a client's connections belong to a loop."""
    if request.param == "sync":
        yield None
        return
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def program(
    model: Callable[..., Any], tape: Path, loop: asyncio.Runner | None
) -> Callable[[Shape], Program]:
    """Make a program that runs a graph of a shape."""

    def make(shape: Shape) -> Program:
        ran: list[str] = []
        graph = shape(model(max_retries=0), ran).compile(checkpointer=TapeSaver(tape))
        return Program(attach(graph), tape, ran, loop)

    return make


@pytest.fixture
def recorded(
    program: Callable[[Shape], Program], server: ProviderServer
) -> Callable[..., tuple[Program, Any]]:
    """Record a program, stop the provider, and return the program and its result."""

    def record(shape: Shape, does: Callable[[Program], Any] = _run) -> tuple[Program, Any]:
        made = program(shape)
        with tracefork.record(made.tape):
            output = does(made)
        server.stop()
        return made, output

    return record


def _run(program: Program) -> Any:
    return program.run(START)
