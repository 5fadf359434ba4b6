"""A project of Django for the tests, in this module."""

from __future__ import annotations

import asyncio
from typing import Any

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="of the tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="djangoproject",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "rest_framework"],
    MIDDLEWARE=[],
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None, "DEFAULT_AUTHENTICATION_CLASSES": []},
    USE_TZ=True,
)
django.setup()

# Django has to be configured before what follows is imported.
from django.core.exceptions import PermissionDenied, SynchronousOnlyOperation  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from cellserver_client.django import limit  # noqa: E402
from cellserver_client.drf import LimitThrottle  # noqa: E402


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


async def ahello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


def status(request: HttpRequest, status: int) -> HttpResponse:
    response = HttpResponse(status=status)
    if status == 299:
        response["RateLimit"] = '"inner";r=1'
    return response


def failing(status: int) -> bool:
    return status >= 400


@limit(policy="login", charge_when=failing)
def login(request: HttpRequest, status: int) -> HttpResponse:
    if status == 403:
        raise PermissionDenied
    if status == 500:
        raise ValueError("of the application")
    return HttpResponse(status=status)


@limit(policy="login", charge_when=failing)
async def alogin(request: HttpRequest, status: int) -> HttpResponse:
    if status == 403:
        raise PermissionDenied
    return HttpResponse(status=status)


@limit(policy="chat")
def chat(request: HttpRequest) -> HttpResponse:
    return HttpResponse("chat")


class Things(APIView):  # type: ignore[misc,unused-ignore]
    throttle_classes: Any = (LimitThrottle,)

    def get(self, request: Any) -> Response:
        return Response("things")


class Uploads(Things):
    throttle_scope = "uploads"


class Both(Things):
    class Minute(LimitThrottle):
        scope = "minute"

    class Day(LimitThrottle):
        scope = "day"
        options = {"cost": 2}  # noqa: RUF012

    throttle_classes = (Minute, Day)


class User:
    """A user that is read from the database when its key is."""

    is_authenticated = True

    def __init__(self, is_async: bool) -> None:
        self._is_async = is_async

    @property
    def pk(self) -> int:
        if self._is_async:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return 7
            raise SynchronousOnlyOperation
        return 7


urlpatterns = [
    path("", hello),
    path("async", ahello),
    path("status/<int:status>", status),
    path("login/<int:status>", login),
    path("alogin/<int:status>", alogin),
    path("chat", chat),
    path("things", Things.as_view()),
    path("uploads", Uploads.as_view()),
    path("both", Both.as_view()),
]
