"""Limits for Django: a middleware for all requests, and a decorator for single views, both sync and async.

The setting CELLSERVER is a mapping with the options of a limiter and with skip and charge_when of the middleware.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation, SynchronousOnlyOperation
from django.core.handlers.asgi import ASGIRequest
from django.core.signals import setting_changed
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from . import aio, sync
from .errors import ConfigurationError
from .headers import PROBLEM_TYPE
from .keys import combine, first, header, ip, user
from .reserve import ChargeWhen, settle, settle_sync
from .result import Result, merged, respond

__all__ = ["LimitMiddleware", "combine", "first", "header", "ip", "limit", "limiter_of", "user"]

_OF_MIDDLEWARE = ("skip", "charge_when", "limiter", "async_limiter")
_STATUS = ((Http404, 404), (PermissionDenied, 403), (BadRequest, 400), (SuspiciousOperation, 400))

L = TypeVar("L", sync.Limiter, aio.Limiter)


def _setting() -> dict[str, Any]:
    found = getattr(settings, "CELLSERVER", None)
    if not isinstance(found, Mapping):
        raise ConfigurationError("the setting CELLSERVER is a mapping with the options of a limiter")
    return dict(found)


def _option(name: str) -> Any:
    return _setting().get(name)


class _Root(Generic[L]):
    """The limiter of the setting, and those that are made of it. It is made when it is used first."""

    def __init__(self, kind: type[L], double: str) -> None:
        self._kind: type[L] = kind
        self._double = double
        self.forget()

    def forget(self) -> None:
        """Begins anew, since the setting has changed."""
        self._root: L | None = None
        self._others: dict[object, L] = {}

    def get(self, owner: object = None, options: Mapping[str, Any] | None = None) -> L:
        """The limiter of the setting, or the one that an owner has made of it by other options."""
        if self._root is None:
            made = _setting()
            self._root = made.get(self._double) or self._kind(
                made.pop("url", None), **{name: value for name, value in made.items() if name not in _OF_MIDDLEWARE}
            )
        if not options:
            return self._root
        other = self._others.get(owner)
        if other is None:
            # Of two threads that make one, both keep the first.
            other = self._others.setdefault(owner, self._root.using(**options))
        return other


_sync: _Root[sync.Limiter] = _Root(sync.Limiter, "limiter")
_async: _Root[aio.Limiter] = _Root(aio.Limiter, "async_limiter")


def _changed(*, setting: str, **_: Any) -> None:
    if setting == "CELLSERVER":
        _sync.forget()
        _async.forget()


setting_changed.connect(_changed)


def limiter_of(owner: object = None, options: Mapping[str, Any] | None = None) -> sync.Limiter:
    """The sync limiter of the setting CELLSERVER, or one with other options that belongs to a hashable owner."""
    return _sync.get(owner, options)


class _Limit:
    """A limit around something that makes a response of a request."""

    def __init__(self, options: Mapping[str, Any], charge_when: ChargeWhen | None) -> None:
        self._options = options
        self._charge_when = charge_when

    def check(self) -> None:
        """Checks the configuration. Raises ConfigurationError."""
        limiter_of(self, self._options).start()

    def respond(self, request: Any, make: Callable[[], HttpResponseBase]) -> HttpResponseBase:
        """The response of make, or a denial."""
        limiter = limiter_of(self, self._options)
        charge_when = self._charge_when
        if charge_when is None:
            result = limiter.check(request)
            return _denial(result, limiter.headers) or _with_fields(make(), result, limiter.headers)
        reservation = limiter.reserve(request).__enter__()
        result = reservation.result
        status: int | None = None
        try:
            response = _denial(result, limiter.headers) or make()
            status = response.status_code
        except Exception as error:
            status = _status_of(error)
            raise
        finally:
            settle_sync(reservation, charge_when, status)
        return _with_fields(response, result, limiter.headers)

    async def arespond(self, request: Any, make: Callable[[], Awaitable[HttpResponseBase]]) -> HttpResponseBase:
        """See respond."""
        if not isinstance(request, ASGIRequest):
            # Under WSGI each request has an event loop of its own, and a limiter for asyncio serves only one.
            threaded = limiter_of(self, self._options)
            return await self._around(
                make,
                threaded.headers,
                sync_to_async(lambda: threaded.check(request)),
                sync_to_async(lambda: threaded.reserve(request).__enter__()),
                sync_to_async(settle_sync),
            )
        limiter = _async.get(self, self._options)
        key = await _key_of(limiter, request)
        if key is None:
            return await make()
        return await self._around(
            make,
            limiter.headers,
            lambda: limiter.check(request, key=key),
            lambda: limiter.reserve(request, key=key).__aenter__(),
            settle,
        )

    async def _around(
        self,
        make: Callable[[], Awaitable[HttpResponseBase]],
        headers: Any,
        check: Callable[[], Awaitable[Result]],
        reserve: Callable[[], Awaitable[Any]],
        end: Callable[[Any, ChargeWhen, int | None], Awaitable[None]],
    ) -> HttpResponseBase:
        """See respond. The functions ask a limiter: for a decision, or for a reservation and its end."""
        charge_when = self._charge_when
        if charge_when is None:
            result = await check()
            return _denial(result, headers) or _with_fields(await make(), result, headers)
        reservation = await reserve()
        result = reservation.result
        status: int | None = None
        try:
            response = _denial(result, headers) or await make()
            status = response.status_code
        except Exception as error:
            status = _status_of(error)
            raise
        finally:
            await end(reservation, charge_when, status)
        return _with_fields(response, result, headers)


async def _key_of(limiter: aio.Limiter, request: Any) -> str | None:
    """The key of a request. A user is read from the database in a thread, as Django wants it."""
    try:
        return limiter._key(request)
    except SynchronousOnlyOperation:
        return await sync_to_async(limiter._key)(request)


def _status_of(error: Exception) -> int | None:
    """The status of the response that Django makes of an exception. None for a fault of the application."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), None)


