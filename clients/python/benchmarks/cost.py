"""CPU of the process for one check, beside redis-py itself, in interleaved rounds: the median of each.

Usage: python benchmarks/cost.py redis://127.0.0.1:6379 [ROUNDS]. The server needs no policy.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import redis.asyncio

from cellserver_client import aio, sync
from cellserver_client.testing import FakeLimiter

LIMITS = "TB 1000000000 1000000 1"
KEYS = itertools.cycle([f"k{i}" for i in range(1000)])


def options(**more: Any) -> dict[str, Any]:
    return dict[str, Any](policy="cost", limits=LIMITS, key=lambda _: next(KEYS), on_unavailable="allow", deadline=1.0) | more


async def cpu(calls: int, in_flight: int, call: Callable[[], Awaitable[Any]]) -> float:
    """Microseconds of CPU for one call."""

    async def caller() -> None:
        for _ in range(calls // in_flight):
            await call()

    begun = time.process_time()
    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return (time.process_time() - begun) / calls * 1e6


async def run(url: str, rounds: int) -> None:
    """Prints a line for each way of asking."""
    client: Any = redis.asyncio.Redis.from_url(url, protocol=2)
    limiter = aio.Limiter(url, **options())
    denied = aio.Limiter(url, **options(limits="TB 1 1 3600", policy="denied", key=lambda _: "one"))
    await denied.check()
    threads = sync.Limiter(url, **options())
    local = FakeLimiter(limits="TB 1 1 1", policy="local", key=lambda _: next(KEYS), on_unavailable="local", instances=1)
    local.go_away("refused")
    for _ in range(5):
        await local.check()  # opens the breaker, which time does not close

    async def plain() -> None:
        await client.execute_command("TB.ACQUIRE", f"cost:{next(KEYS)}", 1000000000, 1000000, 1000, 1, "MS")

    async def of_threads() -> None:
        threads.check()

    async def repeated() -> None:
        if (await denied.check()).source not in ("cache", "server"):
            raise RuntimeError("the server is away")

    ways: dict[str, tuple[int, int, Callable[[], Awaitable[Any]]]] = {
        "redis-py asyncio, 1 in flight": (1000, 1, plain),
        "aio.Limiter, 1 in flight": (1000, 1, limiter.check),
        "redis-py asyncio, 32 in flight": (3200, 32, plain),
        "aio.Limiter, 32 in flight": (3200, 32, limiter.check),
        "sync.Limiter": (1000, 1, of_threads),
        "a denial from memory": (5000, 1, repeated),
        "the limiter in the process": (5000, 1, local.check),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (calls, in_flight, call) in ways.items():
            times[name].append(await cpu(calls, in_flight, call))
    for name, each in times.items():
        print(f"{name:32} {statistics.median(each):7.1f} us")
    await client.aclose()
    for each in (limiter, denied):
        await each.aclose()
    threads.close()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7))
