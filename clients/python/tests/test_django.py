"""The middleware and the decorator of Django, with the double of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory, override_settings
from djangoproject import User

from cellserver_client import ConfigurationError, ServerFault
from cellserver_client.django import LimitMiddleware, first, ip, limit, limiter_of, user
from cellserver_client.testing import Clock, FakeLimiter, FakeSyncLimiter

MIDDLEWARE = ["cellserver_client.django.LimitMiddleware"]
POLICIES = {"api": "TB 2 1 60", "chat": "TB 1 1 60", "login": "TB 2 1 600"}


class Doubles:
    """Both doubles, which share a server."""

    def __init__(self, **options: Any) -> None:
        clock = Clock()
        options = dict[str, Any](policy="api", policies=POLICIES, key=ip()) | options
        self.sync, self.asyncio = FakeSyncLimiter(clock, **options), FakeLimiter(clock, **options)
        self.asyncio.server = self.asyncio._link._server = self.sync.server  # type: ignore[attr-defined]

    def setting(self, **more: Any) -> dict[str, Any]:
        return {"limiter": self.sync, "async_limiter": self.asyncio, **more}


@pytest.fixture
def doubles() -> Iterator[Doubles]:
    made = Doubles()
    with override_settings(CELLSERVER=made.setting(), MIDDLEWARE=MIDDLEWARE):
        yield made


class Sync:
    """A client through WSGI."""

    def __init__(self) -> None:
        self._client: Any = Client(raise_request_exception=False)

    def get(self, path: str, **more: Any) -> Any:
        return self._client.get(path, **more)


class Async:
    """A client through ASGI, for which the middleware is asynchronous."""

    def __init__(self) -> None:
        self._client: Any = AsyncClient(raise_request_exception=False)

    def get(self, path: str, **more: Any) -> Any:
        return asyncio.run(self._client.get(path, **more))


@pytest.fixture(params=[Sync, Async])
def client(request: pytest.FixtureRequest, doubles: Doubles) -> Any:
    return request.param()


def test_fields_are_added_to_answers_and_a_denial_is_a_problem(client: Any, doubles: Doubles) -> None:
    answer = client.get("/")
    assert (answer.content, answer["RateLimit"], answer["RateLimit-Policy"]) == (b"hello", '"api";r=1;t=60', '"api";q=2')
    assert client.get("/async")["RateLimit"] == '"api";r=0;t=120'
    denied = client.get("/")
    assert (denied.status_code, denied["Retry-After"]) == (429, "60")
    assert denied["Content-Type"] == "application/problem+json"
    assert denied.json()["violated-policies"] == ["api"]
    doubles.sync.advance(60)
    assert client.get("/").status_code == 200
    assert {call.key for call in doubles.sync.calls} == {"127.0.0.1"}


def test_fields_of_an_inner_limiter_stay_and_redirects_have_none(client: Any) -> None:
    assert client.get("/status/299")["RateLimit"] == '"inner";r=1'
    assert "RateLimit" not in client.get("/status/302")


@pytest.mark.parametrize(("mode", "status"), [("deny", 503), ("allow", 200)])
@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_server_that_is_away_is_503_or_no_matter(kind: Any, mode: str, status: int) -> None:
    doubles = Doubles(on_unavailable=mode)
    with override_settings(CELLSERVER=doubles.setting(), MIDDLEWARE=MIDDLEWARE):
        client = kind()
        client.get("/")
        doubles.sync.go_away("refused")
        answer = client.get("/")
    assert answer.status_code == status
    assert "RateLimit" not in answer
    assert answer.get("Retry-After") == ("1" if status == 503 else None)


@pytest.mark.parametrize("kind", [Sync, Async])
def test_requests_may_be_skipped_and_charged_by_their_status(kind: Any) -> None:
    doubles = Doubles()
    setting = doubles.setting(skip=lambda request: request.path == "/", charge_when=lambda status: status >= 400)
    with override_settings(CELLSERVER=setting, MIDDLEWARE=MIDDLEWARE):
        client = kind()
        got = [client.get(path).status_code for path in ("/", "/status/200", "/status/404", "/status/500", "/status/200", "/")]
    assert got == [200, 200, 404, 500, 429, 200]
    assert doubles.sync.server.held == {}


@pytest.mark.parametrize("view", ["login", "alogin"])
def test_a_view_charges_by_the_status_also_of_exceptions(client: Any, doubles: Doubles, view: str) -> None:
    with override_settings(MIDDLEWARE=[]):
        got = [client.get(f"/{view}/{status}").status_code for status in (200, 403, 200, 401, 200)]
    assert got == [200, 403, 200, 401, 429]
    assert doubles.sync.server.held == {}


def test_a_fault_of_the_application_charges_nothing(client: Any, doubles: Doubles) -> None:
    with override_settings(MIDDLEWARE=[]):
        assert [client.get("/login/500").status_code for _ in range(4)] == [500] * 4
    assert doubles.sync.server.held == {}


def test_a_view_has_a_limit_of_its_own(client: Any, doubles: Doubles) -> None:
    with override_settings(MIDDLEWARE=[]):
        assert client.get("/chat")["RateLimit"] == '"chat";r=0;t=60'
        assert client.get("/chat").json()["violated-policies"] == ["chat"]


def test_an_application_is_not_loaded_without_its_policy() -> None:
    for setting in (Doubles(policy="apii").setting(), None):
        with override_settings(CELLSERVER=setting), pytest.raises(ConfigurationError):
            LimitMiddleware(lambda request: None)


def test_the_setting_makes_the_limiter() -> None:
    setting = {"url": "redis://127.0.0.1:1", "policy": "api", "key": ip(), "on_unavailable": "allow", "skip": None}
    with override_settings(CELLSERVER=setting):
        limiter = limiter_of()
        assert limiter.target.policy == "api"
        assert limiter_of() is limiter
        assert limiter_of("one", {"policy": "other"}) is limiter_of("one", {"policy": "other"})
    with override_settings(CELLSERVER={**setting, "policy": "new"}):
        assert limiter_of().target.policy == "new"


def test_a_user_is_read_in_a_thread_where_django_wants_it() -> None:
    doubles = Doubles(key=first(user, ip()))

    @limit()
    async def view(request: Any) -> Any:
        return HttpResponse("hello")

    async def run() -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("203.0.113.9", 1)}
        request: Any = ASGIRequest(scope, None)
        request.user = User(is_async=True)
        assert (await view(request))["RateLimit"] == '"api";r=1;t=60'

    with override_settings(CELLSERVER=doubles.setting()):
        asyncio.run(run())
    assert [call.key for call in doubles.sync.calls] == ["user:7"]


def test_a_request_without_a_key_is_not_limited() -> None:
    doubles = Doubles(key=user)
    with override_settings(CELLSERVER=doubles.setting(), MIDDLEWARE=MIDDLEWARE):
        for kind in (Sync, Async):
            assert [kind().get("/").status_code for _ in range(4)] == [200] * 4
    assert doubles.sync.calls == []


def test_faults_of_the_program_are_raised() -> None:
    doubles = Doubles()

    @limit()
    def view(request: Any) -> Any:
        raise AssertionError("the view is not called")

    def wrong(call: Any) -> Any:
        return "OK"

    doubles.sync.server.answer = wrong  # type: ignore[method-assign]
    with override_settings(CELLSERVER=doubles.setting()), pytest.raises(ServerFault):
        view(RequestFactory().get("/"))
