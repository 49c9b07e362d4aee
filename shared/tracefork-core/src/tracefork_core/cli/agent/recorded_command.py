"""Find the command to replay: the one on the command line, or the one that recorded the tape."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import command_store
from tracefork_core.cli.agent.agent import Agent, read_agent
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError
from tracefork_core.tape import Tape


def remember(
    path: Path,
    digest: str,
    agent: Agent,
    folder: Path,
    mask: Sequence[str] = (),
    *,
    is_branch: bool = False,
) -> None:
    """Store which command recorded a tape, so that it can be replayed without naming the agent.

    Secrets in its arguments are replaced by placeholders; `mask` names more of them.
    """
    from tracefork_core.cli.agent.kept_arguments import without_secrets

    try:
        command_store.remember(
            command_store.Run(
                tape=str(path),
                digest=digest,
                recorded=time.time_ns(),
                cwd=str(folder),
                form=agent.form,
                target=agent.target,
                args=without_secrets(agent.args, mask),
                is_branch=is_branch,
            )
        )
    except OSError as error:
        words = f"! could not store the command in {command_store.home()}: {error.strerror}. "
        words += "To replay the tape, name the agent after it."
        screen.stderr().print(words, style=screen.WARN, soft_wrap=True)


def agent_for(
    tape: Path,
    words: Sequence[str],
    after: Sequence[str],
    module: str | None,
    function: str | None,
    command: str = "tracefork replay",
) -> tuple[Agent, Path]:
    """Return the agent to replay and the folder to run it in; `command` is shown in an error.

    Raises:
        UsageError: no agent was named, and the store has no command for this tape.
        TapeError: the file is not a tape, or is damaged.
    """
    typed = read_agent(words, after, module, function)
    if typed is not None:
        return typed, Path.cwd()
    with Tape.open(tape) as opened:
        digest, served = opened.digest, opened.served
    shown = shlex.quote(tape_names.shown(tape))
    if served is not None and served.kind != "call":
        raise UsageError(
            f"tracefork: {shown} holds a {'task' if served.kind == 'task' else 'request'} of a "
            f"service ({printable(served.name)}). Name its app: {command} {shown} --app PKG.MOD:APP"
        )
    remedy = f"Name the agent after the tape: {command} {shown} SCRIPT.py [-- ARGS]"
    run = command_store.recall(tape)
    if run is None:
        raise UsageError(f"tracefork: {shown} was not recorded on this machine. {remedy}")
    if digest != run.digest:
        raise UsageError(
            f"tracefork: {shown} is not the tape that `{run.agent.words}` recorded there "
            f"(digest {run.digest[:8]} then, {digest[:8]} now), so nothing was run. {remedy}"
        )
    folder = Path(run.cwd)
    if not folder.is_dir():
        raise UsageError(
            f"tracefork: {folder}, where {shown} was recorded, no longer exists. {remedy}"
        )
    from tracefork_core.cli.agent.kept_arguments import with_secrets

    return Agent(run.form, run.target, tuple(with_secrets(run.args))), folder
