"""Blame a run: run the probes that the engine requests, within a budget, and journal each one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec

from tracefork_core.blaming.engine import engine
from tracefork_core.blaming.engine.probe import Probe, Settings, Trial
from tracefork_core.blaming.engine.result import Result, Verdict
from tracefork_core.blaming.oracles import noise
from tracefork_core.blaming.parts import Part, parts_by, parts_of, pieces, weighed
from tracefork_core.blaming.report import CREDIT, Grading, Report, save
from tracefork_core.blaming.telemetry import observed
from tracefork_core.blaming.trials.budget import Budget, Pacer, Purse
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.runner import Progress, Runner
from tracefork_core.blaming.trials.spending import Spending, Spent
from tracefork_core.blaming.trials.trial import Agent, Job, ModelOracle, Oracle, check_functions
from tracefork_core.blaming.trials.trial_journal import (
    JOURNAL,
    Header,
    Journal,
    Prices,
    free,
    latest,
    make_folder,
)
from tracefork_core.blaming.trials.units import Run
from tracefork_core.errors import UnwritableError, UsageError
from tracefork_core.printable import printable
from tracefork_core.providers import prices
from tracefork_core.run.replay import answering, masking_of
from tracefork_core.run.untaped import check_tools
from tracefork_core.session.interventions import Edit, described
from tracefork_core.session.side_effects import Writes, is_recorded_write, reading
from tracefork_core.tape import Tape
from tracefork_core.tape.branches import parent_name
from tracefork_core.tape.rewrite import lay_beside
from tracefork_core.version import __version__

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
SHARED = 40
"""Forks for each subset of the named units, when the blame is shared among them."""


def blame(
    path: str | Path,
    agent: Agent,
    oracle: Oracle,
    *,
    budget: str | Budget | None = None,
    credit: bool = False,
    by: str | Sequence[str] = (),
    groups: Sequence[Collection[int]] = (),
    settings: Settings | None = None,
    shares: bool = False,
    regrades: int = 0,
    seed: int = 0,
    workers: int = 1,
    executor: Executor | None = None,
    fresh: bool = False,
    rate: float | None = None,
    writes: Writes = "refuse",
    reads: Collection[str] = (),
    rerun_tools: bool = False,
    tail: Edit | None = None,
    mask: Sequence[str] = (),
    folder: str | Path | None = None,
    resume: bool = False,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Find the step that made a run fail, and how certain that is, by running forks of it.

    Each fork keeps some recorded responses and draws the rest again; the oracle grades its outcome.
    The outcomes so far decide which forks run next. Unit n is exchange n.

    Args:
        path: tape of a run that failed.
        agent: the program that was recorded: a function without arguments, sync or async.
        oracle: takes what the agent returned; returns True for a good run and False for a bad one.
            An AssertionError also means bad.
        budget: "$5", "200 calls", "1M tokens", "10m", or several separated by commas; None for no
            limit.
        credit: for a run that passed, find the step that saved it.
        by: kind of step to compare first ("task", "agent", "node"); the search then continues
            inside the likeliest one. With several kinds, coarse to fine, the report splits each
            part that it names by the next kind.
        groups: groups of units to compare first, instead of a kind.
        settings: thresholds and sample sizes; None for the defaults.
        shares: run more forks, to share the blame among several named steps (Shapley values).
        regrades: how many times to grade some outcomes again, without calling the agent, to measure
            how often the oracle errs by chance (see `noise`); at least 3, or 0 for none.
        seed: seed of the engine. The same seed and the same outcomes give the same report.
        workers: number of processes that run forks. With several, agent and oracle must be
            importable.
        fresh: run each fork in a new process, for agents that leave state behind.
        rate: live calls per minute that the provider accepts, checked before each fork; None for no
            limit.
        executor: run forks here instead: threads, or `get_executor()` of a dask client. It must see
            the same folder, and its machines must reach the same provider.
        writes: what happens to live calls with side effects, as for `fork`.
        reads: as for `fork`.
        rerun_tools: as for `fork`.
        tail: change live model requests. For an agent that always gives the same answers, this
            finds from which step on a better model or a higher temperature still saves the run.
        mask: as for `fork`.
        folder: folder of the journal and the branches; `run.tape.blame` by default, and
            `run.tape.blame-2` once the blame in there is finished.
        resume: continue with the existing journal.
        watch: called with the progress.

    Raises:
        UsageError: the tape does not exist, there is nothing to blame, the budget cannot be
            enforced, the folder holds a journal already or that of another blame, the agent or the
            oracle is not a function, or each fork would run a tool again that is not on the tape.
        TapeError: the tape or the journal is corrupt.
    """
    check_functions(agent, oracle)
    path = Path(path)
    with answering(path) as tape:
        parent_name(path)  # Refuse now rather than in every fork.
        masking_of(tape, mask)
        run = Run.of(tape)
        if writes == "refuse":
            _check_writes(tape, frozenset(reads))
        if writes != "allow" and not rerun_tools:
            check_tools(tape)
        parts = _parts(tape, by, groups)
        auxiliary = frozenset(exchange.n for exchange in tape.exchanges if exchange.is_auxiliary)
    if folder is None:
        folder = latest(path) if resume else free(path)
    blame_folder = Path(folder)
    if regrades and regrades < noise.LEAST:
        raise UsageError(
            f"tracefork: regrades (--regrades) must be 0 or at least {noise.LEAST} "
            f"(got {regrades})."
        )
    limits = Budget.read(budget) if isinstance(budget, str) else budget or Budget()
    make_folder(blame_folder)
    if isinstance(oracle, ModelOracle):
        oracle = oracle.placed(blame_folder.absolute())
    chosen = _measures(settings, len(run.units), auxiliary)
    if shares:
        chosen = replace(chosen, sharing=chosen.sharing or SHARED)
    header = Header(
        digest=run.digest,
        units=len(run.units),
        seed=seed,
        settings=chosen,
        groups=pieces(parts),
        agent=_name(agent),
        oracle=f"{CREDIT}{_name(oracle)}" if credit else _name(oracle),
        regrades=regrades,
        tail=described(tail) if tail else {},
        version=__version__,
    )
    spending, pacer = _spending(oracle), Pacer(rate)
    if not (blame_folder / JOURNAL).exists():
        Purse(limits, run.usd, run.tokens, spending, auxiliary)  # Refuse before the journal exists.
    with _going_on_later(), ExitStack() as stack:
        journal = Journal(blame_folder / JOURNAL, header, resume=resume)
        stack.callback(journal.close)
        run = run.at(journal.price(Prices(prices.lists(), tuple(run.usd))).units)
        purse = Purse(limits, run.usd, run.tokens, spending, auxiliary)
        observation = stack.enter_context(observed(path, journal, purse))
        tape_copy = blame_folder / path.name
        if not tape_copy.exists():
            lay_beside(path, blame_folder)
        job = Job(
            number=0,
            probe=Probe(frozenset()),
            tape=str(tape_copy.absolute()),
            branch="",
            sources={},
            crash=run.crash,
            writes=writes,
            reads=tuple(reads),
            mask=tuple(mask),
            credit=credit,
            regrades=regrades,
            tail=tail,
            traceparent=observation.traceparent,
        )
        random = Random(seed)  # noqa: S311 - must be reproducible from its seed
        pool = stack.enter_context(Pool(agent, oracle, workers, executor, fresh=fresh))
        runner = Runner(job, oracle, pool, journal, purse, pacer, watch)
        result = runner.run(engine.blame(run.costs, random, chosen, header.groups, runner.stands))
        result = _with_unfinished(result, runner.unfinished)
        if result.verdict.kind != "undecided":
            journal.finish()
        draws = tuple(journal.trials[number] for number in sorted(journal.trials))
        errors = noise.measured(draws)
        judged = noise.without(errors, chosen, _judged(result, draws))
        observation.verdict = judged.verdict.kind
    report = Report(
        tape=str(path),
        header=header,
        budget=limits,
        units=run.units,
        result=judged,
        parts=weighed(judged, parts, chosen.level),
        draws=draws,
        prices=tuple(earlier.lists for earlier in journal.prices),
        grading=_grading(oracle),
        noise=errors,
    )
    save(report, blame_folder)
    return report


