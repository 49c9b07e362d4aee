"""`tracefork calibrate` names what changes between runs of a real agent, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

from ..conftest import Alter
from .conftest import OPENAI_AGENT, Done, Shell

pytestmark = pytest.mark.many_processes

HEAD = """\
import datetime, os, random, sys, time, uuid
import httpx2

client = httpx2.Client(base_url=os.environ["PROVIDER"] + "/v1")

def ask(*texts):
    messages = [{"role": "user", "content": text} for text in texts]
    asked = {"model": "gpt-5-mini", "temperature": 1, "messages": messages}
    return client.post("/chat/completions", json=asked).json()["choices"][0]["message"]["content"]

"""
PLAIN = """\
import os, time
import httpx2

def ask(text):
    return httpx2.post(os.environ["PROVIDER"] + "/echo", json={"text": text}).text

"""
# With so many values and orders that two runs are not equal by chance.
COVERED = f"""{HEAD}
ask(f"It is {{datetime.datetime.now():%Y-%m-%d %H:%M:%S.%f}}, be brief.")
ask(f"Ticket {{uuid.uuid4()}}, please.")
ask("Take " + random.choice([f"road{{n}}" for n in range(9999)]) + " home.")
ask(f"Tags: {{set(f'tag{{n}}' for n in range(30))}}")
"""
OUTSIDE = f"""{HEAD}
import fast_ids, fastuuid
class Order: ...
ask(f"Answer as a clerk of the lost property office would, about {{fastuuid.uuid_v1mc()}}, please.")
ask(f"Look at {{Order()}} now.")
ask(f"I am process {{os.getpid()}} here.")
ask(f"Ticket {{fast_ids.draw()}} too.")
"""
# A stand-in for extensions in Rust, whose draws tracefork cannot see.
FASTUUID = """
import sys
def uuid_v1mc():
    with open("/dev/urandom", "rb") as file:
        return sys.modules["uuid"].UUID(bytes=file.read(16), version=4)
