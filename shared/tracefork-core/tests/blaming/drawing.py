"""An agent whose model draws by trial and step, so outcomes do not depend on where forks run.

Some tests import it by its bare name, so that other processes can import it too.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx2

from tracefork_core.blaming.trials.trial import trial_number

STEPS = 4


def agent() -> str:
    """Ask at each step with the answer of the step before; return the last answer."""
    said = "begin"
    headers = {"x-trial": str(trial_number.get())}
    with httpx2.Client(verify=False, timeout=30, headers=headers) as client:
        for step in range(STEPS):
            messages = [{"role": "user", "content": f"step {step} after: {said}"}]
            body = {"model": "gpt-5-mini", "messages": messages}
            answer = client.post(f"{os.environ['PROVIDER']}/v1/chat/completions", json=body)
            said = str(answer.json()["choices"][0]["message"]["content"])
    return said


async def asynchronous() -> str:
    """Run the agent as an async function."""
    return agent()


def dying() -> str:
    """Run the agent; kill the worker of trial 8, once, after its last answer."""
    said = agent()
    if trial_number.get() == 8:
        try:
            Path(os.environ["DIED"]).touch(exist_ok=False)
        except FileExistsError:
            return said
        os.kill(os.getpid(), signal.SIGKILL)
    return said


_runs: list[str] = []


def staining() -> str:
    """Run `dying`, which only works once per process."""
    assert not _runs, "this process is not fresh"
    _runs.append(dying())
    return _runs[0]


def good(answer: object) -> bool:
    return "refund" in str(answer)


def silent(answer: object) -> None:
    """Return None, like an oracle that forgets to return its grade."""
