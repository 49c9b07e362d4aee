"""Recognise secrets by their names: environment variables, request headers, URL parameters.

The value of a variable counts too: `TOKEN_LIMIT=4096` and a path in `KEY_FILE` are not secrets.

Credentials of a request are dropped or masked before anything is written or hashed, at recording
and at replay alike. So a tape replays with another key, or without one. Response headers keep their
cookies: the agent must receive them at replay. Secrets inside bodies and URL paths are found by
their values: see `masking`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

SHORTEST = 8
"""Characters of the shortest value that counts as a secret: any text contains shorter ones."""

_SECRET_WORDS = frozenset(
    "accesskey accesstoken apikey apitoken auth authorization authtoken bearer connstr cookie "
    "cookies credential credentials creds dsn jwt key keys pass passphrase passwd password pat pw "
    "pwd secret secretkey secrets session sessionid token tokens webhook".split()
)
_ABOUT_A_SECRET = frozenset(
    "algorithm audience count dir domain enabled endpoint expiry file folder header host issuer "
    "length limit method mode model name path port provider region scope scopes sock ttl "
    "type".split()
)
"""Last words of names whose value describes a secret and is none itself, as in KEY_FILE."""
_FOLDER_NAMES = frozenset({"PWD", "OLDPWD"})
_OF_A_DESKTOP = re.compile(
    r"(?:XDG|DBUS|DESKTOP|GNOME|KDE|TERM|ITERM|SECURITY|SSH|TMUX|ZELLIJ)_.*SESSION|"
    r"DESKTOP_SESSION|SESSION_MANAGER|SESSIONNAME|GDMSESSION"
)
"""Sessions of a desktop or a terminal: their names are no secret."""

_WORD = re.compile(r"[a-z]+|[A-Z]?[a-z]+|[A-Z]+")
_NUMBER = re.compile(r"[\d.,:+-]+")
# A base64 key may begin with a slash too, so the first folder must look like a word.
_PATH = re.compile(r"(~|\.{1,2})/.*|/[A-Z]?[a-z]+[a-z0-9._-]*/.*|[A-Za-z]:\\.*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_PASSWORD_FIELD = re.compile(
    r"(?:^|[;&?\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sig|api[-_]?key|"
    r"(?:access[-_]?)?token|secret)\s*=\s*([^;&\s]+)",
    re.IGNORECASE,
)

MASK = "*"

_HEADER = re.compile(r"auth|cookie|credential|jwt|key|passw|secret|session|signature|token")
_QUERY = re.compile(
    r"^(auth|bearer|jwt|key|sig)$|api[-_.]?key|access[-_.]?key|authorization|credential|"
    r"passw|secret|signature|token",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"tokens|(^|[-_.])(page|next|prev|previous|continuation|sync|skip|start|resume)[-_.]?token$",
    re.IGNORECASE,
)
"""Token counts and page cursors: part of the question, not secrets."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether the name of a variable says that it holds a secret."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if name in _FOLDER_NAMES or not words or words[-1] in _ABOUT_A_SECRET or "public" in words:
        return False
    if _OF_A_DESKTOP.match(name):
        return False
    return not _SECRET_WORDS.isdisjoint(words) or words[-2:] == ["connection", "string"]


@lru_cache(maxsize=4096)
def secret_values(name: str, value: str) -> tuple[str, ...]:
    """Return the secrets in a variable: its value, and a password inside it; often none."""
    value = value.strip()
    if len(value) < SHORTEST:
        return ()
    if passwords := tuple(dict.fromkeys(_passwords(value))):
        return (value, *(part for part in passwords if is_telling(part)))
    if is_secret_name(name) and is_telling(value) and not _is_location(value):
        return (value,)
    return ()


def secrets_of(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each secret of an environment, with the name of its variable."""
    for name, value in environment.items():
        for secret in secret_values(name, value):
            yield name, secret


def is_telling(value: str) -> bool:
    """Return whether a value is long and unusual enough not to be a word of ordinary text."""
    if len(value) < SHORTEST:
        return False
    if len(value) < 2 * SHORTEST:
        return not (_WORD.fullmatch(value) or _NUMBER.fullmatch(value))
    return True


def _is_location(value: str) -> bool:
    """Return whether a value is a path, or a URL without a secret in it."""
    if _PATH.fullmatch(value):
        return True
    return bool(_URL.fullmatch(value)) and not _is_webhook(value)


def _is_webhook(value: str) -> bool:
    """Return whether a part of a URL looks random, as in the URL of a webhook."""
    return any(
        len(part) >= 2 * SHORTEST and re.search(r"\d", part) and re.search(r"[A-Za-z]", part)
        for part in re.split(r"[/?&=]", value)[3:]
    )


def _passwords(value: str) -> Iterator[str]:
    """Yield the passwords in a URL or connection string, both quoted and unquoted."""
    if _URL.fullmatch(value):
        try:
            user = urlsplit(value).netloc.rpartition("@")[0]
        except ValueError:
            user = ""
        if password := user.partition(":")[2]:
            yield from (password, unquote(password))
    for match in _PASSWORD_FIELD.finditer(value):
        yield match[1]


@lru_cache(maxsize=1024)
def is_credential(name: str) -> bool:
    """Return whether a request header with this lower-case name holds a credential."""
    return bool(_HEADER.search(name))


def without_secrets(query: str) -> str:
    """Return a query string with the values of its credentials masked."""
    return "&".join(_masked(pair) for pair in query.split("&")) if query else query


def without_masked(url: str) -> str:
    """Return a URL without the query parameters whose values are masked."""
    start, question, query = url.partition("?")
    kept = [pair for pair in query.split("&") if pair and not pair.endswith(f"={MASK}")]
    return f"{start}?{'&'.join(kept)}" if question and kept else start


def referer(value: str) -> str:
    """Return a `referer` header value with the credentials in its URL masked."""
    if "?" not in value and "@" not in value:
        return value
    scheme, host, path, query, fragment = urlsplit(value)
    host = host.rpartition("@")[2]
    return urlunsplit((scheme, host, path, without_secrets(query), fragment))


def _masked(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    plain = unquote_plus(name)
    if equals and _QUERY.search(plain) and not _NO_SECRET.search(plain):
        return f"{name}={MASK}"
    return pair
