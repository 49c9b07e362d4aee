"""The pages that people copy from, and a reader who types what they say."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import tracefork_core

ROOT = Path(__file__).parents[2]
CREW = "docs/how-to/find-the-task-that-broke-your-crew.md"
HANDOFF = "docs/how-to/which-agent-gave-the-wrong-handoff.md"
ADK = "docs/how-to/debug-a-google-adk-agent.md"
STRANDS = "docs/how-to/find-the-node-that-broke-a-strands-graph.md"
AUTOGEN = "docs/how-to/debug-an-autogen-team.md"
MAF = "docs/how-to/debug-an-agent-framework-workflow.md"
PYDANTIC = "docs/how-to/debug-a-pydantic-ai-agent.md"
TRAVEL = "docs/how-to/travel-in-a-langgraph-run.md"
EXCEPTIONS = {
    ("README.md", "tracefork blame ticket"): "forks for half a minute; the first tutorial does it",
    ("README.md", "from tracefork_langgraph"): "a fragment; how-to/travel-in-a-langgraph-run.md",
    ("docs/index.md", "tracefork"): "the first tutorial, in two lines",
    ("docs/benchmarks.md", ""): "figures of one machine, as `tox -e benchmarks` prints them",
    ("docs/explanation/how-it-is-tested.md", ""): "environments of tox for the night",
    ("docs/explanation/determinism-boundary.md", "with tracefork.record"): "the first one's tape",
    (CREW, "tracefork blame"): "minutes; at night, with packages/tracefork-crewai/tests/truth",
    (CREW, "python trial.py"): "minutes; at night, with packages/tracefork-crewai/tests/truth",
    (
        HANDOFF,
        "tracefork blame",
    ): "half a minute; test_blame.py of the package does it in one process",
    (ADK, "tracefork blame"): "a minute; test_blame.py of the package does it in one process",
    (AUTOGEN, "tracefork blame"): "a minute; test_desks.py of the package does it in one process",
    (MAF, "tracefork blame"): "a minute; test_loan_desk.py of the package does it in one process",
    (PYDANTIC, "tracefork blame"): "minutes; at night, and test_parcel_desk.py with few forks",
    (STRANDS, "tracefork blame"): "a minute; strands/test_blame.py does it in one process",
    (TRAVEL, "tracefork blame"): "the tutorial on LangGraph blames a run from its checkpoints",
    ("docs/reference/tape-format.md", ""): "tests/docs/test_tape_format.py reads a tape by it",
    ("packages/tracefork-autogen/README.md", ""): "fragments; the guide does it",
    ("packages/tracefork-crewai/README.md", "from tracefork_crewai"): "the guide, on its own crew",
    ("packages/tracefork-crewai/README.md", ""): "its tests/test_how_to.py, where CrewAI is loaded",
    ("packages/tracefork-bedrock/README.md", ""): "its tests/test_how_to.py, where boto3 is loaded",
    ("packages/tracefork-claude-agent-sdk/README.md", ""): "its tests/test_how_to.py, with the SDK",
    ("packages/tracefork-mcp/README.md", ""): "its tests/test_how_to.py, where mcp is loaded",
    ("packages/tracefork-agent-framework/README.md", ""): "fragments; the guide does it",
    ("packages/tracefork-google-adk/README.md", ""): "fragments; the guide does it",
    ("packages/tracefork-pydantic-ai/README.md", ""): "fragments; the guide does it",
    ("packages/tracefork-openai-agents/README.md", ""): "fragments; the guide does it",
    ("shared/tracefork-testkit/README.md", ""): "shared/tracefork-testkit/tests/test_package.py",
}
"""What nobody types here, by its first words, and why not."""
_FENCE = re.compile(r"^```(\w*)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PORT = "8899"
_SETS_UP = re.compile(r"python3 -m venv|pip install|/activate$")
_VARIES = re.compile(
    r"[█▓▒·]{3,}|─+|cost—|\$[\d.]+|[0-9a-f]{4}…[0-9a-f]{4}|0x[0-9a-f]{6,}|(?<!xchange)\d[\d.:,]*k?"
)
"""Bars, digests, addresses, and all figures but the numbers of exchanges."""
_LOOP = """
import json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "example", "exec"), names)
    except BaseException:
        print(json.dumps(traceback.format_exc()), file=sys.stderr, flush=True)
    else:
        print('""', file=sys.stderr, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it is, what it is, and the file that it belongs into."""

    page: str
    line: int
    kind: str
    title: str
    text: str

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The commands of a terminal, each with what is shown after it."""
        steps = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(step.partition("\n")[0], step.partition("\n")[2]) for step in steps]


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, from the top."""
    text = (ROOT / page).read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[1], found[2] or "", found[3])


def sets_up(command: str) -> bool:
    """Whether a command makes the environment that a test runs in already."""
    return bool(_SETS_UP.search(command))


def is_excepted(page: str, text: str) -> bool:
    """Whether a command or an example is left out, for a reason that is given above."""
    return any(at == page and text.startswith(start) for at, start in EXCEPTIONS)


@cache
def _compile() -> None:
    """Write tracefork's bytecode, once: a terminal writes none, and each command would compile.

    Terminals change files, and within a second a new file cannot be told from the compiled one.
    """
    folder = str(Path(tracefork_core.__file__).parent)
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
    own = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = [sys.executable, "-m", "tracefork_core.cli.main", "ls", folder]
    subprocess.run(words, check=True, env=own, stdout=subprocess.DEVNULL)


class Reader:
    """Types commands into one terminal, saves files, and enters Python into one interpreter."""

    def __init__(self, home: Path) -> None:
        _compile()
        self._home = home
        self._port = _free_port()
        self._typed = 0
        for folder in ("examples", "packages", "shared"):
            (home / folder).symlink_to(ROOT / folder)
        own = Path(sys.executable).parent
        # A reader is at a machine of their own: a test records there, and not on a build server.
        given = {
            name: value
            for name, value in os.environ.items()
            if "OPENAI" not in name and name != "CI"
        }
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=home,
            env={
                **given,
                "PATH": f"{own}:{os.environ['PATH']}",
                "HOME": str(home),
                "TRACEFORK_HOME": str(home / ".tracefork"),
                "PORT": str(self._port),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._python: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """End the terminal and all that was started in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        for process in filter(None, (self._bash, self._python)):
            with process:
                process.kill()

    def type(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit status and what it printed."""
        self._typed += 1
        printed = self._home / f".printed-{self._typed}"
        typed = self._at_my_port(command)
        _say(self._bash.stdin, f"{{ {typed}\n}} >'{printed}' 2>&1 </dev/null; echo $?\n")
        assert self._bash.stdout is not None
        status = int(self._bash.stdout.readline())
        if command.endswith("&"):
            named = re.search(r"--port (\d+)", typed)
            _wait_for_the_port(int(named[1]) if named else self._port)
        return status, printed.read_text()

    def save(self, name: str, text: str) -> None:
        """Save a file in the folder the terminal is in; a single line replaces the one like it."""
        _, folder = self.type("pwd")
        file = Path(folder.strip()) / name
        kept = text.partition(" = ")[0]
        if text.count("\n") == 1 and file.exists():
            text, count = re.subn(rf"^{kept} = .*\n", text, file.read_text(), flags=re.MULTILINE)
            assert count == 1, f"{name} has no line {kept} = …"
        file.write_text(self._at_my_port(text))

    def enter(self, example: str) -> None:
        """Run Python where the terminal is, after all that was entered before."""
        if self._python is None:
            _, folder = self.type("pwd")
            _, environment = self.type("env -0")
            self._python = subprocess.Popen(
                [sys.executable, "-c", _LOOP],
                cwd=folder.strip(),
                env=dict(entry.split("=", 1) for entry in environment.split("\0") if entry),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
        _say(self._python.stdin, json.dumps(self._at_my_port(example)) + "\n")
        assert self._python.stderr is not None
        told = ""
        while not told.startswith('"'):
            told = self._python.stderr.readline()
            assert told, "the interpreter ended"
        error = json.loads(told)
        assert not error, f"{example}\n{error}"

    def _at_my_port(self, text: str) -> str:
        return text.replace(_PORT, str(self._port))


def _wait_for_the_port(port: int) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.02)
        else:
            return


def follow(
    page: str,
    home: Path,
    *,
    before: Sequence[str] = (),
    example: str = "",
    instead: Mapping[str, str] | None = None,
    varies: str = "$^",
    whole: bool = False,
) -> list[tuple[str, str]]:
    """Do what a page says, from its first line to its last; return each command with its output.

    Each command has to print the lines that are shown after it, and to end with 0, or with 1, 2 or
    4 where a line that is shown begins with ✗ or FAILED, or says that two runs differ. `before` is
    typed first and `example` entered; `instead` has words of commands, and what is typed in their
    place; `varies` matches what differs from run to run, white space left out. Exceptions are left
    out, but where the page is followed `whole`.
    """
    typed: list[tuple[str, str]] = []
    reader = Reader(home)
    try:
        for command in before:
            reader.type(command)
        if example:
            reader.enter(example)
        for block in blocks(page):
            if block.kind == "console":
                for command, shown in block.steps:
                    if not sets_up(command) and (whole or not is_excepted(page, command)):
                        words = _with(instead or {}, command)
                        typed.append((words, _typed(reader, words, shown, varies)))
            elif block.kind == "text":
                _has_printed(typed[-1][1], block.text, varies)
            elif block.kind == "python" and block.title:
                reader.save(block.title, block.text)
            elif block.kind == "python" and (whole or not is_excepted(page, block.text)):
                reader.enter(block.text)
    finally:
        reader.close()
    return typed


def _with(instead: Mapping[str, str], command: str) -> str:
    for words, others in instead.items():
        command = command.replace(words, others)
    return command


def _typed(reader: Reader, command: str, shown: str, varies: str) -> str:
    status, printed = reader.type(command.partition("   #")[0])
    differs = any(_is_told(line) for line in shown.splitlines())
    assert status in ((1, 2, 4) if differs else (0,)), f"$ {command}\n{printed}"
    _has_printed(printed, shown, varies)
    return printed


def _is_told(line: str) -> bool:
    """Return whether a line says that something failed, or that two runs differ."""
    compared = "↔" in line and not line.endswith("no difference")
    return compared or line.startswith(("✗", "FAILED"))


def _has_printed(printed: str, shown: str, varies: str) -> None:
    """Each line that is shown was printed, wherever it breaks, but for figures."""
    whole = _settled(printed, varies)
    missing = [line for line in shown.splitlines() if _settled(line, varies) not in whole]
    assert not missing, f"{missing}\nis shown, printed was\n{printed}"


def _settled(text: str, varies: str) -> str:
    return _VARIES.sub("N", re.sub(varies, "N", "".join(text.split())))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _say(to: IO[str] | None, text: str) -> None:
    assert to is not None
    to.write(text)
    to.flush()
