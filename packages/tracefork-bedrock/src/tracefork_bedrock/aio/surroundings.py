"""What a replay with aiobotocore does not look for: see `tracefork_bedrock.surroundings`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import aiobotocore.credentials
import aiobotocore.retries.bucket
import aiobotocore.utils
from aiobotocore.session import AioSession

from tracefork_bedrock.surroundings import is_answered, is_replay
from tracefork_core.adapters import Patches, crossing_seam, in_session

Method = Callable[..., Awaitable[Any]]


def put_in(patches: Patches) -> None:
    """Replace what looks for it. What both share is replaced for boto3."""
    refreshable = aiobotocore.credentials.AioRefreshableCredentials
    patches.wrap(AioSession, "get_credentials", _credentials)
    patches.wrap(refreshable, "get_frozen_credentials", _aside)
    patches.wrap(aiobotocore.utils.AioIMDSRegionProvider, "provide", _no_region_of_the_machine)
    patches.wrap(aiobotocore.retries.bucket.AsyncTokenBucket, "acquire", _at_once)


def _credentials(get: Method) -> Method:
    @wraps(get)
    async def got(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return await get(self, *args, **options)
        if is_replay() and getattr(self, "_credentials", None) is None:
            return aiobotocore.credentials.AioCredentials("tracefork", "replay", method="tracefork")
        with crossing_seam():
            return await get(self, *args, **options)

    return got


def _aside(get: Method) -> Method:
    @wraps(get)
    async def got(self: Any) -> Any:
        with crossing_seam():
            return await get(self)

    return got


def _no_region_of_the_machine(provide: Method) -> Method:
    @wraps(provide)
    async def provided(self: Any) -> Any:
        return None if is_answered() else await provide(self)

    return provided


def _at_once(acquire: Method) -> Method:
    @wraps(acquire)
    async def acquired(self: Any, *args: Any, **options: Any) -> Any:
        return True if is_answered() else await acquire(self, *args, **options)

    return acquired
