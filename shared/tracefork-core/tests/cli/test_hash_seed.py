from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tracefork_core import Tape

from ..conftest import Alter
from .conftest import PLAIN_AGENT, Shell

pytestmark = pytest.mark.many_processes

TOPICS = '", ".join({"refunds", "orders", "returns", "delivery", "accounts", "prices"})'
LIBRARY = """\
import runpy, sys
import tracefork_core
_, verb, tape = sys.argv
del sys.argv[1:]
with getattr(tracefork_core, verb)(tape):
    runpy.run_path("agent.py")
"""
LOOKING = """\
import json, os, sys
print(json.dumps({
    "order": list({"red", "green", "blue", "cyan", "black", "white"}),
    "seed": os.environ.get("PYTHONHASHSEED"),
    "ours": [name for name in os.environ if "ANEW" in name],
    "dev": sys.flags.dev_mode,
    "warns": sys.warnoptions,
    "stdin": sys.stdin.read(),
}))
sys.exit(9)
"""
COUNTING = """\
import os
with open(os.environ["STARTS"], "a") as file:
    file.write("start\\n")
"""
AT_A_RESTART = """\
import sys
def note(event, _):
    if event == "os.exec":
        with open(os.environ["STARTS"], "a") as file:
            file.write(f"restart, typer is loaded: {'typer' in sys.modules}\\n")
sys.addaudithook(note)
"""
SORTING_AGENT = PLAIN_AGENT.replace('["one", "two"]', f'["You know about: " + {TOPICS}]')


@pytest.fixture
def sorting(shell: Shell) -> Shell:
    """Return a shell with an agent that sends a set of strings."""
    shell.write("agent.py", SORTING_AGENT)
    return shell


def counted(shell: Shell, more: str = "") -> Path:
    """Make every start of Python in the folder write a line, before anything else runs."""
    shell.write("site/sitecustomize.py", COUNTING + more)
    shell.environment["STARTS"] = str(shell.folder / "starts")
    shell.environment["PYTHONPATH"] = f"{shell.folder / 'site'}:{shell.python_path}"
    return shell.folder / "starts"


def test_set_order_replays_in_any_process(sorting: Shell) -> None:
    """Each process starts with another hash seed."""
    recorded = sorting.tracefork("record", "agent.py", PYTHONHASHSEED="random")
    assert recorded.exit == 0, recorded.err
    for seed in ("random", "0", "1", "4711", ""):
        done = sorting.tracefork("replay", "agent.tape", "agent.py", PYTHONHASHSEED=seed)
        assert done.exit == 0, done.err
        assert "bit-exact" in done.err
    verified = sorting.tracefork("verify", "agent.tape", PYTHONHASHSEED="3")
    assert "✓ agent.tape · 1 of 1 replay proven" in verified.out


def test_a_replay_restarts_before_it_loads_the_command(sorting: Shell) -> None:
    """A word that is a tape tells the seed. If it is not the replayed one, it restarts again."""
    starts = counted(sorting, AT_A_RESTART)
    for name, seed in (("agent", "5"), ("other", "7")):
        sorting.tracefork("record", "-o", f"{name}.tape", "agent.py", PYTHONHASHSEED=seed)
    early, late = "restart, typer is loaded: False", "restart, typer is loaded: True"
    for words, restarts in (
        (["agent"], [early]),
        (["--allow", "other.tape", "agent.tape"], [early, late]),
        (["last"], [late]),
    ):
        starts.unlink()
        done = sorting.tracefork("replay", *words, PYTHONHASHSEED="6")
        assert done.exit == 0, done.err
        noted = starts.read_text().splitlines()
        assert [line for line in noted if line != "start"] == restarts


def test_a_library_replay_with_another_seed_diverges(sorting: Shell) -> None:
    """The control: only the command can restore the seed, and the card says why."""
    sorting.tracefork("record", "agent.py", PYTHONHASHSEED="5")
    sorting.write("library.py", LIBRARY)
    same = sorting.python("library.py", "replay", "agent.tape", PYTHONHASHSEED="5")
    assert same.exit == 0, same.err
    other = sorting.python("library.py", "replay", "agent.tape", PYTHONHASHSEED="6")
    assert other.exit == 1
    assert "PYTHONHASHSEED was 5 when this was recorded and is 6 now" in other.err


