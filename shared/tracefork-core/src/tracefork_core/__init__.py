"""Time-travel debugging for AI agents: record a run at the wire, replay it for $0, and prove it.

`record`, `replay`, `rerun`, `fork`, `blame` and `bisect` work on runs, a `Recorder` on those of a
service; `diff` compares two; `tool` and `bind` capture calls of an agent; `carry` hands its work to
an older thread; `observe` reports runs to your telemetry, and `export_spans` what they asked;
`Tape` reads a recording. `use_tape`,
`assert_no_diff` and `assert_matches` are for tests.

The rooms, from the top; each imports only what is below it:

    cli | pytest_plugin                        the command line; the plugin of pytest
    bench | evidence | interop                 measures blame on runs whose cause is known; reads
                                               what a run did, and whether its tape adds up
    blaming | service | proxy | comparing      find the step that made a run fail, by many forks;
                                               record a service, and keep the tapes of what failed;
                                               capture programs of any language; compare two runs
    run | adapters | redaction                 open and close a session: record, replay, fork; the
                                               interface for adapters; remove secrets from tapes
    children | telemetry                       let child processes join the session of their parent;
                                               report runs to your own logs, traces and metrics
    session | seams                            decide what happens to an exchange; capture the calls
                                               of HTTP libraries and tools
    explaining                                 say why two runs differ
    inputs                                     record and compare what the run reads elsewhere
    chance | order | egress | matching         record the clock and randomness; replay the order of
                                               deliveries; guard connections that no seam captures;
                                               find the recorded answer to a request
    masking                                    find secrets and replace them
    exchange                                   the contract between seams and sessions
    providers | checkpoints                    read the formats of model providers; store the
                                               checkpoints of a framework
    tape                                       write and read recordings
    patching                                   patch a library and undo it
    unpacking                                  remove a content coding, within bounds
    errors                                     every error raised on purpose
    printable                                  makes recorded text safe to print
    version

Start reading in exchange/contract.py. Names are loaded when they are first used, so importing this
package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from tracefork_core.version import __version__

TYPE_CHECKING = False  # typing's own is the same to a type checker, and is most of this import
if TYPE_CHECKING:
    from tracefork_core.blaming.bisect import bisect
    from tracefork_core.blaming.blame import blame
    from tracefork_core.blaming.oracles.judge import Judge
    from tracefork_core.blaming.report import Report
    from tracefork_core.chance.nondet_source import Drifting, NondetSource
    from tracefork_core.comparing.assertions import assert_matches, assert_no_diff
    from tracefork_core.comparing.diff import Comparison, diff
    from tracefork_core.errors import (
        BoundaryError,
        BoundaryWarning,
        DivergenceError,
        EgressError,
        ReplayError,
        SurroundingsWarning,
        TapeError,
        ToolError,
        TraceforkError,
        UsageError,
        WriteError,
    )
    from tracefork_core.exchange.carry import carry
    from tracefork_core.interop.exporting.in_process import export_spans
    from tracefork_core.run.fork import Forking, fork
    from tracefork_core.run.record import record
    from tracefork_core.run.replay import replay
    from tracefork_core.run.rerun import rerun
    from tracefork_core.run.use_tape import use_tape
    from tracefork_core.seams import bind
    from tracefork_core.seams.tools.tool import tool
    from tracefork_core.service.recorder import Recorder
    from tracefork_core.session.interventions import Drop, Edit, Fail, Keep, Replace, Resample
    from tracefork_core.tape import Tape
    from tracefork_core.telemetry.observers import observe

_HOMES = {
    "BoundaryError": "errors",
    "BoundaryWarning": "errors",
    "DivergenceError": "errors",
    "Comparison": "comparing.diff",
    "Drifting": "chance.nondet_source",
    "Drop": "session.interventions",
    "Edit": "session.interventions",
    "EgressError": "errors",
    "Fail": "session.interventions",
    "Forking": "run.fork",
    "Judge": "blaming.oracles.judge",
    "Keep": "session.interventions",
    "NondetSource": "chance.nondet_source",
    "Recorder": "service.recorder",
    "Replace": "session.interventions",
    "ReplayError": "errors",
    "Report": "blaming.report",
    "Resample": "session.interventions",
    "SurroundingsWarning": "errors",
    "Tape": "tape",
    "TapeError": "errors",
    "ToolError": "errors",
    "TraceforkError": "errors",
    "UsageError": "errors",
    "WriteError": "errors",
    "assert_matches": "comparing.assertions",
    "assert_no_diff": "comparing.assertions",
    "bind": "seams",
    "bisect": "blaming.bisect",
    "blame": "blaming.blame",
    "carry": "exchange.carry",
    "diff": "comparing.diff",
    "fork": "run.fork",
    "export_spans": "interop.exporting.in_process",
    "observe": "telemetry.observers",
    "record": "run.record",
    "replay": "run.replay",
    "rerun": "run.rerun",
    "tool": "seams.tools.tool",
    "use_tape": "run.use_tape",
}

__all__ = [
    "BoundaryError",
    "BoundaryWarning",
    "Comparison",
    "DivergenceError",
    "Drifting",
    "Drop",
    "Edit",
    "EgressError",
    "Fail",
    "Forking",
    "Judge",
    "Keep",
    "NondetSource",
    "Recorder",
    "Replace",
    "ReplayError",
    "Report",
    "Resample",
    "SurroundingsWarning",
    "Tape",
    "TapeError",
    "ToolError",
    "TraceforkError",
    "UsageError",
    "WriteError",
    "__version__",
    "assert_matches",
    "assert_no_diff",
    "bind",
    "bisect",
    "blame",
    "carry",
    "diff",
    "export_spans",
    "fork",
    "observe",
    "record",
    "replay",
    "rerun",
    "tool",
    "use_tape",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return __all__
