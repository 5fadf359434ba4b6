"""The storage for the package limits against the real program: by itself, in Flask-Limiter and in slowapi."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from flask import Flask
from flask_limiter import Limiter as FlaskLimiter
from flask_limiter.util import get_remote_address
from limits import parse
from limits.aio.strategies import STRATEGIES as ASYNC_STRATEGIES
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES
from slowapi import Limiter as SlowLimiter
from slowapi import _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from starlette.responses import Response

import cellserver_client.limits
from cellserver_client import ConfigurationError
from real.servers import Server, free_port

OURS = ("gcra", "sliding", "fixed")
THEIRS = ("moving-window", "sliding-window-counter", "fixed-window")


class Either:
    """A strategy of limits or limits.aio behind one face, which counts the calls to the server."""

    def __init__(self, kind: str, url: str, strategy: str, **options: Any) -> None:
        options = {"deadline": 1.0, **options}
        uri = url.replace("redis://", "async+cellserver://" if kind == "asyncio" else "cellserver://")
        make: Any = storage_from_string
        self.storage: Any = make(uri, **options)
        self._loop = asyncio.new_event_loop() if kind == "asyncio" else None
        strategies: Any = ASYNC_STRATEGIES if self._loop else STRATEGIES
        self.limiter: Any = strategies[strategy](self.storage)
        self.calls = 0
        link = self.storage._root._link
        plain = link.send

        def counting(call: Any) -> Any:
            self.calls += 1
            return plain(call)

        link.send = counting

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work) if self._loop else work

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.limiter, name, None) or getattr(self.storage, name)
        return lambda *words, **options: self.run(method(*words, **options))

    def end(self) -> None:
        self.run(self.storage.aclose() if self._loop else self.storage.close())
        if self._loop:
            self._loop.close()


@pytest.fixture(params=["asyncio", "sync"])
def make(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    made: list[Either] = []

    def of(strategy: str, url: str = server.url, **options: Any) -> Either:
        made.append(Either(request.param, url, strategy, **options))
        return made[-1]

    yield of
    for each in made:
        each.end()


@pytest.mark.parametrize("strategy", [*OURS, *THEIRS])
def test_each_strategy_admits_the_limit_and_tells_the_rest(make: Any, strategy: str) -> None:
    limiter, item = make(strategy), parse("3/hour")
    assert limiter.test(item, "ann")
    assert [limiter.hit(item, "ann") for _ in range(4)] == [True, True, True, False]
    assert not limiter.test(item, "ann")
    assert limiter.hit(item, "bob", cost=2)
    assert not limiter.hit(item, "bob", cost=2)
    assert limiter.get_window_stats(item, "bob").remaining == 1
    stats = limiter.get_window_stats(item, "ann")
    assert stats.remaining == 0
    assert 0 < stats.reset_time - time.time() <= (1200 if strategy == "gcra" else 7200)
    limiter.clear(item, "ann")
    assert limiter.get_window_stats(item, "ann").remaining == 3
    assert limiter.hit(item, "ann")


@pytest.mark.parametrize("strategy", OURS)
def test_a_hit_and_its_statistics_are_one_call(make: Any, strategy: str) -> None:
    limiter, item = make(strategy), parse("100/hour")
    for n in range(1, 4):
        begun = time.monotonic()
        assert limiter.hit(item, "ann")
        assert limiter.get_window_stats(item, "ann").remaining >= 100 - n
        if time.monotonic() - begun < 0.5:  # what is older than a second is asked for again
            assert limiter.calls == n
        limiter.calls = n


def test_the_keys_of_a_storage_are_reset_together(make: Any, server: Server) -> None:
    limiter, item = make("fixed", key_prefix="app"), parse("1/hour")
    server.command("SET", "other", "1")
    for name in "abc":
        limiter.hit(item, name)
    assert limiter.reset() == 3
    assert limiter.hit(item, "a")
    assert server.command("GET", "other") is not None
    assert limiter.check()


def test_a_server_that_is_away_is_an_error_or_as_asked_for(make: Any) -> None:
    nowhere, item = f"redis://127.0.0.1:{free_port()}", parse("2/hour")
    limiter = make("gcra", nowhere)
    assert not limiter.check()
    for method in (limiter.hit, limiter.test, limiter.get_window_stats, limiter.clear):
        with pytest.raises(cellserver_client.limits.StorageUnavailable):
            method(item, "ann")
    with pytest.raises(StorageError):
        make("fixed-window", nowhere, wrap_exceptions=True).hit(item, "ann")
    allowing = make("gcra", nowhere, on_unavailable="allow")
    assert all(allowing.hit(item, "ann") for _ in range(5))
    assert allowing.get_window_stats(item, "ann").remaining == 2
    local = make("gcra", nowhere, on_unavailable="local", instances=2)
    assert [local.hit(item, "ann") for _ in range(2)] == [True, False]


def test_wrong_options_are_errors_at_once(make: Any) -> None:
    for options in ({"on_unavailable": "deny"}, {"key_prefix": "a:b"}, {"deadline": 9}):
        with pytest.raises(ConfigurationError):
            make("gcra", **options)
    with pytest.raises(ConfigurationError, match="key_for"):
        make("fixed").incr("no key", 60)


def flask_app(uri: str, strategy: str, **options: Any) -> Any:
    app = Flask("tests")
    limiter = FlaskLimiter(
        get_remote_address,
        app=app,
        storage_uri=uri,
        strategy=strategy,
        headers_enabled=True,
        default_limits=["3/hour"],
        **options,
    )

    @app.get("/")
    def hello() -> str:
        return "hello"

    @app.get("/several")
    @limiter.limit("2/minute;5/hour")
    def several() -> str:
        return "several"

    return app


@pytest.mark.parametrize("strategy", [*OURS, *THEIRS])
def test_flask_limiter(server: Server, strategy: str) -> None:
    app = flask_app(server.url.replace("redis", "cellserver"), strategy, storage_options={"deadline": 1.0})
    client = app.test_client()
    answers = [client.get("/") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    wait = int(answers[3].headers["Retry-After"])
    assert 0 < wait <= (1201 if strategy == "gcra" else 7201)
    assert [client.get("/several").status_code for _ in range(3)] == [200, 200, 429]


def test_flask_limiter_without_a_server_falls_back_to_its_memory() -> None:
    app = flask_app(f"cellserver://127.0.0.1:{free_port()}", "gcra", in_memory_fallback_enabled=True)
    client = app.test_client()
    assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]


@pytest.mark.parametrize("strategy", OURS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of slowapi
def test_slowapi(server: Server, strategy: str) -> None:
    limiter = SlowLimiter(
        key_func=lambda request: "ann",
        storage_uri=server.url.replace("redis", "cellserver"),
        storage_options={"deadline": 1.0},  # type: ignore[dict-item]
        strategy=strategy,
        headers_enabled=True,
    )
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)  # type: ignore[arg-type]

    @app.get("/")
    @limiter.limit("2/hour")
    async def hello(request: Request, response: Response) -> str:
        return "hello"

    with TestClient(app) as client:
        answers = [client.get("/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert 0 < int(answers[2].headers["Retry-After"]) <= 7201
