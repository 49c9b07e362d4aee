"""The negative controls of the suite for adapters: one that has a defect fails the test of it.

The agents are those of examples/adapter, whose own tests show that it passes as it is.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tracefork_core as tracefork
from tracefork_core import seams
from tracefork_core.order import turnstile
from tracefork_testkit import ProviderServer
from tracefork_testkit.conformance import API_KEY, AdapterConformance, process, within

TEMPLATE = Path(__file__).parents[3] / "examples/adapter"
sys.path.append(str(TEMPLATE / "src"))

from acme_agents import Agent  # noqa: E402
from tracefork_acme import attachment, instrument  # noqa: E402

Patch = pytest.MonkeyPatch


class Acme(AdapterConformance):
    """The adapter of the template; a test breaks it. Each test is called as a plain function."""

    adapter = "acme"
    selectors: ClassVar = {"agent:helper": 0, "agent:helper:answer": 2}
    seconds = 0.5

    def __init__(self) -> None:
        self.lookups = 0
        self.attached: list[Agent] = []

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent:
        return Agent("helper", url=f"{url}/v1", key=API_KEY, tools=(lookup,))

    def attach(self, agent: Agent) -> Agent:
        self.attached.append(agent)
        return attachment.attach(agent)

    def run(self, agent: Agent, question: str, mode: str) -> str:
        stream = "stream" in mode
        if "async" in mode:
            return str(asyncio.run(agent.arun(question, stream=stream)))
        return str(agent.run(question, stream=stream))


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the template's entry points, so that each session is instrumented."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path_factory.mktemp("installed") / "tracefork_acme-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tracefork-acme\nVersion: 0\n")
    lines = [
        f"[{group}]\n{name} = {value}\n"
        for group, points in project["entry-points"].items()
        for name, value in points.items()
    ]
    (metadata / "entry_points.txt").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(metadata.parent)
        seams.of_adapters.cache_clear()
        yield
    seams.of_adapters.cache_clear()


@pytest.fixture
def suite() -> Iterator[Acme]:
    """Return the suite; detach its agents at the end, and collect what their loops left open."""
    acme = Acme()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield acme
        for agent in acme.attached:
            attachment.detach(agent)
        acme.attached.clear()
        gc.collect()


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """Serve answers that differ each time."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


def unchanged(function: Any) -> Any:
    return function


def renamed(patch: Patch, name: Callable[[str], str]) -> None:
    """Give each step another name."""
    step = instrument.step
    patch.setattr(instrument, "step", lambda kind, old: step(kind, name(old)))


def without_agent_steps(patch: Patch) -> None:
    with_step = instrument._with_step
    patch.setattr(
        instrument,
        "_with_step",
        lambda kind, method: method if kind == "agent" else with_step(kind, method),
    )


def test_an_adapter_without_an_entry_point_is_seen(suite: Acme) -> None:
    """No session would use it."""
    suite.test_the_adapter_is_found()
    suite.adapter = "another"  # type: ignore[misc]
    with pytest.raises(AssertionError, match="another"):
        suite.test_the_adapter_is_found()


@pytest.mark.parametrize("mode", ["sync", "async stream"])
def test_a_tool_that_is_no_exchange_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch, mode: str
) -> None:
    """It would run again in each replay."""
    monkeypatch.setattr(instrument, "_as_exchange", unchanged)
    with pytest.raises(AssertionError, match="2 == 1"):
        suite.test_a_tool_runs_once(provider, tmp_path, mode)


