"""A recording of `adk conformance record` becomes a tape that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import Tape, replay
from tracefork_core.errors import ReplayError
from tracefork_core.interop.importing.recognise import import_file, read
from tracefork_core.providers.decode import model_call

RECORDED = """
recordings:
  - user_message_index: 0
    agent_name: helper
    llm_recording:
      llm_request:
        model: gemini-2.5-flash
        contents:
          - parts:
              - text: Rome?
            role: user
        config:
          system_instruction: Be brief.
          temperature: 0.5
          tools:
            - function_declarations:
                - description: Weather.
                  name: weather
                  parameters_json_schema:
                    properties: {snake_key: {type: object}}
      llm_responses:
        - content:
            parts:
              - function_call:
                  id: c1
                  args: {city: Rome, snake_key: {a_b: 1}}
                  name: weather
            role: model
          finish_reason: STOP
          usage_metadata: {candidates_token_count: 3, prompt_token_count: 10}
  - user_message_index: 0
    agent_name: helper
    tool_recording:
      tool_call: {id: c1, args: {city: Rome, snake_key: {a_b: 1}}, name: weather}
      tool_response: {id: c1, name: weather, response: {sunny_in: Rome}}
"""


def test_models_tools_and_agents_are_on_the_tape(tmp_path: Path) -> None:
    """Written by google-adk 2.13. Keys of the user stay as they are."""
    old = tmp_path / "generated-recordings.yaml"
    old.write_text(RECORDED)
    _, run = import_file(old, tmp_path / "new.tape")
    assert (run.format, run.grade) == ("ADK conformance recording", "content")
    with Tape.open(tmp_path / "new.tape") as tape:
        asked, tool = tape.exchanges
        call = model_call(asked)
        assert (tool.url, tool.request_body) == (
            "tool:weather",
            b'{"city":"Rome","snake_key":{"a_b":1}}',
        )
        assert tool.response_body == b'{"sunny_in":"Rome"}'
        assert asked.step_path == tool.step_path == ("message 0", "helper")
    assert call is not None
    assert (call.request_model, call.parameters["temperature"]) == ("gemini-2.5-flash", 0.5)
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (10, 3)
    assert [definition.name for definition in call.tools] == ["weather"]
    assert [(part.name, part.arguments) for part in call.tool_calls] == [
        ("weather", {"city": "Rome", "snake_key": {"a_b": 1}})
    ]


def test_it_does_not_replay(tmp_path: Path) -> None:
    """It has no bytes, and no address."""
    old = tmp_path / "old.yaml"
    old.write_text(RECORDED)
    import_file(old, tmp_path / "new.tape")
    with pytest.raises(ReplayError, match="structure and content"), replay(tmp_path / "new.tape"):
        pass


def test_a_call_without_its_answer_is_structure() -> None:
    """And fields of the wrong types do not stop the import."""
    cut = RECORDED.replace("tool_response: {", "other: {").replace(
        "llm_responses:", "x: [1]\n      y:"
    )
    assert read(Path("old.yaml"), cut.encode()).grade == "structure"
    odd = b"recordings: [{llm_recording: {llm_request: 3}, agent_name: 4}, {tool_recording: []}]"
    assert [each.grade for each in read(Path("o"), odd).exchanges] == ["structure"] * 2
