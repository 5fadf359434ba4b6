"""Django and Django REST framework against the real program."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from django.test import AsyncClient, Client, override_settings
from rest_framework.test import APIClient

from cellserver_client import aio, sync
from cellserver_client.django import ip
from real.servers import Server

CALLERS, ROUNDS, LIMIT = 16, 20, 5


def options(server: Server, policy: str) -> dict[str, Any]:
    return {
        "url": server.url,
        "policy": policy,
        "key": ip(),
        "on_unavailable": "deny",
        "deadline": 1.0,
        "denial_cache": 0,
    }


def at_once(request: Any) -> list[int]:
    """The statuses of as many callers that start together."""
    statuses: list[int] = []
    barrier = threading.Barrier(CALLERS)

    def caller() -> None:
        barrier.wait()
        statuses.append(request())

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return statuses


def test_no_race_of_a_throttle_admits_more_than_the_limit(server: Server) -> None:
    """The check and the count of the framework's own throttles are two steps, between which other requests pass."""
    server.policy("uploads", f"SW {LIMIT} 86400 ANCHOR KEY")
    limiter = sync.Limiter(**options(server, "api"))
    with limiter, override_settings(CELLSERVER={"limiter": limiter}):
        for n in range(ROUNDS):
            statuses = at_once(lambda n=n: APIClient().get("/uploads", REMOTE_ADDR=f"203.0.113.{n}").status_code)
            away = statuses.count(503)
            assert LIMIT - away <= statuses.count(200) <= LIMIT
            assert statuses.count(200) + statuses.count(429) + away == CALLERS


def test_no_race_of_the_middleware_admits_more_than_the_limit(server: Server) -> None:
    for policy in ("many", "more"):
        server.policy(policy, f"SW {LIMIT} 86400 ANCHOR KEY")
    limiter, of_asgi = sync.Limiter(**options(server, "many")), aio.Limiter(**options(server, "more"))
    both = {"limiter": limiter, "async_limiter": of_asgi}
    with limiter, override_settings(CELLSERVER=both, MIDDLEWARE=["cellserver_client.django.LimitMiddleware"]):
        statuses = at_once(lambda: Client().get("/").status_code)
        away = statuses.count(503)
        assert LIMIT - away <= statuses.count(200) <= LIMIT

        async def of_asyncio() -> list[int]:
            client: Any = AsyncClient()
            answers = await asyncio.gather(*(client.get("/") for _ in range(CALLERS)))
            await of_asgi.aclose()
            return [answer.status_code for answer in answers]

        statuses = asyncio.run(of_asyncio())
        assert LIMIT - statuses.count(503) <= statuses.count(200) <= LIMIT


def test_asynchronous_views_of_wsgi_do_not_share_event_loops(server: Server) -> None:
    """Under WSGI each request of a thread has an event loop of its own."""
    server.policy("login", f"SW {LIMIT} 86400 ANCHOR KEY")
    limiter, of_asgi = sync.Limiter(**options(server, "login")), aio.Limiter(**options(server, "login"))
    with limiter, override_settings(CELLSERVER={"limiter": limiter, "async_limiter": of_asgi}):
        for n in range(ROUNDS):
            statuses = at_once(lambda n=n: Client(REMOTE_ADDR=f"203.0.113.{n}").get("/alogin/401").status_code)
            assert len(statuses) == CALLERS
            assert statuses.count(401) <= LIMIT
