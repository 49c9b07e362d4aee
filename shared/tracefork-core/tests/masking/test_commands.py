"""What a command gets from outside (arguments, input, surroundings) keeps no secret anywhere."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape

from .conftest import KEY, OTHER_KEY, everything_kept
from .layers import VALUES, Case, make_case

AGENT = """
import json, os, sys
import httpx2

given = [*sys.argv[2:], *sys.stdin.read().split("\\x1e")]
given += [os.environ[name] for name in sorted(os.environ) if name.startswith("NOTE_")]
with httpx2.Client() as client:
    client.post(sys.argv[1] + "/echo", json={"given": given})
    for text in given:
        client.post(sys.argv[1] + f"/split?at={len(text) // 2}", content=text.encode())
raise ValueError(given[0])
"""
NO_TAIL = "\x1e"


class Machine:
    """A folder and a store in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home = folder / "work", folder / "home"
        self.work.mkdir()
        (self.work / "agent.py").write_text(AGENT)

    def run(self, *words: str, given: str = "", **environment: str) -> Any:
        """Run a command and return its JSON document."""
        done = subprocess.run(
            [sys.executable, "-m", "tracefork_core.cli.main", *words],
            cwd=self.work,
            env={**os.environ, "TRACEFORK_HOME": str(self.home), **environment},
            input=given.encode(),
            capture_output=True,
            check=False,
        )
        return json.loads(done.stdout) if "--json" in words else done


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def cases(count: int) -> list[Case]:
    """Return cases that fit into an argument."""
    found = (make_case(random.Random(number)) for number in range(20_000, 30_000))
    return [case for case, _ in zip(found, range(count), strict=False)]


def test_arguments_input_and_surroundings_keep_no_secret(machine: Machine, parrot: str) -> None:
    """Record, scan and redact agree on them, and the store of commands keeps none either."""
    found = cases(12)
    arguments = [case.text for case in found[:4]]
    given = NO_TAIL.join(case.text for case in found[4:8])
    notes = {f"NOTE_{n}": case.text for n, case in enumerate(found[8:])}
    for mode in ("safe", "raw"):
        command = ["record", "--json", "--mode", mode, "-o", f"{mode}.tape", "agent.py"]
        machine.run(*command, "--", parrot, *arguments, given=given, **VALUES, **notes)
    scanned = machine.run("scan", "--json", "safe.tape", "raw.tape", **VALUES)
    places = {tape["tape"]: {place["kind"] for place in tape["found"]} for tape in scanned["tapes"]}
    assert places["safe.tape"] == set()
    assert places["raw.tape"] >= {"exchange", "input"}
    assert not [tape["problem"] for tape in scanned["tapes"] if tape["problem"]]
    redacted = machine.run("redact", "--json", "raw.tape", **VALUES)
    with Tape.open(machine.work / "safe.tape") as safe:
        assert redacted["digest"] == safe.digest
    (machine.work / "raw.tape").unlink()
    kept = everything_kept(machine.work) + everything_kept(machine.home)
    assert not [case for case in found if case.secret.encode() in kept]
    assert not [case for case in found if json.dumps(case.text)[1:-1].encode() in kept]


def test_a_stored_command_gets_its_secrets_from_the_variables(
    machine: Machine, parrot: str
) -> None:
    """The store holds their names. A replay has the value that the variable has by then."""
    (machine.work / "agent.py").write_text(
        "import sys, httpx2\n"
        "print(sys.argv[2:])\n"
        "httpx2.post(sys.argv[1], content=sys.argv[2].encode())\n"
    )
    words = ["record", "-o", "run.tape", "agent.py", "--", f"{parrot}/echo", f"--key={KEY}"]
    done = machine.run(*words, SERVICE_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    (stored,) = (machine.home / "runs").iterdir()
    assert KEY not in stored.read_text()
    assert "--key=tracefork-secret-SERVICE_API_KEY" in stored.read_text()
    again = machine.run("replay", "run.tape", SERVICE_API_KEY=OTHER_KEY)
    assert again.returncode == 0, again.stderr
    assert f"--key={OTHER_KEY}".encode() in again.stdout
    without = machine.run("replay", "run.tape")
    assert without.returncode == 0, without.stderr
    assert b"--key=tracefork-secret-SERVICE_API_KEY" in without.stdout
