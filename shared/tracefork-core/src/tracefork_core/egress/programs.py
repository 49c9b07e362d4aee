"""Name the programs that a process starts, and collect what child processes report."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePath

ENVIRONMENT = "TRACEFORK_EGRESS"
_PYTHON = re.compile(r"^(python|pypy)[\d.]*t?(\.exe)?$")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_OPERATORS, _REDIRECTS = frozenset("();<>|&"), frozenset("<>")
_PREFIX = re.compile(
    r"^(\w+=.*|-.*|\d|[!{$]|exec|command|env|nohup|time|if|elif|else|then|while|until|do)$",
    re.DOTALL,
)
"""What may stand before the name of a program on a command line of a shell."""
_SHELL_COMMANDS = frozenset(
    ": [ [[ case cd echo export false for printf set test trap true ulimit umask unset".split()
)
"""What a shell does without starting a program."""
# Interpreter flags that make a child ignore PYTHONPATH or skip sitecustomize.
_IGNORES_GUARD = re.compile(r"^-[A-Za-z]*[IES]")
_STARTS_NOTHING = frozenset({"-V", "-VV", "--version", "-h", "--help"})


def program_name(event: str, args: Sequence[object]) -> str:
    """Return the name of the program that an audit event announces, "?" if unknown."""
    argv = _argv(event, args)
    if not argv:
        return "?"
    name = PurePath(argv[0]).name
    if name in _SHELLS and len(argv) > 2 and argv[1] == "-c":
        first = next(_commands(argv[2]), None)
        return PurePath(first[0]).name if first else name
    return name


def child_name(program: object, words: object) -> str:
    """Return the name of the script or module that `subprocess.Popen` starts, or the program.

    A command line for a shell has the names of all its programs: "cat|agent.py".
    """
    argv = _argv("subprocess.Popen", [program, words])
    if len(argv) == 1 and isinstance(words, (str, bytes)):
        names = dict.fromkeys(_name_of(command) for command in _commands(argv[0]))
        return "|".join(names) or "?"
    return _name_of(argv) if argv else "?"


def _name_of(argv: Sequence[str]) -> str:
    name = PurePath(argv[0]).name
    if not _PYTHON.match(name):
        return name or "?"
    rest = argv[1 + len(_interpreter_words(argv[1:])) :]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return rest[1]
    return "python" if not rest or rest[0].startswith("-") else PurePath(rest[0]).name


def is_guarded_python(event: str, args: Sequence[object]) -> bool:
    """Return whether the program is a Python that loads the guard at start-up."""
    argv = _argv(event, args)
    if not argv or not _PYTHON.match(PurePath(argv[0]).name):
        return False
    if any(_IGNORES_GUARD.match(flag) for flag in _interpreter_flags(argv[1:])):
        return False
    environment = _environment(event, args)
    return environment is None or ENVIRONMENT in environment


def must_arrive(program: object, words: object, environment: object) -> bool:
    """Return whether `subprocess.Popen` starts what, if it is a Python, loads the guard."""
    args = [program, words, None, environment]
    argv = _argv("subprocess.Popen", args)
    return is_guarded_python("subprocess.Popen", args) and _STARTS_NOTHING.isdisjoint(argv[1:2])


def _interpreter_flags(arguments: Sequence[str]) -> list[str]:
    """Return the interpreter flags without -W and -X, which change nothing at start-up."""
    words = iter(_interpreter_words(arguments))
    flags: list[str] = []
    for word in words:
        flags.append(word)
        if word in ("-W", "-X"):
            next(words, None)
    return [flag for flag in flags if not flag.startswith(("-W", "-X", "--"))]


def _interpreter_words(arguments: Sequence[str]) -> list[str]:
    """Return the arguments before the script, module or code: those of the interpreter."""
    own: list[str] = []
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word in ("-", "-c", "-m"):
            break
        own.append(word)
        if word in ("-W", "-X"):
            own.extend(islice(words, 1))
    return own


def _argv(event: str, args: Sequence[object]) -> list[str]:
    if event == "os.system":
        return ["sh", "-c", _text(args[0])]
    index = {"os.spawn": 2, "pty.spawn": 0}.get(event, 1)
    given = args[index] if len(args) > index else None
    if isinstance(given, (str, bytes, os.PathLike)):
        return [_text(given)]
    words = [_text(word) for word in given] if isinstance(given, Sequence) else []
    executable = args[0] if event == "subprocess.Popen" else None
    return [_text(executable), *words[1:]] if executable and words else words


def _environment(event: str, args: Sequence[object]) -> set[str] | None:
    index = {"os.spawn": 3, "subprocess.Popen": 3, "os.exec": 2, "os.posix_spawn": 2}.get(event)
    given = args[index] if index is not None and len(args) > index else None
    return {_text(name) for name in given} if isinstance(given, dict) else None


def _commands(command: str) -> Iterator[list[str]]:
    """Yield each program that a command line of a shell starts, with its arguments.

    It may stand behind assignments (`X=1 exec curl`) and commands of the shell itself (`cd /tmp`).
    """
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # Not all that a shell understands.
        words = command.split()
    argv, is_file, is_shells = list[str](), False, False
    for word in words:
        if set(word) <= _OPERATORS:
            is_file = not _REDIRECTS.isdisjoint(word)
            if argv and not is_file:
                yield argv
                argv = []
            is_shells = is_shells and is_file
        elif is_file:
            is_file = False
        elif argv:
            argv.append(word)
        elif word in _SHELL_COMMANDS:
            is_shells = True
        elif not is_shells and not _PREFIX.match(word):
            argv = [word]
    if argv:
        yield argv


def _text(value: object) -> str:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Line:
    """One report of a child process."""

    strays: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    refused: str | None = None
    crossed: int = 0
    awaited: dict[str, str] = field(default_factory=dict)
    arrived: str | None = None


class Report:
    """A file to which several processes append lines, each with one short (so atomic) write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self,
        *,
        strays: list[str] | None = None,
        programs: list[str] | None = None,
        refused: str | None = None,
        crossed: int = 0,
    ) -> None:
        line: dict[str, object] = {
            "strays": strays or [],
            "programs": programs or [],
            "refused": refused,
            "crossed": crossed,
        }
        self._append(line, os.O_CREAT)

    def await_arrival(self, start: str, name: str) -> None:
        """Expect that the Python of this start loads the guard: any other program does not."""
        self._append({"awaited": {start: name}}, os.O_CREAT)

    def arrive(self, start: str) -> None:
        """Report that this Python has loaded the guard, unless the session is over."""
        with suppress(FileNotFoundError):
            self._append({"arrived": start}, 0)

    def _append(self, line: dict[str, object], flags: int) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | flags, 0o600)
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")
        finally:
            os.close(descriptor)

    def read(self) -> list[Line]:
        """Return the lines written so far, and remove the file."""
        if not os.path.exists(self.path):  # noqa: PTH110 - each session asks, and few have one
            return []
        data = self.path.read_bytes()
        self.path.unlink()
        return list(_lines(data))


def _lines(data: bytes) -> Iterator[Line]:
    for line in data.splitlines():
        try:
            yield Line(**json.loads(line))
        except (ValueError, TypeError):
            # A child was killed while it wrote: it did something, but what is unknown.
            yield Line(programs=["?"])
