"""The tests that every adapter inherits.

    class TestConformance(AdapterConformance):
        adapter = "langgraph"
        selectors: ClassVar = {"tool:lookup": 1}

        def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent: ...
        def attach(self, agent: Agent) -> Agent: ...
        def run(self, agent: Agent, question: str, mode: str) -> str: ...

An *agent* is an object of the framework under test that was built but has not run yet. Each test
runs it through `run`, against a scripted provider over a real socket. The agent's model must use
`API_KEY` as its key, and must receive the question unchanged. Its one tool is `lookup`: give it to
the framework in the way that lets the adapter record it. Leave the framework's retries on: they
must not swallow a divergence.

`subject` says what an adapter's tests give. `recording`, `steps`, `misses`, `forks` and `comparing`
hold the tests, `process` runs one of them in a new process, and `within` ends a test that hangs.
"""

from __future__ import annotations

from tracefork_testkit.conformance.comparing import Comparing
from tracefork_testkit.conformance.forks import Forks
from tracefork_testkit.conformance.misses import Misses
from tracefork_testkit.conformance.recording import Recording
from tracefork_testkit.conformance.steps import Steps
from tracefork_testkit.conformance.subject import API_KEY, MODES, QUESTION

__all__ = ["API_KEY", "MODES", "QUESTION", "AdapterConformance"]


class AdapterConformance(Recording, Steps, Misses, Forks, Comparing):
    """Inherit, implement the three abstract methods, and let pytest collect the tests.

    Attributes:
        adapter: the adapter's name in its entry point.
        model_kind: the kind of the steps of model calls.
        tool_kind: the kind of the steps of tool calls.
        agent_kind: the kind of the steps that `blame(by=...)` compares: the innermost that holds a
            whole run of the agent.
        selectors: other names of steps to fork at, as a user writes them, each with the number of
            the exchange that it stands for: {"agent:Helper": 0, "agent:Helper:answer": 2}. The run
            asks the model (0), calls the tool (1) and asks the model again (2).
        tool_seam: the seam of the tool calls on a tape, if the adapter records them by a seam of
            its own.
        seconds: how long a replay may take to raise a divergence.
    """
