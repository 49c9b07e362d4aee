"""The exceptions that a fork may give in an answer's place: those of the library that asked."""

from __future__ import annotations

from importlib import import_module

from tracefork_core.errors import UsageError
from tracefork_core.seams.aiohttp import failures as aiohttp_failures
from tracefork_core.seams.httpx import family
from tracefork_core.seams.requests import failures as requests_failures


def check_kind(seam: str, kind: str) -> None:
    """Refuse an exception that the library of a seam does not have.

    What a tool raises is its own business.

    Raises:
        UsageError: nothing is called so.
    """
    known = _kinds(seam)
    if known and kind.partition("(")[0] not in known:
        raise UsageError(
            f"tracefork: {kind} is no exception of {seam} (--fail). Give a status from 400 to 599, "
            f"or one of {', '.join(sorted(known))}."
        )


def _kinds(seam: str) -> frozenset[str]:
    try:
        if seam in ("httpx", "httpx2"):
            return frozenset(family.Family(import_module(seam)).failures)
        if seam == "aiohttp":
            return aiohttp_failures.Failures(import_module(seam)).kinds
        if seam == "requests":
            return requests_failures.Failures(import_module(seam)).kinds
    except ModuleNotFoundError:
        pass  # The agent will say so.
    return frozenset()
