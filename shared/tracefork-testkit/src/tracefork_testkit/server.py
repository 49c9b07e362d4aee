"""Run a provider server as a process: `python -m tracefork_testkit.server --port 0`.

The first line on standard output is JSON with the URL. SIGTERM, SIGINT or the end of standard
input (with `--until-eof`) stop it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence

from tracefork_testkit.provider import ProviderServer


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal or the end of standard input."""
    parser = argparse.ArgumentParser(prog="python -m tracefork_testkit.server")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on (default 0: a free one)"
    )
    parser.add_argument("--chunk-delay", type=float, default=0.0, help="seconds between events")
    parser.add_argument("--nondeterministic", action="store_true")
    parser.add_argument("--until-eof", action="store_true", help="stop when stdin ends")
    options = parser.parse_args(argv)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server = ProviderServer(
        nondeterministic=options.nondeterministic,
        chunk_delay=options.chunk_delay,
        port=options.port,
        keep_requests=False,
    )
    with server:
        print(json.dumps({"url": server.url, "pid": os.getpid()}), flush=True)
        if options.until_eof:
            sys.stdin.buffer.read()
        else:
            stopped.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
