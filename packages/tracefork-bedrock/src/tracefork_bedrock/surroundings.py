"""What a replay does not look for: credentials, a region, a profile, and a rate to keep.

A replay needs none of them, so the machine that replays may lack them all. Without this,
`boto3.client` alone would walk through every provider of credentials, up to the metadata service of
EC2 at 169.254.169.254. A recording looks for credentials as always. What it asks for there is no
part of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

import botocore.credentials
import botocore.retries.bucket
import botocore.utils
from botocore.exceptions import ProfileNotFound
from botocore.session import Session

from tracefork_core.adapters import (
    Patches,
    answering_tape,
    crossing_seam,
    fork_point,
    in_session,
)

Method = Callable[..., Any]
_REGION = re.compile(r"\.([a-z]{2,4}(?:-[a-z]+)+-\d+)\.(?:[a-z.]*amazonaws\.|api\.aws)")
_DEFAULT_REGION = "us-east-1"


def put_in(patches: Patches) -> None:
    """Replace what looks for them."""
    patches.wrap(Session, "get_credentials", _credentials)
    patches.wrap(Session, "get_config_variable", _variable)
    patches.wrap(Session, "get_scoped_config", _profile)
    patches.wrap(botocore.credentials.RefreshableCredentials, "get_frozen_credentials", _aside)
    patches.wrap(botocore.utils.IMDSRegionProvider, "provide", _no_region_of_the_machine)
    patches.wrap(botocore.retries.bucket.TokenBucket, "acquire", _at_once)


def is_answered() -> bool:
    """Return whether a tape answers this session: a replay, or a fork."""
    return answering_tape() is not None


def is_replay() -> bool:
    """Return whether a tape answers all of this session."""
    return is_answered() and fork_point() is None


def _credentials(get: Method) -> Method:
    @wraps(get)
    def got(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return get(self, *args, **options)
        # Those that the program gave itself need no search. Nothing else tells them apart.
        if is_replay() and getattr(self, "_credentials", None) is None:
            return botocore.credentials.Credentials("tracefork", "replay", method="tracefork")
        with crossing_seam():
            return get(self, *args, **options)

    return got


def _variable(get: Method) -> Method:
    @wraps(get)
    def got(self: Any, logical_name: str, *args: Any, **options: Any) -> Any:
        value = get(self, logical_name, *args, **options)
        is_given = logical_name != "region" or "region" in self.instance_variables()
        return value if is_given or not is_answered() else _region(value)

    return got


def _region(configured: str | None) -> str:
    """Return the region that the recorded program found, as far as the tape tells."""
    tape = answering_tape()
    hosts = [urlsplit(exchange.url).netloc for exchange in (tape.exchanges if tape else ())]
    recorded = [found[1] for host in hosts if (found := _REGION.search(host))]
    if configured is not None and (configured in recorded or not recorded):
        return configured
    return recorded[0] if recorded else _DEFAULT_REGION


def _profile(get: Method) -> Method:
    @wraps(get)
    def got(self: Any) -> Any:
        try:
            return get(self)
        except ProfileNotFound:
            if is_answered():
                return {}
            raise

    return got


def _aside(get: Method) -> Method:
    @wraps(get)
    def got(self: Any) -> Any:
        with crossing_seam():
            return get(self)

    return got


def _no_region_of_the_machine(provide: Method) -> Method:
    @wraps(provide)
    def provided(self: Any) -> Any:
        return None if is_answered() else provide(self)

    return provided


def _at_once(acquire: Method) -> Method:
    """Let the limiter of the retry mode "adaptive" wait for nothing where the clock is recorded."""

    @wraps(acquire)
    def acquired(self: Any, *args: Any, **options: Any) -> Any:
        return True if is_answered() else acquire(self, *args, **options)

    return acquired
