"""The modes of `tracefork replay`: strict, hybrid and dry-run.

`mode` says what each mode runs, and what it cannot prove; `mode_run` is one replay in a mode.
`pinned` compares this machine with the recorded one, `verifications` the results of verifiers with
the recorded ones, `dry_run` checks a tape without running anything, and `modes_report` prints.
"""
