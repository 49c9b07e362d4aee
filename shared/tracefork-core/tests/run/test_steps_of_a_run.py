"""Steps belong to one run."""

from __future__ import annotations

from pathlib import Path

import httpx2

from tracefork_core import Tape, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_testkit import ProviderServer


def test_an_exchange_is_attributed_to_the_innermost_running_step(
    provider: ProviderServer, http: httpx2.Client, tape: Path
) -> None:
    """A model call belongs to the model's step; after that step ends, to the step around it."""
    with record(tape):
        node = begin_step("node", "plan")
        current_step.set(node)
        model = begin_step("model", "ChatX", parent=node)
        current_step.set(model)
        http.get(f"{provider.url}/echo")
        end_step(model)
        http.get(f"{provider.url}/echo")
    with Tape.open(tape) as written:
        paths = [written.step_path(exchange.step) for exchange in written.exchanges]
    assert paths == [("plan", "ChatX"), ("plan",)]


def test_a_step_does_not_outlive_its_run(
    provider: ProviderServer, http: httpx2.Client, tmp_path: Path
) -> None:
    """Code that runs after a session belongs to no step of the next one."""
    with record(tmp_path / "one.tape"):
        current_step.set(begin_step("model", "ChatX"))
    assert current_step.get() is None
    with record(tmp_path / "two.tape"):
        begin_step("node", "plan")
        http.get(f"{provider.url}/echo")
    with Tape.open(tmp_path / "two.tape") as written:
        assert written.exchanges[0].step is None
