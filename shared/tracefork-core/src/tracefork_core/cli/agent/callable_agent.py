"""The agent of a command line as something to be called, in any process, as often as it takes."""

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
    """Runs an agent in its folder; returns what a function returns, or how a program ended.

    What a program prints, or a function that returns None, goes into what is returned. Of a project
    it is that of its function. Meant for a process of its own: a program changes `sys.argv`, the
    folder and what is `__main__`.
    """

    agent: Agent
    folder: Path

    def __call__(self) -> object:
        """Run it once.

        Raises:
            Exception: what the program raised.
        """
        os.chdir(self.folder)
        self.agent.prepare()
        with tempfile.TemporaryFile() as output:
            with stdout_to(output.fileno()):
                is_called = self.agent.form in ("function", "project")
                came = self.agent.call() if is_called else self.agent.run()
                if self.agent.form == "project":
                    wind_down()  # What a framework prints last it may print in a thread.
            if not isinstance(came, Ending | None):
                return came
            if came is not None and isinstance(came.error, Exception):
                raise came.error
            output.seek(0)
            printed = output.read().decode("utf-8", "backslashreplace")
            return Ended(came.status if came else 0, printed)
