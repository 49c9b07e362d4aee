"""Put functions of others in place of what sessions patch, in any order; print what went wrong.

A program of its own, since what it looks for ends the interpreter: `python interleavings.py SEED
COUNT`. Each case has one or two sessions and up to three patches. Each patch begins and ends
somewhere before, inside or after them. A case is run twice: once recorded, once replayed.
"""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import httpx2
import pytest
import requests
from freezegun import freeze_time

from tracefork_core import TraceforkError, record, replay
from tracefork_core.patching import patch, real_clock
from tracefork_core.patching.bound_names import Swaps
from tracefork_testkit import ProviderServer

CLOCKS = [
    *((time, name) for name in (*real_clock._CLOCKS, "strftime")),
    *((datetime, name) for name in real_clock._CLASSES),
]
FIXED: dict[str, object] = {
    "time.time": 1.5e9,
    "time.time_ns": 1_500_000_000_000_000_000,
    "time.sleep": None,
    "os.urandom": b"\7" * 16,
    "random.random": 0.25,
    "uuid.uuid1": uuid.UUID(int=7),
    "os.getcwd": "/mocked",
    "platform.node": "mocked",
}
"""What a mock answers that calls nothing."""


RANDOMNESS = {"os.urandom", "os.getrandom", "random.random", "random.getrandbits", "uuid.uuid1"}
"""What replaces these calls the real ones, which is not on the tape, as the receipt says."""


