"""`scan` finds secrets on existing tapes, and shows only their names."""

from __future__ import annotations

import gzip
import os
import pty
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from backports import zstd

from tracefork_core import Tape
from tracefork_core.tape.sealing import new_key

from ..conftest import Alter
from . import leaky
from .conftest import Shell
from .leaky import KEY, TOKEN, write


def found(document: dict[str, Any], tape: int = 0) -> set[tuple[int | None, str, str, int]]:
    """Return what was found on a tape: exchange, place, name and number."""
    entries = document["tapes"][tape]["found"]
    return {(one["exchange"], one["where"], one["secret"], one["count"]) for one in entries}


def test_each_place_of_a_secret_is_named_without_its_value(shell: Shell) -> None:
    """These are bodies, packed ones too, URLs, headers and steps."""
    leaky.tape(shell)
    shown = shell.tracefork("scan", "raw.tape", SERVICE_API_KEY=KEY)
    document = shell.tracefork("scan", "--json", "raw.tape", SERVICE_API_KEY=KEY)
    assert (shown.exit, document.exit, document.document["exit"]) == (1, 1, 1)
    name = "SERVICE_API_KEY"
    assert found(document.document) == {
        (0, "url", name, 1),
        (0, "request body", name, 1),
        (0, "response body", name, 1),
        (1, "request header x-note", name, 1),
        (1, "request body", name, 1),
        (1, "response body", name, 1),
        (2, "request body", name, 1),
        (4, "request body", name, 1),
        (None, "detail/input/question", name, 1),
        (None, "error", name, 1),
    }
    lines = shown.out.splitlines()
    assert "raw.tape · exchange 1 · request header x-note · SERVICE_API_KEY \u00d71" in lines
    assert "raw.tape · step · detail/input/question · SERVICE_API_KEY \u00d71" in lines
    assert lines[-2:] == ["secrets on 1 of 1 tape", "  next: tracefork redact raw.tape"]
    for part in (KEY, KEY[:8], KEY[-8:]):
        assert part not in shown.out + shown.err + document.out + document.err