def _denial(result: Result, style: str) -> HttpResponseBase | None:
    """The answer to a request that is denied."""
    status, fields, body = respond(result, style)
    if not status:
        return None
    response: HttpResponseBase = HttpResponse(body, status=status, content_type=PROBLEM_TYPE)
    for name, value in fields:
        response[name] = value
    return response


def _with_fields(response: HttpResponseBase, result: Result, style: str) -> HttpResponseBase:
    """A response with the fields of limits, unless it has them or is a 3xx or 503."""
    if result.allowed and response.status_code != 503 and not 300 <= response.status_code < 400:
        _, fields, _ = respond(result, style)
        for name, value in merged(fields, response.has_header):
            response[name] = value
    return response


class LimitMiddleware:
    """Limits all requests: put it behind AuthenticationMiddleware if the key is the user's.

    The setting CELLSERVER may have skip, a function of the request that is true for those that are not limited, and
    charge_when, a function of the status that is true for the answers whose requests are charged. The configuration is
    checked when Django loads the middleware. Raises ConfigurationError.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        self._skip = _option("skip")
        self._limit = _Limit({}, _option("charge_when"))
        self._limit.check()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Serves a request, or returns an awaitable that does, as the server of the application wants it."""
        if self._skip is not None and self._skip(request):
            return self._get_response(request)
        make = functools.partial(self._get_response, request)
        return self._limit.arespond(request, make) if self._is_async else self._limit.respond(request, make)


def limit(*, charge_when: ChargeWhen | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that limits one view: @limit(policy="login", charge_when=lambda status: status == 403).

    The options are those of a limiter that differ from the setting CELLSERVER. For a class there is method_decorator.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        of_view = _Limit(options, charge_when)
        if iscoroutinefunction(view):

            @functools.wraps(view)
            async def alimited(request: Any, *args: Any, **kwargs: Any) -> Any:
                return await of_view.arespond(request, functools.partial(view, request, *args, **kwargs))

            return alimited

        @functools.wraps(view)
        def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
            return of_view.respond(request, functools.partial(view, request, *args, **kwargs))

        return limited

    return decorate
