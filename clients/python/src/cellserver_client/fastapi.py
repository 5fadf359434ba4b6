"""Limits for FastAPI and Starlette: a middleware for the whole application, and a dependency for one route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .aio import Limiter
from .core import Result, log, merged, respond
from .errors import ConfigurationError
from .headers import PROBLEM_TYPE
from .keys import combine, first, header, ip, user

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = [
    "LimitDependency",
    "LimitMiddleware",
    "Limited",
    "Limiter",
    "combine",
    "first",
    "header",
    "ip",
    "user",
]


class LimitMiddleware:
    """Limits all requests of an application, in pure ASGI.

    skip is a function of the request that is true for those that are not limited, such as health checks. WebSockets are
    limited too: each handshake counts. At the start of the application the configuration is checked, and a
    ConfigurationError stops it; at its end the connections are closed.
    """

    def __init__(self, app: App, limiter: Limiter, skip: Callable[[HTTPConnection], bool] | None = None) -> None:
        self._app = app
        self._limiter = limiter
        self._skip = skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection of ASGI."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        if self._skip is not None and self._skip(request):
            await self._app(scope, receive, send)
            return
        result = await self._limiter.check(request)
        status, fields, body = respond(result, self._limiter.headers)
        if status:
            await _deny(kind, scope, receive, send, status, fields, body)
        elif not fields or kind == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _adding(send, fields))

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the configuration before the application starts."""
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await self._limiter.start()
            except ConfigurationError as error:
                log.error("the limiter is not configured: the application does not start")
                await send({"type": "lifespan.startup.failed", "message": f"cellserver_client: {error}"})
                return
        first: list[Message] = [message]

        async def next_message() -> Message:
            return first.pop() if first else await receive()

        try:
            await self._app(scope, next_message, send)
        finally:
            await self._limiter.aclose()


def _adding(send: Send, fields: list[tuple[str, str]]) -> Send:
    """A send that adds header fields to the answer, unless it has them or is a 3xx or 503."""

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            if status != 503 and not 300 <= status < 400:
                lines = list(message.get("headers", ()))
                names = {bytes(name).lower() for name, _ in lines}
                added = merged(fields, lambda name: name.encode("latin-1") in names)
                message["headers"] = lines + [(n.encode("latin-1"), v.encode("latin-1")) for n, v in added]
        await send(message)

    return adding


async def _deny(
    kind: str, scope: Scope, receive: Receive, send: Send, status: int, fields: list[tuple[str, str]], body: bytes
) -> None:
    """Answers in the place of the application."""
    prefix = "http.response"
    if kind == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await receive()
            await send({"type": "websocket.close", "code": 1013})
            return
        prefix = "websocket.http.response"
    lines = [(b"content-type", PROBLEM_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    lines += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    await send({"type": prefix + ".start", "status": status, "headers": lines})
    await send({"type": prefix + ".body", "body": b"" if scope.get("method") == "HEAD" else body})


class Limited(HTTPException):
    """What a dependency raises for a request that is denied. An application may have a handler of its own for it."""

    def __init__(self, result: Result, status: int, fields: list[tuple[str, str]], body: bytes) -> None:
        super().__init__(status, headers=dict(fields))
        self.result = result
        self.body = body


async def _answer(request: Request, error: Exception) -> Response:
    """The handler of Limited."""
    assert isinstance(error, Limited)
    return Response(error.body, error.status_code, error.headers, media_type=PROBLEM_TYPE)


class LimitDependency:
    """Limits one route: Depends(limiter(policy="chat")). Its value is the Result."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter

    async def __call__(self, request: Request, response: Response) -> Result:
        """Decides a request. Raises Limited for one that is denied."""
        result = await self.limiter.check(request)
        status, fields, body = respond(result, self.limiter.headers)
        if status:
            # The handlers of the application are in the scope; one of its own for Limited stays.
            handlers = request.scope.get("starlette.exception_handlers")
            if handlers:
                handlers[0].setdefault(Limited, _answer)
            raise Limited(result, status, fields, body)
        for name, value in merged(fields, lambda name: name in response.headers):
            response.headers[name] = value
        return result
