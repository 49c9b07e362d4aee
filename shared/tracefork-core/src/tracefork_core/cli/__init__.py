"""The command `tracefork`: one file for each verb, loaded when it is asked for.

`main` finds the verb in the table of `commands` and gives one of the `exits`; `mistakes` are put
into words. Beside a verb lies what it alone needs: a `…_report` prints, a `…_result` is what came
out, `…_runs` are its runs, in processes of their own (`raced`, `calibrated`). Parts of one verb are
`blame_parts`, `blame_progress`, `checkpoints` and `signed`.

What several verbs are asked: `options`, `interventions`, the `tapes` that a name means, the `store`
of what made which. The agent: `agent`, run `as_main`, `winding_down` and `leaving`; `program`,
`project`, `command`, `hash_seed`, `fresh` processes, its `ending`. What people see: `screen`,
`figures`, `text`, `progress`; of a tape its `timeline`, a `page`, a `tool_call`, the `account`,
`coverage`, `secrets`; the `card` of a divergence; `surroundings`, which is what is installed.
"""