class Agent:
    """Draws from every source that sessions patch, and sends what it drew."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.httpx = httpx2.Client(verify=False, timeout=30, trust_env=False)
        self.requests = requests.Session()
        self.requests.trust_env = False

    def run(self) -> None:
        """Do all of it once."""
        time.sleep(0)
        asyncio.run(asyncio.sleep(0))
        thread = threading.Thread(target=time.time)
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(time.time).result()
        subprocess.run(["true"], check=True)
        drawn: Any = [
            time.time(),
            time.time_ns(),
            time.strftime("%S", time.localtime()),
            time.gmtime().tm_sec,
            time.clock_gettime(time.CLOCK_REALTIME),
            str(datetime.datetime.now()),  # noqa: DTZ005 - it is patched too
            str(datetime.date.today()),  # noqa: DTZ011
            os.urandom(16).hex(),
            random.random(),
            random.getrandbits(16),
            random.choice(range(100)),
            str(uuid.uuid1()),
            str(uuid.uuid4()),
            str(Path.cwd()),
            platform.node(),
        ]
        self.httpx.post(f"{self.url}/echo", json=drawn)
        self.requests.post(f"{self.url}/echo", json=drawn)


@dataclass(frozen=True)
class Place:
    """An attribute that sessions patch, or read past time-machine."""

    owner: Any
    name: str

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"

    @property
    def held(self) -> object:
        """What is there."""
        return vars(self.owner).get(self.name)


def places(agent: Agent, tape: Path) -> list[Place]:
    """Return what a session patches: each call of `Patches.replace`, each pair of `Swaps`."""
    found = dict.fromkeys(Place(*clock) for clock in CLOCKS)
    replace, put_in = patch.Patches.replace, Swaps.put_in

    def noting_replace(self: Any, owner: Any, name: str, replacement: object) -> None:
        found[Place(owner, name)] = None
        replace(self, owner, name, replacement)

    def noting_put_in(self: Any) -> None:
        functions = {id(real) for real, _ in self._pairs}
        for key, module in list(sys.modules.items()):
            if type(module) is ModuleType and not key.startswith("tracefork"):
                for name, held in vars(module).items():
                    if id(held) in functions and "." not in key:
                        found[Place(module, name)] = None
        put_in(self)

    patch.Patches.replace, Swaps.put_in = noting_replace, noting_put_in  # type: ignore[method-assign]
    try:
        with record(tape, boundary="note"):
            agent.run()
    finally:
        patch.Patches.replace, Swaps.put_in = replace, put_in  # type: ignore[method-assign]
    inner = "_time_machine", __name__  # Neither time-machine's own names nor those of this file.
    return [place for place in found if place.owner.__name__ not in inner]


def passing(original: Any) -> Any:
    """Return a function of Python, or a class, that does what the original does."""
    if isinstance(original, type):
        return type(original.__name__, (original,), {})
    if isinstance(original, classmethod | staticmethod):
        return type(original)(passing(original.__func__))
    if isinstance(original, property):
        return property(original.fget, original.fset)

    def stand_in(*args: Any, **options: Any) -> Any:
        return original(*args, **options)

    return stand_in if callable(original) else io.StringIO()


@dataclass
class Mocked:
    """`unittest.mock.patch.object`; the mock calls the original, or answers by itself."""

    place: Place
    answers: bool

    def begin(self) -> None:
        original, name = self.place.held, str(self.place)
        if self.answers and name in FIXED:
            other: Any = mock.Mock(return_value=FIXED[name])
        elif isinstance(self.place.owner, ModuleType) and not isinstance(original, type):
            other = mock.Mock(wraps=original) if callable(original) else passing(original)
        else:
            other = passing(original)
        self._patch: Any = mock.patch.object(self.place.owner, self.place.name, other)
        self._patch.start()

    def end(self) -> None:
        self._patch.stop()  # None if it has ended.


@dataclass
class Monkeypatched:
    """pytest's monkeypatch."""

    place: Place
    answers: bool

    def begin(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(self.place.owner, self.place.name, passing(self.place.held))

    def end(self) -> None:
        self._patch.undo()


@dataclass
class Everywhere:
    """A patch under each name in each module, as gevent's, and its undoing."""

    place: Place
    answers: bool

    def begin(self) -> None:
        original = self.place.held
        other = passing(original)
        self._names = [
            (vars(module), name)
            for module in list(sys.modules.values())
            if type(module) is ModuleType and not module.__name__.startswith("tracefork")
            for name, held in list(vars(module).items())
            if held is original
        ]
        self._original = original
        for names, name in self._names:
            names[name] = other

    def end(self) -> None:
        for names, name in self._names:
            names[name] = self._original
        self._names.clear()


@dataclass
class Frozen:
    """freezegun, which replaces all clocks at once."""

    place: Place
    answers: bool

    def begin(self) -> None:
        self._frozen = freeze_time("2024-01-02 03:04:05")
        self._frozen.start()
        self._is_on = True

    def end(self) -> None:
        if self._is_on:
            self._frozen.stop()
        self._is_on = False


Event = tuple[str, Any]


def case(chosen: random.Random, known: list[Place]) -> tuple[list[Event], bool]:
    """Return the events of a case, and whether each patch lies wholly inside or around."""
    events: list[Event] = [("session", None), ("run", None), ("end", None)]
    if chosen.random() < 0.4:
        events *= 2
    is_nested = True
    for place in chosen.sample(known, chosen.choice((1, 1, 2, 3))):
        kind: Any = chosen.choice((Mocked, Monkeypatched))
        if isinstance(place.owner, ModuleType) and chosen.random() < 0.3:
            kind = Everywhere
        if place.owner in (time, datetime) and chosen.random() < 0.2:
            kind = Frozen
            if any(isinstance(one, Frozen) for _, one in events):
                continue
        foreign = kind(place, chosen.random() < 0.4)
        begin = chosen.randint(0, len(events))
        end = chosen.randint(begin, len(events))
        inside = [event for event, _ in events[begin:end]]
        depth = 0
        for event in inside:
            depth += (event == "session") - (event == "end")
            is_nested &= depth >= 0
        is_nested &= depth == 0
        events.insert(end, ("undo", foreign))
        events.insert(begin, ("patch", foreign))
    return events, is_nested


def follow(
    events: list[Event], agent: Agent, opened: Callable[[int], AbstractContextManager[Any]]
) -> Iterator[Any]:
    """Do what the events say; yield each session after it has ended."""
    number, session = 0, None
    with ExitStack() as undoing:
        stack = undoing.enter_context(ExitStack())
        for event, foreign in events:
            if event == "session":
                session = stack.enter_context(opened(number))
            elif event == "run":
                agent.run()
            elif event == "end":
                number += 1
                stack.close()
                yield session
            elif event == "patch":
                foreign.begin()
                undoing.callback(foreign.end)
            else:
                foreign.end()


def replaced_around(events: list[Event]) -> set[str]:
    """Return the clocks that are replaced while some session begins."""
    clocks, open_, around = {Place(*clock) for clock in CLOCKS}, set[str](), set[str]()
    for event, foreign in events:
        if event == "session":
            around |= open_
        elif event in ("patch", "undo") and foreign.place in clocks:
            open_ ^= {str(foreign.place)}
    return around


def wrong_in(
    events: list[Event], is_nested: bool, agent: Agent, folder: Path, originals: dict[Place, object]
) -> list[str]:
    """Run a case; return what is wrong about it."""
    wrong = []
    recorded = list(follow(events, agent, lambda n: record(folder / f"{n}.tape", overwrite=True)))
    said = {name for session in recorded for name in session.receipt.replaced}
    if is_nested:
        receipts = {(run.receipt.exchanges, *run.receipt.strays) for run in recorded}
        wrong += [f"not two exchanges: {receipt}" for receipt in receipts - {(2,)}]
        wrong += [f"no receipt has {clock}" for clock in replaced_around(events) - said]
    try:
        for run, session in zip(
            follow(events, agent, lambda n: replay(folder / f"{n}.tape")), recorded, strict=True
        ):
            if run.digest != session.receipt.digest:
                wrong.append("a replay ended well with another digest")
    except TraceforkError as error:
        if is_nested and not said & RANDOMNESS:
            wrong.append(f"a replay failed: {error}")
    with record(folder / "last.tape", overwrite=True):
        pass  # Takes away what a mock has put back.
    wrong += [
        f"{place} is not the original: {place.held!r}"
        for place, original in originals.items()
        if place.held is not original
    ]
    return wrong


def main(seed: int, count: int) -> None:
    """Run the cases from `seed` on; print each before it begins, and what is wrong with it."""
    with ProviderServer() as server, tempfile.TemporaryDirectory() as folder:
        agent = Agent(server.url)
        if seed % 2:
            first = random.Random(seed).choice(CLOCKS)
            print(json.dumps({"case": f"{first[1]} mocked at first", "wrong": None}), flush=True)
            with mock.patch.object(*first, passing(getattr(*first))):
                with record(Path(folder) / "first.tape"):
                    agent.run()
        known = places(agent, Path(folder) / "warm.tape")
        originals = {place: place.held for place in known}
        for number in range(seed, seed + count):
            events, is_nested = case(random.Random(number), known)
            name = " ".join(
                f"{event}({foreign.place} by {type(foreign).__name__})" if foreign else event
                for event, foreign in events
            )
            print(json.dumps({"case": f"{number}: {name}", "wrong": None}), flush=True)
            try:
                wrong = wrong_in(events, is_nested, agent, Path(folder), originals)
            except Exception:
                wrong = [traceback.format_exc()]
            print(json.dumps({"case": number, "wrong": wrong, "nested": is_nested}), flush=True)
            if wrong:
                return  # What comes after it would fail of it.
        print(json.dumps({"places": [str(place) for place in known]}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
