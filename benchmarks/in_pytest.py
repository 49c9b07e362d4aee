"""Measure tests with a tape: what a replay adds to a test, and a suite beside its live run."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from bench import Bench, Samples, clean_environment
from recorders import CORE
from table import Measurement, Row, Spread

TITLE = "Tests with a tape"
_ADDED, _SUITE, _PROCESS = "a test", "a suite", "a suite, whole process"
CASES = (_ADDED, _SUITE, _PROCESS)
_BARE, _LIVE = "answered in the process", "live"
_MOST_MS, _LEAST_TIMES = 5, 20
_SLOW = 1.0
"""Seconds that the model takes for an answer, as a small model of a provider does."""
_AGENT = """
import json, os, httpx2, pytest

def answered(request):
    said = {"role": "assistant", "content": "I am not sure."}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    return httpx2.Response(200, json={"id": "x", "object": "chat.completion", "choices": [choice]})

IN_PROCESS = os.environ["VARIANT"] == "answered in the process"
CLIENT = httpx2.Client(transport=httpx2.MockTransport(answered)) if IN_PROCESS else httpx2.Client()
URL = os.environ["PROVIDER"] + "/v1/chat/completions"

def agent(question, calls):
    messages = [{"role": "user", "content": question}]
    for _ in range(calls):
        answer = CLIENT.post(URL, json={"model": "gpt-5-mini", "messages": messages}, timeout=60)
        messages.append(answer.json()["choices"][0]["message"])
        messages.append({"role": "user", "content": question})

pytestmark = [] if IN_PROCESS else [pytest.mark.tape]
"""
_ONE_CALL = """
@pytest.mark.parametrize("n", range(%d))
def test_one_call(n):
    agent(f"Where is order {n}?", 1)
"""
_THREE_CALLS = f"""
@pytest.mark.parametrize("n", range(%d))
def test_three_calls(n):
    agent(f"@slow {_SLOW}\\nWhere is order {{n}}?", 3)
"""
_CONFTEST = """
import json, os, time, pytest

SPENT = []

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol():
    cpu, wall = time.process_time(), time.perf_counter()
    result = yield
    SPENT.append((time.process_time() - cpu, time.perf_counter() - wall))
    return result

def pytest_unconfigure():
    with open("spent.json", "w") as file:
        json.dump(SPENT, file)
"""


def measure(bench: Bench) -> Measurement:
    """Measure a suite of short tests by its CPU time, and one that waits for a model."""
    rows = [*_added(bench), *_suite(bench)]
    return Measurement(
        TITLE,
        "CPU time of a test that asks a model once, of 40 after the first ten: with the answer "
        "made in the process, and replayed. Wall time of ten tests whose agents ask three times "
        f"each, and wait {_SLOW:g} s for each answer: live, and replayed, with what is loaded for "
        "the first replay; and of the process of pytest. `x` is live ÷ replayed.",
        rows,
    )


def _added(bench: Bench) -> list[Row]:
    folder = _folder(bench, "short", _ONE_CALL % 50)
    _run(bench, folder, "record", "--tape-mode=once")
    rounds = bench.rounds(
        2 if bench.quick else 5,
        (_BARE, CORE),
        lambda who: {"cpu": [cpu for cpu, _ in _run(bench, folder, who)[0][10:]]},
    )
    spreads = {
        who: Spread.of([statistics.median(one["cpu"]) * 1e3 for one in found])
        for who, found in rounds.items()
    }
    more = spreads[CORE].median - spreads[_BARE].median
    return [
        Row(_ADDED, _BARE, spreads[_BARE], "ms"),
        Row(
            *(_ADDED, CORE, spreads[CORE], "ms"),
            *(f"{more:+.1f} ms", f"≤ +{_MOST_MS} ms", more <= _MOST_MS),
        ),
    ]


def _suite(bench: Bench) -> list[Row]:
    folder = _folder(bench, "slow", _THREE_CALLS % 10)

    def one(who: str) -> Samples:
        options = ("--tape-mode=rewrite",) if who == _LIVE else ()
        spent, process = _run(bench, folder, who, *options)
        return {_SUITE: [sum(wall for _, wall in spent)], _PROCESS: [process]}

    rounds = bench.rounds(1 if bench.quick else 2, (_LIVE, CORE), one)
    rows = []
    for case in (_SUITE, _PROCESS):
        spreads = {who: Spread.of([s[case][0] for s in found]) for who, found in rounds.items()}
        times = spreads[_LIVE].median / spreads[CORE].median
        rows.append(Row(case, _LIVE, spreads[_LIVE], "s"))
        aim = (f"≥ {_LEAST_TIMES} x", times >= _LEAST_TIMES) if case == _SUITE else ("", None)
        rows.append(Row(case, CORE, spreads[CORE], "s", f"{times:.0f} x", *aim))
    return rows


def _folder(bench: Bench, name: str, tests: str) -> Path:
    folder = bench.folder / f"tests-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_agent.py").write_text(_AGENT + tests)
    return folder


def _run(
    bench: Bench, folder: Path, who: str, *options: str
) -> tuple[list[tuple[float, float]], float]:
    """Run the suite; return CPU and wall time of each test, and the seconds of the process."""
    code = (
        "import sys, time; began = time.perf_counter(); import pytest; "
        "status = pytest.main(sys.argv[1:]); "
        "open('process.json', 'w').write(str(time.perf_counter() - began)); sys.exit(status)"
    )
    own = {"PROVIDER": bench.provider(), "VARIANT": who, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugin = ("-p", "tracefork_core.pytest_plugin.plugin")
    subprocess.run(
        [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *plugin, *options],
        cwd=folder,
        env={**clean_environment(), **own},
        check=True,
        capture_output=True,
    )
    spent = [(cpu, wall) for cpu, wall in json.loads((folder / "spent.json").read_text())]
    return spent, float((folder / "process.json").read_text())
