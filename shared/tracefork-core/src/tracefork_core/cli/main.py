"""The entry point: find the command, run it, and turn errors into messages and exit codes.

A user's mistake never shows a traceback. An internal error shows one with TRACEFORK_TRACEBACK=1.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.command_table import ALIASES, RESTORING, SUMMARIES, WITH_AGENT, overview
from tracefork_core.cli.exits import EXITS, INTERRUPTED
from tracefork_core.errors import DivergenceError, TraceforkError, UnwritableError, UsageError
from tracefork_core.version import __version__

_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a file system that cannot take more data."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_closed_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if "_TRACEFORK_COMPLETE" in os.environ:
        from tracefork_core.cli import completion

        return completion.complete()
    if not words or words[0] in ("--help", "-h", "help"):
        print(overview(), end="")
        return 0 if words else UsageError.exit_code
    if words[0] in ("--version", "-V"):
        print(f"tracefork {__version__}")
        return 0
    name, rest, after = ALIASES.get(words[0], words[0]), words[1:], None
    if name in WITH_AGENT and "--" in rest:
        place = rest.index("--")
        rest, after = rest[:place], rest[place + 1 :]
    hash_seed.is_own_process = argv is None
    if name == "record" and "--help" not in rest:
        hash_seed.choose()
    elif name in RESTORING and "--help" not in rest:
        hash_seed.restore_early(rest)
    from tracefork_core.cli.display import screen

    try:
        code = _run(name, rest, after)
        return _interrupted(name, as_json="--json" in rest) if code == INTERRUPTED else code
    except TraceforkError as error:
        return _report(name, error, as_json="--json" in rest)
    except KeyboardInterrupt:
        return _interrupted(name, as_json="--json" in rest)
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain once more while it exits.
        screen.close_stdout()
        return 0
    except Exception as error:
        if os.environ.get("TRACEFORK_TRACEBACK"):
            raise
        return _report(name, _as_tracefork_error(error), as_json="--json" in rest)
    finally:
        if argv is not None:  # The process belongs to the caller, so its stdout does too.
            screen.give_stdout_back()


def _open_closed_streams() -> None:
    """Open standard streams that were closed (`>&-`) on the null device.

    Else the next file that tracefork opens, a tape say, would get the descriptor of the stream.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            setattr(sys, name, open(descriptor, "w" if descriptor else "r"))  # noqa: PTH123, SIM115


def _as_tracefork_error(error: Exception) -> TraceforkError:
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return UsageError(
            "tracefork: the current folder was removed. Change to a folder that exists."
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        named = str(error.filename or "")
        return UsageError(f"tracefork: the name is too long: {len(named)} characters.")
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        named = f"{error.filename} cannot be written" if error.filename else "cannot write"
        return UnwritableError(
            f"tracefork: {named}: {error.strerror}. Free some space, or choose another path."
        )
    return TraceforkError(
        f"tracefork: this is a bug in tracefork: {type(error).__name__}: {error}. "
        "Set TRACEFORK_TRACEBACK=1 to see the traceback, and please report it."
    )


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not needed for this
    except FileNotFoundError:
        return True
    return False


def _run(name: str, rest: list[str], after: list[str] | None) -> int:
    if name == "completion":
        from tracefork_core.cli import completion

        print(completion.script(rest[0] if rest else ""))
        return 0
    if name not in SUMMARIES:
        raise UsageError(
            f"tracefork: there is no command {name!r}.{_guess(name)} "
            "`tracefork --help` lists the commands."
        )
    import typer

    module = import_module(f"tracefork_core.cli.commands.{name}")
    command = typer.main.get_command(module.app)
    # The base class of all command-line mistakes; Typer and Click move it between releases.
    mistake: type[Exception] = typer.BadParameter.__mro__[2]
    try:
        code = command.main(
            args=rest, prog_name=f"tracefork {name}", standalone_mode=False, obj=after
        )
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except mistake as error:
        raise UsageError(f"tracefork: {_words(error, name, after)}") from error
    return code if isinstance(code, int) else 0


def _words(error: BaseException, name: str, after: list[str] | None) -> str:
    from tracefork_core.cli.usage_errors import words

    message = words(error, name)
    if name in WITH_AGENT and after is None and hasattr(error, "option_name"):
        message += " Put options of the agent itself after `--`."
    return f"{message} See `tracefork {name} --help`."


def _guess(name: str) -> str:
    from tracefork_core.cli.usage_errors import guess

    return guess(name, SUMMARIES)


def _interrupted(name: str, *, as_json: bool) -> int:
    """Print a JSON document about the interruption, unless the command printed one already."""
    from tracefork_core.cli.display import screen

    if as_json and screen.takes_a_document():
        error = {"kind": "KeyboardInterrupt", "message": "interrupted by Ctrl-C"}
        screen.say_json(
            {"command": name, "exit": INTERRUPTED, "result": "interrupted", "error": error}
        )
    return INTERRUPTED


def _report(name: str, error: TraceforkError, *, as_json: bool) -> int:
    """Print an error for people or as a document, and return its exit code."""
    from dataclasses import replace
    from pathlib import Path

    from tracefork_core.cli import tape_names
    from tracefork_core.cli.agent import command_store
    from tracefork_core.cli.display import screen
    from tracefork_core.cli.display.card import card_document, print_card
    from tracefork_core.cli.display.text import LONGEST

    divergence = error.divergence if isinstance(error, DivergenceError) else None
    agent = None
    if divergence:
        path = Path(divergence.tape)
        agent = "" if command_store.recall(path) else None
        divergence = replace(divergence, tape=tape_names.shown(path))
    message = str(error).removeprefix("tracefork: ")[:LONGEST]
    if as_json and screen.takes_a_document():
        screen.say_json(
            {
                "command": name,
                "exit": error.exit_code,
                "result": EXITS[error.exit_code],
                "error": {"kind": type(error).__name__, "message": message},
                "divergence": card_document(divergence, agent) if divergence else None,
            }
        )
    elif divergence:
        print_card(screen.stderr(), divergence, agent=agent)
    else:
        screen.say_error(message)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
