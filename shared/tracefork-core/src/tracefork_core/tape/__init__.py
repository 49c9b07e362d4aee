"""What a recording is: events, blobs, the digest, the file.

What is on it: an `event` of some kind, an `exchange`, a `checkpoint`; `canonical` JSON, from which
`digest` computes the digest of a run. `writer` writes, through `file` to the `log` (`frames`), and
to the `journal` while an exchange is in flight; `blobs` stores bodies, as a `delta` where that is
smaller. `reader` reads: the `header`, the `contents`, and what
was `in_flight` when the process died.

The file: `creation` makes it, `schema` opens it with its `tables`, `checksum` and `integrity` find
damage. A branch has an `origin`, lies `beside` its parent, and notes which turns `moved`. `mode` is
how much is stored, `sealing` encrypts it, `signature` signs it, `rewrite` writes it again, and
`atomic_file` gives a file its name once it is complete. `environment` describes where it was made.
`json_pointer` and `msgpack_values` address values in documents.
"""

from tracefork_core.tape.event import Environment, Receipt, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.writer import TapeWriter

__all__ = ["Environment", "Exchange", "Receipt", "StepRecord", "Tape", "TapeWriter"]
