"""Turn the recordings and traces of other tools into tapes.

A reader turns a file into a `Run` (`foreign_run`), and `recording` records that run onto a tape: it
sends its exchanges through an ordinary session, so that secrets are masked, URLs canonical and
bodies hashed as in any recording. Only the clock is the file's. `document` reads the file within
bounds, `recognise` knows its format, and `folder` imports all files of a folder.

Recordings of HTTP, the cassettes of `vcr` and the files of `har`, become the calls of
`http_recording`, which grades them; `websocket` makes such calls of messages. `adk_conformance`
reads what Google ADK records itself.

Traces become spans first: `otlp` reads those of OpenTelemetry, `langfuse`, `langsmith`,
`transcripts` and `claude_code` those of other tools, with the help of `span_values`. `span_calls`
says what a span asked of a model or a tool, and `span_messages` its messages, whose shapes
`messages` reads. `trace_run` makes a run of the spans.
"""
