"""Choose the kind and the name of a step from the event that begins it.

The name is the same in every run of a crew. So it contains no id, fingerprint or address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_DELEGATION = frozenset(
    {
        "delegate_work_to_coworker",
        "ask_question_to_coworker",
        "delegate work to coworker",
        "ask question to coworker",
    }
)
"""The tools that delegate work to another agent, as native calling and ReAct spell them."""
_PLAN = "PlannerTaskPydanticOutput"
"""The output class of the hidden task that plans a whole crew. No task of a user has it."""
_SCORE = "TaskEvaluationPydanticOutput"
"""The output class of the task with which `Crew.test` judges another task.

Its description holds the other task's output, so its key differs in every run.
"""


@dataclass(frozen=True, slots=True)
class Label:
    """The kind, the name and the details of a step."""

    kind: str
    name: str
    detail: dict[str, object] = field(default_factory=dict)


CALLBACK = Label("callback", "callback")
"""The step around agents that a task's callback runs: these did not work on the task."""


def label_of(source: Any, event: Any, tasks: Sequence[Any]) -> Label | None:
    """Return the label of the step that an event begins; None if it begins none.

    `tasks` are those of the crew around it.
    """
    match event.type:
        case "crew_kickoff_started":
            return Label("crew", _words(event.crew_name, "crew"))
        case "flow_started" if not is_internal(source):
            return Label("flow", _words(event.flow_name, "flow"))
        case "method_execution_started" if not is_internal(source):
            return method_label(event.method_name)
        case "task_started":
            return _task(source, tasks)
        case "agent_execution_started":
            return Label("agent", _words(getattr(event.agent, "role", None), "agent"))
        case "lite_agent_execution_started":
            return Label("agent", _words(event.agent_info.get("role"), "agent"))
        case "tool_usage_started":
            name = _words(event.tool_name, "tool")
            return Label("delegation" if name.lower() in _DELEGATION else "tool", name)
        case "llm_call_started":
            return Label("model", _words(event.model, "model"))
    return _aside(event)


def is_internal(flow: Any) -> bool:
    """Return whether CrewAI runs a flow for itself: agents and memory are flows too.

    Newer versions mark such flows. In older ones, every flow in CrewAI's own modules is internal.
    """
    marked = getattr(type(flow), "is_crewai_internal", None)
    return type(flow).__module__.startswith("crewai.") if marked is None else bool(marked)


def method_label(name: object) -> Label:
    """Return the label of a flow's method."""
    return Label("method", _words(name, "method"))


def _aside(event: Any) -> Label | None:
    """Return the label of steps other than tasks, agents and tools."""
    match event.type:
        case "llm_guardrail_started":
            return Label("guardrail", _guardrail(event), {"retry": event.retry_count})
        case "memory_retrieval_started" | "memory_query_started" | "memory_save_started":
            return Label("memory", event.type.removeprefix("memory_").removesuffix("_started"))
        case "knowledge_query_started" | "knowledge_search_query_started":
            return Label("knowledge", event.type.removeprefix("knowledge_").split("_")[0])
        case "agent_reasoning_started":
            return Label("planner", "reasoning")
        case "mcp_connection_started":
            return Label("mcp", _words(event.server_name, "mcp"))
        case "a2a_delegation_started":
            return Label("delegation", _words(event.a2a_agent_name or event.endpoint, "a2a"))
    return None


def _task(task: Any, tasks: Sequence[Any]) -> Label:
    answer = getattr(getattr(task, "output_pydantic", None), "__name__", None)
    if answer == _PLAN:
        return Label("planner", "planner")
    if answer == _SCORE:
        return Label("evaluator", "evaluator")
    place = next((n for n, one in enumerate(tasks) if one is task), None)
    name = _task_name(task)
    if place is None:
        return Label("task", name)
    if sum(_task_name(one) == name for one in tasks) > 1:
        name = f"{place}:{name}"
    return Label("task", name, {"index": place})


def _task_name(task: Any) -> str:
    return _words(task.name, task.key[:8])


def _guardrail(event: Any) -> str:
    kind = _words(getattr(event, "guardrail_type", None), "guardrail")
    name = getattr(event, "guardrail_name", None)
    return _words(name, kind) if kind == "function" else kind


def _words(name: object, otherwise: str) -> str:
    return " ".join(str(name).split()) if name else otherwise
