"""The digest of a run: a hash chain over the payloads of its exchanges, in the order asked.

    h₀ = sha256("tracefork tape 1"),  hₖ = sha256(hₖ₋₁ ‖ payloadₖ)

A payload is canonical JSON that names bodies by their sha256, so the chain covers every byte that
crossed the boundary, and nothing else: not clock times, hosts, lanes, steps or chunk boundaries.
Two recordings of the same bytes have one digest. The chain alone proves that nothing changed since
it was written down; it does not prove who wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SEED = b"tracefork tape 1"


def chain(payloads: Iterable[bytes]) -> str:
    """Return the digest of canonical payloads, 64 hexadecimal digits."""
    link = hashlib.sha256(SEED).digest()
    for payload in payloads:
        link = hashlib.sha256(link + payload).digest()
    return link.hex()
