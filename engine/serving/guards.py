"""What is refused before any question is looked at: strangers, foreign host names, bodies that are too large or too slow, and crowds."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from engine.serving.settings import is_loopback

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES: Final = 1 << 20
"""Of a request's body: a thousand entities with their triples fit."""
LONGEST_ADDRESS: Final = 32_768
"""Bytes of path and query."""
MOST_AT_ONCE: Final = 500
"""Requests that are answered or wait."""
BODY_SECONDS: Final = 15.0
OPEN_PATHS: Final = frozenset({"/health", "/docs", "/openapi.json"})
"""They show nothing of any run, and need no token."""
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
)


class Refused(Exception):  # noqa: N818 - an answer, no failure
    """A request that is not let in."""

    def __init__(self, status: int, code: str, message: str, *headers: tuple[bytes, bytes]) -> None:
        self.status, self.code, self.message, self.headers = status, code, message, headers
        super().__init__(message)


class Guard:
    """In front of the application.

    Args:
        application: what is guarded.
        token: that requests must bring; "" for none.
        most_at_once, most_bytes, body_seconds: limits.
    """

    def __init__(
        self,
        application: AsgiApplication,
        token: str = "",
        *,
        most_at_once: int = MOST_AT_ONCE,
        most_bytes: int = MOST_BYTES,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._application, self._token = application, token.encode("ascii")
        self._most_at_once, self._most_bytes, self._body_seconds = most_at_once, most_bytes, body_seconds
        self._running = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSockets
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = with_headers(send)
        self._running += 1
        try:
            self._check(scope)
            body = await asyncio.wait_for(self._body(receive), self._body_seconds)
        except Refused as refused:
            await refuse(refused, answer)
        except TimeoutError:
            await refuse(Refused(408, "too_slow", f"the body did not arrive within {self._body_seconds:g} seconds."), answer)
        else:
            await self._application(scope, replay(body, receive), answer)
        finally:
            self._running -= 1

    def _check(self, scope: Message) -> None:
        """
        Raises:
            Refused: this request is not let in.
        """
        if self._running > self._most_at_once and scope["path"] != "/health":
            raise Refused(503, "busy", f"{self._most_at_once:,} requests are being answered; try again in a moment.", (b"retry-after", b"1"))
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            raise Refused(414, "address_too_long", f"the address is longer than {LONGEST_ADDRESS:,} bytes.")
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._token and not is_local_host(header_values(headers, b"host")):
            # A page of another site can have its own name resolved to this machine; the name then shows in this header.
            raise Refused(403, "foreign_host", "without a token only requests to 127.0.0.1 or localhost are answered.")
        if self._token and scope["path"] not in OPEN_PATHS and not self._knows(header_values(headers, b"authorization")):
            raise Refused(401, "unauthorised", "this request needs the header 'Authorization: Bearer TOKEN'.", (b"www-authenticate", b"Bearer"))
        for length in header_values(headers, b"content-length"):
            if not length.isdigit() or int(length[:12]) > self._most_bytes:
                raise self._too_large()

    def _knows(self, given: list[bytes]) -> bool:
        """Whether the one header of a request holds the token; compared in constant time."""
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        return hmac.compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"

    def _too_large(self) -> Refused:
        return Refused(413, "too_large", f"the body is larger than {self._most_bytes:,} bytes; send fewer entities at a time.")

    async def _body(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the client has gone: a part of a body is none
                raise TimeoutError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)


def header_values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]


def is_local_host(given: list[bytes]) -> bool:
    """Whether a request names this machine as its host, as only programs on it do."""
    try:
        host = urlsplit(f"//{given[0].decode('ascii')}").hostname if len(given) == 1 else None
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def with_headers(send: Send) -> Send:
    """Answers with headers that keep browsers from reading more into them than is there."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sent


def replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then what follows it: that the client has gone."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


async def refuse(refused: Refused, send: Send) -> None:
    body = json.dumps({"error": {"code": refused.code, "message": refused.message}}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii")), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
