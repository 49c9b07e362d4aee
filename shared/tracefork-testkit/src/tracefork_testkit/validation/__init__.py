"""An agent that goes wrong where one wants it to: what `tracefork validate` holds blame to.

Layout: `shop` has the tools, `agent` the loop, `view` and `policy` its model; `planting` says which
faults can be planted where. Needs the extra `validation`.
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
"""The exchanges at which the model may toss a coin, and what it decides there."""


class Subject:
    """The agent, at work for one case after the other. Nothing of a case reaches the next one."""

    def __init__(self, model: Client, policy: Policy) -> None:
        self._model = model
        self._policy = policy
        self.begin("")

    def begin(self, name: str, coin: str | None = None) -> None:
        """Begin a case: its name seeds what the model draws; `coin` is a stage it tosses at."""
        self._policy.begin(name, coin)
        self._agent = SupportAgent(self._model, Shop())

    def run(self) -> str:
        """Let the agent serve the customer, and return its answer."""
        return self._agent.serve()

    def good(self, answer: object) -> bool:
        """Return whether an answer is the right one."""
        return good(answer)

    @property
    def slips(self) -> int:
        """How often the model erred of its own in this case so far."""
        return self._policy.slips


@contextmanager
def subject(seed: int) -> Iterator[Subject]:
    """Give the agent, with its provider on loopback."""
    policy = Policy(seed)
    with ProviderServer(policy, keep_requests=False) as server, client(server.url) as model:
        yield Subject(model, policy)
