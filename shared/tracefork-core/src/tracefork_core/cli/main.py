"""The entry point: find the verb, run it, and turn what went wrong into an exit code.

A person's mistake never shows a traceback; a mistake of ours does, with TRACEFORK_TRACEBACK=1.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.command_table import SUMMARIES, WITH_AGENT, overview
from tracefork_core.cli.exits import EXITS, INTERRUPTED
from tracefork_core.errors import DivergenceError, TraceforkError, UnwritableError, UsageError
from tracefork_core.version import __version__

_SAYS_NO = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says of a place where nothing more can be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_what_is_closed()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("--help", "-h", "help"):
        print(overview(), end="")
        return 0 if words else UsageError.exit_code
    if words[0] in ("--version", "-V"):
        print(f"tracefork {__version__}")
        return 0
    name, rest, after = words[0], words[1:], None
    if name in WITH_AGENT and "--" in rest:
        place = rest.index("--")
        rest, after = rest[:place], rest[place + 1 :]
    hash_seed.is_own_process = argv is None
    if name == "record" and "--help" not in rest:
        hash_seed.choose()
    from tracefork_core.cli.display import screen

    try:
        code = _run(name, rest, after)
        return _interrupted(name, as_json="--json" in rest) if code == INTERRUPTED else code
    except TraceforkError as error:
        return _report(name, error, as_json="--json" in rest)
    except KeyboardInterrupt:
        return _interrupted(name, as_json="--json" in rest)
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain once more while it exits.
        screen.close_stdout()
        return 0
    except Exception as error:
        if os.environ.get("TRACEFORK_TRACEBACK"):
            raise
        return _report(name, _in_words(error), as_json="--json" in rest)
    finally:
        if argv is not None:  # The process is somebody else's.
            screen.give_stdout_back()


def _open_what_is_closed() -> None:
    """Let nothing of ours have the descriptor of a standard stream that was closed (`>&-`)."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            setattr(sys, name, open(descriptor, "w" if descriptor else "r"))  # noqa: PTH123, SIM115


def _in_words(error: Exception) -> TraceforkError:
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        return UsageError(
            "tracefork: the current folder is gone: it was removed. Go to one that is there."
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        named = str(error.filename or "")
        return UsageError(f"tracefork: no file system takes a name of {len(named)} characters.")
    if isinstance(error, OSError) and error.errno in _SAYS_NO:
        named = f"{error.filename} cannot be written" if error.filename else "cannot write"
        return UnwritableError(
            f"tracefork: {named}: {error.strerror}. Make room, or name a place that can be written."
        )
    return TraceforkError(
        f"tracefork: this is a bug in tracefork: {type(error).__name__}: {error}. "
        "TRACEFORK_TRACEBACK=1 shows the traceback; please report it."
    )


def _is_nowhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - nothing more of paths is needed
    except FileNotFoundError:
        return True
    return False


def _run(name: str, rest: list[str], after: list[str] | None) -> int:
    if name not in SUMMARIES:
        raise UsageError(f"tracefork: no command {name!r}.{_guess(name)} See tracefork --help.")
    import typer

    verb = import_module(f"tracefork_core.cli.commands.{name}")
    command = typer.main.get_command(verb.app)
    # The base of all mistakes on a command line. It lies elsewhere in every other release.
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
        message += " Options of the agent itself go behind `--`."
    return f"{message} See tracefork {name} --help."


def _guess(name: str) -> str:
    from tracefork_core.cli.usage_errors import guess

    return guess(name, SUMMARIES)


def _interrupted(name: str, *, as_json: bool) -> int:
    """Say in a document that a command was stopped, unless it did."""
    from tracefork_core.cli.display import screen

    if as_json and screen.takes_a_document():
        error = {"kind": "KeyboardInterrupt", "message": "it was interrupted"}
        screen.say_json(
            {"command": name, "exit": INTERRUPTED, "result": "interrupted", "error": error}
        )
    return INTERRUPTED


def _report(name: str, error: TraceforkError, *, as_json: bool) -> int:
    """Print an error for people or as a document, and return its exit code."""
    from dataclasses import replace
    from pathlib import Path

    from tracefork_core.cli import tape_names
    from tracefork_core.cli.display import screen
    from tracefork_core.cli.display.card import card_document, print_card
    from tracefork_core.cli.display.text import printable

    divergence = error.divergence if isinstance(error, DivergenceError) else None
    if divergence:
        divergence = replace(divergence, tape=tape_names.shown(Path(divergence.tape)))
    message = str(error).removeprefix("tracefork: ")
    if as_json and screen.takes_a_document():
        screen.say_json(
            {
                "command": name,
                "exit": error.exit_code,
                "result": EXITS[error.exit_code],
                "error": {"kind": type(error).__name__, "message": message},
                "divergence": card_document(divergence) if divergence else None,
            }
        )
    elif divergence:
        print_card(screen.stderr(), divergence)
    else:
        screen.stderr().print(f"✗ {printable(message, lines=True)}", soft_wrap=True)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
