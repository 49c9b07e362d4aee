"""Have the app of a service handle the request that is on a tape."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracefork_core.cli import tape_names
from tracefork_core.errors import UsageError
from tracefork_core.masking.names import MASK

if TYPE_CHECKING:
    from tracefork_core.cli.agent.agent import Agent
    from tracefork_core.service.handler import Answer
    from tracefork_core.tape.served import Served


def served_on(path: Path) -> Served:
    """Return the request or task on a tape.

    Raises:
        UsageError: it holds none.
    """
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        served = tape.served
    if served is None or served.kind == "call":
        shown = shlex.quote(tape_names.shown(path))
        raise UsageError(
            f"tracefork: {shown} holds no request of a service, which --app could handle again. "
            f"Name the agent: {shown} SCRIPT.py [-- ARGS]"
        )
    return served


def check_headers(headers: Sequence[str]) -> None:
    """Check the headers that were typed.

    Raises:
        UsageError: one is not NAME:VALUE.
    """
    for header in headers:
        name, colon, _ = header.partition(":")
        if not (colon and name.strip()):
            raise UsageError(
                "tracefork: --header takes NAME:VALUE, like 'Authorization: Bearer …'."
            )


def handle(app: Any, path: Path, headers: Sequence[str], answer: Answer) -> None:
    """Have an app handle the request on a tape; `answer` takes what it answers.

    Raises:
        ReplayError: the request is not whole on the tape.
        Exception: what the app raises.
    """
    from tracefork_core.service.handler import ask, run_task

    served = served_on(path)
    if served.kind == "task":
        run_task(app, served, answer)
        return
    pairs = [
        (name.strip(), value.strip()) for name, _, value in (h.partition(":") for h in headers)
    ]
    ask(app, served, pairs, answer)


@dataclass(frozen=True, slots=True)
class Response:
    """The response of an app beside the recorded one.

    The status is None if the app raised before it answered. `same_body` is None if the body was
    too large to be compared. `masked` names the request headers that the app got without values.
    """

    recorded: int | None
    now: int | None
    same_body: bool | None
    masked: tuple[str, ...]

    @property
    def difference(self) -> str | None:
        """How the response differs from the recorded one, if it does."""
        # A middleware inside the recorder's may not have seen the response to an exception.
        if self.recorded is not None and self.now != self.recorded:
            return f"the app answered {self.now}, and {self.recorded} when it was recorded"
        if self.recorded is not None and self.same_body is False:
            return f"the app answered {self.now} as recorded, with another body"
        return None

    @property
    def words(self) -> str:
        """What is the same, in words."""
        if self.recorded is None:
            return f"{self.now}; no response was recorded"
        body = "not compared: it was too large" if self.same_body is None else "the same"
        return f"{self.now} as recorded, and the body is {body}"

    def notes(self) -> list[str]:
        """Return what a user should know if the replay differs."""
        notes = [self.difference] if self.difference else []
        if self.masked:
            names = ", ".join(self.masked)
            example = " ".join(f"--header '{name}: …'" for name in self.masked)
            notes.append(f"the tape has no values for the headers {names}; give them: {example}")
        return notes

    def document(self) -> dict[str, object]:
        """Return the comparison as JSON-able values."""
        return {"recorded": self.recorded, "now": self.now, "same_body": self.same_body}


def compared_response(path: Path, mask: Sequence[str], agent: Agent) -> Response | None:
    """Compare what an app answered with the tape; None if it handled no request."""
    if not agent.answers:
        return None
    from tracefork_core.run.replay import masking_of
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        served, masking = tape.served, masking_of(tape, mask)
    if served is None or served.kind != "http":
        return None
    answer = agent.answers[-1]
    same = None if served.answer is None else answer.digest(masking) == served.answer
    given = {header.partition(":")[0].strip().lower() for header in agent.args[1:]}
    masked = tuple(name for name, value in served.headers if value == MASK and name not in given)
    return Response(served.status, answer.status, same, masked)
