"""Reservations against the real program."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient

from cellserver_client import aio, sync
from cellserver_client.fastapi import LimitMiddleware
from real.servers import Proxy, Server
from real.test_server import NEVER, constant


def options(**more: Any) -> dict[str, Any]:
    return dict[str, Any](policy="llm", key=constant("a"), on_unavailable="deny", deadline=1.0) | more


@pytest.fixture(params=["asyncio", "sync"])
def work(request: pytest.FixtureRequest) -> Any:
    """Reserves 800 units for each entry of a list: the actual units, or None for a failure. Returns what was allowed."""

    def of_sync(url: str, entries: list[int | None], more: dict[str, Any]) -> list[bool]:
        out = []
        with sync.Limiter(url, **options(**more)) as limiter:
            for actual in entries:
                try:
                    with limiter.reserve(None, 800, ttl=60) as reservation:
                        out.append(bool(reservation))
                        if actual is None:
                            raise ValueError
                        reservation.actual = actual
                except ValueError:
                    pass
        return out

    async def of_asyncio(url: str, entries: list[int | None], more: dict[str, Any]) -> list[bool]:
        out = []
        async with aio.Limiter(url, **options(**more)) as limiter:
            for actual in entries:
                try:
                    async with limiter.reserve(None, 800, ttl=60) as reservation:
                        out.append(bool(reservation))
                        if actual is None:
                            raise ValueError
                        reservation.actual = actual
                except ValueError:
                    pass
        return out

    def run(url: str, entries: list[int | None], **more: Any) -> list[bool]:
        return of_sync(url, entries, more) if request.param == "sync" else asyncio.run(of_asyncio(url, entries, more))

    return run


def left(server: Server, policy: str = "llm", key: str = "a") -> int:
    reply = server.command("RL.USE", policy, key, "0")
    assert isinstance(reply, list)
    remaining: int = reply[2]
    return remaining


def test_the_server_has_the_actual_units_of_each_reservation(server: Server, work: Any) -> None:
    server.policy("llm", "SW 2000 86400 FIXED ANCHOR KEY")
    assert work(server.url, [300, None, 850, 0, 100, 0]) == [True] * 5 + [False]
    assert left(server) == 2000 - 300 - 850 - 100


def test_inline_limits_are_settled_too(server: Server, work: Any) -> None:
    limits = ["SW 2 86400 CALLS", "SW 1000 86400"]
    assert work(server.url, [100, None, 50, 0], policy="own", limits=limits) == [True, True, True, False]
    reply: Any = server.command("SW.ALLOW", "own:a#2", "1000", "86400", "0")
    assert reply[2] == 850


def test_ends_count_once_behind_a_proxy_that_drops_replies(server: Server, work: Any) -> None:
    """An end whose two sendings are lost leaves its 800 units, until their time to live is over."""
    server.policy("llm", "SW 1000000 86400 ANCHOR KEY")
    proxy = Proxy(server.port, 0.1)
    passed = sum(work(proxy.url, [10] * 100, breaker=NEVER))
    proxy.close()
    used, counted = 1000000 - left(server), info(server)
    held = counted["reservations_made"] - counted["reservations_committed"]
    assert passed > 50
    assert (used - 800 * held) % 10 == 0
    assert (passed - held) * 10 <= used - 800 * held <= 100 * 10


def info(server: Server) -> dict[str, int]:
    out: Any = server.command("INFO")
    return {name: value for name, value in out.items() if name.startswith("reservations_")}


def test_work_longer_than_the_time_to_live_keeps_its_units(server: Server) -> None:
    server.policy("llm", "SW 2000 86400 ANCHOR KEY")
    wait = 5.0  # of two renewals in a time to live of 4 s, one may be 2 s late

    def of_sync() -> None:
        with sync.Limiter(server.url, **options()) as limiter, limiter.reserve(None, 800, ttl=4) as reservation:
            time.sleep(wait)
            reservation.actual = 100

    async def of_asyncio() -> None:
        async with aio.Limiter(server.url, **options()) as limiter, limiter.reserve(None, 800, ttl=4) as reservation:
            await asyncio.sleep(wait)
            reservation.actual = 100

    thread = threading.Thread(target=of_sync)
    thread.start()
    asyncio.run(of_asyncio())
    thread.join()
    assert left(server) == 1800
    counted = info(server)
    assert (counted["reservations_committed"], counted["reservations_late"], counted["reservations_expired"]) == (2, 0, 0)


def test_only_failed_logins_are_charged(server: Server) -> None:
    server.policy("login", "SW 3 86400 ANCHOR KEY")
    app = FastAPI()
    limiter = aio.Limiter(server.url, **options(policy="login"))
    app.add_middleware(LimitMiddleware, limiter=limiter, charge_when=lambda status: status == 401)

    @app.get("/{status}")
    async def login(status: int) -> Response:
        return Response(status_code=status)

    with TestClient(app) as client:
        got = [client.get(f"/{status}").status_code for status in (200, 200, 401, 200, 401, 401, 200)]
    assert got == [200, 200, 401, 200, 401, 401, 429]
    assert left(server, "login") == 0
