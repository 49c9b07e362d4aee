"""Run probes on a recorded run of a planted agent, as forks do on a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any

from tracefork_core.bench.planted_agent import Program, Recorded, Step
from tracefork_core.blaming.engine.probe import Probe, Trial


class Simulation:
    """Simulated forks of a recorded run. `calls` and `forks` count live calls and runs.

    Args:
        recorded: the run to blame.
        random: source of all live draws.
        units: the steps of each unit, if a unit is not a single step. Each step belongs to one
            unit; units may overlap in time and be numbered in any order.
        breaks: probability that a run has no outcome, if it would have passed and if it would have
            failed.
    """

    def __init__(
        self,
        recorded: Recorded,
        random: Random,
        *,
        units: Sequence[Sequence[int]] | None = None,
        breaks: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.recorded = recorded
        self.units = [tuple(unit) for unit in units or [(step,) for step in range(len(recorded))]]
        self.calls = self.forks = 0
        self._random = random
        self._breaks = breaks
        self._responses: list[list[int]] = []

    @property
    def costs(self) -> list[float]:
        """The recorded cost of each unit: its number of calls."""
        return [float(len(unit)) for unit in self.units]

    def risk(self, held: Iterable[int]) -> float:
        """Return the exact probability of failure with these units held and the rest live."""
        return self.recorded.risk(step for unit in held for step in self.units[unit])

    def price(self, probe: Probe) -> int:
        """Return the number of live calls that a probe will take."""
        fixed = probe.held.union(unit for unit, _ in probe.given)
        last = len(self.recorded) if probe.until is None else max(self._unit(probe.until))
        live = (unit for number, unit in enumerate(self.units) if number not in fixed)
        return sum(step <= last for unit in live for step in unit)

    def try_one(self, probe: Probe) -> Trial:
        """Run one probe.

        Raises:
            ValueError: the probe names a unit or a trial that does not exist, holds a unit that is
                also given, or gives a response that its trial did not reach.
        """
        forced = self._forced(probe)
        last = None if probe.until is None else max(self._unit(probe.until))
        responses, state, calls = self.fork(forced, last)
        number = len(self._responses)
        self._responses.append(responses)
        failed = why = None
        if last is None:
            failed = self.recorded.program.graded(self._random, state)
            if self._random.random() < self._breaks[failed]:
                failed, why = None, "the run broke off"
        return Trial(number, probe, failed, self._same(forced, responses), why, calls, usd=0.0)

    def fork(
        self, forced: Mapping[int, int], until: int | None = None
    ) -> tuple[list[int], int, int]:
        """Run with some responses forced; return the responses, the last state, the live calls."""
        responses, state = self.recorded.program.run(self._random, forced, until)
        calls = sum(step not in forced for step in range(len(responses)))
        self.calls += calls
        self.forks += 1
        return responses, state, calls

    def fails(self, forced: Mapping[int, int]) -> bool:
        """Run once to the end with responses forced; return whether it is graded as failed."""
        _, state, _ = self.fork(forced)
        return self.recorded.program.graded(self._random, state)

    def _unit(self, number: int) -> tuple[int, ...]:
        if not 0 <= number < len(self.units):
            raise ValueError(f"there is no unit {number}: the run has {len(self.units)}, from 0")
        return self.units[number]

    def _forced(self, probe: Probe) -> dict[int, int]:
        forced = {
            step: self.recorded.responses[step] for unit in probe.held for step in self._unit(unit)
        }
        for unit, trial in probe.given:
            if unit in probe.held:
                raise ValueError(f"unit {unit} is held and given in one probe")
            if not 0 <= trial < len(self._responses):
                raise ValueError(f"there is no trial {trial}: {len(self._responses)} were made")
            then = self._responses[trial]
            for step in self._unit(unit):
                if step >= len(then):
                    raise ValueError(f"trial {trial} ended before unit {unit} answered")
                forced[step] = then[step]
        return forced

    def _same(self, forced: Mapping[int, int], responses: Sequence[int]) -> dict[int, bool]:
        other = [
            step
            for step, response in enumerate(responses)
            if response != self.recorded.responses[step]
        ]
        same = {}
        for number, unit in enumerate(self.units):
            if max(unit) >= len(responses) or any(step in forced for step in unit):
                continue
            if all(step in unit or step > max(unit) for step in other):
                same[number] = not any(step in unit for step in other)
        return same


_URL = "http://provider.invalid/step"


class Provider:
    """A handler for a mock transport that draws responses and counts the requests.

    Attributes:
        calls: number of requests that reached it.
    """

    def __init__(self, program: Program, random: Random, library: ModuleType) -> None:
        self.calls = 0
        self._program = program
        self._random = random
        self._library = library

    def __call__(self, request: Any) -> object:
        """Answer a request for a step with a response drawn in its state."""
        self.calls += 1
        asked = json.loads(request.content)
        drawn = self._program.steps[asked["step"]].draw(asked["state"], self._random)
        return self._library.Response(200, json=drawn)


@dataclass(frozen=True, slots=True)
class _Asking(Step):
    """A step that requests its response from a provider."""

    number: int
    ask: Callable[[int, int], int]

    def draw(self, state: int, random: Random) -> int:
        return self.ask(self.number, state)


class HttpSimulation(Simulation):
    """A simulation that requests every live response over HTTP.

    Attributes:
        differing: the forks whose calls the transport and the simulation counted differently.
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
        """Run once, and compare the calls that the transport and the simulation counted."""
        before = self._provider.calls
        responses, state, calls = super().fork(forced, until)
        if self._provider.calls - before != calls:
            self.differing.append(self.forks - 1)
        return responses, state, calls

    def _ask(self, step: int, state: int) -> int:
        drawn: int = self._client.post(_URL, json={"step": step, "state": state}).json()
        return drawn
