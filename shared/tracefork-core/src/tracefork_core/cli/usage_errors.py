"""What is wrong with the words of a command, said in our own: a parser's change by its release."""

from __future__ import annotations

import re
from collections.abc import Iterable


def words(error: BaseException, verb: str) -> str:
    """Return what a mistake on a command line is, as a sentence.

    Args:
        error: what the parser raised.
        verb: the command that was typed.
    """
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    match type(error).__name__:
        case "NoSuchOption":
            return f"{verb} has no option {option}.{guess(option, _options(error))}"
        case "BadOptionUsage":
            takes_none = "not take" in str(getattr(error, "message", ""))
            return f"{option} takes {'no value' if takes_none else 'a value, and none is given'}."
        case "MissingParameter" if param is not None:
            return f"{verb} needs {_named(param)}."
        case "BadParameter" if param is not None:
            return f"{_named(param)} takes {_kind(param)}."
    message = str(getattr(error, "message", error))
    if extra := re.search(r"extra arguments?(?:\(s\))? \((.*)\)", message):
        return f"{verb} does not know what {extra[1]!r} is for."
    return message if message.endswith(".") else f"{message}."


def guess(word: str | None, known: Iterable[str]) -> str:
    """Return " Did you mean …?" where a known word is close, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word or "", list(known), n=1, cutoff=0.7)
    return f" Did you mean {close[0]}?" if close else ""


def _options(error: BaseException) -> Iterable[str]:
    command = getattr(getattr(error, "ctx", None), "command", None)
    return [one for param in getattr(command, "params", ()) for one in param.opts]


def _named(param: object) -> str:
    metavar = getattr(param, "metavar", None) or ""
    if getattr(param, "param_type_name", "") == "argument":
        return metavar.strip("[]")
    long = max(getattr(param, "opts", ()), key=len)
    return f"{long} {metavar}".strip()


def _kind(param: object) -> str:
    kind = getattr(param, "type", param)
    declared = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    whole = declared is int or str(getattr(kind, "name", "")).startswith("int")
    said = "a whole number" if whole else "a number"
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    said += f" from {least}" if least is not None else ""
    return said + (f" to {most}" if most is not None else "")
