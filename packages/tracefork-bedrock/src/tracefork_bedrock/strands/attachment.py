"""Attach to agents, for sessions that are not ambient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from botocore.client import BaseClient
from strands import Agent
from strands.multiagent.graph import Graph
from strands.multiagent.swarm import Swarm

from tracefork_bedrock import attachment as clients
from tracefork_bedrock.strands.instrument import GRAPHS, INSTRUMENT
from tracefork_core import UsageError, bind

A = TypeVar("A", bound="Agent | Graph | Swarm")

_ALL = (INSTRUMENT, GRAPHS)
_CLIENTS = ("client", "_custom_client")
"""Where the models of Strands keep a client. Others make one for each request."""

_attached: dict[int, list[Any]] = {}
"""The models of each attached agent, by its id: not all of them are hashable."""
_uses: Counter[int] = Counter()
"""How many attached agents have a model, by its id."""
_originals: dict[int, dict[str, Any]] = {}
"""The clients that were in a model before, by its id."""


def attach(agent: A) -> A:
    """Record an agent, a graph or a swarm with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and the requests of the clients that
    the models of attached ones keep. Models that make a client for each request, as those of
    OpenAI do, need one: `OpenAIModel(client=tracefork.bind(AsyncOpenAI()))`. Outside a session
    nothing changes. Attaching twice has no further effect.

    Raises:
        UsageError: it is something else, or the client of its model is of no library that
            tracefork records.
    """
    if not isinstance(agent, (Agent, Graph, Swarm)):
        raise UsageError(
            f"tracefork: cannot attach to {agent!r:.80}: it is no Agent, Graph or Swarm of Strands."
        )
    if id(agent) not in _attached:
        models = list({id(model): model for model in _models(agent)}.values())
        for model in models:
            _bind(model)
        _attached[id(agent)] = [agent, *models]
        for instrument in _ALL:
            instrument.attach()
    return agent


def detach(agent: A) -> A:
    """Undo `attach`, and return the agent."""
    if (found := _attached.pop(id(agent), None)) is not None:
        for model in found[1:]:
            _release(model)
        for instrument in _ALL:
            instrument.detach()
    return agent


def _models(agent: Any) -> Iterator[Any]:
    if isinstance(agent, Agent):
        yield agent.model
    elif isinstance(agent, (Graph, Swarm)):
        for node in agent.nodes.values():
            yield from _models(node.executor)


def _bind(model: Any) -> None:
    if not _uses[id(model)]:
        held = {name: getattr(model, name, None) for name in _CLIENTS}
        originals = {name: client for name, client in held.items() if client is not None}
        for name, client in originals.items():
            if isinstance(client, BaseClient):
                clients.attach(client)
            else:
                setattr(model, name, bind(client))
        _originals[id(model)] = originals
    _uses[id(model)] += 1


def _release(model: Any) -> None:
    _uses[id(model)] -= 1
    if not _uses[id(model)]:
        for name, client in _originals.pop(id(model)).items():
            if isinstance(client, BaseClient):
                clients.detach(client)
            else:
                setattr(model, name, client)
