"""What a recording is: events, bodies, the digest, the file.

What lies on it: an `event` of some kind, an `exchange`, a `checkpoint`, a read of `state` or of the
`surroundings`, what a service `served`, where a tape was `imported` from; each is canonical JSON,
and `digest` makes the digest of a run from that.

`writer` writes: through `file` to the `log` (as zstd `frames`), and to the `journal`
while an exchange is in flight. The run of a service is `held` in memory until it is known whether
its tape is kept. `blobs` stores bodies, as a `delta` if that is smaller. `reader` reads all of it
again, through `contents`, and `beginning` the first exchanges alone.

The file: `creation` makes it, `schema` opens it, `checksum` and `integrity` find corruption.
`branches` says where a branch comes from, `rewrite` copies a tape, `sealing` encrypts it,
`signature` signs it and `marks` labels it. `environment` describes where it was recorded, and
`repository` the repository there. `json_pointer` addresses values in documents. `notebook` shows a
tape in a notebook.
"""

from tracefork_core.tape.event import Environment, Receipt, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.writer import TapeWriter

__all__ = ["Environment", "Exchange", "Receipt", "StepRecord", "Tape", "TapeWriter"]
