from __future__ import annotations

import json
from typing import Any

import pytest

from tracefork_core.cli.main import main

from .engines import lying

FREE = ("bench", "--cases", "flaky,coin", "--sizes", "8", "--seeds", "2")
"""Cases that any engine gets right if it grades the recorded run again."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run the command, and return its exit code and output."""
    code = main(words)
    return code, capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Run the command with --json, and return its document, which has the exit code."""
    code, out = run(capsys, *words, "--json")
    found: dict[str, Any] = json.loads(out)
    assert found["exit"] == code
    return found


def test_bench_exits_with_0_if_every_rule_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints one line for the verdict, for each case, and for each rule over all cases."""
    code, out = run(capsys, *FREE)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("✓ every rule holds · 2 cases · 4 runs · $0 · ")
    assert [line.split()[:4] for line in lines if line.startswith("✓ ")][1:3] == [
        ["✓", "flaky", "8", "100%"],
        ["✓", "coin", "8", "100%"],
    ]
    assert "✓ false accusations 0.0% (wanted 3%)" in lines


def test_bench_exits_with_1_if_a_rule_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the rules, lists the misses, and prints a command that repeats one."""
    monkeypatch.setattr("tracefork_core.bench.driver.blame_engine", lying)
    code, out = run(capsys, *FREE, "--seed", "5")
    assert code == 1
    assert out.startswith("✗ 6 rules broken: flaky n=8, coin n=8, ")
    assert "tracefork bench --cases flaky --sizes 8 --seed 5 --seeds 1" in out
    found = document(capsys, *FREE, "--seed", "5")
    assert found["result"] == "rules broken"
    assert [(one["case"], one["seed"]) for one in found["misses"]] == [
        ("flaky", 5),
        ("flaky", 6),
        ("coin", 5),
        ("coin", 6),
    ]


def test_two_documents_of_one_seed_are_one_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The document has its seed, and the calls of other tools on the same runs."""
    one, other = (run(capsys, *FREE, "--json")[1] for _ in range(2))
    assert one == other
    found = document(capsys, *FREE)
    assert (found["seed"], found["seeds"], found["holds"], found["audits"]) == (0, 2, True, [])
    (flaky, _) = found["cases"]
    assert (flaky["case"], flaky["runs"], flaky["right"]) == ("flaky", 2, 2)
    assert flaky["calls"] == {"p50": 0, "p90": 0}
    assert flaky["rivals"]["largest drop"]["calls"] == 360


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--cases", "echo,ecko"), "no case 'ecko'"),
        (("--cases", ","), "--cases takes names"),
        (("--sizes", "8,many"), "--sizes takes numbers of steps"),
        (("--sizes", "4"), "from 8 to 64 steps"),
        (("--seeds", "0"), "--seeds"),
    ],
)
def test_invalid_arguments_are_explained(
    words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the argument, and nothing is run."""
    assert main(["bench", *words]) == 2
