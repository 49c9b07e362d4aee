"""JSON pointers (RFC 6901) into the bodies on a tape."""

from __future__ import annotations


def parts(pointer: str) -> list[str]:
    """Return the names and numbers that a pointer is made of."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def escaped(part: str) -> str:
    """Return a name as a part of a pointer."""
    return part.replace("~", "~0").replace("/", "~1")


def child(place: object, part: str) -> object:
    """Return what one part of a pointer leads to, None where there is none."""
    if isinstance(place, dict):
        return place.get(part)
    if isinstance(place, list) and part.isdecimal() and int(part) < len(place):
        return place[int(part)]
    return None
