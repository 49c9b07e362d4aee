"""The versions of the conventions that traces are written in, and where their names come from.

OpenTelemetry's names for generative AI: https://github.com/open-telemetry/semantic-conventions-genai
(`docs/gen-ai`), and for HTTP https://github.com/open-telemetry/semantic-conventions (`docs/http`).
OpenInference: https://github.com/Arize-ai/openinference (`spec`), the package
openinference-semantic-conventions. All of GenAI is in development: a name may change with a
version, so a new version is adopted here, with the two modules that write it.
"""

from __future__ import annotations

GEN_AI = "0.1.0"
"""The version of OpenTelemetry's conventions for generative AI, written by `exporting.gen_ai`."""
SEMANTIC_CONVENTIONS = "1.45.0"
"""The version of OpenTelemetry's other conventions, which those stand on."""
OPENINFERENCE = "0.1.42"
"""The version of openinference-semantic-conventions, written by `exporting.openinference`."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{SEMANTIC_CONVENTIONS}"

DIGEST = "tracefork.digest"
"""The digest of the run, on each of its spans."""
EXCHANGE = "tracefork.exchange"
"""The number of the exchange that a span is."""
RUN = "tracefork.run"
"""On the span around a run: the name of its tape."""
API = "tracefork.api"
"""The wire format of a model call: "openai.responses"."""
OUTCOME = "tracefork.outcome"
"""On the span around a run: "ok", the error that it ended with, or "unknown"."""
STEP_KIND = "tracefork.step.kind"
"""What kind of step a span is: "agent", "node"."""
BLAME = "tracefork.blame"
"""Prefix of what a blame found, and the name of the event that has its figures."""
