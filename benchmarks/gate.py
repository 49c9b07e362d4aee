"""Measure how long it takes to check a folder of a hundred tapes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench import Bench, clean_environment
from table import Measurement, Row, Spread
from tracefork_core import Tape

TITLE = "Checking a folder of tapes"
_CHECK, _ALONE = "tracefork ci check", "tracefork replay, one after another"
CASES = ("100 tapes",)
_MOST_SECONDS = 30


def measure(bench: Bench) -> Measurement:
    """Measure the check of many copies of the demo's tape, beside single replays of it."""
    many, alone = (10, 2) if bench.quick else (100, 5)
    folder = bench.folder / "gate"
    shutil.rmtree(folder, ignore_errors=True)
    environment = clean_environment() | {"TRACEFORK_HOME": str(bench.folder / "gate-home")}
    _run(folder.parent, environment, "demo", "--dir", str(folder))
    environment |= {"OPENAI_BASE_URL": _copy(folder, many), "OPENAI_API_KEY": "none"}
    checks = [_run(folder, environment, "ci", "check") for _ in range(1 if bench.quick else 3)]
    words = ("replay", "ticket.tape", "support_agent.py")
    single = Spread.of([_run(folder, environment, *words) * many for _ in range(alone)])
    check = Spread.of(checks)
    case, target = f"{many} tapes", f"≤ {_MOST_SECONDS} s"
    compared = f"{single.median / check.median:.1f} x faster"
    met = check.median <= _MOST_SECONDS
    return Measurement(
        TITLE,
        "Copies of the tape of the demo, six exchanges of a LangGraph agent with tools: `ci check` "
        f"of all of them on two cores, and {many} times one `tracefork replay` "
        f"(measured {alone} times).",
        [
            Row(case, _ALONE, single, "s"),
            Row(case, _CHECK, check, "s", compared, target, met=met),
        ],
    )


def _copy(folder: Path, many: int) -> str:
    """Copy the demo's tape, write a manifest, and return the base URL that its agent needs."""
    tapes = folder / "tapes"
    tapes.mkdir()
    with Tape.open(folder / "ticket.tape") as tape:
        digest, count = tape.digest, len(tape.exchanges)
        url = tape.exchanges[0].url.removesuffix("/chat/completions")
    entry = {
        "form": "script",
        "target": "support_agent.py",
        "folder": "..",
        "digest": digest,
        "exchanges": count,
    }
    names = [f"ticket-{n}.tape" for n in range(many)]
    for name in names:
        shutil.copy(folder / "ticket.tape", tapes / name)
    manifest = {"version": 1, "tapes": dict.fromkeys(names, entry)}
    (tapes / "tracefork-ci.json").write_text(json.dumps(manifest))
    return url


def _run(folder: Path, environment: dict[str, str], *words: str) -> float:
    """Run a command, and return its seconds."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tracefork_core", *words],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return time.perf_counter() - began
