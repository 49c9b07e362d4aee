"""`tracefork race` finds results that depend on the order of answers, and nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape
from tracefork_core.cli import options
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.race import race_runs
from tracefork_core.cli.race.race_report import document, order_words
from tracefork_core.cli.race.race_result import Result, Taped
from tracefork_core.cli.race.race_runs import Runs
from tracefork_core.cli.race.race_worker import Job
from tracefork_core.run.racing import Found, Group, Order, Outcome, Overlap, Smallest, overlap_of
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .conftest import Done, Shell

pytestmark = pytest.mark.many_processes

AGENTS = (Path(__file__).parent / "race_agents.py").read_text()
DELAYS = {"one": 0.05, "two": 0.15, "three": 0.25}


@pytest.fixture(scope="module")
def slow() -> Iterator[ProviderServer]:
    """Serve answers with delays, so that the first one arrives first."""

    def answer(request: ModelRequest) -> Reply:
        word = request.last_user_text.removeprefix("@say ")
        return Reply(text=word, delay=DELAYS.get(word, 0))

    with ProviderServer(answer) as server:
        yield server


@pytest.fixture
def agents(shell: Shell, slow: ProviderServer) -> Shell:
    """Return a shell in a folder with the agents."""
    shell.write("agents.py", AGENTS)
    shell.environment["PROVIDER"] = slow.url
    return shell


def record(shell: Shell, name: str) -> None:
    done = shell.tracefork("record", "-o", f"{name}.tape", "agents.py", "--", name)
    assert done.exit == 0, done.err


def raced(shell: Shell, name: str, *words: str, seeds: int = 3) -> Done:
    """Record an agent and search for races."""
    record(shell, name)
    return shell.tracefork("race", f"--seeds={seeds}", f"{name}.tape", *words)


def documented(shell: Shell, name: str, seeds: int = 3) -> dict[str, Any]:
    """Record an agent, search for races, and return the document."""
    done = raced(shell, name, "--json", seeds=seeds)
    assert done.document["exit"] == done.exit, done.err
    return done.document


@pytest.mark.parametrize("name", ["arrival", "pool"])
def test_a_join_in_arrival_order_is_a_race(agents: Shell, name: str) -> None:
    """The report names the place in the next prompt, and two answers to swap."""
    found = documented(agents, name)
    assert (found["exit"], found["result"], found["overlapping"]) == (1, "race", 3)
    as_recorded, other = found["outcomes"]
    assert (as_recorded["kind"], as_recorded["orders"]) == ("same", 1)
    assert (other["kind"], other["where"]) == ("asks", "exchange 3 /messages/0/content")
    with Tape.open(agents.folder / f"{name}.tape") as tape:  # Threads may have sent in any order.
        asked = json.loads(tape.exchanges[3].request_body)
    assert other["recorded"] == asked["messages"][0]["content"] != other["now"]
    assert 1 < found["orders"] == as_recorded["orders"] + other["orders"]
    smallest = found["smallest"]
    ((early, late),) = ((one["exchange"], one["before"]) for one in smallest["moved"])
    assert len(late) == 1
    assert smallest["order"] == f"{early},{late[0]}"


def test_the_report_shows_two_answers_to_swap_and_a_command(agents: Shell) -> None:
    """The command shows the divergence again."""
    done = raced(agents, "arrival", "agents.py", "--", "arrival")
    assert done.exit == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("✗ arrival.tape · ")
    assert "orders changed the outcome · 3 of 4 exchanges overlap · " in lines[0]
    assert lines[1] == "  as recorded · 1 order"
    assert lines[2].startswith("  different request: exchange 3 /messages/0/content · ")
    assert lines[3] == "    recorded  Join one, two, three"
    assert lines[4].startswith("    now       Join ")
    assert lines[5].startswith("  smallest  exchange ")
    assert lines[5].endswith("') answered")
    assert lines[6].startswith("            before exchange ")
    command = shlex.split(lines[7].removeprefix("  see "))
    assert command[-2:] == ["--", "arrival"]
    again = agents.tracefork(*command[1:])
    assert again.exit == 1
    assert "✗ diverged after" in again.err


def test_an_agent_that_joins_in_request_order_has_no_race(agents: Shell) -> None:
    """The control: the same answers overlap."""
    found = documented(agents, "ordered")
    assert (found["exit"], found["result"], found["smallest"]) == (0, "no race", None)
    assert (found["overlapping"], found["prints_compared"]) == (3, True)
    assert found["orders"] > 1
    assert [one["kind"] for one in found["outcomes"]] == ["same"]
    done = agents.tracefork("race", "--seeds=2", "ordered.tape")
    assert done.out.startswith("✓ ordered.tape · no race in ")
    assert " · 3 of 4 exchanges overlap · 5 runs · $0 · " in done.out


def test_a_sequential_agent_is_run_once(agents: Shell) -> None:
    """Nothing overlaps, so there is no other order."""
    done = raced(agents, "sequential")
    assert done.exit == 0
    told = "✓ sequential.tape · nothing overlaps in 3 exchanges, so there is no other order · 1 run"
    assert done.out.splitlines() == [told]


def test_a_cancelled_request_cannot_win(agents: Shell) -> None:
    """The tape has no answer to it, and the report says so."""
    found = documented(agents, "hedged")
    with Tape.open(agents.folder / "hedged.tape") as tape:
        given_up = [one.n for one in tape.exchanges if one.end == "cancelled"]
        assert len(given_up) == 2
    assert found["unanswered"] == given_up
    assert (found["exit"], found["overlapping"], found["orders"]) == (0, 0, 1)
    done = agents.tracefork("race", "hedged.tape")
    told, note = done.out.splitlines()
    assert " · no answered request overlaps in 4 exchanges, so there is no other order" in told
    which = ", ".join(map(str, given_up))
    assert note.endswith(
        f"the tape has no answer to exchanges {which} (cancelled), so no order can let it win"
    )


def test_different_output_is_an_outcome(agents: Shell) -> None:
    """The requests are the same."""
    found = documented(agents, "printing")
    assert found["exit"] == 1
    assert [one["kind"] for one in found["outcomes"]] == ["same", "prints"]
    assert found["outcomes"][1]["recorded"] != found["outcomes"][1]["now"]


def test_output_that_differs_in_every_run_is_not_compared(agents: Shell) -> None:
    """A process id differs in the recorded order too, and the report says so."""
    done = raced(agents, "addresses", seeds=2)
    assert done.exit == 0
    assert "the output differs even between equal runs, so it was not compared" in done.out


def test_a_different_end_is_an_outcome(agents: Shell) -> None:
    """It is named by the class of the exception, with an order that causes it."""
    found = documented(agents, "impatient")
    assert found["exit"] == 1
    other = found["outcomes"][1]
    assert (other["kind"], other["where"], other["recorded"]) == ("ends", "LookupError", "ok")
    assert found["smallest"]["order"] == "1,0"


def test_a_process_without_a_result_is_an_outcome(agents: Shell) -> None:
    """It is named by its status."""
    other = documented(agents, "gone")["outcomes"][1]
    assert (other["kind"], other["where"]) == ("ends", "status 9, no result")


def test_a_run_that_does_not_end_is_an_outcome(
    agents: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped after a time limit."""
    record(agents, "stuck")
    path = agents.folder / "stuck.tape"
    with Tape.open(path) as tape:
        first, last = overlap_of(tape).completed  # Threads ask in any order.
    job = Job(str(path), "script", "agents.py", ("stuck",))
    monkeypatch.setattr(race_runs, "_PATIENCE", 5.0)
    monkeypatch.setattr(race_runs, "_TIMES", 5.0)
    runs = Runs(job, agents.folder, tmp_path, agents.full_environment())
    runs.first = runs.run(None)
    assert runs.attempt((last, first)) == Outcome("ends", "does not end", "ok")
    assert runs.attempt((first, last)).kind == "same"


