"""The middleware and the dependency of FastAPI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import Depends, FastAPI, HTTPException, Request, Response, WebSocket
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from cellserver_client import ConfigurationError, Result
from cellserver_client.fastapi import Limited, LimitMiddleware, first, header, ip, user
from cellserver_client.testing import FakeLimiter


def limited(**options: Any) -> FakeLimiter:
    return FakeLimiter(**dict[str, Any](policy="api", limits="TB 2 1 60", key=ip(trusted_hops=1)) | options)


def application(limiter: FakeLimiter, **options: Any) -> FastAPI:
    app = FastAPI()
    app.add_middleware(LimitMiddleware, limiter=limiter, **options)

    @app.get("/")
    async def hello() -> str:
        return "hello"

    @app.get("/own")
    async def own(response: Response) -> str:
        response.headers["RateLimit"] = '"inner";r=1'
        return "own"

    @app.get("/fault")
    async def fault() -> str:
        raise ValueError("of the application")

    @app.get("/status/{status}")
    async def status(status: int) -> Response:
        return Response(status_code=status)

    @app.websocket("/ws")
    async def ws(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    return app


def client_of(app: FastAPI) -> TestClient:
    return TestClient(app, client=("203.0.113.9", 4711), follow_redirects=False)


def test_fields_are_added_to_answers_and_a_denial_is_a_problem() -> None:
    limiter = limited()
    with client_of(application(limiter)) as client:
        answer = client.get("/")
        assert answer.text == '"hello"'
        assert answer.headers["RateLimit"] == '"api";r=1;t=60'
        assert answer.headers["RateLimit-Policy"] == '"api";q=2'
        client.get("/")
        denied = client.get("/")
        assert denied.status_code == 429
        assert denied.headers["Retry-After"] == "60"
        assert denied.headers["content-type"] == "application/problem+json"
        assert denied.json()["violated-policies"] == ["api"]
        assert client.head("/").content == b""
        limiter.advance(60)
        assert client.get("/").status_code == 200


def test_fields_of_an_inner_limiter_stay_and_redirects_and_503_have_none() -> None:
    with client_of(application(limited(limits="TB 9 1 60"))) as client:
        assert client.get("/own").headers["RateLimit"] == '"inner";r=1'
        for status in (302, 503):
            assert "RateLimit" not in client.get(f"/status/{status}").headers


def test_a_server_that_is_away_is_503_or_no_matter() -> None:
    for mode, status in [("deny", 503), ("allow", 200)]:
        limiter = limited(on_unavailable=mode)
        with client_of(application(limiter)) as client:
            limiter.go_away()
            answer = client.get("/")
            assert answer.status_code == status
            assert "RateLimit" not in answer.headers
            assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)


def test_a_client_chooses_its_key_by_no_header() -> None:
    limiter = limited()
    with client_of(application(limiter)) as client:
        client.get("/", headers={"X-Forwarded-For": "6.6.6.6, 198.51.100.7"})
        client.get("/")
    assert [call.key for call in limiter.calls] == ["198.51.100.7", "203.0.113.9"]


def test_skipped_requests_are_not_charged() -> None:
    limiter = limited()
    with client_of(application(limiter, skip=lambda request: request.url.path == "/")) as client:
        assert [client.get("/").status_code for _ in range(5)] == [200] * 5
    assert limiter.calls == []


def test_the_application_is_called_once_and_its_errors_are_its_own() -> None:
    limiter = limited()
    with client_of(application(limiter)) as client, pytest.raises(ValueError, match="of the application"):
        client.get("/fault")
    assert len(limiter.calls) == 1


def test_a_policy_that_is_missing_stops_the_start() -> None:
    limiter = FakeLimiter(policy="apii", key=ip())
    sent: list[Any] = []

    async def run() -> None:
        messages = [{"type": "lifespan.startup"}]

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError("the application does not start")

        await LimitMiddleware(app, limiter)({"type": "lifespan"}, receive, send)

    asyncio.run(run())
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "NOPOLICY" in sent[0]["message"]


def test_a_policy_that_is_missing_is_500_also_under_allow() -> None:
    limiter = FakeLimiter(policy="apii", key=ip(), on_unavailable="allow")
    client = TestClient(application(limiter), client=("203.0.113.9", 1), raise_server_exceptions=False)
    assert client.get("/").status_code == 500


def test_handshakes_of_websockets_are_limited() -> None:
    with client_of(application(limited(limits="TB 1 1 60"))) as client:
        with client.websocket_connect("/ws") as socket:
            assert socket.receive_text() == "hello"
        with pytest.raises((WebSocketDisconnect, Exception)) as refused:
            client.websocket_connect("/ws").__enter__()
        assert getattr(refused.value, "status_code", None) == 429 or getattr(refused.value, "code", None) == 1013


def routes(limiter: FakeLimiter) -> FastAPI:
    app = FastAPI()
    chat = limiter(policy="chat", key=header("x-user", secret=False), cost=lambda request: 2)

    @app.post("/chat", dependencies=[Depends(chat)])
    async def chat_route() -> str:
        return "chat"

    @app.get("/left")
    async def left(result: Result = Depends(limiter())) -> int:
        return result.remaining

    return app


def test_a_route_has_a_limit_of_its_own() -> None:
    limiter = limited(limits=(), policies={"api": "TB 2 1 60", "chat": "TB 4 1 60"})
    with client_of(routes(limiter)) as client:
        ann = {"x-user": "ann"}
        assert client.post("/chat", headers=ann).headers["RateLimit"] == '"chat";r=2;t=120'
        client.post("/chat", headers=ann)
        denied = client.post("/chat", headers=ann)
        assert denied.status_code == 429
        assert denied.headers["content-type"] == "application/problem+json"
        assert denied.headers["Retry-After"] == "120"
        assert denied.json()["violated-policies"] == ["chat"]
        assert client.post("/chat", headers={"x-user": "bob"}).status_code == 200
        assert client.get("/left").json() == 1


def failed(status: int) -> bool:
    return status >= 400


def test_charge_when_charges_by_the_status() -> None:
    limiter = limited(limits="TB 9 1 600")
    with client_of(application(limiter, charge_when=failed)) as client:
        first = client.get("/")
        assert first.headers["RateLimit"].startswith('"api";r=8;')
        for path in ("/", "/status/302", "/status/401", "/status/503"):
            client.get(path)
        with pytest.raises(ValueError, match="of the application"):
            client.get("/fault")
        with client.websocket_connect("/ws") as socket:
            assert socket.receive_text() == "hello"
    assert limiter.server.held == {}
    assert asyncio.run(limiter.check(key="203.0.113.9", cost=0)).remaining == 9 - 3


def test_charge_when_denies_what_has_no_room_for_the_answer() -> None:
    with client_of(application(limited(limits="TB 1 1 600"), charge_when=failed)) as client:
        assert [client.get(f"/status/{status}").status_code for status in (200, 200, 401, 200)] == [200, 200, 401, 429]


def login(limiter: FakeLimiter, charge_when: Any = failed) -> FastAPI:
    app = FastAPI()

    @app.post("/login/{status}", dependencies=[Depends(limiter(policy="login", charge_when=charge_when))])
    async def login(status: int) -> Response:
        if status == 422:
            raise HTTPException(422)
        return Response(status_code=status)

    return app


def test_a_route_may_charge_by_the_status_with_the_middleware_around() -> None:
    limiter = limited(limits=(), policies={"api": "TB 99 1 600", "login": "TB 3 1 600"})
    app = login(limiter)
    app.add_middleware(LimitMiddleware, limiter=limiter)
    with client_of(app) as client:
        got = [client.post(f"/login/{status}").status_code for status in (200, 401, 200, 422, 401, 200)]
    assert got == [200, 401, 200, 422, 401, 429]
    assert limiter.server.held == {}


def test_a_route_may_charge_by_the_status_without_a_limit_of_the_application() -> None:
    limiter = limited(limits=(), policies={"login": "TB 1 1 600"})
    app = login(limiter)
    app.add_middleware(LimitMiddleware)
    with client_of(app) as client:
        assert [client.post(f"/login/{status}").status_code for status in (200, 401, 200)] == [200, 401, 429]


def test_a_route_that_charges_by_the_status_needs_the_middleware() -> None:
    limiter = limited(limits=(), policies={"login": "TB 1 1 600"})
    with client_of(login(limiter)) as client, pytest.raises(ConfigurationError, match="LimitMiddleware"):
        client.post("/login/200")


def test_a_function_that_raises_charges_nothing() -> None:
    limiter = limited(limits=(), policies={"login": "TB 1 1 600"})

    def wrong(status: int) -> bool:
        raise ValueError("of the application")

    app = login(limiter, wrong)
    app.add_middleware(LimitMiddleware)
    with client_of(app) as client:
        for _ in range(3):
            with pytest.raises(ValueError, match="of the application"):
                client.post("/login/401")
    assert limiter.server.held == {}


def test_an_application_may_answer_denials_itself() -> None:
    limiter = limited(limits=(), policies={"api": "TB 2 1 60", "chat": "TB 1 1 60"})
    app = routes(limiter)

    @app.exception_handler(Limited)
    async def own(request: Request, error: Limited) -> Response:
        return Response(f"wait {error.result.retry_after} or never: {error.result.never}", 429)

    with client_of(app) as client:
        answer = client.post("/chat", headers={"x-user": "ann"})
        assert (answer.status_code, answer.text) == (429, "wait None or never: True")


def test_users_are_limited_by_name_and_others_by_address() -> None:
    class Ann:
        is_authenticated = True
        identity = "ann"

    key = first(user, ip())
    scope = {"type": "http", "headers": [], "client": ("203.0.113.9", 1)}
    assert key(Request({**scope, "user": Ann()})) == "user:ann"
    assert key(Request(scope)) == "203.0.113.9"
