"""Limits for FastAPI and Starlette: a middleware for the whole application, and a dependency for one route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .aio import Limiter
from .core import log
from .errors import ConfigurationError
from .headers import PROBLEM_TYPE
from .keys import combine, first, header, ip, user
from .reserve import ChargeWhen, Reservation, settle
from .result import Result, merged, respond

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

    skip is a function of the request that is true for those that are not limited, such as health checks. charge_when is
    a function of the status that is true for the answers whose requests are charged, such as failed logins: the cost is
    reserved meanwhile, and given back for other answers and for exceptions. WebSockets are limited too: each handshake
    counts. At the start of the application the configuration is checked, and a ConfigurationError stops it; at its end
    the connections are closed. Without a limiter the middleware limits nothing, and serves charge_when of dependencies.
    """

    def __init__(
        self,
        app: App,
        limiter: Limiter | None = None,
        skip: Callable[[HTTPConnection], bool] | None = None,
        charge_when: ChargeWhen | None = None,
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._skip = skip
        self._charge_when = charge_when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection of ASGI."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        answer = None
        if kind == "http":
            answer = scope[_ANSWER] = _Answer(send)
        limiter = self._limiter
        if limiter is not None:
            request = HTTPConnection(scope)
            if self._skip is None or not self._skip(request):
                result = await self._decide(limiter, request, answer)
                status, fields, body = respond(result, limiter.headers)
                if status:
                    await _deny(kind, scope, receive, send, status, fields, body)
                    return
                if answer is not None:
                    answer.fields = fields
        if answer is None:
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, answer.send)
        finally:
            if answer.reservations:
                await answer.settle()

    async def _decide(self, limiter: Limiter, request: HTTPConnection, answer: _Answer | None) -> Result:
        if self._charge_when is None or answer is None:
            return await limiter.check(request)
        return await answer.reserve(limiter, request, self._charge_when)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the configuration before the application starts."""
        limiter = self._limiter
        if limiter is None:
            await self._app(scope, receive, send)
            return
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await limiter.start()
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
            await limiter.aclose()


# The place in a scope where a middleware leaves the answer for the dependencies behind it.
_ANSWER = "cellserver_client.answer"


class _Answer:
    """The answer to a request: its header fields of limits, and the reservations that it ends."""

    __slots__ = ("_send", "fields", "reservations", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.fields: list[tuple[str, str]] = []
        self.status: int | None = None
        self.reservations: list[tuple[Reservation, ChargeWhen]] = []

    async def send(self, message: Message) -> None:
        """Sends on. It adds the header fields, unless the answer has them or is a 3xx or 503."""
        if message["type"] == "http.response.start":
            status = self.status = message["status"]
            if self.fields and status != 503 and not 300 <= status < 400:
                lines = list(message.get("headers", ()))
                names = {bytes(name).lower() for name, _ in lines}
                added = merged(self.fields, lambda name: name.encode("latin-1") in names)
                message["headers"] = lines + [(n.encode("latin-1"), v.encode("latin-1")) for n, v in added]
        await self._send(message)

    async def reserve(self, limiter: Limiter, request: HTTPConnection, charge_when: ChargeWhen) -> Result:
        """Reserves the cost of the request until the answer is there."""
        reservation = await limiter.reserve(request).__aenter__()
        self.reservations.append((reservation, charge_when))
        return reservation.result

    async def settle(self) -> None:
        """Ends all reservations, also if a function of the application raises."""
        async with AsyncExitStack() as stack:
            for reservation, charge_when in self.reservations:
                stack.push_async_callback(settle, reservation, charge_when, self.status)


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
    """Limits one route: Depends(limiter(policy="chat")). Its value is the Result.

    charge_when is that of LimitMiddleware, which the application needs then: a dependency does not see the status.
    """

    def __init__(self, limiter: Limiter, charge_when: ChargeWhen | None = None) -> None:
        self.limiter = limiter
        self._charge_when = charge_when

    async def __call__(self, request: Request, response: Response) -> Result:
        """Decides a request. Raises Limited for one that is denied, and ConfigurationError."""
        if self._charge_when is None:
            result = await self.limiter.check(request)
        else:
            answer = request.scope.get(_ANSWER)
            if answer is None:
                raise ConfigurationError("charge_when needs app.add_middleware(LimitMiddleware), which sees the status")
            result = await answer.reserve(self.limiter, request, self._charge_when)
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