def test_a_step_without_a_name_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Nobody could fork there, and `show` would print a gap."""
    renamed(monkeypatch, lambda name: " ")
    with pytest.raises(AssertionError, match="without a name"):
        suite.test_every_exchange_has_a_step(provider, tmp_path, "sync")


def test_a_name_that_depends_on_the_hash_seed_is_seen(
    suite: Acme,
    provider: ProviderServer,
    tmp_path: Path,
    monkeypatch: Patch,
    request: pytest.FixtureRequest,
) -> None:
    """Two runs of one process agree on it."""
    renamed(monkeypatch, lambda name: f"{name}-{hash(name)}")
    suite.selectors = {}  # type: ignore[misc]
    if process.task is not None:  # The other half of the test below, in its process.
        suite.test_another_process_agrees_on_steps(provider, tmp_path, request)
        return
    suite.test_step_names_are_alike_in_two_runs(provider, tmp_path)
    with pytest.raises(AssertionError, match="helper-"):
        suite.test_another_process_agrees_on_steps(provider, tmp_path, request)
    assert (tmp_path / "there.tape").exists(), "the other process failed"


def test_a_missing_name_of_an_agent_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Neither a fork nor a blame finds the agent."""
    without_agent_steps(monkeypatch)
    with pytest.raises(tracefork.UsageError, match="agent:helper"):
        suite.test_the_name_of_a_step_is_a_fork_point(provider, tmp_path)
    (tmp_path / "blame").mkdir()
    with pytest.raises(tracefork.UsageError, match="no step of kind 'agent'"):
        suite.test_blame_by_agent_names_the_planted_step(tmp_path / "blame")


def test_a_client_that_serves_one_event_loop_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    """It would lose forks of a blame, and sessions after the first."""
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.05)  # No thread asks for what is missing.
    loops: list[object] = []
    ask = Agent._aask

    @wraps(ask)
    async def asked(self: Agent, messages: list[Any], *, stream: bool) -> Any:
        loops.append(asyncio.get_running_loop())
        if loops[-1] is not loops[0]:
            raise RuntimeError("Event loop is closed")
        return await ask(self, messages, stream=stream)

    monkeypatch.setattr(Agent, "_aask", asked)
    with pytest.raises(RuntimeError, match="loop is closed"):
        suite.test_one_agent_serves_a_session_after_a_session(provider, tmp_path, "async")
    loops.clear()
    with pytest.raises(AssertionError, match="loop is closed"):
        suite.test_blame_by_agent_names_the_planted_step(tmp_path)


@contextmanager
def hanging() -> Iterator[threading.Event]:
    """Expect that a test gives up a thread that hangs; then let the thread end, and forget it."""
    released = threading.Event()
    try:
        with pytest.raises(AssertionError, match=r"still running after 0\.5 s"):
            yield released
    finally:
        released.set()
        for thread in within.hung:
            thread.join(10)
        within.hung.clear()


def test_a_retry_without_end_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    """A divergence at a model call is raised again at each attempt."""
    ask = Agent._ask
    with hanging() as released:

        @wraps(ask)
        def asked(self: Agent, messages: list[Any], *, stream: bool) -> Any:
            while True:
                try:
                    return ask(self, messages, stream=stream)
                except Exception:
                    if released.is_set():
                        raise

        monkeypatch.setattr(Agent, "_ask", asked)
        suite.test_one_changed_byte_diverges(provider, tmp_path, "sync")


def test_a_tool_whose_thread_dies_is_seen(
    suite: Acme, provider: ProviderServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    """The agent waits for a result that never comes."""
    as_exchange = instrument._as_exchange
    with hanging() as released:

        def in_a_thread(use: Any) -> Any:
            exchange = as_exchange(use)

            @wraps(use)
            def used(self: Agent, name: str, arguments: dict[str, Any]) -> Any:
                try:
                    return exchange(self, name, arguments)
                except Exception:
                    released.wait()
                    raise

            return used

        monkeypatch.setattr(instrument, "_as_exchange", in_a_thread)
        suite.test_a_changed_argument_of_a_tool_diverges(provider, tmp_path, "sync")


def test_a_hang_ends_the_process(tmp_path: Path) -> None:
    """Its threads would keep Python from ending, and CI from seeing that a test failed."""
    test = tmp_path / "test_hang.py"
    test.write_text(HANGS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "still running after 0.1 s" in done.stdout
    assert "never.wait()" in done.stdout
    assert "1 failed" in done.stdout


HANGS = """
import threading
from tracefork_testkit.conformance.within import within

def test_hangs():
    never = threading.Event()
    def wait():
        thread = threading.Thread(target=never.wait)  # not a daemon: Python waits for it
        thread.start()
        never.wait()
    within(0.1, wait)
"""
