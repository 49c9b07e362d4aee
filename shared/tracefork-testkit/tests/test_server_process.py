"""The server runs as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx2


def test_the_first_line_is_the_url_and_eof_ends_it() -> None:
    """`python -m tracefork_testkit.server` serves until its standard input ends."""
    command = [sys.executable, "-W", "error", "-m", "tracefork_testkit.server", "--until-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        hello = json.loads(process.stdout.readline())
        assert hello["pid"] == process.pid
        assert httpx2.post(f"{hello['url']}/echo", content=b"x").content == b"x"
        process.stdin.close()
        assert process.wait(10) == 0
