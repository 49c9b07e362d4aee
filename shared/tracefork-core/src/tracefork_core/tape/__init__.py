"""What a recording is: events, blobs, the digest, the file.

The kinds of `event`, an `exchange`, a `checkpoint`; `canonical` is how one is spelled, `digest`
what a run comes to. `writer` writes, through `file` to the `log` (`frames`) and, while it is in
flight, to the `journal`; `blob_writer` decides how bodies lie in `blobs`, as a `delta` where that
is less. `reader` reads: the `head`, the `contents`, what was `in_flight`, and tapes of `older`
formats.

The file is made by `creation` and opened by `schema`, with the `tables` of each format; `checksum`
and `integrity` find damage. A branch has an `origin`, lies `beside` it, and says what of it was
`moved`. `mode` is what a tape keeps, `sealing` encrypts it, `signature` says whose it is, `rewrite`
writes it anew, as a `draft` until it is whole, `environment` describes where it was made; the
`timer` counts how long it took. `pointer` and `packed` lead into documents of JSON and MessagePack.
"""

from tracefork_core.tape.event import Environment, Receipt, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.writer import TapeWriter

__all__ = ["Environment", "Exchange", "Receipt", "StepRecord", "Tape", "TapeWriter"]
