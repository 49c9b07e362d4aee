"""React to the events of CrewAI's LLMs: every class emits them in the thread that calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

from crewai.events.event_bus import CrewAIEventsBus

from tracefork_core.adapters import Patches


def on_call(
    patches: Patches, event: Literal["started", "failed"], react: Callable[[Any], None]
) -> None:
    """Call `react` with the LLM after it has reported that a call began or failed.

    An exception of `react` is raised in the code that called the LLM.
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

    patches.wrap(CrewAIEventsBus, "emit", wrap)
