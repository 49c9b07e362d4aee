"""Who may come in: a browser on this machine that has the address with the token.

Any page of any site can make a browser send requests to 127.0.0.1. So it is not enough to listen
there:

- a `Host` that is not ours is answered with 421: a foreign name that resolves to 127.0.0.1;
- an `Origin` that is not ours with 403, and so is a request that would change something and has
  none: another site's page;
- a request without the cookie with 401. The cookie is set by the address that `tracefork view`
  prints, once; the token is then gone from the address, and is in no answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGES = ("/", "/run")
_READING = frozenset({"GET", "HEAD"})
_HEADERS = {
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}


class Door:
    """Lets requests through to an app, or answers them itself."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._token = app, token
        # Cookies do not tell ports apart: two servers on one machine need two names.
        self._cookie = f"tracefork-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        async def shut(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = dict(message["headers"])
                message["headers"] = [*(_HEADERS | given).items()]
            await send(message)

        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if (refused := self._refusal(scope["method"], headers)) is not None:
            await PlainTextResponse(refused[1], refused[0])(scope, receive, shut)
        elif scope["path"] in PAGES and self._is_token(query.pop("token", [""])[0]):
            rest = urlencode(query, doseq=True)
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
            await answer(scope, receive, shut)
        elif not self._is_token(_cookies(headers).get(self._cookie, "")):
            text = "tracefork: open the address that `tracefork view` printed, with its token.\n"
            await PlainTextResponse(text, 401)(scope, receive, shut)
        else:
            await self._app(scope, receive, shut)

    def _refusal(self, method: str, headers: Mapping[str, list[str]]) -> tuple[int, str] | None:
        """Return the status and the reason, if a request comes from elsewhere."""
        if [host.lower() for host in headers.get("host", [])] not in [[one] for one in self._hosts]:
            here = " or ".join(sorted(self._hosts))
            return 421, f"tracefork: this server answers for {here} alone.\n"
        origins = {origin.lower() for origin in headers.get("origin", [])}
        if origins - self._origins or (not origins and method not in _READING):
            return 403, "tracefork: requests of other sites are refused.\n"
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("latin-1", "replace"), self._token.encode())


def _cookies(headers: Mapping[str, list[str]]) -> dict[str, str]:
    pairs = (pair.strip().partition("=") for pair in ";".join(headers.get("cookie", [])).split(";"))
    return {name: value for name, _, value in pairs}
