"""What a session masks: the secrets of this process, in all that goes onto a tape or is compared.

The environment is read anew for each exchange, since agents load theirs (`.env` files) while they
run. What was a secret once stays one until the session ends.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping

from tracefork_core.errors import TapeError
from tracefork_core.exchange.contract import Head, Headers, Request
from tracefork_core.masking.body import MaskedBody, decoder
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.names import is_credential, secrets_of
from tracefork_core.masking.redactor import Redactor, replace
from tracefork_core.masking.spellings import Match
from tracefork_core.tape.checkpoint import rewritten
from tracefork_core.tape.schema import Mode, as_mode

_SMALL = 16 * 1024
_CLEAN_TEXTS, _SHORT_TEXT = 4096, 256
_BLOCK = 16 * 1024
_LARGEST = 16 * 1024 * 1024
_KEPT = 4


class Masking:
    """Masks for one session, in every mode but `raw`; safe to use from any thread."""

    def __init__(self, mode: Mode = "safe", masks: Masks | None = None) -> None:
        self.mode = as_mode(mode)
        self.masks = masks or Masks()
        self._environment: object = None
        self._redactor: Redactor | None = None
        self._clean_texts: set[str] = set()
        self._secrets: dict[str, set[str]] = {}
        self._learn()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.look_around()

    @property
    def counts(self) -> dict[str, int]:
        """How often each secret was masked; 0 for a variable that was named and never seen."""
        if self._redactor is None:
            return {}
        with self._lock:
            return dict(sorted({**dict.fromkeys(self.masks.names, 0), **self._counts}.items()))

    def look_around(self) -> None:
        """Take in secrets that the environment holds by now."""
        # A look at the dictionary behind `os.environ` takes a hundredth of reading through that.
        behind = vars(os.environ).get("_data")
        environment = behind if isinstance(behind, dict) else os.environ
        if self.mode == "raw" or environment == self._environment:
            return
        self._environment = dict(environment)
        self.take_in(os.environ)

    def take_in(self, environment: Mapping[str, str]) -> None:
        """Take in the secrets of an environment: that of another process of the run, too."""
        if self.mode == "raw":
            return
        found = [*secrets_of(environment), *self.masks.values_in(environment)]
        with self._lock:
            if all(value in self._secrets.get(name, ()) for name, value in found):
                return
            for name, value in found:
                self._secrets.setdefault(name, set()).add(value)
            self._learn()

    def request(self, request: Request) -> Request:
        """Return a request as it is compared and recorded."""
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
        url = self.text(request.url)
        if url is request.url and headers is request.headers and body is request.body:
            return request
        return request._replace(url=url, headers=headers, body=body)

    def head(self, head: Head) -> Head:
        """Return the head of a response as it is recorded."""
        redactor = self._redactor
        if redactor is None:
            return head
        headers, reason = self._headers(redactor, head.headers), self._line(head.reason)
        if headers is head.headers and reason is head.reason:
            return head
        return head._replace(reason=reason, headers=headers)

    def body(self, head: Head) -> MaskedBody | None:
        """Return what masks the body of a response; None where none is masked."""
        if self._redactor is None:
            return None
        return MaskedBody(self._redactor, _coding(head.headers))

    def text(self, text: str) -> str:
        """Return a text as it is recorded."""
        # In this order: what an older redactor found clean is noted in an older set.
        clean, redactor = self._clean_texts, self._redactor
        if redactor is None or not text or text in clean:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self._counted(data, redactor.find(data))
        if masked is data and len(text) <= _SHORT_TEXT and len(clean) < _CLEAN_TEXTS:
            clean.add(text)  # Call sites, lanes and steps come again and again.
        # A pattern of bytes may have cut a character.
        return text if masked is data else masked.decode("utf-8", "replace")

    def names(self, detail: dict[str, object]) -> dict[str, object]:
        """Return JSON-able values by name, with all texts in them as they are recorded."""
        return {self.text(name): self._tree(value) for name, value in detail.items()}

    def packed(self, data: bytes) -> bytes:
        """Return a value in MessagePack as it is recorded; other bytes are masked as they are."""
        redactor = self._redactor
        if redactor is None or not self._holds_secret(redactor, data):
            return data
        try:
            return rewritten(data, lambda text: self._counted(text, redactor.find(text)))
        except TapeError:  # Of the same length, or what counts its bytes could not be read again.
            found = [
                Match(one.start, one.end, one.name, b"*" * (one.end - one.start))
                for one in redactor.find(data)
            ]
            return self._counted(data, found)

    def count(self, matches: Iterable[Match]) -> None:
        """Count what was masked."""
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
            # In one step: another thread may be masking.
            redactor = Redactor(self._secrets, self.masks.patterns)
            self._clean, self._redactor = Clean(redactor.longest), redactor
            self._clean_texts = set()

    def _is_clean(self, redactor: Redactor, request: Request) -> bool:
        """Return whether a small request holds no secret, at one look."""
        if len(request.body) > _SMALL:
            return False
        kept = [request.url]
        for spelled, value in request.headers:
            name = spelled.lower()
            if name == "content-encoding":
                return False
            if not is_credential(name):
                kept.append(value)
        texts = "\n".join(kept)
        return texts.isascii() and not redactor.find(b"%b\n%b" % (texts.encode(), request.body))

    def _headers(self, redactor: Redactor, headers: Headers, *, requested: bool = False) -> Headers:
        """Mask the values of headers; those of credentials in a request are dropped anyway."""
        kept = [value for name, value in headers if not (requested and is_credential(name.lower()))]
        texts = "\n".join(kept)
        if texts.isascii() and not redactor.find(texts.encode()):
            return headers
        return tuple(
            (name, value if requested and is_credential(name.lower()) else self._line(value))
            for name, value in headers
        )

    def _line(self, text: str) -> str:
        """Return a part of a head as it is recorded: its characters may be bytes of UTF-8."""
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
        """Return a packed body unpacked and masked, or None where nothing in it is masked."""
        unpack = decoder(coding)
        if unpack is None:
            return None
        try:
            plain = unpack(body)
        except Exception:  # noqa: BLE001 - not of its coding: bytes like any others
            return None
        matches = redactor.find(plain)
        return self._counted(plain, matches) if matches else None

    def _counted(self, data: bytes, matches: list[Match]) -> bytes:
        if not matches:
            return data
        self.count(matches)
        return replace(data, matches)


def _coding(headers: Headers) -> str | None:
    found = [value for name, value in headers if name.lower() == "content-encoding"]
    if not found:
        return None
    coding = ",".join(found).strip().lower()
    return None if coding in ("", "identity") else coding


class Clean:
    """The last large bodies that held no secret. No secret is longer than `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._around = longest
        self._bodies: deque[bytes] = deque(maxlen=_KEPT)

    def add(self, body: bytes) -> None:
        """Remember a body that was searched in vain."""
        if 2 * self._around < len(body) <= _LARGEST:
            self._bodies.appendleft(body)

    def part_to_search(self, body: bytes) -> tuple[int, int]:
        """Return from where to where a body differs from a clean one, with what lies around."""
        if len(body) <= 2 * self._around:
            return 0, len(body)
        best: tuple[int, int] = (0, len(body))
        for known in self._bodies:
            start = _same_start(known, body)
            if start > best[0]:
                best = start, len(body) - _same_end(known, body, start)
            if 2 * start > len(body):
                break  # The step before: nothing is nearer.
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
