"""What LLMs of CrewAI tell the event bus: every class does, in the thread that asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

from crewai.events.event_bus import CrewAIEventsBus

from tracefork_crewai.replacing import replaced


def on_call(
    event: Literal["started", "failed"], react: Callable[[Any], None]
) -> Callable[[], None]:
    """Have `react` called with the LLM, once it has told that a call began or failed.

    What it raises is raised where the LLM asks. Returns the undoing.
    """
    kind = f"llm_call_{event}"

    def wrap(emit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(emit)
        def emitted(self: Any, source: Any, event: Any) -> Any:
            done = emit(self, source, event)
            if event.type == kind:
                react(source)
            return done

        return emitted

    return replaced(CrewAIEventsBus, "emit", wrap)
