"""Leave model calls out of a run: the agent gets the later answers of its lane instead.

The agent asks as often as before, but its nth question on a lane gets the nth answer that is kept.
So it skips what the answers between would have made it do. Requests that are no model calls are
answered as recorded where they are equal. All of it costs $0, and it proves that the agent fails
when it gets these answers; whether the model gives them to a shorter conversation is another
question, which only live calls answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from tracefork_core.providers.decode import is_model_call
from tracefork_core.session.interventions import Intervention
from tracefork_core.session.prepared_exchange import recorded_answer
from tracefork_core.tape import Exchange, Tape

Line = tuple[str, str, str]


def model_calls(tape: Tape) -> list[Exchange]:
    """Return the exchanges that can be left out: calls of a model that are part of the run."""
    return [
        one
        for one in tape.exchanges
        if not one.is_auxiliary
        and is_model_call(one.method, one.url, one.request_headers, one.request_body)
    ]


def _line(exchange: Exchange) -> Line:
    return exchange.lane, exchange.method, exchange.url.partition("?")[0]


def shortened(calls: Collection[Exchange], kept: Collection[int]) -> dict[int, Intervention]:
    """Return the changes that give the agent only the kept answers, in their order.

    Args:
        calls: the model calls of the run.
        kept: the numbers of the calls whose answers are kept.

    Returns:
        The answer for each place; nothing if no answer moves, so that no call is skipped.
    """
    lines = defaultdict[Line, list[Exchange]](list)
    for call in calls:
        lines[_line(call)].append(call)
    pairs = [
        (place.n, answer)
        for line in lines.values()
        for place, answer in zip(line, [call for call in line if call.n in kept], strict=False)
    ]
    start = min((place for place, answer in pairs if place != answer.n), default=None)
    if start is None:
        return {}
    answered = {place for place, _ in pairs}
    if any(call.n < start for call in calls if call.n not in answered):
        return {}  # It lies before the fork point, so it would be answered as recorded.
    return {place: recorded_answer(answer) for place, answer in pairs if place >= start}


def place_of(calls: Collection[Exchange], kept: Collection[int], call: Exchange) -> int:
    """Return the number of the exchange in whose place a kept call is answered."""
    line = [one for one in calls if _line(one) == _line(call)]
    return line[[one.n for one in line if one.n in kept].index(call.n)].n
