"""Tokens of every kind, and the layers of encoding that they may be wrapped in."""

from __future__ import annotations

import base64
import html
import json
import quopri
import random
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote

_LETTERS = "abcDEF0123456789"


class Layer(NamedTuple):
    """A way to encode a text, and the way back."""

    name: str
    encode: Callable[[str], str]
    decode: Callable[[str], str]


def _as_units(text: str) -> str:
    return "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in text)


def _from_json(text: str) -> str:
    return str(json.loads(f'"{text}"'))


def _percent_all(text: str) -> str:
    return "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in text)


def _numeric(text: str) -> str:
    return "".join(c if c.isalnum() else f"&#{ord(c)};" for c in text)


def _quopri(text: str) -> str:
    return quopri.encodestring(text.replace("\r\n", "\n").encode(), quotetabs=True).decode()


def _from_quopri(text: str) -> str:
    return quopri.decodestring(text.encode()).decode().replace("\r\n", "\n")


def _from_numbers(text: str) -> str:
    return re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _from_base64(text: str) -> str:
    """Decode with or without the padding: a layer around may have taken it for its own sign."""
    bare = re.sub(r"[\s=]", "", text)
    return base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _from_urlsafe(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def _in_lines(text: str) -> str:
    return base64.encodebytes(text.encode()).decode()


def _multipart(text: str) -> str:
    body = base64.encodebytes(text.encode()).decode().replace("\n", "\r\n")
    head = 'Content-Disposition: form-data; name="f"\r\nContent-Transfer-Encoding: base64'
    return f"--limit\r\n{head}\r\n\r\n{body}--limit--\r\n"


def _from_multipart(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return _from_base64(text.partition("\n\n")[2].partition("--limit--")[0])


def _coloured(text: str) -> str:
    return f"\x1b[1;31m{text}\x1b[0m"


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


QUOTED = "quoted-printable"
LAYERS = (
    Layer("json", lambda text: json.dumps(text)[1:-1], _from_json),
    Layer("json units", _as_units, _from_json),
    Layer("percent", lambda text: quote(text, safe=""), unquote),
    Layer("percent all", _percent_all, unquote),
    Layer("html", html.escape, html.unescape),
    Layer("html numbers", _numeric, _from_numbers),
    Layer(QUOTED, _quopri, _from_quopri),
    Layer("base64", _base64, _from_base64),
    Layer("urlsafe base64", _urlsafe, _from_urlsafe),
    Layer("base64 in lines", _in_lines, _from_base64),
    Layer("multipart", _multipart, _from_multipart),
    Layer("colours", _coloured, _uncoloured),
)

BEFORE = ("", "a\n", "key=", "\t", '"', "say \r\n", "<b>", "x: ", "https://h/?k=", "(", "\\ ", "é ")
"""What comes before a token in each layer; most of it is escaped by the next."""
AFTER = ("", "\n", '"}', " end", "&b=1", "</b>", ", and then some more text about it.\n", "'")


def _random(letters: str, size: int, draw: random.Random) -> str:
    return "".join(draw.choice(letters) for _ in range(size))


def _key_block(draw: random.Random) -> str:
    lines = [_random(_LETTERS + "+/", 64, draw) for _ in range(3)]
    inner = "\n".join(lines)
    return f"-----BEGIN RSA PRIVATE KEY-----\n{inner}\n-----END RSA PRIVATE KEY-----"


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "anthropic_key": lambda draw: "sk-ant-api03-" + _random(_LETTERS + "_-", 40, draw) + "AA",
    "openai_key": lambda draw: "sk-proj-" + _random(_LETTERS, 48, draw),
    "github_token": lambda draw: "ghp_" + _random(_LETTERS, 36, draw),
    "aws_key_id": lambda draw: "AKIA" + _random("ABCDEFGH23456789", 16, draw),
    "google_key": lambda draw: "AIza" + _random(_LETTERS, 35, draw),
    "jwt": lambda draw: (
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{_random(_LETTERS + '_', 43, draw)}"
    ),
    "slack_token": lambda draw: (
        f"xapp-1-A0{_random('0123456789', 8, draw)}-{_random(_LETTERS, 40, draw)}"
    ),
    "private_key": _key_block,
    "azure_key": lambda draw: "AccountKey=" + _random(_LETTERS + "+/", 86, draw) + "==",
    "url_password": lambda draw: f"postgres://app:pw9{_random(_LETTERS, 12, draw)}@db:5432/x",
}
"""Kinds that are known by their look, by the name that the placeholder has."""
VALUES = {
    "SERVICE_API_KEY": "tk-7Jq0xWmB4c9LrYv2",
    "APP_SESSION": "s3ss10n.Value~of-app_9Zq",
    "LOGIN_COOKIE": "choc0late.chip-2Kq9Zt",
}
"""Values of secret variables, by name."""


def secret_part(name: str, text: str) -> str:
    """Return the part of a text of one kind that is the secret."""
    if name == "azure_key":
        return text.removeprefix("AccountKey=")
    if name == "url_password":
        return text.partition("app:")[2].partition("@")[0]
    return text


class Case(NamedTuple):
    """A secret in up to three layers."""

    name: str
    secret: str
    text: str
    expected: str
    layers: tuple[Layer, ...]

    @property
    def is_exact(self) -> bool:
        """Whether a masked text can be decoded: `=` may be a sign of quoted-printable or base64."""
        return QUOTED not in [layer.name for layer in self.layers[1:]]

    def opened(self, text: str) -> str:
        """Return an encoded text without the layers, the outermost first."""
        for layer in reversed(self.layers):
            text = layer.decode(text)
        return text


def make_case(draw: random.Random, deepest: int = 3) -> Case:
    """Return a random case; `expected` is its innermost text with a placeholder in it."""
    name = draw.choice([*TOKENS, *VALUES])
    whole = TOKENS[name](draw) if name in TOKENS else VALUES[name]
    secret = secret_part(name, whole)
    inner = draw.choice(BEFORE) + whole + draw.choice(AFTER)
    expected = inner.replace(secret, f"tracefork-secret-{name}")
    drawn = [draw.choice(LAYERS) for _ in range(draw.randint(0, deepest))]
    # Quoted-printable in itself breaks its own line breaks.
    layers = tuple(
        layer for n, layer in enumerate(drawn) if layer.name != QUOTED or layer not in drawn[:n]
    )
    text = inner
    for layer in layers:
        text = layer.encode(text)
    return Case(name, secret, text, expected, layers)
