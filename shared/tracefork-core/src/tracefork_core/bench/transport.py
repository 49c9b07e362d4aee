"""Forks whose live calls leave the agent over HTTP, so that a transport counts them as well.

In a world, responses are drawn where the agent is, for speed. Here a provider behind a transport of
a real client draws them, from the same chance: what is counted on both sides has to be the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any

from tracefork_core.bench.causal_program import Program, Step
from tracefork_core.bench.exact import Recorded
from tracefork_core.bench.world import World

_URL = "http://provider.invalid/step"


class Provider:
    """Draws for whoever asks, and counts the requests. Give it to a transport.

    Attributes:
        calls: the requests that reached it.
    """

    def __init__(self, program: Program, random: Random, library: ModuleType) -> None:
        self.calls = 0
        self._program = program
        self._random = random
        self._library = library

    def __call__(self, request: Any) -> object:
        """Answer a request of the client."""
        self.calls += 1
        asked = json.loads(request.content)
        drawn = self._program.steps[asked["step"]].draw(asked["state"], self._random)
        return self._library.Response(200, json=drawn)


@dataclass(frozen=True, slots=True)
class _Asking(Step):
    """A step that asks for its response."""

    number: int
    ask: Callable[[int, int], int]

    def draw(self, state: int, random: Random) -> int:
        return self.ask(self.number, state)


class AskingWorld(World):
    """Carries probes out as a world does, and has every live response asked for over HTTP.

    Attributes:
        differing: the forks that were counted otherwise at the transport than by the world.
    """

    def __init__(self, recorded: Recorded, random: Random, library: ModuleType) -> None:
        self._provider = Provider(recorded.program, random, library)
        self._client = library.Client(transport=library.MockTransport(self._provider))
        self.differing: list[int] = []
        steps = (
            _Asking(step.policy, step.move, number, self._ask)
            for number, step in enumerate(recorded.program.steps)
        )
        asking = replace(recorded.program, steps=tuple(steps))
        super().__init__(replace(recorded, program=asking), random)

    def fork(
        self, forced: Mapping[int, int], until: int | None = None
    ) -> tuple[list[int], int, int]:
        """Run once, and compare what both sides counted."""
        before = self._provider.calls
        responses, state, calls = super().fork(forced, until)
        if self._provider.calls - before != calls:
            self.differing.append(self.forks - 1)
        return responses, state, calls

    def _ask(self, step: int, state: int) -> int:
        drawn: int = self._client.post(_URL, json={"step": step, "state": state}).json()
        return drawn