@contextmanager
def _going_on_later() -> Iterator[None]:
    """Add to a write error how to resume: everything that was paid for is in the journal."""
    try:
        yield
    except UnwritableError as error:
        raise UnwritableError(
            f"{error} Make room there, then resume this blame (resume=True, --resume)."
        ) from error


def _parts(
    tape: Tape, by: str | Sequence[str], groups: Sequence[Collection[int]]
) -> tuple[Part, ...]:
    kinds = [by] if isinstance(by, str) else [*by]
    if kinds and groups:
        raise UsageError("tracefork: `by` and `groups` exclude one another. Pass only one of them.")
    return parts_by(tape, kinds) if kinds else parts_of(tape, groups)


def _measures(given: Settings | None, units: int, auxiliary: frozenset[int]) -> Settings:
    """Return the settings, completed with the units that are graded and those never suspected."""
    if given is not None:
        return replace(given, auxiliary=given.auxiliary | auxiliary)
    # Usually the last answer is graded. If it were held, no earlier unit could make a difference.
    last = max(set(range(units)) - auxiliary, default=units - 1)
    return Settings(answers=frozenset({last}), auxiliary=auxiliary)


def _check_writes(tape: Tape, reads: frozenset[str]) -> None:
    """Refuse a write now, at which the first fork would stop."""
    for exchange in tape.exchanges:
        if is_recorded_write(exchange, reads):
            asked = printable(f"{exchange.method} {exchange.url}")
            raise UsageError(
                f"tracefork: exchange {exchange.n} ({asked}) may have "
                "side effects, and each fork would repeat them. Allow it (--allow-writes, "
                "writes='allow'), or return the recorded answer (--stub-writes, writes='stub')."
                f"{reading(exchange.url)}"
            )


