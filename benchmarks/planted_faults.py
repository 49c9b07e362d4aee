"""Test blame on faults planted in a real agent: `tracefork validate`."""

from __future__ import annotations

import json
import re
from typing import Any

from bench import Bench, command
from peers import IN_MEMORY
from recorders import CORE
from table import Measurement, Row, Spread

TITLE = "Blame on faults planted in an agent"
CASES = ("faults found", "controls right", "seconds")


def measure(bench: Bench) -> Measurement:
    """Measure which faults the `validate` command of each tool finds."""
    few = ["--faults", "retrieval", "--positions", "4"] if bench.quick else []
    said, seconds = command(bench.python[CORE], bench.folder, "validate", *few, "--json")
    outcomes: list[dict[str, Any]] = json.loads(said)["report"]["outcomes"]
    faults = [one["holds"] for one in outcomes if "control" not in one]
    controls = [one["holds"] for one in outcomes if "control" in one]
    calls = sum(one.get("live_calls", 0) for one in outcomes)
    rows = [_all("faults found", faults), _all("controls right", controls)]
    rows.append(
        Row("seconds", f"{CORE}, its own", Spread.of([seconds]), "s", f"{calls:,} live calls")
    )
    if IN_MEMORY in bench.python:
        said, seconds = command(bench.python[IN_MEMORY], bench.folder, "validate")
        ((precision,), (flips,)) = (
            re.findall(rf"{name}: ([\d.]+)", said)
            for name in ("overall top-1 precision", "negative control max flip")
        )
        share = Spread.of([100 * float(precision)])
        rows.insert(1, Row("faults found", IN_MEMORY, share, "% right"))
        control = f"one control, flips {flips}"
        rows.append(Row("seconds", f"{IN_MEMORY}, its own", Spread.of([seconds]), "s", control))
    return Measurement(
        TITLE,
        "Each tool is tested on its own faults, of the same five classes. Ours: a support agent "
        "sends requests over a real socket and also errs on its own; blame must name the planted "
        "exchange and no other. The peer's: an agent that never varies, in memory. Times are CPU "
        "time.",
        rows,
    )


def _all(case: str, holds: list[bool]) -> Row:
    share = 100 * sum(holds) / len(holds)
    compared = f"{sum(holds)} of {len(holds)}"
    return Row(case, CORE, Spread.of([share]), "% right", compared, "≥ 100 %", all(holds))
