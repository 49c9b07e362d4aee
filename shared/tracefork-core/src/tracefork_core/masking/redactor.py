"""Find secrets in bytes and replace each by a placeholder.

A placeholder contains the name of the secret and nothing of its value. So a replay with another
value of the same variable makes, once masked, the same request.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from tracefork_core.masking import runs
from tracefork_core.masking.escapes import DEEPEST, peel
from tracefork_core.masking.names import secret_values
from tracefork_core.masking.patterns import (
    LONGEST,
    PRIVATE_KEY_MARK,
    private_keys,
    tokens,
    unfinished,
    url_passwords,
)
from tracefork_core.masking.spellings import Match, Spellings

PLACEHOLDER = "tracefork-secret-"
_PLACEHOLDERS = re.compile(rb"tracefork-secret-\w+")
_ODD = re.compile(r"[^A-Za-z0-9_]")
_TELLING = 4
"""Fewer bytes at the end of a piece do not suggest that a secret begins there."""
_FAR = 64
_AROUND = 64
"""Bytes around escapes that are decoded with them: a token is known by what precedes it, too."""
_KEY = re.compile(r"(?<![A-Za-z0-9])keys?(?![A-Za-z0-9])", re.IGNORECASE)
_SECRET_KEY = re.compile(
    r"(access|account|api|auth|encryption|license|master|private|secret|service|signing)"
    r"[-_. ]?keys?"
)
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")


def placeholder(name: str) -> str:
    """Return the text that replaces a secret on a tape."""
    return PLACEHOLDER + _ODD.sub("_", name)


class Redactor:
    """Find given secrets; the result for the same bytes is always the same.

    Args:
        secrets: values by name. If names share a value, the first name in order counts.
        patterns: regular expressions whose matches are secrets too, named PATTERN_1, PATTERN_2 …
        tokens: whether tokens that are known by their look are secrets.
    """

    def __init__(
        self,
        secrets: Mapping[str, Collection[str]],
        patterns: Sequence[re.Pattern[bytes]] = (),
        *,
        tokens: bool = True,
    ) -> None:
        self.patterns = tuple(patterns)
        self._tokens = tokens
        names: dict[str, str] = {}
        for name in sorted(secrets):
            for value in secrets[name]:
                names.setdefault(value, name)
        known = [placeholder(name) for name in secrets]
        # Longest first: one value can be part of another.
        self._spellings = [
            Spellings(name, value, placeholder(name).encode())
            for value, name in sorted(names.items(), key=lambda item: (-len(item[0]), item))
            if not any(value in text for text in known)
        ]
        self._literal = [forms for forms in self._spellings if forms.is_literal]
        self._short = [forms for forms in self._spellings if forms.is_short]
        self._odd = [forms for forms in self._spellings if forms.is_odd]
        self.longest = max([LONGEST, *(8 * len(value) for value in names)])
        """The most bytes that a secret has in any spelling; the user's patterns may find more."""
        self._begun: dict[bytes, str] = {}
        self._ends: set[bytes] = set()
        self._long: list[bytes] = []
        for forms in self._spellings:
            for text in forms.beginnings():
                for size in range(_TELLING, min(len(text), _FAR + 1)):
                    self._begun.setdefault(text[:size], forms.name)
                    self._ends.add(text[size - _TELLING : size])
                if len(text) > _FAR:
                    self._long.append(text)

    def find(self, data: bytes, start: int = 0, stop: int | None = None) -> list[Match]:
        """Return the secrets in `data[start:stop]`, in order and without overlaps."""
        matches = self._search(data, start, len(data) if stop is None else stop, 0)
        return _apart(matches) if len(matches) > 1 else matches

    def _search(self, data: bytes, start: int, stop: int, depth: int) -> list[Match]:
        """Return the secrets in a text and in what is encoded in it; the more important first."""
        text = runs.find(data, start, stop)
        values: list[Match] = []
        for forms in self._literal if text is None else self._spellings:
            values += forms.find(data, start, stop)
            if text is not None:
                for match in forms.find_long(text.joined):
                    at = text.place(match.start)
                    values.append(match._replace(start=at, end=at + match.end - match.start))
        others: list[Match] = []
        for forms in self._short:
            others += forms.find_encoded(data, start, stop, self._redact_decoded)
        if depth < DEEPEST:
            if text is not None or self._odd:
                others += self._behind_escapes(data, text, start, stop, depth)
            if text is not None:
                for forms in self._spellings:
                    others += forms.find_long_encoded(text, self._redact_decoded)
                others += self._in_base64(text, depth)
        if self.patterns and not depth:
            others += self._patterns(data, start, stop)
        if self._tokens:
            others += _tokens(data, text, start, stop)
        if len(others) > 1:
            # The longest first. A base64 text is one match from its first secret on and masks all
            # later ones too; an escape inside a token ends what is found without decoding it.
            others.sort(key=lambda match: match.start - match.end)
        return [*values, *others]

    def _behind_escapes(
        self, data: bytes, text: runs.Runs | None, start: int, stop: int, depth: int
    ) -> list[Match]:
        """Return the secrets that show where a layer of escapes is removed."""
        suspects = text.with_escapes() if text is not None else []
        for forms in self._odd:
            suspects += forms.pieces(data, start, stop)
        if not suspects:
            return []
        found: list[Match] = []
        for begin, end in _joined(suspects, start, stop):
            view = peel(data[begin:end])
            if view is None:
                continue
            for match in self._search(view.data, 0, len(view.data), depth + 1):
                spelled = view.spelled(match.text, match.start, match.end)
                at, upto = view.encoded(match.start, match.end)
                found.append(match._replace(start=begin + at, end=begin + upto, text=spelled))
        return found

    def _in_base64(self, text: runs.Runs, depth: int) -> list[Match]:
        """Return the base64 texts that have secrets in them."""
        pieces = list(text.decoded())
        if not pieces:
            return []
        plain = b"\0".join([piece for piece, _ in pieces])
        begins = [0, *accumulate(len(piece) + 1 for piece, _ in pieces)]
        found: list[Match] = []
        done: set[int] = set()
        # One search for all of them, because almost none has a secret.
        for match in sorted(self._search(plain, 0, len(plain), depth + 1)):
            number = bisect_right(begins, match.start) - 1
            if number in done:
                continue
            done.add(number)
            start = pieces[number][1]
            masked = runs.masked(text.data, start, text.end(start), self._redact_decoded)
            if masked is not None:
                begin, end, replacement = masked
                found.append(Match(begin, end, match.name, replacement, may_grow=True))
        return found

    def undecided(self, data: bytes, start: int) -> int:
        """Return where in `data` a secret may begin that continues after it, or `len(data)`.

        Bytes before `start` were decided earlier: a secret can reach only a few bytes into them.
        """
        end = at = len(data)
        start = max(0, start - _TELLING + 1)
        if data[-_TELLING:] in self._ends:
            for size in range(min(_FAR, end - start), _TELLING - 1, -1):
                if data[end - size :] in self._begun:
                    at = end - size
                    break
        for text in self._long:
            begun = data.find(text[:_FAR], start)
            if 0 <= begun < at and text.startswith(data[begun:]):
                at = begun
        if self._tokens:
            at = min(at, unfinished(data, start))
        return at

    def held(self, data: bytes, start: int) -> int:
        """Return where the last bytes begin that the next piece of a body may continue.

        That is the beginning of a secret, or of a run in which one may be encoded.
        """
        at = self.undecided(data, start)
        return min(at, runs.last(data, start)) if self._tokens or self._spellings else at

    def cut_off(self, data: bytes) -> Match | None:
        """Return the secret that the end of `data` cuts off, if any."""
        at = self.undecided(data, 0)
        name = self._begun.get(data[at : at + _FAR])
        if name is None:
            return None
        return Match(at, len(data), name, placeholder(name).encode())

    def _patterns(self, data: bytes, start: int, stop: int) -> list[Match]:
        """Return what the user's patterns match: they are meant for the bytes as they are."""
        matches: list[Match] = []
        masked = list(_PLACEHOLDERS.finditer(data, start, stop))
        for number, pattern in enumerate(self.patterns, 1):
            name = f"PATTERN_{number}"
            text = placeholder(name).encode()
            matches += [
                Match(*match.span(), name, text)
                for match in pattern.finditer(data, start, stop)
                # Placeholders stay: one from a response comes back in later requests.
                if match[0] and not any(_overlap(match, other) for other in masked)
            ]
        return matches

    def _redact_decoded(self, data: bytes) -> bytes:
        return replace(data, self.find(data))