def _name(function: object) -> str:
    """Return the name of a function or callable object that is the same in every process."""
    module = getattr(function, "__module__", type(function).__module__)
    return f"{module}:{getattr(function, '__qualname__', _ADDRESS.sub('', repr(function)))}"


def _spending(oracle: object) -> Spending:
    return oracle.spent({}) if isinstance(oracle, ModelOracle) else Spending(Spent(), Spent())


def _grading(oracle: object) -> Grading | None:
    if not isinstance(oracle, ModelOracle):
        return None
    took = oracle.spent({}).total
    return Grading(calls=took.calls, tokens=took.tokens, usd=took.usd)


def _with_unfinished(result: Result, lost: Sequence[Spent]) -> Result:
    """Add to the ledger what forks spent that never finished: those calls were paid for."""
    total = Spent(result.ledger.live_calls, result.ledger.tokens, result.ledger.usd)
    for spent in lost:
        total.add(spent)
    ledger = msgspec.structs.replace(
        result.ledger,
        live_calls=total.calls,
        tokens=total.tokens,
        usd=total.usd,
    )
    return msgspec.structs.replace(result, ledger=ledger)


def _judged(result: Result, trials: Iterable[Trial]) -> Result:
    """Return the result, with the verdict `passed` if the recorded run is good."""
    replays = [trial.failed for trial in trials if trial.probe.purpose == "replay"]
    if result.verdict.kind != "not reproducible" or not replays or any(replays):
        return result
    verdict = Verdict(
        kind="passed", reason="the recorded run is good, so there is nothing to blame"
    )
    return msgspec.structs.replace(result, verdict=verdict)