def test_a_divergence_in_the_recorded_order_stops_the_search(agents: Shell) -> None:
    """The agent was changed; no other order is tried."""
    record(agents, "ordered")
    agents.edit("agents.py", '"Join "', '"Joined "')
    done = agents.tracefork("race", "ordered.tape")
    assert done.exit == 1
    assert "does not replay in its recorded order, so no other order was tried" in done.err
    assert "✗ diverged after" in done.err
    found = agents.tracefork("race", "--json", "ordered.tape").document
    assert (found["result"], found["runs"]) == ("not as recorded", 1)
    assert found["divergence"]["pointer"] == "/messages/0/content"


def test_an_agent_that_fails_by_itself_stops_the_search(agents: Shell) -> None:
    """The report has the last lines of its stderr."""
    record(agents, "ordered")
    agents.write("agents.py", f"{AGENTS}\n1 / 0\n")
    done = agents.tracefork("race", "ordered.tape")
    assert done.exit == 3
    assert "the agent failed by itself with ZeroDivisionError" in done.err
    assert "│ ZeroDivisionError: division by zero" in done.err


def test_an_ignored_place_is_no_race(agents: Shell) -> None:
    """The suggested command has the option too."""
    record(agents, "arrival")
    words = ["race", "--seeds=2", "arrival.tape"]
    assert agents.tracefork(*words, "--ignore=/messages/0/content").exit == 0
    done = agents.tracefork(*words, "--ignore=/elsewhere")
    assert done.exit == 1
    assert "tracefork replay --order " in done.out
    assert "--ignore=/elsewhere arrival.tape" in done.out


