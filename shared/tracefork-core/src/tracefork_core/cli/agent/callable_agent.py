"""The agent of a command line as a callable, which blame and bisect run in child processes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.blaming.oracles.oracles import Ended
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.agent.shutdown import wind_down
from tracefork_core.cli.display.screen import stdout_to


@dataclass(frozen=True, slots=True)
class Program:
    """Runs an agent in its folder and returns its result.

    The result is the return value of a function or of a project's function. For a program, and for
    a function that returns None, it is an `Ended` with the exit status and the printed text.
    Call it in a process of its own: it changes `sys.argv`, the current folder and `__main__`.
    """

    agent: Agent
    folder: Path

    def __call__(self) -> object:
        """Run the agent once.

        Raises:
            Exception: the exception that ended the agent.
        """
        os.chdir(self.folder)
        self.agent.prepare()
        with tempfile.TemporaryFile() as output:
            with stdout_to(output.fileno()):
                is_called = self.agent.form in ("function", "project")
                result = self.agent.call() if is_called else self.agent.run()
                if self.agent.form == "project":
                    wind_down()  # A framework may print its last lines in a thread.
            if not isinstance(result, Ending | None):
                return result
            if result is not None and isinstance(result.error, Exception):
                raise result.error
            output.seek(0)
            printed = output.read().decode("utf-8", "backslashreplace")
            return Ended(result.status if result else 0, printed)
