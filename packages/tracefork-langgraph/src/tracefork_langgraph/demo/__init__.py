"""The demo of `tracefork demo`: a support agent that fails, and its scripted provider.

The model looks up the wrong policy the first time, and then every twentieth time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracefork_testkit import ModelRequest, ProviderServer, Reply

AGENT = Path(__file__).with_name("support_agent.py")
EDIT = ("at most 3 sentences", "at most 4 sentences")
BLAME = ("--agent=support_agent:main", "--oracle=regex:we send you another", "--budget=200 calls")
REPAIR = ("--at=3", "--prompt=Where is order 17? It is late.")
_SECONDS_PER_CHUNK = 0.03
_LOOKS = 20
_RUN = 3
"""Requests per run. The first run is for people to watch, at the pace of a real model."""


def provider() -> ProviderServer:
    """Return the provider that answers the agent. Entering it with `with` starts it.

    Raises:
        ImportError: the provider or a package that the agent imports is not installed.
    """
    from tracefork_testkit import ProviderServer

    for name in ("langchain", "langchain_openai"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return ProviderServer(_Model())


def ENVIRONMENT(url: str) -> dict[str, str]:  # noqa: N802 - named by the contract
    """Return the environment variables that point the agent at the provider only."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "not-needed",
        "NO_PROXY": "127.0.0.1",
        "LANGSMITH_TRACING_V2": "false",
    }


class _Model:
    """Look up the order and the time in parallel, then a policy, then answer from all three."""

    def __init__(self) -> None:
        self._asked = 0
        self._looked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self._asked += 1
        reply = self._answer(request)
        return replace(reply, chunk_delay=_SECONDS_PER_CHUNK if self._asked <= _RUN else 0.0)

    def _answer(self, request: ModelRequest) -> Reply:
        from tracefork_testkit import Reply, ToolCall

        results = [result.text for result in request.tool_results]
        if not results:
            calls = [ToolCall("lookup_order", {"order": 17}), ToolCall("current_time", {})]
            return Reply(tool_calls=calls)
        if len(results) == 2:
            question = {"question": self._policy(request)}
            return Reply(tool_calls=[ToolCall("search_policy", question)])
        now = datetime.fromisoformat(results[1])
        text = f"It is {now:%A, %H:%M}, and your turntable left us three days ago. "
        if "five days" not in results[2]:
            return Reply(text + "I find no policy about that, so I cannot promise you anything.")
        due = now + timedelta(days=2)
        return Reply(
            f"{text}Parcels may take five days, so it is due by {due:%A, %d %B}. If it is not "
            "there by then, we send you another one, free of charge."
        )

    def _policy(self, request: ModelRequest) -> str:
        if "late" in request.last_user_text:
            return "late delivery"
        self._looked += 1
        return "returns" if self._looked % _LOOKS == 1 else "late delivery"
