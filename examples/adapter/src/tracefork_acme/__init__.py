"""acme-agents for tracefork: steps with names, and tools that run once.

With this package installed, a session records an agent of acme-agents without any change to it.

    attach, detach     record one agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter, lazy_names

ADAPTER = Adapter(
    name="acme",
    distribution="tracefork-acme",
    framework="openai",  # The distribution of your framework; this one needs only that.
    seams=("httpx: models, through OpenAI's SDK", "Agent: steps and tools"),
)

__all__ = ["ADAPTER", "attach", "detach"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"))
