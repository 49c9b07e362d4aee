"""A client for the scenarios of the npm package `@modelcontextprotocol/conformance`.

    MCP_CONFORMANCE_SCENARIO=NAME python client.py URL

With `TRACEFORK_SCENARIO=record:TAPE` or `replay:TAPE` it runs in a session. It prints what it gets.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, nullcontext
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp
from mcp import ClientSession, types
from mcp.client import auth
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

http = import_module("httpx2" if hasattr(mcp, "Client") else "httpx")
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
REDIRECT = "http://localhost:3000/callback"
METADATA_URL = "https://conformance-test.local/client-metadata.json"


class Storage:
    """Tokens and client information, in memory."""

    def __init__(self, client: Any = None) -> None:
        self._tokens: Any = None
        self._client = client

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info


class Browser:
    """A person who allows everything."""

    def __init__(self) -> None:
        self._answer: dict[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        async with http.AsyncClient(follow_redirects=False) as client:
            response = await client.get(url)
        self._answer = parse_qs(urlsplit(response.headers["location"]).query)

    async def answer(self) -> Any:
        code, state = (self._answer.get(name, [None])[0] for name in ("code", "state"))
        result = getattr(auth, "AuthorizationCodeResult", None)
        if result is None:
            return code, state
        return result(code=code, state=state, iss=self._answer.get("iss", [None])[0])


def authentication(url: str) -> Any:
    """Return what authenticates the requests of this scenario."""
    credentials = import_module("mcp.client.auth.extensions.client_credentials")
    known = {"server_url": url, "storage": Storage()}
    if SCENARIO == "auth/client-credentials-basic":
        return credentials.ClientCredentialsOAuthProvider(
            **known, client_id=CONTEXT["client_id"], client_secret=CONTEXT["client_secret"]
        )
    if SCENARIO == "auth/client-credentials-jwt":
        signed = credentials.SignedJWTParameters(
            issuer=CONTEXT["client_id"],
            subject=CONTEXT["client_id"],
            signing_key=CONTEXT["private_key_pem"],
            signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
        )
        return credentials.PrivateKeyJWTOAuthProvider(
            **known,
            client_id=CONTEXT["client_id"],
            assertion_provider=signed.create_assertion_provider(),
        )
    if "client_id" in CONTEXT:
        known["storage"] = Storage(
            OAuthClientInformationFull(
                client_id=CONTEXT["client_id"],
                client_secret=CONTEXT.get("client_secret"),
                redirect_uris=[REDIRECT],
            )
        )
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="tracefork scenarios",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return auth.OAuthClientProvider(
        **known,
        client_metadata=metadata,
        redirect_handler=browser.visit,
        callback_handler=browser.answer,
        client_metadata_url=METADATA_URL,
    )


async def elicited(context: Any, params: Any) -> Any:
    """Accept what the server asks, with its defaults."""
    schema = getattr(params, "requestedSchema", None) or params.requested_schema
    content = {
        name: field["default"]
        for name, field in schema.get("properties", {}).items()
        if "default" in field
    }
    return types.ElicitResult(action="accept", content=content)


@asynccontextmanager
async def connected(url: str) -> Any:
    """Connect to the server of the scenario."""
    provider = authentication(url) if SCENARIO.startswith("auth/") else None
    async with (
        http.AsyncClient(auth=provider, timeout=30, follow_redirects=True) as client,
        streamable_http_client(url, http_client=client) as streams,
        ClientSession(*streams[:2], elicitation_callback=elicited) as session,
    ):
        yield session


async def work(url: str) -> None:
    """Do what a client does: connect, list the tools, and call each of them."""
    async with connected(url) as session:
        show(await session.initialize())
        tools = (await session.list_tools()).tools
        for tool in tools:
            schema = getattr(tool, "inputSchema", None) or tool.input_schema
            names = schema.get("properties", {})
            given = {name: number + 5 for number, name in enumerate(names)}
            show(await session.call_tool(tool.name, given))
    print("done", len(tools), flush=True)


def show(result: Any) -> None:
    """Print a result."""
    print(result.model_dump_json(by_alias=True, exclude_none=True), flush=True)


def main() -> None:
    """Run the scenario, in a session if one is named."""
    session: Any = nullcontext()
    if named := os.environ.get("TRACEFORK_SCENARIO"):
        import tracefork_core as tracefork

        verb, _, tape = named.partition(":")
        options = {"overwrite": True} if verb == "record" else {}
        session = getattr(tracefork, verb)(tape, **options)
    failed = ""
    with session:
        try:
            asyncio.run(work(sys.argv[1]))
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            failed = f"{type(error).__name__}: {error}"
            print(failed, flush=True)
            if "tracefork" in failed:
                raise
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
