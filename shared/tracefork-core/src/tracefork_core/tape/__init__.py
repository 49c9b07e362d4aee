"""What a recording is: events, blobs, the digest, the file."""

from tracefork_core.tape.event import Environment, Receipt, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.writer import TapeWriter

__all__ = ["Environment", "Exchange", "Receipt", "StepRecord", "Tape", "TapeWriter"]
