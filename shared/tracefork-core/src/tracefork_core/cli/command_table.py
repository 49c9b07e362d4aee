"""The table of commands, and the help that is printed from it.

`tracefork --help` must appear at once, so this module loads no command and no library. A command's
own modules are imported when that command runs.
"""

from __future__ import annotations

from tracefork_core.cli.exits import EXITS

GROUPS = {
    "Record and replay": {
        "demo": "Take a guided tour, offline: every step is a real command.",
        "record": "Run an agent live and record it on a tape.",
        "replay": "Run an agent again, with every answer taken from its tape.",
        "proxy": "Record and replay programs of any language through a local proxy.",
        "verify": "Prove that a tape replays, or that its file is undamaged.",
        "ci": "Keep a folder of tapes, and check that all still replay.",
    },
    "Look": {
        "show": "Show the timeline of a tape, or one exchange in full.",
        "diff": "Compare two runs, or a branch with the run it comes from.",
        "report": "Write a run as one HTML page that anyone can open.",
        "view": "Look at runs in a browser, while they are recorded too.",
        "tui": "Look at a run in the terminal, with keys.",
        "ls": "List the tapes in a folder.",
        "tree": "Show a run and its branches, with changes, outcomes and cost.",
        "doctor": "Check which installed libraries tracefork captures.",
    },
    "What if": {
        "rerun": "Run an edited agent again; only what it asks differently is live.",
        "fork": "Replay up to a step, change it, and run live from there.",
        "try": "Ask one recorded question again, changed, and compare the answers.",
    },
    "Find the cause": {
        "blame": "Find the step that made a run fail, by re-running forks of it.",
        "bisect": "Find the failing step by halving, if outcomes are repeatable.",
        "shrink": "Find the smallest run that still fails.",
        "calibrate": "Find what changes between runs, and the line it comes from.",
        "race": "Find results that depend on the order in which answers arrive.",
    },
    "Share": {
        "pack": "Copy a run into one file that needs no other file.",
        "unpack": "Check a tape that you received, and copy it to a folder.",
        "sign": "Sign a tape with your own key.",
        "scan": "Find secrets on existing tapes.",
        "redact": "Copy a tape without the secrets on it.",
        "export": "Write a run as a trace or a file of other tools.",
        "import": "Turn recordings and traces of other tools into tapes.",
    },
    "Maintain": {
        "gc": "Remove leftover files, and old runs if you ask for it.",
    },
    "Judge blame itself": {
        "bench": "Test blame on simulated runs whose cause is known.",
        "validate": "Test blame on faults planted in a real agent.",
    },
}
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}
"""What each command does, in the order of the help."""
ALIASES = {"serve": "view"}
"""Other names that people type."""
WITH_AGENT = frozenset(
    {
        "record",
        "replay",
        "proxy",
        "verify",
        "ci",
        "calibrate",
        "race",
        "rerun",
        "fork",
        "try",
        "blame",
        "bisect",
        "shrink",
    }
)
"""The commands that pass the words behind `--` to the agent."""
RESTORING = frozenset({"replay", "rerun", "fork", "try"})
"""The commands that run the agent in their own process, with the recorded hash seed."""


def overview() -> str:
    """Return what `tracefork --help` prints."""
    groups = "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:<11}{summary}" for name, summary in group.items())])
        for title, group in GROUPS.items()
    )
    codes = [f"{code} {word}" for code, word in EXITS.items()]
    return f"""Usage: tracefork COMMAND [OPTIONS] [ARGS]

  Time-travel debugging for AI agents: record a run, replay it for $0, prove it.

{groups}

Every command has --help, and --json to print one JSON document on stdout.
`tracefork completion bash` prints what bash needs to complete them (zsh, fish).
Exit codes: {" · ".join(codes[:4])} ·
            {" · ".join(codes[4:])}

  tracefork demo
  tracefork record agent.py -- "Where is order 17?"
  tracefork replay last
"""
