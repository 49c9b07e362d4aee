"""Run a test several times until it is known whether it passes as often as its mark says.

Each run has fixtures and a tape of its own. After each run it is asked whether the rate is known:
the verdict may be looked at as often as one likes, because the evidence is an e-value. A recorded
series is replayed the same way, and ends the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from tracefork_core.blaming.engine.pass_rate import FAIL, PASS, missing_runs, verdict_on

if TYPE_CHECKING:
    from tracefork_core.pytest_plugin.options import Options


def run_repeatedly(
    item: pytest.Item,
    nextitem: pytest.Item | None,
    options: Options,
    run: pytest.StashKey[int],
) -> None:
    """Run a test, and report it as one test."""
    assert options.repeat is not None
    hook, location = item.ihook, item.location
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
    passed, failed = 0, list[pytest.TestReport]()
    reports: Sequence[pytest.TestReport] = ()
    verdict = None
    for number in range(1, options.repeat + 1):
        item.stash[run] = number
        # The parent as the next item: only what belongs to the test alone is torn down.
        reports = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        is_ours = any(_is_no_sample(report) for report in reports)
        if is_ours or any(report.skipped for report in reports):
            break
        bad = next((report for report in reports if report.failed), None)
        passed += bad is None
        failed += [bad] if bad is not None else []
        verdict = verdict_on(passed, len(failed), options.pass_rate, options.confidence)
        if verdict is not None:
            break
    else:
        is_ours = False
    if passed or failed:
        call = next((report for report in reports if report.when == "call"), reports[0])
        if not is_ours:
            _rewrite(call, verdict, passed, failed, options)
    for report in reports:
        if is_ours or report.when == "call" or not report.failed:
            hook.pytest_runtest_logreport(report=report)
    _tear_down_shared(item, nextitem)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=location)


def _tear_down_shared(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tear down what this test was the last one to use."""
    states = item.session._setupstate  # noqa: SLF001 - pytest has no other place for it
    call = pytest.CallInfo.from_call(lambda: states.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)


def _rewrite(
    report: pytest.TestReport,
    verdict: str | None,
    passed: int,
    failed: Sequence[pytest.TestReport],
    options: Options,
) -> None:
    """Make the report of the last run the report of all of them."""
    runs = passed + len(failed)
    counted = f"passed {passed} of {runs} runs"
    if verdict == PASS:
        report.outcome = "passed"
        report.longrepr = None
        report.sections.append(("tracefork", f"{counted}: {_rate(options)} or more"))
        return
    report.outcome = "failed"
    if verdict == FAIL:
        words = f"{counted}: less than {options.pass_rate:.0%}"
    else:
        more = missing_runs(passed, len(failed), options.pass_rate, options.confidence)
        need = "many more runs are needed" if more is None else f"{more} more that pass would do"
        words = f"{counted}: undecided whether that is {_rate(options)}; {need}"
    last = f"\n\nThe last failure:\n{failed[-1].longreprtext}" if failed else ""
    report.longrepr = f"tracefork: {words}.{last}"


def _rate(options: Options) -> str:
    return f"{options.pass_rate:.0%} (with {options.confidence:.0%} confidence)"


def _is_no_sample(report: pytest.TestReport) -> bool:
    """Return whether a run says nothing about the agent: it had no tape, or another run on it."""
    return report.failed and getattr(report, "tracefork_error", False)
