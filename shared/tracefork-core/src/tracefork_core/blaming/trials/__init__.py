"""Run the forks that the engine asks for, within a budget, and journal each one.

`runner` runs probes on a `pool`; `trial` is one forked run, kept in the `trial_journal` before it
counts. `budget` limits live calls: dollars, calls, tokens, time, and calls a minute. `units` are
the exchanges that can be blamed, with what each cost; `spending` adds up what a fork spent.
"""
