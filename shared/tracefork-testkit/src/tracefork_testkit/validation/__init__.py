"""An agent with faults at known steps, with which `tracefork validate` tests blame.

Layout: `shop` has the tools, `agent` the loop, `view` and `policy` its model; `planting` lists the
faults that can be planted at each step. Needs the extra `validation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracefork_testkit.provider import ProviderServer
from tracefork_testkit.validation.agent import Client, SupportAgent, client, good
from tracefork_testkit.validation.planting import CLASSES, STEPS, Plant, plants
from tracefork_testkit.validation.policy import STAGES, Policy
from tracefork_testkit.validation.shop import Shop

__all__ = ["CLASSES", "COINS", "STEPS", "Plant", "Subject", "plants", "subject"]

COINS = dict(zip((1, 3, 5, 7), STAGES, strict=True))
"""The exchanges at which the model can decide by a coin toss, with their stages."""


class Subject:
    """Runs the agent for one case after another; no state passes between cases."""

    def __init__(self, model: Client, policy: Policy) -> None:
        self._model = model
        self._policy = policy
        self.begin("")

    def begin(self, name: str, coin: str | None = None) -> None:
        """Begin a case: its name seeds the model's draws; at the stage `coin` it tosses a coin."""
        self._policy.begin(name, coin)
        self._agent = SupportAgent(self._model, Shop())

    def run(self) -> str:
        """Run the agent and return its answer to the customer."""
        return self._agent.serve()

    def good(self, answer: object) -> bool:
        """Return whether an answer is correct."""
        return good(answer)

    @property
    def slips(self) -> int:
        """The number of unplanned errors of the model in this case so far."""
        return self._policy.slips


@contextmanager
def subject(seed: int) -> Iterator[Subject]:
    """Provide the agent, with its provider on loopback."""
    policy = Policy(seed)
    with ProviderServer(policy, keep_requests=False) as server, client(server.url) as model:
        yield Subject(model, policy)
