"""The command `tracefork`.

`main` looks a command up in `command_table` and runs it from `commands`, one file per command.
`options` declares the options that several commands share, `fork_options` those of commands that
fork, `exits` the exit codes. `usage_errors` words mistakes on the command line, `tape_names` finds
the tape that a name means, `installed` describes the libraries on this machine, `repeated` asks
before a tool runs again, `refused_write` says how a fork goes on after one, and `completion`
completes command lines in a shell.

`agent` runs the user's agent, `display` prints results. `race`, `calibrate` and `validate` hold
the code that those commands run in processes of their own, `gate` is `tracefork ci`,
`modes` are the modes of a replay, `report` makes a page, `view` serves it live, and `tui` is the
terminal view.
"""