def test_the_card_reports_a_recording_with_random_hashes(sorting: Shell) -> None:
    """A recording by the library has no seed."""
    sorting.write("library.py", LIBRARY)
    assert sorting.python("library.py", "record", "a.tape", PYTHONHASHSEED="random").exit == 0
    with Tape.open(sorting.folder / "a.tape") as tape:
        assert tape.environment is not None
        assert tape.environment.hash_seed is None
    words = ["replay", "--json", "a.tape", "agent.py"]
    cards = [sorting.tracefork(*words, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")]
    # One in 720 has the recorded order, so one of three may replay.
    card = next(card.document for card in cards if card.exit == 1)
    (hint,) = card["divergence"]["hints"]
    assert "Hashes were random when this was recorded" in hint


def test_an_edit_is_not_blamed_on_hashes(sorting: Shell) -> None:
    """The control: other words are not another order."""
    sorting.write("library.py", LIBRARY)
    sorting.python("library.py", "record", "a.tape", PYTHONHASHSEED="random")
    sorting.edit("agent.py", "You know about", "You also know about")
    done = sorting.tracefork("replay", "--json", "a.tape", "agent.py")
    assert done.exit == 1
    assert done.document["divergence"]["hints"] == []


@pytest.mark.parametrize("start", ["module", "options", "script"])
def test_a_restart_is_invisible_to_the_agent(shell: Shell, start: str) -> None:
    """Options of Python, stdin, stdout and the exit status are the same."""
    shell.write("look.py", LOOKING)
    begins = {
        "module": [sys.executable, "-m", "tracefork_core.cli.main"],
        "options": [sys.executable, *"-X dev -W ignore -m tracefork_core.cli.main".split()],
        "script": [str(Path(sysconfig.get_path("scripts")) / "tracefork")],
    }
    starts = counted(shell)
    done = subprocess.run(
        [*begins[start], "record", "look.py"],
        cwd=shell.folder,
        env=shell.full_environment(PYTHONHASHSEED="random"),
        input="typed",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 9, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["stdin"], seen["ours"]) == ("typed", [])
    assert (seen["dev"], "ignore" in seen["warns"]) == ((start == "options"),) * 2
    assert re.fullmatch(r"\d{1,10}", seen["seed"])
    assert starts.read_text() == "start\nstart\n"
    with Tape.open(shell.folder / "look.tape") as tape:
        assert tape.environment is not None
        assert tape.environment.hash_seed == seen["seed"]


def test_a_given_seed_is_kept(shell: Shell) -> None:
    """With a number in PYTHONHASHSEED, nothing restarts."""
    shell.write("look.py", LOOKING)
    starts = counted(shell)
    done = shell.tracefork("record", "look.py", PYTHONHASHSEED="42")
    again = shell.tracefork("replay", "look.tape", "look.py", PYTHONHASHSEED="42")
    assert json.loads(done.out)["seed"] == json.loads(again.out)["seed"] == "42"
    assert json.loads(done.out)["order"] == json.loads(again.out)["order"]
    assert starts.read_text() == "start\nstart\n"


@pytest.mark.parametrize(
    "more", ["os.environ.pop('PYTHONHASHSEED', None)", "os.environ['PYTHONHASHSEED'] = 'random'"]
)
def test_the_process_restarts_only_once(shell: Shell, more: str) -> None:
    """The agent runs even if something removes the seed at every start."""
    shell.write("look.py", LOOKING)
    starts = counted(shell, more)
    assert shell.tracefork("record", "look.py").exit == 9
    assert shell.tracefork("replay", "look.tape", "look.py").exit == 0
    assert len(starts.read_text().splitlines()) <= 4


def test_a_program_that_calls_main_is_not_restarted(shell: Shell) -> None:
    """Its process runs more than the command line."""
    starts = counted(shell)
    shell.write(
        "inside.py",
        "from tracefork_core.cli.main import main\n"
        "raise SystemExit(main(['record', '-o', 'in.tape', 'agent.py']))\n",
    )
    assert shell.python("inside.py", PYTHONHASHSEED="random").exit == 0
    assert starts.read_text() == "start\n"


def test_a_seed_set_in_a_running_process_is_not_recorded(sorting: Shell) -> None:
    """PYTHONHASHSEED has no effect then."""
    sorting.write("library.py", "import os\nos.environ['PYTHONHASHSEED'] = '0'\n" + LIBRARY)
    assert sorting.python("library.py", "record", "a.tape", PYTHONHASHSEED="random").exit == 0
    assert sorting.python("library.py", "record", "b.tape", PYTHONHASHSEED="0").exit == 0
    seeds = []
    for name in ("a.tape", "b.tape"):
        with Tape.open(sorting.folder / name) as tape:
            assert tape.environment is not None
            seeds.append(tape.environment.hash_seed)
    assert seeds == [None, "0"]


@pytest.mark.parametrize("seed", ["99999999999", "x; rm"])
def test_an_invalid_seed_on_a_tape_is_ignored(shell: Shell, alter: Alter, seed: str) -> None:
    """Python would not start with it."""
    shell.tracefork("record", "agent.py", PYTHONHASHSEED="5")
    tape = shell.folder / "agent.tape"
    spelled = f'"hash_seed":"{seed}"'.encode()
    alter(tape, events=lambda line: line.replace(b'"hash_seed":"5"', spelled))
    for verb in ("replay", "verify"):
        done = shell.tracefork(verb, "agent.tape", "agent.py")
        assert done.exit == 0, done.err


def test_doctor_shows_the_hash_seed(shell: Shell) -> None:
    """Random hashes come with a remedy."""
    random = shell.tracefork("doctor", PYTHONHASHSEED="random")
    assert "random · sets of strings have another order in every run" in random.out
    assert "PYTHONHASHSEED=0" in " ".join(random.out.split())
    shell.tracefork("doctor", PYTHONHASHSEED="7")
    assert shell.tracefork("doctor", "--json", PYTHONHASHSEED="7").document["hash_seed"] == "7"
