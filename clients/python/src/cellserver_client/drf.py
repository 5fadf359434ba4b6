"""A throttle for Django REST framework, whose scopes are policies of the server. One command decides: there is no race."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.exceptions import APIException
from rest_framework.throttling import BaseThrottle

from .django import limiter_of
from .headers import fields
from .keys import combine, first, header, ip, user
from .result import NOT_LIMITED, Result

__all__ = ["LimitThrottle", "LimiterUnavailable", "combine", "first", "header", "ip", "user"]


class LimiterUnavailable(APIException):  # type: ignore[misc,unused-ignore]
    """The answer 503 while the server is away, with on_unavailable="deny"."""

    status_code = 503
    default_detail = "Service temporarily unavailable, try again later."
    default_code = "service_unavailable"
    wait = 1
    """The seconds of Retry-After."""


class LimitThrottle(BaseThrottle):  # type: ignore[misc,unused-ignore]
    """A throttle: DEFAULT_THROTTLE_CLASSES = ["cellserver_client.drf.LimitThrottle"].

    The policy is scope of a subclass, or throttle_scope of the view, or that of the setting CELLSERVER, which has the
    address of the server, the key and what happens while the server is away. options of a subclass are options of its
    limiter, such as key. The fields RateLimit and RateLimit-Policy are added to the answer.
    """

    scope: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    result: Result = NOT_LIMITED

    def allow_request(self, request: Any, view: Any) -> bool:
        """Decides a request. Raises LimiterUnavailable and LimiterError."""
        scope = self.scope or getattr(view, "throttle_scope", None)
        options = {**({"policy": scope} if scope else {}), **self.options}
        limiter = limiter_of((type(self), scope), options)
        self.result = result = limiter.check(request)
        if result.source == "unavailable" and not result.allowed:
            raise LimiterUnavailable
        headers = getattr(view, "headers", None)
        if result.answer is not None and isinstance(headers, dict):
            for name, value in fields(result.answer, limiter.headers):
                if name.startswith("RateLimit") and name in headers:
                    value = f"{headers[name]}, {value}"  # of another throttle: both fields are lists
                if name != "Retry-After":  # the framework has that of the longest wait
                    headers[name] = value
        return result.allowed

    def wait(self) -> float | None:
        """The seconds until the request would pass. None if it never does."""
        return self.result.retry_after
