"""Report runs to your own logs, traces and metrics. Nothing is loaded until you ask for it.

`observers` says where to: what your code chose, or what the environment asks for. `work` is
one piece of work, a record or a blame for instance, and reports it once it is over. `instruments`
lists the metrics. `json_lines` writes logs for TRACEFORK_LOG, and `otlp` sends spans and metrics
for TRACEFORK_OTEL.

A run is reported after its session has closed. So no part of a report goes onto a tape, draws from
recorded randomness, or takes part in the order of the run.
"""
