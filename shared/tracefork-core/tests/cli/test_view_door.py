"""`tracefork view`: who may come in."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx2
import pytest

from .conftest import Shell
from .viewer import Viewer


@pytest.fixture(scope="module")
def viewer(recorded: Shell) -> Iterator[Viewer]:
    """Return a server for three recorded agents."""
    found = Viewer(recorded)
    yield found
    found.stop()


def ask(viewer: Viewer, path: str = "/", **headers: str) -> httpx2.Response:
    """Send a request with no cookie but the ones that are given."""
    with httpx2.Client(verify=False) as client:
        return client.get(viewer.url + path, headers=headers)


def cookie(viewer: Viewer) -> str:
    """Return the cookie of a browser that has opened the address."""
    return "; ".join(f"{name}={value}" for name, value in viewer.enter().cookies.items())


PATHS = ("/", "/run?tape=plain.tape", "/api/folder", "/api/run?tape=plain.tape", "/nothing")


@pytest.mark.parametrize("path", PATHS)
def test_nobody_comes_in_without_the_token(viewer: Viewer, path: str) -> None:
    """Nor with another one."""
    for answer in (ask(viewer, path), ask(viewer, path, cookie=f"{_name(viewer)}=wrong")):
        assert answer.status_code == 401
        assert "open the address that `tracefork view` printed" in answer.text


def _name(viewer: Viewer) -> str:
    return f"tracefork-{viewer.document['port']}"


def test_the_address_sets_a_cookie_once(viewer: Viewer) -> None:
    """No script can read it, and the token is in no address and no page after that."""
    token = viewer.address.partition("token=")[2]
    with httpx2.Client(verify=False) as client:
        first = client.get(viewer.address)
        assert (first.status_code, first.headers["location"]) == (303, "/")
        assert "HttpOnly" in first.headers["set-cookie"]
        page = client.get(viewer.url + "/")
    assert page.status_code == 200
    assert token not in page.text
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"


def test_the_address_leads_nowhere_else(viewer: Viewer) -> None:
    """A path that is a foreign address is not redirected to."""
    token = viewer.address.partition("token=")[2]
    answer = ask(viewer, f"//example.org/?token={token}")
    assert answer.status_code == 401
    assert "location" not in answer.headers


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "[::1]:80", ""])
def test_a_foreign_host_is_refused(viewer: Viewer, host: str) -> None:
    """A name of a stranger's that resolves to 127.0.0.1 is no way in, even with the cookie."""
    answer = ask(viewer, cookie=cookie(viewer), host=host)
    assert answer.status_code == 421
    port = viewer.document["port"]
    assert ask(viewer, cookie=cookie(viewer), host=f"localhost:{port}").status_code == 200


def test_two_hosts_are_refused(viewer: Viewer) -> None:
    """Which of them counts is not for a stranger to choose."""
    port = viewer.document["port"]
    with socket.create_connection(("127.0.0.1", port)) as wire:
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: example.org\r\n"
        wire.sendall(f"{head}Cookie: {cookie(viewer)}\r\n\r\n".encode())
        status = wire.recv(64).split()[1]
    assert status in (b"400", b"421")


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1", "file://"])
def test_a_foreign_origin_is_refused(viewer: Viewer, origin: str) -> None:
    """The page of another site may not read what is here, even if it sends the cookie."""
    answer = ask(viewer, "/api/part?tape=plain.tape&id=p0", cookie=cookie(viewer), origin=origin)
    assert answer.status_code == 403


def test_what_changes_something_needs_our_origin(viewer: Viewer) -> None:
    """A form of another site may be sent without one."""
    given = {"cookie": cookie(viewer)}
    with httpx2.Client(verify=False) as client:
        assert client.post(viewer.url + "/", headers=given).status_code == 403
        ours = client.post(viewer.url + "/", headers=given | {"origin": viewer.url})
    assert ours.status_code == 405  # It came in; there is nothing to change.


def test_no_other_address_of_this_machine_answers(viewer: Viewer) -> None:
    """127.0.0.2 is this machine too, and a server on all addresses would answer there."""
    port = viewer.document["port"]
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=5)


@pytest.mark.parametrize(
    "name", ["../home/runs", "/etc/passwd", "%2e%2e/plain.tape", "./plain.tape", "plain", "", "x\0"]
)
def test_a_name_that_is_not_in_the_list_is_nothing(viewer: Viewer, name: str) -> None:
    """A name is looked up, and never joined to a path."""
    client = viewer.enter()
    assert client.get("/api/run", params={"tape": name}).status_code == 404
    assert client.get("/api/part", params={"tape": name, "id": "p0"}).status_code == 410
