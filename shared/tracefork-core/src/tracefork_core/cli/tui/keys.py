"""What each key does; the same as on the page of a report, where the page has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """A key, or two that belong together, and what they do.

    Attributes:
        shown: the key as the help shows it.
        names: each key as Textual names it, and the action of the view that it calls.
        words: what it does.
    """

    shown: str
    names: tuple[tuple[str, str], ...]
    words: str


KEYS = (
    Key("j k", (("j,down", "move(1)"), ("k,up", "move(-1)")), "next, previous exchange"),
    Key(
        "J K",
        (("J", "mark(1)"), ("K", "mark(-1)")),
        "next, previous mark: an error, or a step that blame names",
    ),
    Key("[ ]", (("[", "run(-1)"), ("]", "run(1)")), "previous, next run or branch"),
    Key("PgUp PgDn", (("pageup", "page(-1)"), ("pagedown", "page(1)")), "a screen of exchanges"),
    Key("g G", (("g,home", "edge(0)"), ("G,end", "edge(1)")), "first, last exchange"),
    Key("/", (("/", "ask('/')"),), "search all texts; n and N go to the next and previous hit"),
    Key("n N", (("n", "hit(1)"), ("N", "hit(-1)")), "next, previous hit of the search"),
    Key(":", ((":", "ask(':')"),), "go to an exchange by its number"),
    Key("c", (("c", "view('transcript')"),), "conversation: what is new at this exchange"),
    Key("h", (("h", "history"),), "show or fold what was said before"),
    Key(
        "d", (("d", "view('difference')"),), "difference from the exchange before, or the parent's"
    ),
    Key("e", (("e", "view('exchange')"),), "exchange in full, as `tracefork show` prints it"),
    Key("w", (("w", "view('blame')"),), "why: what blame found"),
    Key("b", (("b", "view('tree')"),), "branches of this run, or the tapes of the folder"),
    Key("space -", (("space", "scroll(1)"), ("-", "scroll(-1)")), "scroll the lower part"),
    Key("z", (("z,enter", "zoom"),), "lower part on the whole screen, and back"),
    Key("f", (("f", "copy('fork')"),), "show and copy the command that forks here"),
    Key("y", (("y", "copy('show')"),), "show and copy the command that shows this exchange"),
    Key("r", (("r", "reload"),), "read the tape again, if it is still being recorded"),
    Key("?", (("?", "view('help')"),), "this help"),
    Key("q", (("q", "quit"),), "quit"),
)
FOOTER = "j/k move · / search · d diff · w why · b branches · ? all keys · q quit"


def lines() -> list[str]:
    """Return the help, a line for each key."""
    return [f"  {key.shown:<10} {key.words}" for key in KEYS]
