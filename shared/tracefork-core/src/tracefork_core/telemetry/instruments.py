"""The metrics of tracefork: their names, kinds, units and descriptions."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Instrument(NamedTuple):
    """One metric. `unit` is in the notation of UCUM, as OpenTelemetry asks for."""

    kind: Literal["counter", "histogram"]
    unit: str
    description: str


RUN_DURATION = "tracefork.run.duration"
EXCHANGES = "tracefork.exchanges"
EXCHANGE_DURATION = "tracefork.exchange.duration"
RESPONSE_SIZE = "tracefork.exchange.response.size"
TAPE_SIZE = "tracefork.tape.size"
MISSES = "tracefork.misses"
FORKS = "tracefork.forks"
COST = "tracefork.cost"

INSTRUMENTS = {
    RUN_DURATION: Instrument("histogram", "s", "Duration of a record, replay, fork or blame."),
    EXCHANGES: Instrument("counter", "{exchange}", "Requests of runs."),
    EXCHANGE_DURATION: Instrument("histogram", "s", "Duration of a live exchange."),
    RESPONSE_SIZE: Instrument("histogram", "By", "Size of the response of a live exchange."),
    TAPE_SIZE: Instrument("histogram", "By", "Size of a tape that was written."),
    MISSES: Instrument("counter", "{miss}", "What a replay did not find on its tape."),
    FORKS: Instrument("counter", "{fork}", "Forks of a blame, by outcome."),
    COST: Instrument("counter", "USD", "Dollars that a blame spent, as far as prices are known."),
}
