"""Mask the secrets of this process in everything that a session records or compares.

The environment is read again for each exchange, because agents load `.env` files while they run. A
secret stays one until the session ends.

Agents send their transcript with each request. `Clean` remembers large bodies without a secret, so
that only the new part of the next request is searched.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from copy import copy

from tracefork_core.errors import TapeError
from tracefork_core.exchange.contract import Head, Headers, Request
from tracefork_core.masking.agreeing import agreeing
from tracefork_core.masking.body import MaskedBody
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.names import is_credential, secrets_of
from tracefork_core.masking.redactor import Redactor, replace
from tracefork_core.masking.spellings import Match
from tracefork_core.tape.checkpoint import rewritten
from tracefork_core.tape.schema import Mode, as_mode
from tracefork_core.unpacking import UnpackError, unpacked, unpacker

_SMALL = 16 * 1024
_CLEAN_TEXTS, _SHORT_TEXT = 4096, 256
_BLOCK = 16 * 1024
_LARGEST = 16 * 1024 * 1024
_REMEMBERED = 4
_BETWEEN = "\0"
"""Between texts that are searched together: no secret, base64 or line of text goes across it."""


class Masking:
    """Masks for one session, in every mode except `raw`; thread-safe."""

    def __init__(self, mode: Mode = "safe", masks: Masks | None = None) -> None:
        self.mode = as_mode(mode)
        self.masks = masks or Masks()
        self._environment: object = None
        self._redactor: Redactor | None = None
        self._clean_texts: set[str] = set()
        self._secrets: dict[str, set[str]] = {}
        self._learn()
        self._counts: Counter[str] = Counter()
        self._unsearched = 0
        self._lock = threading.Lock()
        self.look_around()

    def another(self) -> Masking:
        """Return the masking of another session with the same secrets, which has counted none."""
        other = copy(self)
        other.begin_again()
        return other

    def begin_again(self) -> None:
        """Forget what was counted, and share nothing that changes with what this is a copy of."""
        self._secrets = {name: set(values) for name, values in self._secrets.items()}
        self._counts, self._unsearched, self._lock = Counter(), 0, threading.Lock()
        if self._redactor is not None:
            self._clean = Clean(self._redactor.longest)

    @property
    def counts(self) -> dict[str, int]:
        """How often each secret was masked; 0 for a named variable that never appeared."""
        if self._redactor is None:
            return {}
        with self._lock:
            return dict(sorted({**dict.fromkeys(self.masks.names, 0), **self._counts}.items()))

    @property
    def unsearched(self) -> int:
        """How many bodies could not be unpacked, so that only their packed bytes were searched."""
        return self._unsearched

    def look_around(self) -> None:
        """Add the secrets that are in the environment now."""
        # The dictionary behind `os.environ` compares a hundred times faster than `os.environ`.
        behind = vars(os.environ).get("_data")
        environment = behind if isinstance(behind, dict) else os.environ
        if self.mode == "raw" or environment == self._environment:
            return
        self._environment = dict(environment)
        self.take_in(os.environ)

    def take_in(self, environment: Mapping[str, str]) -> None:
        """Add the secrets of an environment, for example that of a child process."""
        if self.mode == "raw":
            return
        secrets = [*secrets_of(environment), *self.masks.values_in(environment)]
        with self._lock:
            if all(value in self._secrets.get(name, ()) for name, value in secrets):
                return
            for name, value in secrets:
                self._secrets.setdefault(name, set()).add(value)
            self._learn()

    def request(self, request: Request) -> Request:
        """Return a request with its secrets masked, as it is compared and recorded."""
        self.look_around()
        redactor = self._redactor
        if redactor is None:
            return request
        if not redactor.patterns and self._is_clean(redactor, request):
            return request
        headers = self._headers(redactor, request.headers, requested=True)
        coding = _coding(request.headers)
        body = self._packed(redactor, request.body, coding) if coding else None
        if body is not None:
            headers = tuple(pair for pair in headers if pair[0].lower() != "content-encoding")
        else:
            body = self._body(redactor, request.body)
        if body is not request.body:
            changed = agreeing(headers, request.body, body)
            headers = tuple((name, value or "") for name, value in changed)
        url = self.text(request.url)
        if url is request.url and headers is request.headers and body is request.body:
            return request
        return request._replace(url=url, headers=headers, body=body)

    def head(self, head: Head) -> Head:
        """Return the head of a response with its secrets masked."""
        redactor = self._redactor
        if redactor is None:
            return head
        headers, reason = self._headers(redactor, head.headers), self._line(head.reason)
        if headers is head.headers and reason is head.reason:
            return head
        return head._replace(reason=reason, headers=headers)

    def body(self, head: Head) -> MaskedBody | None:
        """Return a `MaskedBody` for a response; None in mode `raw`."""
        if self._redactor is None:
            return None
        return MaskedBody(self._redactor, _coding(head.headers))

    def is_unsearched(self, headers: Headers, body: bytes) -> bool:
        """Return whether a body, as it is stored, has a coding that cannot be removed here."""
        coding = _coding(headers)
        if self._redactor is None or self.mode == "metadata" or not body or coding is None:
            return False
        unpack = unpacker(coding)
        try:
            # Block by block: what it unpacks to is not wanted.
            deque(unpack.feed(body) if unpack else (), maxlen=0)
        except UnpackError:
            return True
        return unpack is None

    def text(self, text: str) -> str:
        """Return a text with its secrets masked."""
        # In this order: texts that an older redactor found clean belong into its own set.
        clean, redactor = self._clean_texts, self._redactor
        if redactor is None or not text or text in clean:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self._counted(data, redactor.find(data))
        if masked is data and len(text) <= _SHORT_TEXT and len(clean) < _CLEAN_TEXTS:
            clean.add(text)  # Call sites, lanes and step names repeat.
        # A user's pattern works on bytes and may have cut a character.
        return text if masked is data else masked.decode("utf-8", "replace")

    def names(self, detail: dict[str, object]) -> dict[str, object]:
        """Return JSON-able values by name, with the secrets in all their texts masked."""
        return {self.text(name): self._tree(value) for name, value in detail.items()}

    def packed(self, data: bytes) -> bytes:
        """Return a MessagePack value with its secrets masked, or other bytes masked in place."""
        redactor = self._redactor
        if redactor is None or not self._holds_secret(redactor, data):
            return data
        try:
            return rewritten(data, lambda text: self._counted(text, redactor.find(text)))
        except TapeError:  # Asterisks keep the length: an unknown format may count its bytes.
            matches = [
                match._replace(text=b"*" * (match.end - match.start))
                for match in redactor.find(data)
            ]
            return self._counted(data, matches)

    def count_unsearched(self) -> None:
        """Count a body that was not searched."""
        with self._lock:
            self._unsearched += 1

    def count(self, matches: Iterable[Match]) -> None:
        """Count masked secrets."""
        with self._lock:
            self._counts.update(match.name for match in matches)

    def _tree(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._tree(key): self._tree(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._tree(item) for item in value]
        return value

    def _learn(self) -> None:
        if self.mode != "raw":
            # Assigned in one step: another thread may be masking.
            redactor = Redactor(self._secrets, self.masks.patterns)
            self._clean, self._redactor = Clean(redactor.longest), redactor
            self._clean_texts = set()

    def _is_clean(self, redactor: Redactor, request: Request) -> bool:
        """Return whether a small request holds no secret, with a single search."""
        if len(request.body) > _SMALL:
            return False
        checked = [request.url]
        for spelled, value in request.headers:
            name = spelled.lower()
            if name == "content-encoding":
                return False
            if not is_credential(name):
                checked.append(value)
        texts = _BETWEEN.join([*checked, ""])
        return texts.isascii() and not redactor.find(texts.encode() + request.body)

    def _headers(self, redactor: Redactor, headers: Headers, *, requested: bool = False) -> Headers:
        """Mask header values, except credentials of a request: those are dropped later."""
        kept = [value for name, value in headers if not (requested and is_credential(name.lower()))]
        texts = _BETWEEN.join(kept)
        if texts.isascii() and not redactor.find(texts.encode()):
            return headers
        return tuple(
            (name, value if requested and is_credential(name.lower()) else self._line(value))
            for name, value in headers
        )

    def _line(self, text: str) -> str:
        """Mask a header or reason, whose characters may be UTF-8 bytes read as Latin-1."""
        masked = self.text(text)
        if masked != text or text.isascii() or self._redactor is None:
            return masked
        try:
            data = text.encode("latin-1")
        except UnicodeEncodeError:
            return text
        return self._counted(data, self._redactor.find(data)).decode("latin-1")

    def _body(self, redactor: Redactor, body: bytes) -> bytes:
        if not self._holds_secret(redactor, body):
            return body
        return self._counted(body, redactor.find(body))

    def _holds_secret(self, redactor: Redactor, body: bytes) -> bool:
        if redactor.patterns:
            return bool(redactor.find(body))
        clean = self._clean
        start, stop = clean.part_to_search(body)
        if redactor.find(body, start, stop):
            return True
        clean.add(body)
        return False

    def _packed(self, redactor: Redactor, body: bytes, coding: str) -> bytes | None:
        """Return a packed body unpacked and masked, or None if it holds no secret."""
        try:
            plain = unpacked(body, coding)
        except UnpackError:  # `is_unsearched` says so, and the bytes are searched as they are.
            return None
        matches = redactor.find(plain)
        return self._counted(plain, matches) if matches else None

    def _counted(self, data: bytes, matches: list[Match]) -> bytes:
        if not matches:
            return data
        self.count(matches)
        return replace(data, matches)


def _coding(headers: Headers) -> str | None:
    codings = [value for name, value in headers if name.lower() == "content-encoding"]
    if not codings:
        return None
    coding = ",".join(codings).strip().lower()
    return None if coding in ("", "identity") else coding


class Clean:
    """The last large bodies without a secret. No secret is longer than `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._around = longest
        self._bodies: deque[bytes] = deque(maxlen=_REMEMBERED)

    def add(self, body: bytes) -> None:
        """Remember a body in which no secret was found."""
        if 2 * self._around < len(body) <= _LARGEST:
            self._bodies.appendleft(body)

    def part_to_search(self, body: bytes) -> tuple[int, int]:
        """Return the range of a body that differs from a clean one, plus a margin of `longest`."""
        if len(body) <= 2 * self._around:
            return 0, len(body)
        best: tuple[int, int] = (0, len(body))
        for known in self._bodies:
            start = _same_start(known, body)
            if start > best[0]:
                best = start, len(body) - _same_end(known, body, start)
            if 2 * start > len(body):
                break  # The previous request of the transcript: no other body is closer.
        return max(0, best[0] - self._around), min(len(body), best[1] + self._around)


def _same_start(known: bytes, body: bytes) -> int:
    same, upto = 0, min(len(known), len(body))
    while same + _BLOCK <= upto and body.startswith(known[same : same + _BLOCK], same):
        same += _BLOCK
    return same


def _same_end(known: bytes, body: bytes, start: int) -> int:
    same, upto = 0, min(len(known), len(body)) - start
    while same + _BLOCK <= upto:
        last = len(known) - same
        if not body.endswith(known[last - _BLOCK : last], 0, len(body) - same):
            break
        same += _BLOCK
    return same
