"""Make steps of teams, and of the managers that ask a model who is next.

What a team sends between its parts is no step: the agents are, and each comes after those whose
messages it reads. Of managers, only those of a Selector, of MagenticOne and of your own classes
are steps: the others ask for nothing.

The first nodes of a graph are a set, whose order hashes decide. A session starts them in the order
of the graph, so that a replay in another process does the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from autogen_agentchat.base import Team
from autogen_agentchat.teams import DiGraph
from autogen_agentchat.teams._group_chat import _events
from autogen_agentchat.teams._group_chat._base_group_chat_manager import BaseGroupChatManager
from autogen_agentchat.teams._group_chat._graph._digraph_group_chat import GraphFlowManager
from autogen_agentchat.teams._group_chat._round_robin_group_chat import RoundRobinGroupChatManager
from autogen_agentchat.teams._group_chat._sequential_routed_agent import SequentialRoutedAgent
from autogen_agentchat.teams._group_chat._swarm_group_chat import SwarmGroupChatManager

from tracefork_autogen import runtimes
from tracefork_autogen.causes import Root, cause, causes_here, lane_around, root
from tracefork_autogen.clients import ATTACHED
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    checked_events,
    events_in,
    is_recorded_here,
    lane_here,
    replace_in_classes,
)

_QUIET = (RoundRobinGroupChatManager, SwarmGroupChatManager, GraphFlowManager)
_ASKING = (
    _events.GroupChatStart,
    _events.GroupChatAgentResponse,
    _events.GroupChatTeamResponse,
)
"""What managers are told before they choose the next speaker."""


def put_in(patches: Patches) -> None:
    """Put teams on the tape of the open session, as steps."""
    replace_in_classes(patches, Team, ["run_stream"], lambda _owner, _name, run: _as_team(run))
    patches.wrap(DiGraph, "get_start_nodes", _in_order)
    inside = runtimes.Inside(SequentialRoutedAgent, _events.__name__, _turn_of)
    patches.switch(lambda: runtimes.inside.append(inside), lambda: runtimes.inside.remove(inside))


def _turn_of(part: Any, message: Any) -> runtimes.Turn | None:
    """Return the turn of a manager that chooses the next speaker by its own means."""
    is_manager = isinstance(part, BaseGroupChatManager) and not isinstance(part, _QUIET)
    if not is_manager or not isinstance(message, _ASKING):
        return None
    return part._name, _read_in(message)  # noqa: SLF001 - it is told to the user as a source


def _read_in(message: Any) -> Sequence[Any]:
    if isinstance(message, _events.GroupChatAgentResponse):
        return [message.response.chat_message]
    if isinstance(message, _events.GroupChatTeamResponse):
        return list(message.result.messages)
    return message.messages or ()


def _as_team(run_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_stream)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        events = run_stream(self, *args, **options)
        return _in_team(self, events) if is_recorded_here() else events

    return run


def _in_team(team: Any, events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    def begin() -> RunningStep:
        causes_here().branch(team.name)
        running, lane = RunningStep.begin("team", team.name), lane_here()
        running.values = {
            root: Root(running.step, lane, ATTACHED.covers(team)),
            lane_around: lane,
            cause: None,
            ATTACHED.works_here: ATTACHED.covers(team),
        }
        return running

    return checked_events(events_in(begin, events))  # A team makes texts of errors.


class _Ordered(set[str]):
    """A set of nodes that iterates in the order of its graph."""

    def __init__(self, nodes: set[str], graph: Any) -> None:
        super().__init__(nodes)
        self._names = tuple(graph.nodes)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name in self)


def _in_order(get_start_nodes: Callable[..., set[str]]) -> Callable[..., set[str]]:
    @wraps(get_start_nodes)
    def got(self: Any) -> set[str]:
        nodes = get_start_nodes(self)
        return _Ordered(nodes, self) if is_recorded_here() else nodes

    return got