def test_an_answer_before_or_after_a_timeout_is_a_race(agents: Shell) -> None:
    """An expired timeout has its place among the answers."""
    done = raced(agents, "limited")
    assert done.exit == 1
    assert "  smallest  exchange " in done.out


@pytest.mark.parametrize(
    ("name", "order", "completed"), [("single", "0,", [0]), ("silent", ",", [])]
)
def test_an_order_of_one_or_no_exchange_is_not_a_seed(
    agents: Shell, name: str, order: str, completed: list[int]
) -> None:
    """It is printed as `--order` reads it."""
    (as_recorded, *_) = documented(agents, name, seeds=2)["outcomes"]
    assert (as_recorded["kind"], as_recorded["order"]) == ("same", order)
    done = agents.tracefork("replay", "--json", f"--order={order}", f"{name}.tape")
    assert (done.exit, done.document["completed"]) == (0, completed), done.err


@pytest.mark.parametrize("order", [0, 7, (), (0,), (7,), (2, 0, 1)])
def test_a_printed_order_is_read_back(order: Order) -> None:
    """A seed stays a seed and a list a list, in the suggested command too."""
    numbers = order if isinstance(order, int) else list(order)
    assert options.order_of(order_words(order)) == numbers
    changed = Outcome("ends", "KeyError")
    found = Found([Group(order, changed)], Smallest(order, changed, {}))
    taped = Taped(Path("a.tape"), "ok", 1, Overlap((0,), frozenset(), waits=True), {})
    told = document(Agent("script", "agent.py"), Result(taped, 3, 1.0, "a.tape", found=found))
    command = told["smallest"]["command"]  # type: ignore[index]
    _, _, option, words, _ = shlex.split(command)
    assert (option, options.order_of(words)) == ("--order", numbers)


@pytest.mark.parametrize("order", ["x", "1,,2", "1,,", ",,", ",1", "-1", "1,x", ""])
def test_an_invalid_order_is_refused(taped: Shell, order: str) -> None:
    """--order takes a seed or a list of numbers."""
    done = taped.tracefork("replay", f"--order={order}", "agent.tape", "agent.py")
    assert done.exit == 2
    assert f"'{order}'" in done.err
    assert "--order" in done.err


def test_a_replay_in_another_order_documents_its_order(agents: Shell) -> None:
    """This holds for a list and for a seed."""
    record(agents, "ordered")
    words = ["replay", "--json", "ordered.tape"]
    assert agents.tracefork(*words).document["completed"] == []
    done = agents.tracefork(*words, "--order=2,1,0")
    assert (done.exit, done.document["completed"]) == (0, [2, 1, 0, 3])
    seeded = [agents.tracefork(*words, "--order=3").document["completed"] for _ in range(2)]
    assert sorted(seeded[0]) == [0, 1, 2, 3]
    assert seeded[0] == seeded[1]


def test_a_replay_keeps_the_recorded_pace(agents: Shell) -> None:
    """--speed 0.05 takes 20 times as long as the answers; without it, a replay does not wait."""
    record(agents, "ordered")
    words = ["replay", "--json", "ordered.tape"]
    paced, free = agents.tracefork(*words, "--speed=0.05"), agents.tracefork(*words)
    assert (paced.exit, free.exit) == (0, 0)
    assert free.document["seconds"] < 20 * DELAYS["three"] < paced.document["seconds"]
    for speed in ("0", "-1", "nan", "fast"):
        refused = agents.tracefork("replay", f"--speed={speed}", "ordered.tape")
        assert (refused.exit, "--speed" in refused.err) == (2, True), refused.err
