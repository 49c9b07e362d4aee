"""The runs that LangSmith would be sent, imported, say what the recording of the agent holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

import tracefork_core as tracefork
from tracefork_core import Tape

QUESTION = """\
@call lookup_order {"order": 17}
@then
@say Your refund is on its way."""


def dumped(run: Any) -> dict[str, Any]:
    """Return a run with its child runs as LangSmith's own models write it."""
    left_out = {"client", "ls_client", "parent_run", "child_runs"}
    written = json.loads(run.model_dump_json(exclude=left_out, fallback=str))
    return {**written, "child_runs": [dumped(child) for child in run.child_runs]}


def test_the_answers_of_the_models_are_those_of_the_recording(agent: Any, tape: Path) -> None:
    """With the model's call of the tool, inside the steps of the graph."""
    traced = RunCollectorCallbackHandler()
    with tracefork.record(tape):
        state = {"messages": [("user", QUESTION)]}
        agent("chat").invoke(state, {"callbacks": [traced]})
    (run,) = traced.traced_runs
    source, imported = tape.with_name("runs.json"), tape.with_name("imported.tape")
    source.write_text(json.dumps(dumped(run)))
    command = [sys.executable, "-m", "tracefork_core", "import", str(source), "-o", str(imported)]
    subprocess.run(command, check=True, capture_output=True)
    with Tape.open(tape) as recorded, Tape.open(imported) as told:
        assert told.imported is not None
        assert (told.imported.format, told.imported.grade) == ("LangSmith run", "content")
        models = [exchange for exchange in told.exchanges if exchange.method == "POST"]
        assert len(models) == len(recorded.exchanges) == 2
        assert [exchange.url for exchange in told.exchanges if exchange.method == "CALL"] == [
            "tool:lookup_order"
        ]
        assert all("support" in exchange.step_path for exchange in models)
        answers = [json.loads(exchange.response_body)["output"][0]["parts"] for exchange in models]
        last = json.loads(recorded.exchanges[1].response_body)["choices"][0]["message"]["content"]
    assert answers[0][0]["name"] == "lookup_order"
    assert answers[0][0]["arguments"] == {"order": 17}
    assert answers[1] == [{"content": last, "type": "text"}]
    assert last.startswith("Your refund is on its way.")
