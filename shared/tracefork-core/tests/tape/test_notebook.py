"""A tape, an exchange and a blame in a notebook: static HTML in which no text is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import httpx2

from tracefork_core import Tape, record
from tracefork_testkit import ProviderServer

EVIL = "</td></pre><script>owned()</script><img src=x onerror=owned()> \x1b[2J\u202e"
ALLOWED = {"b", "code", "details", "p", "pre", "summary", "table", "tbody", "td", "th", "thead"}


class Read(HTMLParser):
    """What a browser makes of HTML: its elements, and the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.rows = 0
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(attrs)
        self.rows += tag == "tr"

    def handle_data(self, data: str) -> None:
        self.text += data


def is_static(read: Read) -> bool:
    """Return whether HTML has only elements and attributes that do nothing."""
    attributes = {("style", "text-align:left"), ("open", None)}
    return read.names <= ALLOWED | {"tr"} and read.attributes <= attributes


def hostile(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """Record an exchange that has markup in its URL, its headers and both of its bodies."""
    headers = {"x-note": "<script>owned()</script>"}
    with record(tape):
        http.post(f"{provider.url}/echo?<script>=1", content=EVIL.encode(), headers=headers)


def test_no_text_of_a_tape_becomes_markup(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """It is shown as what it is, with control characters spelled out."""
    hostile(tape, provider, http)
    with Tape.open(tape) as opened:
        whole, one = Read(opened._repr_html_()), Read(opened.exchanges[0]._repr_html_())
    assert is_static(whole)
    assert "1 exchange · ended with ok" in whole.text
    assert is_static(one)
    assert one.text.count("</td></pre><script>owned()</script><img src=x onerror=owned()>") == 2
    assert r"\x1b[2J\u202e" in one.text
    assert "x-note" in one.text
    assert not is_static(Read(f"<p>{EVIL}</p>")), "the control: unescaped, it is markup"


def test_what_is_left_out_is_counted(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A long tape has 30 rows, a long body 4,000 characters."""
    with record(tape):
        http.post(f"{provider.url}/echo", content=b"x" * 5000)
        for _ in range(31):
            http.post(f"{provider.url}/echo", content=b'{"a":[1,\xff]}')
    with Tape.open(tape) as opened:
        whole = Read(opened._repr_html_())
        long, binary = (Read(opened.exchanges[n]._repr_html_()).text for n in (0, 1))
    assert (whole.rows, "first 30 of 32 exchanges" in whole.text) == (31, True)
    assert "next: tracefork report run.tape" in whole.text
    assert "request · first 4,000 of 5,000 characters" in long
    assert long.count("x" * 4000) == 2
    assert "x" * 4001 not in long
    assert "request · 11 bytes that are no text" in binary


def test_a_closed_tape_says_so(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """A notebook shows the value of a cell after its `with` block has ended."""
    hostile(tape, provider, http)
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
    assert "closed" in Read(exchange._repr_html_()).text


def test_a_tape_without_bodies_says_so(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Mode metadata keeps hashes of them."""
    with record(tape, mode="metadata"):
        http.post(f"{provider.url}/echo", content=b"secret")
    with Tape.open(tape) as opened:
        text = Read(opened.exchanges[0]._repr_html_()).text
    assert "The tape holds no bodies." in text
