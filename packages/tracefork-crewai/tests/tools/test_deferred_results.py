"""CrewAI writes a result that is too long for a model's window to a file, and passes its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from crewai.tools import tool

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

pytestmark = pytest.mark.skipif(
    version("crewai") == "1.15.10",
    reason="CrewAI 1.15.10 passes results whole and writes no file",
)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose model reads the file that its prompt names."""

    def reading(request: ModelRequest) -> Reply:
        results = [result.text for turn in request.messages for result in turn.tool_results]
        if not results:
            return Reply(tool_calls=[ToolCall("look_up", {})])
        named = re.search(r"`(tool-result-\S+/\S+)`", results[-1])
        if named is None:
            return Reply(f"It ends with {results[-1][-4:]}")
        reader = next(tool.name for tool in request.tools if "deferred" in tool.name)
        return Reply(tool_calls=[ToolCall(reader, {"file_path": named[1], "start_line": 2000})])

    with ProviderServer(reading, nondeterministic=True) as server:
        yield server


def test_a_long_result_is_read_from_its_file(
    crew: Any, llm: Any, twice: Any, ran: Any, exchanges: Any
) -> None:
    """The name of the file is random, and the recorded one at replay. Its reader runs live."""

    def run() -> Any:
        @tool
        def look_up() -> str:
            """Look up everything."""
            ran.append("look_up")
            return "\n".join(f"line {n}" for n in range(2001))

        return crew(help="Look.", llm_=llm("openai/gpt-4"), agents_={"tools": [look_up]}).kickoff()

    recorded, replayed = twice(run)
    assert "It ends with 2000" in recorded.raw
    assert replayed.raw == recorded.raw
    assert ran.now() == ["look_up"]
    assert exchanges() == [("look_up", {})]
