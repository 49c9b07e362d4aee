"""The command `tracefork`.

`main` finds the command in `command_table` and runs it from `commands`; `exits` are the exit codes,
`usage_errors` words a mistake on the command line. `options` are those that several commands share,
`tape_names` finds the tape a name means, `installed` describes this machine. `agent` runs the
user's agent, `display` prints. `race`, `calibrate` and `validate` hold what those commands run in
processes of their own.
"""
