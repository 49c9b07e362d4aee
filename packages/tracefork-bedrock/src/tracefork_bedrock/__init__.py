"""Amazon Bedrock for tracefork: record boto3, replay it without credentials, and fork its answers.

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `formats` reads and writes what Bedrock
sends.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="bedrock",
    distribution="tracefork-bedrock",
    framework="boto3",
    seams=("the events of botocore: each attempt of a request to Bedrock",),
)

__all__ = ["ADAPTER", "__version__"]