"""


def calibrated(shell: Shell, *words: str, exit_code: int, **environment: str) -> dict[str, Any]:
    """Return the document of one calibration, and check its exit code."""
    done = shell.tracefork("calibrate", "--json", *words, **environment)
    assert done.exit == exit_code, done.out + done.err
    assert done.document["exit"] == exit_code
    return done.document


def told(document: dict[str, Any]) -> list[tuple[list[int], str, str | None, bool]]:
    """Return exchanges, cause, line, and whether it is outside the boundary, for each finding."""
    found = document["findings"]
    return [(one["exchanges"], one["cause"], one["site"], one["outside"]) for one in found]


@pytest.fixture
def extensions(shell: Shell) -> Shell:
    """Return a shell with two native libraries that draw ids: a known and an unknown one."""
    shell.write("site-packages/fastuuid.py", FASTUUID)
    shell.write("site-packages/fast_ids.py", FASTUUID.replace("uuid_v1mc", "draw"))
    shell.environment["PYTHONPATH"] = f"{shell.folder / 'site-packages'}:{shell.python_path}"
    return shell


def test_a_repeatable_agent_gets_one_line(shell: Shell) -> None:
    """Two live runs are equal, and both replays are proven."""
    shell.write("agent.py", OPENAI_AGENT)
    done = shell.tracefork("calibrate", "agent.py", "--", "Where is order 17?")
    assert done.exit == 0
    assert done.out.splitlines() == [
        "✓ agent.py is repeatable: 2 live runs were equal in 1 exchange · 2 of 2 replays proven"
    ]
    assert "recorded live: 1 exchange, 1 model call" in done.err
    assert "--no-live" in done.err
    assert list(shell.folder.glob("*.tape")) == []


def test_draws_on_the_tape_are_traced_to_their_lines(shell: Shell) -> None:
    """Clock, ids, random and set order differ between live runs, and need no fix."""
    shell.write("agent.py", COVERED)
    found = calibrated(shell, "agent.py", exit_code=0)
    assert told(found) == [
        ([0], "a read of the clock", "agent.py:12", False),
        ([1], "a UUID", "agent.py:13", False),
        ([2], "random", "agent.py:14", False),
        ([3], "set order (PYTHONHASHSEED)", None, False),
    ]
    assert {one["pointer"] for one in found["findings"]} == {"/messages/0/content"}
    assert (found["proven"], found["replays"], found["live_runs"]) == (2, 2, 2)
    assert [one["fix"] for one in found["findings"]] == [""] * 4


def test_sources_outside_the_boundary_are_named_with_a_fix(extensions: Shell) -> None:
    """Native ids, addresses and process ids make replays differ."""
    extensions.write("agent.py", OUTSIDE)
    found = calibrated(extensions, "agent.py", exit_code=1)
    assert told(found) == [
        ([0], "fastuuid.uuid_v1mc()", "agent.py:14", True),
        ([1], "a memory address", None, True),
        ([2], "the process id", None, True),
        ([3], "a UUID of unknown origin", None, True),
    ]
    fixes = [one["fix"] for one in found["findings"]]
    assert fixes[0] == "Use uuid.uuid4(), or run.nondet.uuid()."
    assert all(fixes)
    assert (found["proven"], found["result"]) == (0, "different")


def test_a_request_that_both_replays_made_is_no_leak(shell: Shell) -> None:
    """Later differences do not change that."""
    agent = "ask(f'{hash(chr(97))} {uuid.uuid1()}')\nask(f'{os.getpid()}')\nask('last')\n"
    shell.write("agent.py", HEAD + agent)
    found = calibrated(shell, "agent.py", exit_code=1)
    outside = [(one["exchanges"], one["cause"]) for one in found["findings"] if one["outside"]]
    assert outside == [([1], "the process id")]
    assert {n for one in found["findings"] for n in one["exchanges"]} >= {0, 1}


def test_a_source_that_no_replay_reached_is_perhaps_outside(shell: Shell) -> None:
    """An earlier difference stopped both replays."""
    shell.write("agent.py", HEAD + "ask(f'{os.getpid()}')\nask(f'{uuid.uuid1()}')\n")
    done = shell.tracefork("calibrate", "agent.py")
    lines = done.out.splitlines()
    assert done.exit == 1
    assert "· 1 source outside the boundary, perhaps 1 more ·" in lines[0]
    assert [line for line in lines if line.startswith("  outside")] == ["  outside  the process id"]
    n = lines.index("  perhaps  a UUID of unknown origin")
    assert lines[n + 1] == "    exchange 1 /messages/0/content"
    assert (
        lines[n + 3] == "    → No replay got this far. Fix the sources above, then calibrate again."
    )


def test_the_report_shows_source_location_and_fix(extensions: Shell) -> None:
    """Sources outside the boundary come first, and then those on the tape."""
    agent = "import fastuuid\nask(f'It is {time.time()}')\nask(f'Ticket {fastuuid.uuid_v1mc()}')\n"
    extensions.write("agent.py", PLAIN + agent)
    done = extensions.tracefork("calibrate", "agent.py")
    assert done.exit == 1
    lines = done.out.splitlines()
    assert lines[0] == "✗ agent.py · 1 source outside the boundary · 0 of 2 replays proven"
    assert lines[1] == "  outside  fastuuid.uuid_v1mc() · agent.py:9"
    assert lines[2] == "    exchange 1 /text"
    assert "  then  " in lines[3]
    assert lines[4] == "    → Use uuid.uuid4(), or run.nondet.uuid()."
    assert "on the tape" in lines[5]
    row = next(line for line in lines if "the clock" in line)
    assert row.split() == "0 /text a read of the clock agent.py:8".split()


def test_without_a_second_live_run_the_replays_are_compared(
    extensions: Shell, provider: ProviderServer
) -> None:
    """The report names the first place where they differ."""
    agent = "import fastuuid\nask('first')\nask(f'Ticket {fastuuid.uuid_v1mc()}')\nask('last')\n"
    extensions.write("agent.py", PLAIN + agent)
    before = len(provider.requests)
    done = extensions.tracefork("calibrate", "--no-live", "agent.py")
    assert len(provider.requests) - before == 3
    assert done.exit == 1
    assert "  outside  fastuuid.uuid_v1mc() · agent.py:9" in done.out.splitlines()
    assert "once more live" not in done.err


@pytest.fixture
def moody() -> Iterator[ProviderServer]:
    """Serve a model that never gives the same answer twice."""
    numbers = itertools.count()

    def answer(request: ModelRequest) -> Reply:
        return Reply(text=f"My answer is variant{next(numbers)}x, I think.")

    with ProviderServer(answer) as server:
        yield server


def test_a_different_answer_and_the_requests_that_carry_it_are_no_leak(
    shell: Shell, moody: ProviderServer
) -> None:
    """The model caused both differences."""
    shell.write("agent.py", HEAD + "first = ask('Say anything.')\nask('Go on.', first)\n")
    found = calibrated(shell, "agent.py", exit_code=0, PROVIDER=moody.url)
    assert told(found) == [
        ([0], "the model's answer differed (temperature 1)", None, False),
        ([1], "an earlier answer", None, False),
    ]


def test_a_tape_of_another_environment_names_the_variable(shell: Shell) -> None:
    """With --tape, the replays show how the environment of the recording differed."""
    shell.write("agent.py", PLAIN + "ask('Greet ' + os.environ['CUSTOMER_NAME'] + ' kindly.')\n")
    assert shell.tracefork("record", "agent.py", CUSTOMER_NAME="Ada Lovelace").exit == 0
    words = ["--tape", "agent.tape", "--no-live", "agent.py"]
    same = calibrated(shell, *words, exit_code=0, CUSTOMER_NAME="Ada Lovelace")
    assert (same["findings"], same["live_runs"]) == ([], 0)
    found = calibrated(shell, *words, exit_code=1, CUSTOMER_NAME="Grace Hopper")
    ((exchanges, cause, _, outside),) = told(found)
    assert (exchanges, outside) == ([0], True)
    assert "CUSTOMER_NAME" in cause


@pytest.mark.parametrize("seed", ["abc", "99999999999"])
def test_an_invalid_seed_on_a_tape_is_ignored(shell: Shell, alter: Alter, seed: str) -> None:
    """Python would not start with it."""
    shell.tracefork("record", "agent.py", PYTHONHASHSEED="5")
    spelled = f'"hash_seed":"{seed}"'.encode()
    tape = shell.folder / "agent.tape"
    alter(tape, events=lambda line: line.replace(b'"hash_seed":"5"', spelled))
    found = calibrated(shell, "--tape=agent.tape", "--no-live", "agent.py", exit_code=0)
    assert (found["proven"], found["findings"]) == (2, [])


def test_an_unrecognized_source_is_reported_as_unknown(shell: Shell) -> None:
    """A counter in a file is not a known source, and no cause is guessed."""
    shell.write("count", "one ")
    counter = "text = open('count').read()\nopen('count', 'w').write(text + 'more ')\n"
    shell.write("agent.py", PLAIN + counter + "ask('Seen: ' + text)\n")
    found = calibrated(shell, "agent.py", exit_code=1)
    ((exchanges, cause, site, outside), *_) = told(found)
    assert (exchanges, site, outside) == ([0], None, True)
    assert cause.startswith("unknown: ")


def test_a_leak_that_reaches_no_exchange_is_a_note(extensions: Shell) -> None:
    """A value that is not sent cannot make a replay differ."""
    extensions.write("agent.py", PLAIN + "import fastuuid\nfastuuid.uuid_v1mc()\nask('Hello')\n")
    found = calibrated(extensions, "agent.py", exit_code=0)
    assert found["findings"] == []
    (note,) = found["unseen"]
    assert note.startswith("agent.py:8: fastuuid.uuid_v1mc() draws in native code")


def test_output_of_a_program_may_be_in_an_exchange_after_a_divergence(
    shell: Shell,
) -> None:
    """A replay that left the tape cannot rule it out."""
    program = "import subprocess\nsaid = subprocess.check_output(['date', '+%N'], text=True)\n"
    shell.write("agent.py", PLAIN + program + "ask(said)\n")
    done = shell.tracefork("calibrate", "agent.py")
    assert done.exit == 1, done.err
    assert "the program date is not on the tape" in done.out
    assert "No exchange contains it" not in done.out
    assert "An exchange may contain it" in done.out


def test_a_missing_agent_is_refused(shell: Shell) -> None:
    """No run starts."""
    nothing: Done = shell.tracefork("calibrate")
    assert (nothing.exit, "--agent" in nothing.err) == (2, True)
    missing = shell.tracefork("calibrate", "missing.py")
    assert missing.exit == 2
    assert "no script at missing.py" in missing.err


def test_the_store_and_the_folder_stay_as_they_were(shell: Shell, tmp_path: Path) -> None:
    """Calibration leaves no tape, so `last` is still the tape recorded before."""
    assert shell.tracefork("record", "agent.py").exit == 0
    before = sorted(shell.folder.rglob("*"))
    calibrated(shell, "--no-live", "agent.py", exit_code=0)
    assert sorted(shell.folder.rglob("*")) == before
    done = shell.tracefork("replay", "--json", "last")
    assert done.exit == 0, done.err
    assert done.document["tape"] == str(shell.folder / "agent.tape")


def test_a_transcript_that_is_sent_again_is_one_finding(shell: Shell) -> None:
    """The line that draws is listed once, with all its exchanges."""
    loop = "said = ''\nfor n in range(5):\n    said += f'{n} at {time.time_ns()} '\n    ask(said)\n"
    shell.write("agent.py", PLAIN + loop)
    done = shell.tracefork("calibrate", "agent.py")
    assert done.exit == 0
    rows = [line.split() for line in done.out.splitlines() if "the clock" in line]
    assert rows == ["0-4 /text a read of the clock agent.py:9".split()]
