"""Amazon Bedrock for tracefork: record boto3, replay it without credentials, and fork its answers.

With this package installed, a session records the clients of boto3 and aiobotocore without any
change to them. A replay needs no credentials, no region and no network.

    add_services      record clients of other AWS services, too
    attach, detach    record a client, or those of a session, with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `clients` says which clients are
recorded, `attempts` knows each attempt of a request before it is sent, `effects` whether it may
have a side effect, and `sending` makes an exchange of it. `bodies` are what botocore reads, and
`failures` converts exceptions. `surroundings` keeps a replay from looking for credentials. `aio`
does the same for aiobotocore. `attachment` is for single clients, and `formats` reads and writes
what Bedrock sends. `strands` is the adapter for Strands Agents, with Bedrock or without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_bedrock.attachment import attach, detach
    from tracefork_bedrock.clients import add_services

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="bedrock",
    distribution="tracefork-bedrock",
    framework="boto3",
    seams=("botocore: each attempt of a request to Amazon Bedrock",),
)

__all__ = ["ADAPTER", "__version__", "add_services", "attach", "detach"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"), clients=("add_services",))
