"""Whatever a program has received through the proxy is on the tape, whenever that is killed."""

from __future__ import annotations

import os
import random
import signal
import threading

import httpx2
import pytest

from tracefork_core import Tape
from tracefork_core.tape.integrity import check_integrity
from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import Running, standalone

SEED = 20261128
# `TRACEFORK_KILLS=100` kills that often.
KILLS = int(os.environ.get("TRACEFORK_KILLS", "3"))


def read_until_cut(proxy: Running, http: httpx2.Client, seconds: float) -> dict[str, bytes]:
    """Ask for streams until the proxy is gone; return what came of each.

    The proxy is killed so many seconds after the first piece has come.
    """
    seen: dict[str, bytes] = {}
    timer = threading.Timer(seconds, proxy.process.send_signal, [signal.SIGKILL])
    for n in range(1000):
        path = f"/chunked?n=6&delay=0.004&call={n}"
        try:
            with http.stream("GET", f"{proxy.address}{path}") as response:
                for piece in response.iter_raw():
                    if not seen:
                        timer.start()
                    seen[path] = seen.get(path, b"") + piece
        except httpx2.TransportError:
            break
    timer.join()
    return seen


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_proxy_keeps_all_that_the_program_has_received(
    shell: Shell, provider: ProviderServer, http: httpx2.Client, kill: int
) -> None:
    """Each response is on the tape as far as it came, and the tape is intact but incomplete."""
    delay = random.Random(SEED + kill).uniform(0.0, 0.5)
    with standalone(shell, "record", "run.tape") as proxy:
        seen = read_until_cut(proxy, http, delay)
    tape = shell.folder / "run.tape"
    whole = check_integrity(tape)
    assert (whole.damage, whole.complete) == ([], False)
    with Tape.open(tape) as opened:
        found = {one.url.removeprefix(provider.url): one for one in opened.exchanges}
        lost = [
            path
            for path, body in seen.items()
            if path not in found or not found[path].response_body.startswith(body)
        ]
    assert lost == []