def replace(data: bytes, matches: Sequence[Match]) -> bytes:
    """Return `data` with each match replaced by its placeholder."""
    if not matches:
        return data
    pieces, at = [], 0
    for match in matches:
        pieces += [data[at : match.start], match.text]
        at = match.end
    pieces.append(data[at:])
    return b"".join(pieces)


def _tokens(data: bytes, text: runs.Runs | None, start: int, stop: int) -> list[Match]:
    spans: list[tuple[int, int, str]] = []
    if text is not None:
        for begin, end, name in tokens(text.joined):
            at = text.place(begin)
            spans.append((at, at + end - begin, name))
        if PRIVATE_KEY_MARK in text.joined:
            spans += private_keys(data, start, stop)
    if data.find(b"@", start, stop) >= 0:
        spans += url_passwords(data, start, stop)
    return [
        Match(begin, end, name, placeholder(name).encode(), may_grow=True)
        for begin, end, name in spans
    ]


def _joined(ranges: list[tuple[int, int]], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield ranges with some bytes around them; those that overlap then are one."""
    begin = end = start
    for first, last in sorted(ranges):
        if first - _AROUND > end:
            if end > begin:
                yield begin, end
            begin = first - _AROUND
        end = max(end, min(stop, last + _AROUND))
    if end > begin:
        yield begin, end


def _overlap(one: re.Match[bytes], other: re.Match[bytes]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _apart(matches: list[Match]) -> list[Match]:
    """Drop each match that overlaps an earlier one of the list, and sort the rest."""
    if len(matches) < 2:
        return matches
    apart: list[Match] = []
    for match in matches:
        at = bisect(apart, match)
        after_previous = at == 0 or apart[at - 1].end <= match.start
        if after_previous and (at == len(apart) or match.end <= apart[at].start):
            apart.insert(at, match)
    return apart


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return a checkpoint's metadata with placeholders for secrets, by their names or look.

    Needed because LangGraph stores a run's whole config as metadata of each checkpoint, including
    provider keys.
    """
    return {name: _clean(name, value) for name, value in metadata.items()}


def _clean(name: str, value: object) -> object:
    if isinstance(value, str):
        return _clean_text(name, value)
    if isinstance(value, Mapping):
        return {key: _clean(key if isinstance(key, str) else name, value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_clean(name, item) for item in value]
    return value


@lru_cache(maxsize=1024)
def _clean_text(name: str, text: str) -> str:
    # A sort key is not a secret. An API key is, and so is a key whose value looks random.
    is_key = _SECRET_KEY.search(name.lower()) or _RANDOM.fullmatch(text)
    judged = name if is_key else _KEY.sub("", name)
    for secret in sorted(secret_values(judged, text), key=len, reverse=True):
        text = text.replace(secret, placeholder(name))
    data = text.encode("utf-8", "surrogatepass")
    return replace(data, _KNOWN.find(data)).decode("utf-8", "replace")


_KNOWN = Redactor({})
"""Finds known tokens only."""
