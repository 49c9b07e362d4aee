"""`tracefork ci record`: record an agent live into a folder of tapes, and note it in the manifest.

All tapes of a folder are recorded with the same hash seed, so that one worker can replay them all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.gate import manifest
from tracefork_core.cli.gate.manifest import Entry
from tracefork_core.errors import ReplayError, UnwritableError, UsageError
from tracefork_core.tape.creation import SCRATCH
from tracefork_core.tape.schema import BESIDE, beside

SEED = "20"
"""The hash seed of all tapes of a folder, unless PYTHONHASHSEED names another one."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A new tape of the folder; `status` is the exit status of its agent."""

    name: str
    entry: Entry
    document: dict[str, object]
    status: int
    replaced: Entry | None


def record(
    folder: Path, name: str, agent: Agent, here: Path, *, recording: list[str], switches: list[str]
) -> Recorded:
    """Run an agent live in `here`, and record it as `name` into the folder.

    Raises:
        UsageError: the agent does not exist.
        ReplayError: nothing was captured. The folder is as it was.
        TapeError: the manifest cannot be read.
        UnwritableError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(f"tracefork: cannot create {folder}: {error.strerror}.") from error
    manifest.read(folder)  # Before the run, which may cost money.
    draft = folder / f"{SCRATCH}{os.getpid()}-{name}"
    try:
        status, document = _record(draft, agent, here, recording)
        count = document.get("exchanges")
        if not isinstance(count, int) or not count:
            raise ReplayError(
                f"tracefork: {agent.words} made no call that tracefork captures, so {name} would "
                "prove nothing. Nothing was added. `tracefork doctor` lists what it captures."
            )
        digest = str(document["digest"])
        entry = manifest.entry_of(
            agent, here, folder, digest, count, switches=switches, recording=recording
        )
        draft.replace(folder / name)
    finally:
        for suffix in ("", *BESIDE):
            beside(draft, suffix).unlink(missing_ok=True)
    before: list[Entry | None] = [None]

    def add(tapes: dict[str, Entry]) -> None:
        before[0] = tapes.get(name)
        tapes[name] = entry

    manifest.update(folder, add)
    return Recorded(name, entry, document, status, before[0])


def _record(
    draft: Path, agent: Agent, here: Path, recording: list[str]
) -> tuple[int, dict[str, object]]:
    """Record in a process of its own; what the agent prints goes to stderr."""
    words = ["record", "--json", "--overwrite", "-o", str(draft), *recording, *agent.argv]
    environment = {hash_seed.VARIABLE: SEED, **os.environ}
    done = subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "tracefork_core.cli.main", *words],
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ReplayError(f"tracefork: {agent.words} ended with status {done.returncode}.")
    if isinstance(error := document.get("error"), dict):
        message = str(error.get("message"))
        kind = UsageError if done.returncode == UsageError.exit_code else ReplayError
        raise kind(f"tracefork: {message}")
    return done.returncode, document


def default_name(agent: Agent) -> str:
    """Return the name of an agent's tape."""
    return f"{agent.name}{tape_names.SUFFIX}"