def test_a_masked_tape_has_no_secrets(shell: Shell) -> None:
    """Negative control. Without the key in the environment, a raw tape has none either."""
    leaky.tape(shell, "safe.tape", mode="safe")
    done = shell.tracefork("scan", "safe.tape", SERVICE_API_KEY=KEY)
    assert (done.exit, done.out) == (0, "no secrets on 1 tape\n")
    leaky.tape(shell)
    assert shell.tracefork("scan", "raw.tape").exit == 0


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstd.compress),
        ("br", brotli.compress),
    ],
)
def test_content_codings_are_undone(
    shell: Shell, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    """This holds for requests and answers."""
    write(shell.folder / "packed.tape", pack(b'{"token": "%b"}' % TOKEN.encode()), coding)
    done = shell.tracefork("scan", "--json", "packed.tape")
    assert found(done.document) == {
        (0, "request body", "github_token", 1),
        (0, "response body", "github_token", 1),
    }


def test_a_body_that_cannot_be_decoded_is_reported(shell: Shell) -> None:
    """It may hold secrets that scan cannot see."""
    write(shell.folder / "odd.tape", b"\x00\x01" + TOKEN.encode(), "lzma, odd")
    done = shell.tracefork("scan", "odd.tape")
    assert "lzma, odd" in done.err
    assert "request body · github_token" in done.out
    assert shell.tracefork("scan", "--json", "odd.tape").document["tapes"][0]["not_unpacked"]


def test_unknown_events_and_fields_are_searched(shell: Shell, alter: Alter) -> None:
    """A later version may have written them."""
    write(shell.folder / "later.tape", b"nothing")
    later = b'{"kind":"later","payload":{"deep":[{"text":"a \\n%b"}]},"aside":{"%b":1}}\n'

    def add(line: bytes) -> bytes:
        if b'"kind":"exchange"' in line:
            line = line.replace(b'"aside":{', b'"aside":{"zeta":"%b",' % TOKEN.encode())
            return line + later % (TOKEN.encode(), TOKEN.encode())
        return line

    alter(shell.folder / "later.tape", events=add)
    done = shell.tracefork("scan", "--json", "later.tape")
    assert found(done.document) == {
        (0, "zeta", "github_token", 1),
        (None, "deep/text", "github_token", 1),
        (None, "", "github_token", 1),
    }


def test_the_exchange_in_flight_is_searched(shell: Shell) -> None:
    """The agent was killed, so it is in the journal."""
    shell.write(
        "cut.py",
        "import os, httpx\n"
        "url, key = os.environ['PROVIDER'], os.environ['SERVICE_API_KEY']\n"
        "with httpx.stream('POST', url + '/chunked?n=4', content=key) as answer:\n"
        "    next(answer.iter_raw())\n"
        "    os.kill(os.getpid(), 9)\n",
    )
    shell.tracefork("record", "--mode", "raw", "cut.py", SERVICE_API_KEY=KEY)
    done = shell.tracefork("scan", "--json", "cut.tape", SERVICE_API_KEY=KEY)
    assert found(done.document) == {(0, "request body", "SERVICE_API_KEY", 1)}
    # The journal outlives the tape it belonged to.
    write(shell.folder / "other.tape", b"nothing")
    (shell.folder / "cut.tape-wal").unlink()
    (shell.folder / "other.tape").replace(shell.folder / "cut.tape")
    left = shell.tracefork("scan", "cut.tape", SERVICE_API_KEY=KEY)
    assert "exchange 0 (journal) · request body · SERVICE_API_KEY \u00d71" in left.out


def test_a_folder_is_scanned_with_its_subfolders(shell: Shell) -> None:
    """An unreadable tape is reported, and the others are scanned."""
    leaky.tape(shell)
    (shell.folder / "deep" / "er").mkdir(parents=True)
    (shell.folder / "raw.tape").replace(shell.folder / "deep" / "er" / "raw.tape")
    leaky.tape(shell, "safe.tape", mode="safe")
    assert shell.tracefork("scan", ".", SERVICE_API_KEY=KEY).exit == 1
    shell.write("broken.tape", "no tape at all")
    done = shell.tracefork("scan", ".", SERVICE_API_KEY=KEY)
    assert done.exit == 5
    assert "✗ broken.tape: " in done.err
    assert "deep/er/raw.tape · exchange 0 · url · SERVICE_API_KEY" in done.out
    assert "secrets on 1 of 3 tapes" in done.out


def test_a_hostile_tape_is_reported(shell: Shell, alter: Alter) -> None:
    """It has deep nesting, or an invalid URL."""
    nested = b'{"kind":"later","payload":{"a":' + b"[" * 990 + b"]" * 990 + b'},"aside":{}}\n'
    write(shell.folder / "deep.tape", TOKEN.encode())
    alter(shell.folder / "deep.tape", events=lambda line: line + nested)
    write(shell.folder / "url.tape", TOKEN.encode())
    alter(shell.folder / "url.tape", events=lambda line: line.replace(b"//model", b"//["))
    done = shell.tracefork("scan", ".")
    assert (done.exit, "✗ deep.tape: " in done.err) == (5, True), done.err
    assert "exchange 0" in done.err
    # Python 3.11 cannot read the event; later versions read it, and name its kind.
    deep = ("(later)", "deep.tape is corrupt")
    for name, facts in (("deep.tape", deep), ("url.tape", ("exchange 0",))):
        redacted = shell.tracefork("redact", name)
        assert (redacted.exit, any(fact in redacted.err for fact in facts)) == (5, True)


def test_a_sealed_tape_without_its_key_is_reported(
    shell: Shell, own_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 5, not 0, because its content is unknown."""
    write(shell.folder / "sealed.tape", TOKEN.encode(), mode="sealed", key=new_key([own_key]))
    assert shell.tracefork("scan", "sealed.tape").exit == 1
    monkeypatch.delenv("TRACEFORK_IDENTITY")
    done = shell.tracefork("scan", "sealed.tape")
    assert (done.exit, "is sealed" in done.err) == (5, True)


def test_mask_names_more_secrets(shell: Shell) -> None:
    """It takes a variable of any name, or a pattern; values that the format needs do not match."""
    write(shell.folder / "named.tape", b"of Globex, ID-12 and ID-13")
    mask = ("--mask", "CUSTOMER", "--mask", r"re:ID-\d+", "--mask", "re:[0-9a-f]{64}|eof|main")
    done = shell.tracefork("scan", "--json", *mask, "named.tape", CUSTOMER="Globex")
    assert found(done.document) == {
        (0, f"{side} body", name, count)
        for side in ("request", "response")
        for name, count in (("CUSTOMER", 1), ("PATTERN_1", 2))
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gone.tape",), "no tape at gone.tape"),
        ((".",), "no tapes in ."),
        (("--mask", "a value", "."), "Do not pass the secret itself"),
        ((), "PATH"),
    ],
)
def test_a_wrong_argument_does_not_pass_for_a_clean_tape(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    """A misspelled name must not end with 0."""
    done = shell.tracefork("scan", *words)
    assert (done.exit, message in done.err) == (2, True), done.err


def test_a_branch_is_scanned_with_its_parent(shell: Shell) -> None:
    """Shared exchanges are reported only for the parent."""
    write(shell.folder / "run.tape", TOKEN.encode())
    with Tape.open(shell.folder / "run.tape") as parent:
        write(shell.folder / "branch.tape", b"own", parent=parent, at=1)
    done = shell.tracefork("scan", "--json", "branch.tape")
    assert [tape["tape"] for tape in done.document["tapes"]] == ["branch.tape", "run.tape"]
    assert (found(done.document, 0), len(found(done.document, 1))) == (set(), 2)


def test_progress_is_for_terminals(shell: Shell) -> None:
    """It is on stderr there, and nowhere if stderr is a pipe."""
    write(shell.folder / "one.tape", b"one")
    assert shell.tracefork("scan", ".").err == ""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tracefork_core.cli.main", "scan", "."]
    environment = {**os.environ, **shell.environment, "TERM": "xterm"}
    done = subprocess.run(
        command,
        cwd=shell.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    assert b"scanning" in os.read(ours, 65536)
    os.close(ours)
    assert done.stdout == b"no secrets on 1 tape\n"
