"""Measure the terminal view in a pseudo-terminal: its first rows, and the answer to a key."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyte

from bench import Bench, Samples, clean_environment
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from tape_access import add, new_writer
from tracefork_core.tape import Receipt

TITLE = "The terminal view"
CASES = ("10,000 exchanges", "25,000 exchanges")
_WIDTH, _HEIGHT = 80, 24
_MOST_SECONDS, _MOST_MS = 0.5, 50
_PATIENCE = 60.0
_HISTORY = 30
_KEYS = (*("j",) * 5, "\x1b[6~", "G", "k", "\x1b[5~", "g")
"""What is typed again and again: steps, screens, and jumps from one end to the other."""
_SELECTED = re.compile(r"^▸ +(?:\w+ +)?(\d+) ", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(bench: Bench) -> Measurement:
    """Measure fresh processes one after another, and keys in the last one of each length."""
    sizes = (1_000, 2_500) if bench.quick else (10_000, 25_000)
    rows: list[Row] = []
    for many in sizes:
        path, case = bench.path(), f"{many:,} exchanges"
        bench.ask(CORE, record, many=many, path=path)
        command = [str(bench.python[CORE].with_name("tracefork")), "tui", path]
        found: Samples = {name: [] for name in ("rows", "cpu", "ready", "early", "key")}
        for i in range(3 if bench.quick else 9):
            for name, values in _look(command, 3 if i == 0 else 0).items():
                found[name] += values
        first = Spread.of(found["rows"])
        met = first.median <= _MOST_SECONDS
        target = f"≤ {_MOST_SECONDS} s"
        rows += [
            Row(case, "first rows on the screen", first, "s", "", target, met=met),
            Row(case, "CPU time until then", Spread.of(found["cpu"]), "s"),
            Row(case, "first key is answered", Spread.of(found["ready"]), "s"),
            _keys(case, "a key, while errors are looked for", found["early"]),
            _keys(case, "a key", found["key"]),
        ]
    return Measurement(
        TITLE,
        "A fresh `tracefork tui` in a pseudo-terminal of 80 columns and 24 lines, until the first "
        "rows of the timeline are on its screen, and until it can answer keys: Textual is loaded "
        "in between, and keys typed meanwhile are kept. Then keys, one after another, each until "
        "the screen shows another row as selected: steps, pages, and from one end to the other. "
        f"Each question repeats the last {_HISTORY} messages.",
        rows,
    )


def _keys(case: str, who: str, seconds: list[float]) -> Row:
    milliseconds = sorted(1e3 * one for one in seconds)
    p95 = milliseconds[round(0.95 * (len(milliseconds) - 1))]
    compared = f"p95 {p95:.0f}, max {milliseconds[-1]:.0f} ms"
    spread = Spread.of(milliseconds)
    return Row(case, who, spread, "ms", compared, f"p95 ≤ {_MOST_MS} ms", met=p95 <= _MOST_MS)


def record(recorder: Recorder, many: int, path: str) -> Samples:
    """Write a tape of questions to a model."""
    writer = new_writer(Path(path))
    history = [{"role": "system", "content": "You are a support desk."}]
    for n in range(many):
        history.append({"role": "user", "content": f"Where is parcel {n * 7}?"})
        said = f"Parcel {n * 7} left on day {n % 31}."
        asked = {"model": "gpt-5-mini", "messages": history[-_HISTORY:]}
        history.append({"role": "assistant", "content": said})
        choice = {"index": 0, "finish_reason": "stop", "message": history[-1]}
        usage = {"prompt_tokens": 100 + n % 7, "completion_tokens": 10}
        answered = {"object": "chat.completion", "choices": [choice], "usage": usage}
        add(writer, n, json.dumps(asked).encode(), json.dumps(answered).encode())
    writer.close(Receipt("ok", 0))
    return {"exchanges": [many]}


def _look(command: list[str], repeats: int) -> Samples:
    """Open the view; return the seconds to its first rows and to its first answer, and of keys."""
    began = time.perf_counter()
    terminal = _Terminal(command)
    try:
        seen = terminal.until(lambda screen: bool(_SELECTED.search(screen)))
        cpu = terminal.cpu()
        os.write(terminal.ours, b"j")
        ready = terminal.until(lambda screen: _row(screen) == 1)
        found = {"rows": [seen - began], "cpu": [cpu], "ready": [ready - began]}
        if repeats:
            early = islice(_KEYS * repeats, 40)
            found["early"] = [terminal.key(key) for key in early]
            terminal.until(lambda screen: "The run ended" in screen)
            found["key"] = [terminal.key(key) for key in _KEYS * 10 * repeats]
        return found
    finally:
        terminal.close()


def _row(screen: str) -> int:
    match = _SELECTED.search(screen)
    return -1 if match is None else int(match[1])


class _Terminal:
    """A command in a pseudo-terminal, whose output is read as a terminal reads it."""

    def __init__(self, command: list[str]) -> None:
        self.ours, theirs = pty.openpty()
        size = struct.pack("HHHH", _HEIGHT, _WIDTH, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        self._screen = pyte.Screen(_WIDTH, _HEIGHT)
        self._stream = pyte.ByteStream(self._screen)
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**clean_environment(), "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, is_there: Callable[[str], bool]) -> float:
        """Wait until the screen is so; return when the bytes came that made it so."""
        at = time.perf_counter()
        end = at + _PATIENCE
        while not is_there("\n".join(self._screen.display)):
            assert time.perf_counter() < end, "\n".join(self._screen.display)
            if select.select([self.ours], [], [], 1)[0]:
                data = os.read(self.ours, 65536)
                at = time.perf_counter()
                self._stream.feed(data)
        return at

    def key(self, key: str) -> float:
        """Type a key that selects another row; return the seconds until it is on the screen."""
        before = _row("\n".join(self._screen.display))
        began = time.perf_counter()
        os.write(self.ours, key.encode())
        return self.until(lambda screen: _row(screen) not in (before, -1)) - began

    def cpu(self) -> float:
        """Return the seconds of CPU that the command took so far."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS

    def close(self) -> None:
        """End the command."""
        self._process.kill()
        self._process.wait()
        os.close(self.ours)
