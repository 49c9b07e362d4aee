"""Tests of every style, in two workers, with a client that the module makes as it is imported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adapters.suites import Suite, quiet

from tracefork_testkit import ProviderServer

TESTS = """
import asyncio, os, subprocess, sys, unittest
import anyio, openai, pytest, pytest_asyncio

pytestmark = pytest.mark.tape
URL = os.environ["PROVIDER"]
CLIENT = openai.OpenAI(base_url=URL + "/v1")  # as the module is imported: it wants a key

def said(question):
    return dict(model="gpt-5-mini", messages=[{"role": "user", "content": question}])

def complete(question):
    answer = CLIENT.chat.completions.create(**said(question))
    return answer.choices[0].message.content

async def ask_async(question):
    async with openai.AsyncOpenAI(base_url=URL + "/v1") as client:
        return await client.chat.completions.create(**said(question))

@pytest.fixture(scope="module")
def number():
    return complete("A number, please.")

@pytest.fixture(scope="session", params=["a", "b"])
def client_of_session(request):
    return openai.OpenAI(base_url=URL + "/v1")

@pytest.mark.parametrize("n", range(4))
def test_of_both_workers(number, n):
    complete(f"{n}: is {number} odd?")

def test_session_client(client_of_session):
    client_of_session.chat.completions.create(**said("From the session."))

@pytest.mark.parametrize("text", ["a/b", "a:b", "é", "x" * 300, "", "..", "[a]", "A/B"])
def test_ids(text):
    complete(text)

@pytest.mark.asyncio
async def test_asyncio():
    await asyncio.gather(*(ask_async(text) for text in ("one", "one", "two")))

@pytest.mark.asyncio(loop_scope="module")
async def test_loop_of_module():
    await asyncio.gather(ask_async("one"), ask_async("one"))

@pytest_asyncio.fixture
async def answer():
    yield (await ask_async("From an async fixture.")).choices[0].message.content

@pytest.mark.asyncio
async def test_async_fixture(answer):
    await ask_async(answer)

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(anyio_backend):
    async with anyio.create_task_group() as group:
        group.start_soon(ask_async, "one")
        group.start_soon(ask_async, "two")

class TestUnit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.known = complete("Of the class.")

    def setUp(self):
        complete("Before each.")

    def test_it(self):
        complete(self.known)

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_it(self):
        await ask_async("In a loop of its own.")

def test_child():
    code = (
        "import openai, sys; openai.OpenAI(base_url=sys.argv[1]).chat.completions.create("
        "model='gpt-5-mini', messages=[{'role': 'user', 'content': 'From a child.'}])"
    )
    subprocess.run([sys.executable, "-c", code, URL + "/v1"], check=True)

def test_clock_and_chance(tape):
    import datetime, uuid
    complete(f"It is {datetime.datetime.now()}, and this is {uuid.uuid4()}.")
    assert len(tape.exchanges) == 1

@pytest.mark.skip
def test_skipped():
    complete("never")
"""
PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "anyio.pytest_plugin")
QUIET = ("-o", "asyncio_default_fixture_loop_scope=function")


class Runs:
    """A suite that two workers record, and one process without a key replays."""

    def __init__(self, suite: Suite, patch: pytest.MonkeyPatch) -> None:
        self.suite = suite
        (suite.folder / "test_agent.py").write_text(TESTS)
        quiet(patch)
        patch.setenv("PROVIDER", suite.server.url)
        arguments = (*PLUGINS, *QUIET, "-p", "xdist.plugin", "-n", "2", "--tape-mode=rewrite")
        key = "sk-proj-0123456789abcdefghijkl"
        self.recorded = suite.apart(*arguments, OPENAI_API_KEY=key)
        self.questions = [request.body for request in suite.server.requests]
        for name in ("test_gone", "gone.fixture", "TestOld.setUpClass.fixture"):
            (suite.folder / f"tapes/test_agent/{name}.tape").write_bytes(b"")
        self.replayed = suite.here(*PLUGINS, *QUIET)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Both runs of the suite."""
    with ProviderServer(nondeterministic=True) as server, pytest.MonkeyPatch.context() as patch:
        yield Runs(Suite(tmp_path_factory.mktemp("styles"), server), patch)


def test_all_of_them_are_recorded_by_two_workers_and_replayed_without_a_key(runs: Runs) -> None:
    """The module cannot be imported without a key; the tapes say which one it had."""
    for result in (runs.recorded, runs.replayed):
        assert result.status == 0, result.text
        assert len(result.outcomes) == 23
    assert runs.suite.asked == len(runs.questions)


def test_a_fixture_that_both_workers_set_up_asks_once(runs: Runs) -> None:
    """Else the tests of the worker that lost would diverge from the tape of the one that won."""
    assert sum(b"A number, please" in body for body in runs.questions) == 1


def test_each_test_has_a_tape_of_its_own_whatever_its_id(runs: Runs) -> None:
    """Names that a file system does not hold are shortened, and stay different."""
    names = {name.removeprefix("test_agent/") for name in runs.suite.tapes}
    assert len([name for name in names if name.startswith("test_ids")]) == 8
    assert {"TestUnit.test_it.tape", "TestAsync.test_it.tape", "test_ids[..].tape"} <= names
    assert {"number.fixture.tape", "TestUnit.setUpClass.fixture.tape"} <= names
    assert not [name for name in names if "skipped" in name or name.startswith(".")]
    assert all(len(name) <= 120 for name in names)


def test_a_tape_without_a_test_is_named_at_the_end_of_a_complete_run(runs: Runs) -> None:
    """A part of the suite says nothing about the rest."""
    title = "tapes without a test"
    assert runs.recorded.section(title) == []
    assert runs.replayed.section(title)[:2] == [
        "tapes/test_agent/gone.fixture.tape",
        "tapes/test_agent/test_gone.tape",
    ]
    part = runs.suite.here(*PLUGINS, *QUIET, "-k", "test_of_both")
    assert len(part.outcomes) == 4
    assert part.section(title) == []
