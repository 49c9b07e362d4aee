"""The ways to run a crew, as one table, with the steps that each exchange belongs to.

Branches that run side by side send the same requests on purpose, twice in a row. The provider of
`contrary` gives each request another answer, and answers the first ones last. So a branch that
finds the answer of another branch returns another result.

As a program it replays some of them in a process of its own: modes.py WAY,WAY URL FOLDER
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

Llm = Callable[..., Any]
"""Makes an LLM of a model (openai/gpt-4o-mini), with options."""

INPUTS = [{"n": 1}, {"n": 2}]
ASYNC = {"async_execution": True}
_PLAN = {
    "plan": "p",
    "steps": [
        {"step_number": 1, "description": "Write.", "tool_to_use": None, "depends_on": []},
        {"step_number": 2, "description": "Write.", "tool_to_use": None, "depends_on": []},
        {"step_number": 3, "description": "Review.", "tool_to_use": None, "depends_on": [1, 2]},
    ],
    "ready": True,
}


@dataclass(frozen=True)
class Mode:
    """A way to run: `run` makes all it needs and returns the results as text.

    `asked` counts its exchanges by the kinds of the steps above them.
    """

    run: Callable[[Llm], list[str]]
    asked: Counter[str]


def contrary() -> Callable[[Any], Any]:
    """Return a script that never repeats an answer, and answers concurrent requests in reverse.

    A planner gets a plan, and the first verdict of a guardrail is a no.
    """
    from tracefork_testkit import Reply, ToolCall
    from tracefork_testkit.directives import directed

    number, verdicts = itertools.count(), itertools.count()

    def answer(request: Any) -> Any:
        reply, n = directed(request), next(number)
        if not isinstance(reply, Reply):
            return reply
        text = f"{reply.text} ({n})" if reply.text else ""
        if "Task Execution Planner" in request.system:
            plans = [{"task_number": k, "task": "t", "plan": f"plan {n}"} for k in (1, 2)]
            text = json.dumps({"list_of_plans_per_task": plans})
        if any(tool.name == "create_reasoning_plan" for tool in request.tools):
            return Reply(tool_calls=(ToolCall("create_reasoning_plan", _PLAN),))
        if "Guardrail" in request.system:
            text = json.dumps({"valid": next(verdicts) > 0, "feedback": f"no ({n})"})
        return replace(reply, text=text, delay=0.01 * (3 - n % 4))

    return answer


def agent(llm: Any, role: str = "Writer", **options: Any) -> Any:
    """Make an agent."""
    from crewai import Agent

    return Agent(role=role, goal="help", backstory="You help.", llm=llm, **options)


def task(agent: Any, description: str = "Write.", **options: Any) -> Any:
    """Make a task."""
    from crewai import Task

    return Task(description=description, expected_output="an answer", agent=agent, **options)


def crew(*tasks: Any, **options: Any) -> Any:
    """Make a crew of tasks and their agents."""
    from crewai import Crew

    agents = list({id(task.agent): task.agent for task in tasks if task.agent}.values())
    return Crew(name="desk", agents=agents, tasks=list(tasks), **options)


def pair(llm: Llm, **options: Any) -> Any:
    """Make a crew whose second task reads the result of the first."""
    writer = agent(llm())
    return crew(task(writer, name="draft"), task(writer, "Review.", name="review"), **options)


def texts(outputs: Iterable[Any]) -> list[str]:
    """Return the results of crews or tasks."""
    return [output.raw for output in outputs]


def sequential(llm: Llm) -> list[str]:
    """Two tasks, one after the other."""
    return texts(pair(llm).kickoff().tasks_output)


def hierarchical(llm: Llm) -> list[str]:
    """A manager that delegates to two agents at once, and then asks one of them a question."""
    from crewai import Crew, Process

    first, second = (
        json.dumps({"task": "Draft it.", "context": "c", "coworker": name})
        for name in ("Writer", "Editor")
    )
    doubt = json.dumps({"question": "Sure?", "context": "c", "coworker": "Writer"})
    work = (
        f"@call delegate_work_to_coworker {first}\n@call delegate_work_to_coworker {second}\n"
        f"@then\n@then\n@call ask_question_to_coworker {doubt}\n@then\n@say Done."
    )
    return texts(
        Crew(
            name="desk",
            agents=[agent(llm()), agent(llm(), "Editor")],
            tasks=[task(None, work, name="piece")],
            process=Process.hierarchical,
            manager_llm=llm("openai/gpt-4o"),
        )
        .kickoff()
        .tasks_output
    )


def async_execution(llm: Llm) -> list[str]:
    """Three tasks at once that send equal requests, each with a tool, and one that reads them."""
    return texts(_side_by_side(llm).kickoff().tasks_output)


def _side_by_side(llm: Llm) -> Any:
    tools = [lookup()]
    same = '@call lookup {"word": "tape"}\n@then'
    branches = [task(agent(llm(), tools=tools), same, **ASYNC) for _ in range(3)]
    return crew(*branches, task(agent(llm()), "Sum up.", context=branches, name="sum"))


def lookup() -> Any:
    """Make a tool."""
    from crewai.tools import tool

    @tool("lookup")
    def looked_up(word: str) -> str:
        """Look a word up."""
        return f"{word}: a strip"

    return looked_up


def for_each(llm: Llm) -> list[str]:
    """The same crew for two inputs, one after the other."""
    return texts(pair(llm).kickoff_for_each(INPUTS))


def for_each_async(llm: Llm) -> list[str]:
    """The same crew for two inputs at once, in threads."""
    return texts(asyncio.run(pair(llm).kickoff_for_each_async(INPUTS)))


def akickoff_for_each(llm: Llm) -> list[str]:
    """The same crew for two inputs at once, on one event loop."""
    return texts(asyncio.run(pair(llm).akickoff_for_each(INPUTS)))


def kickoff_async(llm: Llm) -> list[str]:
    """Two crews at once, in threads."""

    async def run() -> list[Any]:
        return await asyncio.gather(*(pair(llm).kickoff_async() for _ in range(2)))

    return texts(asyncio.run(run()))


def akickoff(llm: Llm) -> list[str]:
    """Tasks at once on the event loop."""
    return texts(asyncio.run(_side_by_side(llm).akickoff()).tasks_output)


def flow(llm: Llm) -> list[str]:
    """Three methods of a flow at once, each with a crew, after one that asks by itself."""
    from crewai.flow import Flow, and_, listen, start

    class Press(Flow[dict[str, Any]]):
        _skip_auto_memory: ClassVar[bool] = True  # Else a database of vectors would be loaded.

        @start()
        def begin(self) -> None:
            self.state["begin"] = llm().call("Write.")

        @listen(begin)
        def left(self) -> None:
            self.state["left"] = pair(llm).kickoff().raw

        @listen(begin)
        def middle(self) -> None:
            self.state["middle"] = pair(llm).kickoff().raw

        @listen(begin)
        async def right(self) -> None:
            self.state["right"] = (await pair(llm).akickoff()).raw

        @listen(and_(left, middle, right))
        def end(self) -> list[str]:
            return [self.state[name] for name in ("begin", "left", "middle", "right")]

    return list(Press().kickoff())


def lone_agent(llm: Llm) -> list[str]:
    """An agent without a crew, first alone and then twice at once."""

    async def both() -> list[Any]:
        return await asyncio.gather(*(agent(llm()).kickoff_async("Write.") for _ in range(2)))

    return texts([agent(llm()).kickoff("Write."), *asyncio.run(both())])


def streaming(llm: Llm) -> list[str]:
    """A crew whose answers are read as they arrive."""
    stream = pair(llm, stream=True).kickoff()
    chunks = [chunk.content for chunk in stream]
    return ["".join(chunks), stream.result.raw]


def guardrails(llm: Llm) -> list[str]:
    """A task that a function rejects twice, and one that a model rejects once."""
    from crewai.tasks.llm_guardrail import LLMGuardrail

    seen: list[str] = []

    def check(output: Any):  # type: ignore[no-untyped-def] # CrewAI reads the annotation.
        seen.append(output.raw)
        return len(seen) > 2, output.raw

    judge = LLMGuardrail("It rhymes.", llm())
    writer = agent(llm())
    checked = task(writer, name="draft", guardrail=check)
    judged = task(writer, "Review.", name="review", guardrail=judge)
    return [*texts(crew(checked, judged).kickoff().tasks_output), *seen[:-1]]


def react(llm: Llm) -> list[str]:
    """An agent whose model does not support function calling."""
    steps = '@say Thought: look\n@say Action: lookup\n@say Action Input: {"word": "tape"}'
    writer = agent(llm("openai/o1-mini"), tools=[lookup()], max_iter=2)
    return texts(crew(task(writer, steps, name="draft")).kickoff().tasks_output)


def planning(llm: Llm) -> list[str]:
    """A crew that plans first. The prompt of its planner contains memory addresses of tools."""
    made = pair(llm, planning=True, planning_llm=llm("openai/gpt-4o"))
    for planned in made.tasks:
        planned.agent.tools = [lookup()]
    return texts(made.kickoff().tasks_output)


def reasoning(llm: Llm) -> list[str]:
    """An agent that plans its steps, of which two are equal and run at once."""
    from crewai.agent.planning_config import PlanningConfig

    config = PlanningConfig(reasoning_effort="low", max_attempts=1)
    return texts(crew(task(agent(llm(), planning_config=config))).kickoff().tasks_output)


def parallel_tools(llm: Llm) -> list[str]:
    """Three concurrent calls of one tool with equal arguments and different results."""
    from crewai.tools import tool

    numbers, together = itertools.count(), threading.Barrier(3)

    @tool("draw")
    def draw(pile: str) -> str:
        """Draw a card."""
        with suppress(threading.BrokenBarrierError):  # The calls run one by one.
            together.wait(0.5)
        return f"{pile} {next(numbers)}"

    calls = "\n".join(['@call draw {"pile": "left"}'] * 3) + "\n@then"
    return texts(crew(task(agent(llm(), tools=[draw]), calls)).kickoff().tasks_output)


def threads(llm: Llm) -> list[str]:
    """A callback that starts a thread of its own, which belongs to no task."""
    heard: list[str] = []

    def aside(_: Any) -> None:
        thread = threading.Thread(target=lambda: heard.append(llm().call("Write.")))
        thread.start()
        thread.join()

    made = pair(llm)
    made.tasks[0].callback = aside
    return [*texts(made.kickoff().tasks_output), *heard]


_TASK = "crew task agent"
_FLOW = f"flow method {_TASK}"
MODES: dict[str, Mode] = {
    run.__name__: Mode(run, Counter(asked))
    for run, asked in (
        (sequential, {f"{_TASK} model": 2}),
        (hierarchical, {f"{_TASK} model": 3, f"{_TASK} delegation agent model": 3}),
        (async_execution, {f"{_TASK} model": 7, f"{_TASK} tool": 3}),
        (for_each, {f"{_TASK} model": 4}),
        (for_each_async, {f"{_TASK} model": 4}),
        (akickoff_for_each, {f"{_TASK} model": 4}),
        (kickoff_async, {f"{_TASK} model": 4}),
        (akickoff, {f"{_TASK} model": 7, f"{_TASK} tool": 3}),
        (flow, {"flow method model": 1, f"{_FLOW} model": 6}),
        (lone_agent, {"agent model": 3}),
        (streaming, {f"{_TASK} model": 2}),
        (guardrails, {f"{_TASK} model": 5, "crew task guardrail agent model": 2}),
        (react, {f"{_TASK} model": 2, f"{_TASK} tool": 1}),
        (planning, {"crew planner agent model": 1, f"{_TASK} model": 2}),
        (reasoning, {f"{_TASK} planner model": 1, f"{_TASK} model": 4}),
        (parallel_tools, {f"{_TASK} model": 2, f"{_TASK} tool": 3}),
        (threads, {f"{_TASK} model": 2, "model": 1}),  # That of the thread belongs to no task.
    )
}


def main(ways: str, url: str, tapes: Path) -> None:
    """Replay tapes that are named after their ways, and print the results."""
    from crewai import LLM

    import tracefork_crewai

    def llm(model: str = "openai/gpt-4o-mini", **options: Any) -> Any:
        return LLM(model, **{"base_url": f"{url}/v1", "api_key": "none", **options})

    for way in ways.split(","):
        with tracefork_crewai.replay(tapes / way) as run:
            heard = MODES[way].run(llm)
        sys.stderr.write(json.dumps([heard, run.digest == run.tape.digest]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
