"""Turn a tape into a trace or a file of other tools.

`tape_spans` makes spans of a tape's steps and exchanges. What they say of a model call or a tool
has the names of `gen_ai` (OpenTelemetry), of `openinference`, or of both. `otlp` writes spans as
OTLP, to a file or to a collector. `following` makes them while the run is recorded: for another
process, or by `in_process` for a span processor in this one. `atif` and `har` write files that are
not traces.
"""
