"""What a model was told by two questions, side by side: one line of words for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.changed_words import changed_lines
from tracefork_core.cli.display.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from tracefork_core.comparing.context import Contexts, Told

_STYLES = {"injected": screen.GOOD, "dropped": screen.BAD}


def print_contexts(console: Console, found: Contexts, names: tuple[str, str]) -> None:
    """Print what differs between the contexts of two questions."""
    from rich.text import Text

    count = figures.several(len(found.told), "difference") if found.told else "no difference"
    head = Text(printable(" ↔ ".join(names)), screen.STRONG).append(f" · {count}", "default")
    console.print(head, soft_wrap=True)
    console.print(f"  {figures.several(found.shared, 'message')} in both", soft_wrap=True)
    for one in found.told:
        console.print()
        line = Text(one.how, _STYLES.get(one.how, screen.WARN)).append(
            f" · {_what(one)}", "default"
        )
        console.print(line, soft_wrap=True)
        for changed in changed_lines(one.before, one.after, console, None):
            console.print(changed, soft_wrap=True)


def _what(one: Told) -> str:
    numbers = [number for number in (one.first, one.second) if number is not None]
    if not numbers:
        return printable(one.what)
    places = " → ".join(str(number) for number in dict.fromkeys(numbers))
    return printable(f"{one.what} · message {places}")
