"""Test blame on runs whose cause is known: `tracefork bench`, beside other published rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from bench import Bench, command
from peers import IN_MEMORY
from recorders import CORE
from table import Measurement, Row, Spread

TITLE = "Blame on runs whose cause is known"
SUSPECT, VERDICT = "blame, its first suspect", "blame, its verdict"
_SIZES = (8, 16, 32)
_BENCHES = "the tools' own benches"
CASES = (
    *(f"{size} steps{what}" for size in _SIZES for what in ("", ", calls", ", calls for 95 %")),
    "rules",
    _BENCHES,
)
_PERCENT = (
    "first suspect right",
    "false accusations",
    "intervals that cover",
    "curves covered as a whole",
)
_SEEDS = 3


def measure(bench: Bench) -> Measurement:
    """Measure `tracefork bench` with few seeds, and the time of the peer's own bench."""
    sizes, seeds = (_SIZES[:1], 1) if bench.quick else (_SIZES, _SEEDS)
    asked = ["--seeds", str(seeds), "--sizes", ",".join(map(str, sizes)), "--json"]
    said, seconds = command(bench.python[CORE], bench.folder, "bench", *asked)
    found: dict[str, Any] = json.loads(said)
    rows = [row for one in found["against"] for row in _standing(one)]
    rows.extend(_rule(check) for check in found["checks"])
    runs = sum(cell["runs"] for cell in found["cases"])
    rows.append(Row(_BENCHES, f"{CORE}, its own", Spread.of([seconds]), "s", f"{runs} runs"))
    if IN_MEMORY in bench.python:
        said, seconds = command(bench.python[IN_MEMORY], bench.folder, "bench")
        (own,) = re.findall(r"(\d+/\d+) planted cases resolve correctly", said)
        words = f"{own.replace('/', ' of ')} cases as it expects"
        rows.append(Row(_BENCHES, f"{IN_MEMORY}, its own", Spread.of([seconds]), "s", words))
    return Measurement(
        TITLE,
        f"`tracefork bench --seeds {seeds}`: simulated agents whose cause is computed. Right: the "
        "cause is named first. Calls: the live calls of one run, at the median. The other rules "
        "fork each step 10 times and, for 95 %, as often as they need to find 95 % of the causes. "
        "The tools' own benches differ from each other; their times are CPU time.",
        rows,
    )


def _standing(one: dict[str, Any]) -> Iterator[Row]:
    case = f"{one['size']} steps"
    yield Row(case, SUSPECT, Spread.of([100 * one["found"]]), "% right", f"{one['runs']} runs")
    for rival in one["rivals"]:
        yield Row(case, rival["rule"], Spread.of([100 * rival["found"]]), "% right")
    calls = f"{case}, calls"
    yield Row(calls, SUSPECT, Spread.of([one["suspect"]]), "calls")
    yield Row(calls, VERDICT, Spread.of([one["verdict"]]), "calls")
    for rival in one["rivals"]:
        yield Row(calls, rival["rule"], Spread.of([rival["calls"]]), "calls")
    enough = f"{calls} for 95 %"
    yield Row(enough, SUSPECT, Spread.of([one["suspect"]]), "calls")
    for rival in one["rivals"]:
        if rival["enough"] is not None:
            each = f"{rival['each']} forks a step"
            yield Row(enough, rival["rule"], Spread.of([rival["enough"]]), "calls", each)


def _rule(check: dict[str, Any]) -> Row:
    scale, unit = (100, "%") if check["name"] in _PERCENT else (1, "x")
    sign = "≤" if check["name"] == "false accusations" else "≥"
    aim = f"{sign} {scale * check['wanted']:.0f} {unit}"
    return Row(
        "rules",
        check["name"],
        Spread.of([scale * check["found"]]),
        unit,
        "",
        aim,
        check["holds"],
    )
