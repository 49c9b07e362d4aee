"""The seam lies below redirects and cookies: each hop is an exchange, and the cookie jar works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer


def test_each_hop_of_a_redirect_is_an_exchange(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """Two redirects and the answer are three exchanges, and `history` comes back."""
    ask = {"path": "/redirect?to=/redirect%3Fto%3D/bytes/3", "method": "GET"}
    trip = round_trip(provider, lambda url: library.all(url, ask))
    assert [status for _, status, _ in trip.tape] == [307, 307, 200]
    assert trip.replayed[0].history == [307, 307]
    assert trip.replayed[0].url.endswith("/bytes/3")
    assert trip.replayed == trip.recorded


def test_a_redirect_sends_the_body_again(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A 307 sends the method and the body to the new location."""
    ask = {"path": "/redirect?to=/echo", "method": "POST", "content": b"on and on"}
    trip = round_trip(provider, lambda url: library.all(url, ask))
    assert [request.body for request in provider.requests] == [b"on and on"] * 2
    assert trip.replayed == trip.recorded


def test_cookies_are_sent_back(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A cookie that was set is sent with the next request, recorded and replayed."""
    asks = [{"path": "/set-cookie"}, {"path": "/echo"}]
    trip = round_trip(provider, lambda url: library.all(url, *asks))
    assert provider.requests[1].header("cookie") == "session=testkit-cookie-value"
    assert trip.replayed[0].cookies == {"session": "testkit-cookie-value"}
    assert trip.replayed == trip.recorded


def test_a_sent_cookie_is_not_recorded(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """The tape holds no credentials of the client."""
    ask = {"path": "/echo", "headers": {"Cookie": "door=open", "Authorization": "Bearer key"}}
    trip = round_trip(provider, lambda url: library.all(url, ask))
    assert provider.requests[0].header("cookie") == "door=open"
    with Tape.open(trip.path) as tape:
        names = {name.lower() for name, _ in tape.exchanges[0].request_headers}
    assert names.isdisjoint({"cookie", "authorization"})


@pytest.mark.parametrize("path", ["/redirect?to=/echo", "/redirect?to=//elsewhere.test/%3Fa"])
def test_a_redirect_that_is_not_followed_is_one_exchange(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any], path: str
) -> None:
    """The agent gets the redirect with its location."""
    if library.lib.__name__ in ("aiohttp", "requests"):
        ask, client = {"path": path, "allow_redirects": False}, {}
    else:
        ask, client = {"path": path}, {"follow_redirects": False}
    trip = round_trip(provider, lambda url: library.all(url, ask, **client))
    assert len(trip.tape) == 1
    assert trip.recorded[0].status == 307
    assert trip.replayed == trip.recorded
