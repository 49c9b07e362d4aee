"""Which command a replay runs: the one that was typed, or the one that made the tape here."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import command_store
from tracefork_core.cli.agent.agent import Agent, read_agent
from tracefork_core.cli.display import screen
from tracefork_core.errors import UsageError
from tracefork_core.tape import Tape


def remember(path: Path, digest: str, agent: Agent, folder: Path) -> None:
    """Write down which command made a tape, for those who replay it here."""
    try:
        command_store.remember(
            command_store.Run(
                tape=str(path),
                digest=digest,
                recorded=time.time_ns(),
                cwd=str(folder),
                form=agent.form,
                target=agent.target,
                args=list(agent.args),
            )
        )
    except OSError as error:
        words = f"! the command was not remembered in {command_store.home()}: {error.strerror}. "
        words += "Type it to replay."
        screen.stderr().print(words, style=screen.WARN, soft_wrap=True)


def agent_for(
    tape: Path,
    words: Sequence[str],
    after: Sequence[str],
    module: str | None,
    function: str | None,
) -> tuple[Agent, Path]:
    """Return the agent to replay and the folder to run it in.

    Raises:
        UsageError: no command was typed, and none is known for this tape on this machine.
        TapeError: the file is not a tape, or is damaged.
    """
    typed = read_agent(words, after, module, function)
    if typed is not None:
        return typed, Path.cwd()
    with Tape.open(tape) as opened:
        digest = opened.digest
    shown = shlex.quote(tape_names.shown(tape))
    say_it = f"Say it behind the tape: {shown} SCRIPT.py [-- ARGS]"
    run = command_store.recall(tape)
    if run is None:
        raise UsageError(
            f"tracefork: which command made {shown} is not known on this machine. {say_it}"
        )
    if digest != run.digest:
        raise UsageError(
            f"tracefork: {shown} is not the tape that was recorded there by `{run.agent.words}` "
            f"(digest {run.digest[:8]} then, {digest[:8]} now), so nothing was run. {say_it}"
        )
    folder = Path(run.cwd)
    if not folder.is_dir():
        raise UsageError(f"tracefork: {folder}, where {shown} was recorded, is gone. {say_it}")
    return run.agent, folder
