"""A proxy without a command: it prints its addresses, and serves until it is told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import curl, exchanges, standalone

CLIENTS = 64
TRACEFORK = (sys.executable, "-m", "tracefork_core")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_records_until_a_signal_and_replays(
    shell: Shell, provider: ProviderServer, http: httpx2.Client, number: int
) -> None:
    """The printed variables point at it, the tape is whole, and its replay asks no provider."""
    with standalone(shell, "record", "run.tape") as proxy:
        assert proxy.variables["OPENAI_BASE_URL"].endswith("/openai/v1")
        recorded = http.get(f"{proxy.address}/bytes/70000")
        assert proxy.ended(number)[0] == 0
    with standalone(shell, "replay", "run.tape") as proxy:
        replayed = http.get(f"{proxy.address}/bytes/70000")
        code, printed = proxy.ended(number)
    assert (code, recorded.status_code, len(provider.requests)) == (0, 200, 1), printed
    assert replayed.content == recorded.content


def test_other_origins_hosts_and_paths_are_refused(
    shell: Shell, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A page in a browser gets 403 or 421; a path without a server 404; none reaches the tape."""
    with standalone(shell, "record", "run.tape") as proxy:
        url = f"{proxy.address}/bytes/2"
        page = http.get(url, headers={"origin": "https://evil.example"})
        rebound = http.get(url, headers={"host": "evil.example"})
        unknown = http.get(url.replace("/anthropic/", "/nobody/"))
        own = http.get(url, headers={"origin": proxy.address.rpartition("/")[0]})
        proxy.ended()
    assert (page.status_code, rebound.status_code, unknown.status_code) == (403, 421, 404)
    assert "/anthropic" in unknown.json()["message"]
    assert own.status_code == 200
    assert [one.url for one in exchanges(shell.folder / "run.tape")] == [f"{provider.url}/bytes/2"]


def test_another_address_needs_a_second_option(shell: Shell) -> None:
    """Without --expose, an address that other machines reach is refused, and no tape is made."""
    done = shell.tracefork("proxy", "record", "run.tape", "--host", "0.0.0.0", "--", "true")
    assert done.exit == 2
    assert "--expose" in done.err
    assert not (shell.folder / "run.tape").exists()
    told_twice = ("--host", "0.0.0.0", "--expose", "--", "true")
    assert shell.tracefork("proxy", "record", "run.tape", *told_twice).exit == 0


def test_many_clients_stream_at_once(shell: Shell, http: httpx2.Client) -> None:
    """Each client gets its own answer, in the recording and in the replay."""

    def ask(address: str) -> list[str]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            urls = [f"{address}/chunked?n={2 + n}&delay=0.002" for n in range(CLIENTS)]
            return [answer.text for answer in pool.map(http.get, urls)]

    with standalone(shell, "record", "run.tape") as proxy:
        recorded = ask(proxy.address)
        assert proxy.ended()[0] == 0
    with standalone(shell, "replay", "run.tape") as proxy:
        replayed = ask(proxy.address)
        code, printed = proxy.ended()
    assert code == 0, printed
    assert recorded == replayed
    assert [len(text.splitlines()) for text in recorded] == [2 + n for n in range(CLIENTS)]


def test_a_named_upstream_is_a_path_of_its_own(
    shell: Shell, provider: ProviderServer, http: httpx2.Client
) -> None:
    """`--upstream NAME=URL` adds a path, and a URL alone takes all other paths."""
    named = (f"--upstream=mine={provider.url}/bytes", f"--upstream={provider.url}")
    with standalone(shell, "record", "run.tape", *named) as proxy:
        root = proxy.address.rpartition("/")[0]
        sizes = [len(http.get(f"{root}{path}").content) for path in ("/mine/3", "/bytes/4")]
        proxy.ended()
    assert sizes == [3, 4]
    paths = [one.url.removeprefix(provider.url) for one in exchanges(shell.folder / "run.tape")]
    assert paths == ["/bytes/3", "/bytes/4"]


def test_a_taken_port_leaves_the_earlier_tape(shell: Shell, provider: ProviderServer) -> None:
    """The error names the remedy; no tape is made, and one that was to be replaced is kept."""
    port = provider.url.rpartition(":")[2]
    words = ("proxy", "record", "run.tape", "--port", port, "--overwrite", "--", "true")
    done = shell.tracefork(*words)
    assert done.exit == 2
    assert "leave it out to get a free one" in done.err
    assert not (shell.folder / "run.tape").exists()
    assert shell.tracefork("proxy", "record", "run.tape", *curl()).exit == 0
    assert shell.tracefork(*words).exit == 2
    assert len(exchanges(shell.folder / "run.tape")) == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_keeps_the_tape(
    shell: Shell, number: int, status: int
) -> None:
    """The command gets the signal, too, and what it asked for is on a tape that is complete."""
    code = "import os, time, urllib.request as r; r.urlopen(os.environ['ANTHROPIC_BASE_URL'] + "
    code += "'/bytes/2').read(); print('asked', flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [*TRACEFORK, "proxy", "record", "run.tape", "--", sys.executable, "-c", code],
        cwd=shell.folder,
        env=shell.full_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == status
    with Tape.open(shell.folder / "run.tape") as tape:
        assert (len(tape.exchanges), tape.complete) == (1, True)
