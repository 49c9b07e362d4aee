"""Every command reads a hostile tape within 2 s and 256 MB, or refuses it with one clear error.

`TRACEFORK_FUZZ=1` tries each command on each tape; without it, a few of them.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.cli.command_table import SUMMARIES

from .hostile_tapes import TAPES, ordinary

HERE = Path(__file__).parent
SECONDS = 2.0
MEMORY = 256 * 2**20
SAID = 20_000
"""An error is for people: the text of a tape in it is cut."""
ALL = "TRACEFORK_FUZZ" in os.environ
SAMPLE, SEED = 4, 20
AGENT = "print('an agent that asks nothing')\n"
WORDS: dict[str, list[str]] = {
    "replay": ["replay TAPE agent.py", "replay --json TAPE agent.py"],
    "proxy": [
        "proxy replay TAPE -- true",
        "proxy fork TAPE --at 0 --text no -o branch.tape -- true",
    ],
    "verify": ["verify TAPE agent.py", "verify --integrity TAPE", "verify --json --integrity TAPE"],
    "show": [
        "show TAPE",
        "show --json TAPE",
        "show TAPE 0",
        "show --json TAPE 0",
        "show TAPE 0 --raw",
        "show TAPE --text",
        "show TAPE 0 --against 1",
        "show TAPE 0 --html --overwrite",
        "show TAPE 0 --request-raw",
        "show TAPE --checkpoints",
        "show TAPE --checkpoints --json",
        "show TAPE --checkpoint 1",
        "show TAPE --checkpoint 1 --json",
    ],
    "ci": ["ci diff . --against .", "ci check ."],
    "report": ["report TAPE --overwrite", "report --json TAPE --overwrite --no-content"],
    "tui": ["tui TAPE", "tui --json TAPE"],
    "ls": ["ls", "ls --json"],
    "tree": ["tree TAPE", "tree --json TAPE"],
    "fork": ["fork TAPE agent.py --at 0 --text no -o branch.tape"],
    "try": ["try TAPE agent.py --at 0 --prompt no"],
    "blame": ["blame TAPE agent.py --oracle exit"],
    "bisect": ["bisect TAPE agent.py --oracle exit"],
    "shrink": ["shrink TAPE agent.py --oracle exit -o small.tape"],
    "calibrate": ["calibrate --tape TAPE --no-live agent.py"],
    "race": ["race TAPE agent.py --seeds 1"],
    "pack": ["pack TAPE -o packed.tape"],
    "unpack": ["unpack TAPE --into out"],
    "sign": ["sign TAPE --key key --overwrite"],
    "scan": ["scan TAPE", "scan --json TAPE", "scan --mask re:b+c TAPE"],
    "redact": ["redact TAPE", "redact --json TAPE"],
    "export": [
        "export TAPE -o trace.json",
        "export TAPE --content -o trace.json --overwrite",
        "export TAPE --json --atif --content -o run.json",
        "export TAPE --har --content -o run.har",
    ],
    "import": ["import --langgraph-sqlite TAPE -o new.tape"],
    "gc": ["gc --dry-run --keep 0 --orphans --max-tapes 1", "gc --json --dry-run --keep 0"],
}
"""How each command is typed. A command that is not here is tried as `NAME TAPE`."""
NO_TAPE = {"demo", "record", "doctor", "bench", "validate", "view"}
"""They read no tape that a stranger could have made; `view` does, and has a test of its own."""
LINES = [
    line for name in SUMMARIES if name not in NO_TAPE for line in WORDS.get(name, [f"{name} TAPE"])
]


def made(make: Callable[[Path], dict[str, str] | None], folder: Path) -> dict[str, Any]:
    """Make a tape alone in a folder, with an agent; return the place and surroundings of a job."""
    home = folder.with_name(f"{folder.name}-home")
    (folder / "out").mkdir(parents=True)
    (folder / "agent.py").write_text(AGENT)
    told = {"TRACEFORK_HOME": str(home), "NO_COLOR": "1", "TRACEFORK_PASSPHRASE": ""}
    return {"folder": str(folder), "environment": told | (make(folder / "run.tape") or {})}


def measured(jobs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    (folder / "jobs.json").write_text(json.dumps(jobs))
    words = [sys.executable, str(HERE / "looker.py"), str(folder / "jobs.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def chosen() -> dict[str, list[str]]:
    """Return the command lines to try on each tape."""
    if ALL:
        return dict.fromkeys(TAPES, LINES)
    chance = random.Random(SEED)
    return {name: [chance.choice(LINES)] for name in chance.sample(sorted(TAPES), SAMPLE)}


def wrong(result: dict[str, Any]) -> list[str]:
    """Return what a command did that none may do."""
    return [
        *([f"exit {result['exit']}"] if result["exit"] not in (0, 1, 2, 3, 5, 125) else []),
        *([f"{result['seconds']:.1f} s"] if result["seconds"] > SECONDS else []),
        *([f"{result['bytes'] / 2**20:.0f} MB"] if result["bytes"] > MEMORY else []),
        *([f"an error of {result['said']} bytes"] if result["said"] > SAID else []),
        *(["a traceback"] if "Traceback" in result["text"] else []),
    ]


CHOSEN = chosen()


@pytest.mark.parametrize("name", CHOSEN)
def test_every_command_is_bounded_on_a_hostile_tape(name: str, tmp_path: Path) -> None:
    """A new command is among them as soon as it is in the table of commands.

    What it takes on an ordinary tape is what it takes to start, and to run the agent.
    """
    usual, hostile = made(ordinary, tmp_path / "usual"), made(TAPES[name], tmp_path / "hostile")
    lines = [words(line) for line in CHOSEN[name]]
    results = measured([place | line for line in lines for place in (usual, hostile)], tmp_path)
    found = []
    for line, begun, result in zip(CHOSEN[name], results[::2], results[1::2], strict=True):
        assert "no option" not in begun["text"]
        result["seconds"] -= begun["seconds"]
        if faults := wrong(result):
            found.append(f"{line}: {', '.join(faults)}: {result['text'][-300:]}")
    assert not found, "\n".join(found)


def test_the_bounds_are_measured(tmp_path: Path) -> None:
    """Negative control: the time and the memory of a command that takes both are seen."""
    eager = "import runpy; x = bytearray(400 * 2**20); sum(range(10**8)); raise KeyError('planted')"
    (tmp_path / "eager.py").write_text(eager)
    job = {"folder": str(tmp_path), "environment": {"TRACEFORK_HOME": str(tmp_path / "home")}}
    (result,) = measured([job | {"words": ["record", "-o", "x.tape", "eager.py"]}], tmp_path)
    faults = " ".join(wrong(result))
    assert " s" in faults
    assert "MB" in faults
    assert "traceback" in faults


def words(line: str) -> dict[str, Any]:
    return {"words": line.replace("TAPE", "run.tape").split()}
