"""The table of commands, and the help that is printed from it alone.

`tracefork --help` must be there at once, so it loads no verb and no library: what a verb needs is
imported when that verb runs.
"""

from __future__ import annotations

from tracefork_core.cli.exits import EXITS

SUMMARIES = {
    "record": "Run an agent live and record it on a tape.",
    "replay": "Run an agent again, answered from its tape.",
    "verify": "Prove that a tape replays, or that it is undamaged.",
    "calibrate": "Say what of an agent does not repeat, and how to mend it.",
    "race": "Replay in other orders, to find what depends on the order.",
    "fork": "Run as recorded up to a point, and on from there in another way.",
    "try": "Ask one recorded question otherwise, and see both answers.",
    "blame": "Say which step doomed a failed run, and how sure that is.",
    "bisect": "Name the step a run was lost at, where its ends are certain.",
    "tree": "Show a run and its branches.",
    "bench": "Hold blame to runs whose truth is known.",
    "validate": "Plant faults in a real agent, and see whether blame finds them.",
    "sign": "Sign a tape with a key of your own.",
    "show": "Show the timeline of a tape, or one exchange of it.",
    "ls": "List the tapes of a folder.",
    "scan": "Find secrets on tapes that were made before.",
    "redact": "Write a tape anew, without the secrets on it.",
    "pack": "Write a run into one file that needs no other.",
    "unpack": "Check a tape that somebody sent, and take it in.",
    "import": "Bring the threads of another checkpointer into a file.",
    "gc": "Remove what is left over in a folder of tapes.",
    "doctor": "Say what is seen here, and what would bypass it.",
    "demo": "Take a guided tour, offline, with real commands.",
}
WITH_AGENT = frozenset(
    {"record", "replay", "verify", "calibrate", "race", "fork", "try", "blame", "bisect"}
)
"""Commands whose words behind `--` belong to the agent."""


def overview() -> str:
    """Return what `tracefork --help` prints."""
    rows = "\n".join(f"  {name:<11}{summary}" for name, summary in SUMMARIES.items())
    codes = [f"{code} {word}" for code, word in EXITS.items()]
    return f"""Usage: tracefork COMMAND [OPTIONS] [ARGS]

  Time-travel debugging for AI agents: record, replay for nothing, prove it.

Commands:
{rows}

Every command has --help, and --json for one document on stdout.
Exit codes: {" · ".join(codes[:4])} ·
            {" · ".join(codes[4:])}

  tracefork record agent.py -- "Where is order 17?"
  tracefork replay last
"""
