"""Word the mistakes on a command line.

The parser words them too, but differently in each of its releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def words(error: BaseException, verb: str) -> str:
    """Return a mistake on a command line as a sentence.

    Args:
        error: the exception that the parser raised.
        verb: the command that was typed.
    """
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    match type(error).__name__:
        case "NoSuchOption":
            return f"{verb} has no option {option}.{guess(option, _options(error))}"
        case "BadOptionUsage":
            takes_none = "not take" in str(getattr(error, "message", ""))
            return f"{option} takes no value." if takes_none else f"{option} needs a value."
        case "MissingParameter" if param is not None:
            return f"{verb} needs {_named(param)}."
        case "BadParameter" if param is not None:
            return f"{_named(param)} must be {_kind(param)}."
    message = str(getattr(error, "message", error))
    if extra := re.search(r"extra arguments?(?:\(s\))? \((.*)\)", message):
        return f"{verb} got an unexpected argument: {extra[1]}."
    return message if message.endswith(".") else f"{message}."


def guess(word: str | None, known: Iterable[str]) -> str:
    """Return " Did you mean …?" if a known word is close, else an empty string."""
    from difflib import get_close_matches

    close = get_close_matches(word or "", list(known), n=1, cutoff=0.7)
    return f" Did you mean {close[0]}?" if close else ""


def _options(error: BaseException) -> Iterable[str]:
    command = getattr(getattr(error, "ctx", None), "command", None)
    return [name for param in getattr(command, "params", ()) for name in param.opts]


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
    words = "a whole number" if whole else "a number"
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if least is not None and most is not None:
        return f"{words} from {least} to {most}"
    words += f", at least {least}" if least is not None else ""
    return words + (f", at most {most}" if most is not None else "")
