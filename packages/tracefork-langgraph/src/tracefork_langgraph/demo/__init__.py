"""What `tracefork demo` shows: a support agent, its scripted provider, and an edit of one byte."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracefork_testkit import ModelRequest, ProviderServer, Reply

AGENT = Path(__file__).with_name("support_agent.py")
EDIT = ("at most 3 sentences", "at most 4 sentences")
_SECONDS_PER_CHUNK = 0.03


def provider() -> ProviderServer:
    """Return the provider that answers the agent, to be started by `with`."""
    from tracefork_testkit import ProviderServer

    return ProviderServer(_answer, chunk_delay=_SECONDS_PER_CHUNK)


def ENVIRONMENT(url: str) -> dict[str, str]:  # noqa: N802 - named by the contract
    """Return the variables that point the agent at the provider, and at nothing else."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "not-needed",
        "NO_PROXY": "127.0.0.1",
        "LANGSMITH_TRACING_V2": "false",
    }


def _answer(request: ModelRequest) -> Reply:
    """Look the order and the policy up at once, then the time, then answer from all three."""
    from tracefork_testkit import Reply, ToolCall

    results = [result.text for result in request.tool_results]
    if not results:
        calls = [
            ToolCall("lookup_order", {"order": 17}),
            ToolCall("search_policy", {"question": "late delivery"}),
        ]
        return Reply(tool_calls=calls)
    if len(results) == 2:
        return Reply(tool_calls=[ToolCall("current_time", {})])
    now = datetime.fromisoformat(results[-1])
    due = now + timedelta(days=2)
    return Reply(
        f"It is {now:%A, %H:%M}, and your turntable left us three days ago. Parcels may take five "
        f"days, so it is due by {due:%A, %d %B}. If it is not there by then, we send you another "
        "one, free of charge."
    )
