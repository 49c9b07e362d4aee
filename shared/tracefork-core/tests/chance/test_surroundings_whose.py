"""A read of the environment belongs to the session that the code runs under, or to none."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from threading import Barrier

import httpx2

from tracefork_core import Tape, record
from tracefork_testkit import ProviderServer


class ReadingTransport(httpx2.HTTPTransport):
    """A transport of the user that reads a variable when it connects."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        os.environ.get("BELOW")
        return super().handle_request(request)


def noted(tape: Path) -> set[str]:
    """Return the variables on a tape."""
    with Tape.open(tape) as opened:
        return {seen.name for seen in opened.surroundings if seen.name}


def test_reads_below_a_seam_do_not_count(tape: Path, provider: ProviderServer) -> None:
    """A replay does not make them; the agent's own reads count."""
    with record(tape), httpx2.Client(transport=ReadingTransport(verify=False)) as client:
        os.environ.get("ABOVE")
        client.get(f"{provider.url}/bytes/3")
    assert noted(tape) == {"ABOVE"}


def test_parallel_sessions_record_their_own_reads(tmp_path: Path) -> None:
    """Two threads record at once."""
    both = Barrier(2, timeout=20)

    def run(name: str) -> set[str]:
        with record(tmp_path / f"{name}.tape"):
            both.wait()
            os.environ.get(name)
            both.wait()
        return noted(tmp_path / f"{name}.tape")

    with ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(copy_context().run, run, name) for name in ("ONE", "TWO")}
        assert {name: job.result() for name, job in jobs.items()} == {
            "ONE": {"ONE"},
            "TWO": {"TWO"},
        }
