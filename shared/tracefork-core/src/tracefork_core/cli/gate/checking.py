"""`tracefork ci check`: replay each tape of a folder, and say pass, fail or undecided."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import msgspec

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.child_python import Done
from tracefork_core.cli.exits import DIFFERENT
from tracefork_core.cli.gate.manifest import Entry, Manifest
from tracefork_core.cli.gate.rates import Rates
from tracefork_core.cli.gate.verdict import Checked, Gate, Verdict
from tracefork_core.cli.gate.worker import Setup
from tracefork_core.cli.gate.workers import LostError, PerThread, Workers, cores
from tracefork_core.errors import Divergence, TapeError, TraceforkError, UsageError
from tracefork_core.tape import Tape

Tell = Callable[[Checked, int, int], None]
"""Gets each finished check, the number of finished ones, and the number of all."""

_FEW = 2
"""Tapes per worker that are replayed in fresh processes: to load libraries ahead takes as long."""
_CANNOT_RUN = frozenset({"SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError"})
"""What ends an agent before its first call if it cannot be run at all at this commit."""


def check(
    folder: Path,
    manifest: Manifest,
    *,
    only: Collection[str] = (),
    jobs: int | None = None,
    strict: bool = False,
    exact: bool = False,
    rates: Rates | None = None,
    tell: Tell = lambda *_: None,
) -> Gate:
    """Replay the tapes of a manifest, each in a process of its own, without a network.

    Args:
        folder: the folder of the manifest.
        manifest: its entries.
        only: the names of the tapes to check; all by default.
        jobs: how many replay at a time; by default one per processor.
        strict: also compare the thread or task of each exchange, and the order.
        exact: also fail a replay that is equal only by its matchers.
        rates: also run the agents live, and grade them.
        tell: gets each finished check.
    """
    began = time.perf_counter()
    entries = {name: one for name, one in manifest.tapes.items() if not only or name in only}
    everyone: list[Workers] = []
    mine, closed, checks = PerThread(everyone), set[bool](), list[Checked]()
    at_a_time = min(jobs or cores(), max(1, len(entries)))
    is_warm = len(entries) > _FEW * at_a_time

    def checked(name: str, entry: Entry) -> Checked:
        one = _check(folder, name, entry, mine, closed, strict=strict, is_warm=is_warm)
        if exact and not one.exact:
            one = _inexact(one)
        return one if rates is None else rates.judge(one, entry, folder)

    pool = ThreadPoolExecutor(at_a_time)
    try:
        futures = [pool.submit(checked, *one) for one in sorted(entries.items())]
        for future in as_completed(futures):
            checks.append(future.result())
            tell(checks[-1], len(checks), len(entries))
    finally:
        if len(checks) < len(entries):  # Interrupted: end what replays, and start no more.
            for workers in everyone:
                workers.stop()
        pool.shutdown(cancel_futures=True)
        for workers in everyone:
            workers.close()
    known = set(manifest.tapes)
    orphans = [path.name for path in tape_names.inside(folder) if path.name not in known]
    return Gate(
        folder=folder,
        checks=sorted(checks, key=lambda one: one.name),
        orphans=orphans,
        closed="kernel" if closed == {True} else "python",
        seconds=time.perf_counter() - began,
    )


def _check(
    folder: Path,
    name: str,
    entry: Entry,
    mine: PerThread,
    closed: set[bool],
    *,
    strict: bool,
    is_warm: bool,
) -> Checked:
    path, began = folder / name, time.perf_counter()
    try:
        with Tape.open(path) as tape:
            digest, count, seed = tape.digest, len(tape.exchanges), tape.hash_seed
    except UsageError:
        return _failed(name, UsageError.exit_code, "the tape is missing")
    except TraceforkError as error:
        reason = str(error).removeprefix("tracefork: ")
        return _failed(name, error.exit_code, reason)
    if digest != entry.digest:
        return _failed(
            name,
            TapeError.exit_code,
            f"the tape has digest {digest[:8]}, and the manifest expects {entry.digest[:8]}",
        )
    if not count:
        return _failed(
            name, UsageError.exit_code, "the tape holds no exchange, so it proves nothing"
        )
    here = entry.home(folder)
    if not here.is_dir():
        return _undecided(name, UsageError.exit_code, f"the folder {entry.folder} does not exist")
    agent = entry.agent
    is_open = any(switch.startswith("--allow") for switch in entry.switches)
    environment = hash_seed.with_seed(os.environ, seed)
    setup = Setup(not is_open)
    command = ["replay", "--json", *["--strict"] * strict, *entry.switches, str(path), *agent.argv]
    try:
        worker = mine.workers.worker(setup, environment)
        closed.add(worker.closed)
        done = worker.replay(command, entry, here, fresh=not is_warm)
        if done.exit and is_warm:  # Only what a fresh process confirms is a failure.
            done = worker.replay(command, entry, here, fresh=True)
    except LostError as error:
        mine.workers.forget(setup, environment)
        reason = str(error).removeprefix("tracefork: ")
        return _undecided(name, error.exit_code, reason, "a process that nothing kills")
    checked = _judged(name, count, done)
    return msgspec.structs.replace(checked, seconds=time.perf_counter() - began)


def _judged(name: str, count: int, done: Done) -> Checked:
    document = done.document
    replayed, now = document.get("exchanges"), document.get("outcome")
    sockets, programs = document.get("sockets"), document.get("subprocesses")
    divergence = document.get("divergence")
    outcome = str(now.get("now")) if isinstance(now, dict) else ""
    verdict, missing = (Verdict.FAIL if done.exit else Verdict.PASS), ""
    if done.exit == UsageError.exit_code or (not replayed and outcome in _CANNOT_RUN):
        verdict, missing = Verdict.UNDECIDED, "an agent that can be run"
    reason = done.reason
    if isinstance(divergence, dict):
        divergence = msgspec.convert(divergence, Divergence)
        reason, replayed = divergence.summary, divergence.replayed
    return Checked(
        name=name,
        verdict=verdict,
        exit=done.exit,
        reason=" ".join(reason.split()) if done.exit else "",
        missing=missing,
        exact=document.get("bit_exact") is True,
        exchanges=replayed if isinstance(replayed, int) else None,
        of=count,
        sockets=sockets if isinstance(sockets, int) else 0,
        programs=[str(one) for one in programs] if isinstance(programs, list) else [],
        divergence=divergence if isinstance(divergence, Divergence) else None,
        said=done.said if done.exit else [],
    )


def _inexact(one: Checked) -> Checked:
    if one.verdict != Verdict.PASS:
        return one
    reason = "the replay is equal by its matchers, but not bit for bit"
    return msgspec.structs.replace(one, verdict=Verdict.FAIL, exit=DIFFERENT, reason=reason)


def _failed(name: str, code: int, reason: str) -> Checked:
    return Checked(name=name, verdict=Verdict.FAIL, exit=code, reason=reason)


def _undecided(name: str, code: int, reason: str, missing: str = "an agent to run") -> Checked:
    return Checked(name=name, verdict=Verdict.UNDECIDED, exit=code, reason=reason, missing=missing)
