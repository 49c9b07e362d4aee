"""What side effect an operation of AWS has, by its name.

Asking a model has none, and core knows that from the request. An agent, a flow or a runtime runs
what its owner put into it: functions that book and pay. So it counts as a write, as every operation
does whose name does not say that it reads.
"""

from __future__ import annotations

from tracefork_core.adapters import Effect

_READING = ("BatchGet", "Describe", "Get", "Head", "List", "Query", "Retrieve", "Scan", "Search")
_READS = frozenset(
    {
        "AgenticRetrieveStream",
        "ApplyGuardrail",
        "Converse",
        "ConverseStream",
        "CountTokens",
        "GenerateQuery",
        "InvokeGuardrailChecks",
        "InvokeModel",
        "InvokeModelWithResponseStream",
        "OptimizePrompt",
        "Rerank",
    }
)


def effect_of(operation: str) -> Effect:
    """Return the side effect of an operation: Converse reads, InvokeAgent may write."""
    return "read" if operation in _READS or operation.startswith(_READING) else "write"
