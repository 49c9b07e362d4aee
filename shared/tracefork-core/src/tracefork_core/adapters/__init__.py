"""The public interface for adapters: what the package for one framework may use of core.

An adapter is a distribution of its own with these entry points:

    tracefork.adapters     an `Adapter`, which `tracefork doctor` lists
    tracefork.instruments  an `Instrument`: patches the framework while a session is open
    tracefork.importers    an `Importer`: brings over the threads of another checkpointer
    tracefork.formats      a `Format`: reads the exchanges of a transport of the framework's own
    tracefork.projects     a `FindProject`: lets `tracefork record FOLDER` run a project

Its one public function is `attach(x) -> x`. An adapter uses this interface to

- capture clients: `tracefork_core.bind`; of what is attached, `Attached` and `bind_until_undo`;
- report steps: `step`, `events_in` for a generator and `BlockIn` for a context manager, or
  `begin_step`, `end_step` and `current_step`;
- name the lanes of parallel branches: `take_lane` and `own_branches`, or `lane_here`, `branch_lane`
  and `restart_lane_numbers`;
- store checkpoints: `checkpoints`, and `ask_where` for the checkpoint that an exchange runs from;
- put a stand-in in front of state that outlives the run: `put_in_front`, or `state_of` itself, and
  `Stored` for what it reads and writes by keys;
- record the framework's tools as exchanges: `tool_exchange`, `atool_stream` for those that yield,
  `Changes` for what they change besides returning a result, and `FrameworkValues`, or
  `ProgramValues`, to turn classes into data and back;
- replace the framework's functions while a session is open: `Adapter.instrument` and `Patches`;
- drop a pool of clients that the framework keeps: `Patches.replace` it by an empty one;
- raise a divergence where the framework handles errors: `check_session`, `session_checked`,
  `checked_events`, `also_a`;
- say what side effect a tool has: `effect_of`;
- connect to servers only when a call is live: `Late`;
- keep the secrets of a server's environment off the tape: `mask_secrets_of`;
- record a transport of the framework's own: `session_here().open(Request(...))` answers with a
  `Live` or a `Recorded`. Make the connection inside `crossing_seam`, which says that it is yours;
  where `is_crossing_seam` is true, a seam above has recorded the call already.
  `tracefork_core.adapters.formats` says how people read and change what it sends.

Outside a session all of it does nothing.

`adapter` says what an adapter is, `session_here` what it tells a session and asks it,
`running_steps` how work in pieces is a step, `branches` what lanes are called, `attached` what is
recorded in a session that is not ambient, `misses` how a divergence gets through a framework,
`effects` what a tool may do, `late` when connections are made, `checkpointing` where checkpoints
are kept, `stand_ins` what replaces state that outlives a run, and `stored` what such a stand-in
reads, `program_values` how objects of the program's classes are stored, and `formats` how the
exchanges of an adapter's own seam read.
"""

from __future__ import annotations

from tracefork_core.adapters.adapter import (
    Adapter,
    FindProject,
    Imported,
    Importer,
    Project,
    found_adapters,
    lazy_names,
)
from tracefork_core.adapters.attached import Attached, bind_until_undo
from tracefork_core.adapters.branches import numbered, own_branches, take_lane
from tracefork_core.adapters.checkpointing import (
    checkpoints,
    memory_checkpoints,
    recorded_checkpoints,
    recorded_runs,
    revisited_checkpoint,
    without_secrets,
)
from tracefork_core.adapters.effects import effect_of
from tracefork_core.adapters.late import Late
from tracefork_core.adapters.misses import also_a, check_session, checked_events, session_checked
from tracefork_core.adapters.program_values import (
    ProgramValues,
    as_json,
    classes_in,
    holds_data,
    result_classes,
)
from tracefork_core.adapters.running_steps import (
    BlockIn,
    RunningStep,
    Values,
    events_in,
    step,
    values_set,
)
from tracefork_core.adapters.session_here import (
    answering_tape,
    begin_step,
    branch_lane,
    check_asked,
    end_step,
    fork_point,
    in_session,
    is_recorded_here,
    lane_here,
    mark_as_recorded,
    mask_secrets_of,
    restart_lane_numbers,
    session_here,
)
from tracefork_core.adapters.stand_ins import (
    put_in_front,
    replace_in_classes,
    state_of,
    undisturbed,
    upkeep,
)
from tracefork_core.adapters.stored import Stored
from tracefork_core.checkpoints.contract import Checkpoints, RecordedRun
from tracefork_core.exchange.contract import (
    Effect,
    Failure,
    Head,
    Lane,
    Live,
    Noted,
    Recorded,
    Request,
    State,
)
from tracefork_core.exchange.current import (
    ask_where,
    crossing_seam,
    current_step,
    is_crossing_seam,
)
from tracefork_core.patching.instrument import Instrument
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.tools.changes import Changes, ChangingCall, Outcome, recorded_tool
from tracefork_core.seams.tools.framework_tools import (
    FrameworkValues,
    ToolMark,
    atool_exchange,
    atool_stream,
    tool_exchange,
    tool_mark,
)
from tracefork_core.tape.checkpoint import Checkpoint as SavedCheckpoint
from tracefork_core.tape.checkpoint import Value as SavedValue
from tracefork_core.tape.checkpoint import Write as SavedWrite

__all__ = [
    "Adapter",
    "Attached",
    "BlockIn",
    "Changes",
    "ChangingCall",
    "Checkpoints",
    "Effect",
    "Failure",
    "FindProject",
    "FrameworkValues",
    "Head",
    "Imported",
    "Importer",
    "Instrument",
    "Lane",
    "Late",
    "Live",
    "Noted",
    "Outcome",
    "Patches",
    "ProgramValues",
    "Project",
    "Recorded",
    "RecordedRun",
    "Request",
    "RunningStep",
    "SavedCheckpoint",
    "SavedValue",
    "SavedWrite",
    "State",
    "Stored",
    "ToolMark",
    "Values",
    "also_a",
    "answering_tape",
    "as_json",
    "ask_where",
    "atool_exchange",
    "atool_stream",
    "begin_step",
    "bind_until_undo",
    "branch_lane",
    "check_asked",
    "check_session",
    "checked_events",
    "checkpoints",
    "classes_in",
    "crossing_seam",
    "current_step",
    "effect_of",
    "end_step",
    "events_in",
    "fork_point",
    "found_adapters",
    "holds_data",
    "in_session",
    "is_crossing_seam",
    "is_recorded_here",
    "lane_here",
    "lazy_names",
    "mark_as_recorded",
    "mask_secrets_of",
    "memory_checkpoints",
    "numbered",
    "own_branches",
    "put_in_front",
    "recorded_checkpoints",
    "recorded_runs",
    "recorded_tool",
    "replace_in_classes",
    "restart_lane_numbers",
    "result_classes",
    "revisited_checkpoint",
    "session_checked",
    "session_here",
    "state_of",
    "step",
    "take_lane",
    "tool_exchange",
    "tool_mark",
    "undisturbed",
    "upkeep",
    "values_set",
    "without_secrets",
]
