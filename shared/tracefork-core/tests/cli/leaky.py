"""An agent that leaks its secrets, and tapes of it that were recorded without masking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import ExchangeAside, ExchangePayload, RequestRecord, ResponseRecord

from .conftest import Done, Shell

KEY = "tk-7Jq0xWmB4c9LrYv2"
OTHER_KEY = "another-key-of-another-length-55"
TOKEN = "ghp_0A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r"

AGENT = """\
import gzip
import os

import httpx2

from tracefork_core.adapters import begin_step, end_step

key, url = os.environ["SERVICE_API_KEY"], os.environ["PROVIDER"]
step = begin_step("tool", "look up", detail={"input": {"question": f"who holds {key}?"}})
with httpx2.Client() as client:
    client.post(f"{url}/echo?q={key}", json={"prompt": f"my key is {key}, yours?"})
    client.post(f"{url}/gzip", content=f"packed {key}", headers={"x-note": f"<{key}>"})
    packed = gzip.compress(f"asked {key}".encode(), mtime=0)
    client.post(f"{url}/bytes/3", content=packed, headers={"content-encoding": "gzip"})
    client.post(f"{url}/echo", content=b"nothing to hide")
    with client.stream("POST", f"{url}/chunked?n=3", content=key) as answer:
        for piece in answer.iter_raw():
            pass
end_step(step, error=f"refused: {key}")
"""


def tape(shell: Shell, name: str = "raw.tape", *options: str, mode: str = "raw") -> Done:
    """Record the agent."""
    shell.write("leaky.py", AGENT)
    words = ("record", "--mode", mode, "-o", name, *options, "leaky.py")
    done = shell.tracefork(*words, SERVICE_API_KEY=KEY)
    assert done.exit == 0, done.err
    return done


def write(path: Path, body: bytes, coding: str = "identity", **options: Any) -> None:
    """Record one exchange with equal request and response bodies."""
    writer = TapeWriter(path, describe(), **options)
    n, headers = options.get("at", 0), [("content-encoding", coding)]
    request = RequestRecord("POST", "https://model.test/v1", headers, sha256(body))
    aside = ExchangeAside("main", "test", 0)
    writer.begin(ExchangePayload(n, request), aside, body)
    aside.sizes, aside.turns, aside.end = [len(body)], [[0, 2]], "eof"
    response = ResponseRecord(200, "OK", [(name, value) for name, value in headers], sha256(body))
    writer.end(ExchangePayload(n, request, response), aside, body)
    writer.close(Receipt(digest="", exchanges=0))
