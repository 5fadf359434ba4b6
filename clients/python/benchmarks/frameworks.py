"""CPU of the process that limits add to a request of FastAPI, beside other packages, in interleaved rounds: the medians.

Usage: python benchmarks/frameworks.py redis://CELLSERVER redis://REDIS [ROUNDS]. The applications are called without a
server of HTTP in between. slowapi and fastapi-limiter 0.1.6 are measured where they are installed.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import redis.asyncio
from fastapi import Depends, FastAPI, Request, Response

from cellserver_client.fastapi import Limiter, LimitMiddleware

MOST = 1_000_000_000
ADDRESSES = itertools.cycle([f"10.0.{i // 250}.{i % 250}" for i in range(1000)])
IN_FLIGHT = (1, 32)


def address(request: Any) -> str:
    host: str = request.client.host
    return host


def unlimited() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def hello() -> str:
        return "hello"

    return app


def ours(url: str, *, middleware: bool) -> FastAPI:
    limiter = Limiter(url, policy="bench", limits=f"TB {MOST} 1000000 1", key=address, on_unavailable="deny", deadline=1.0)
    if middleware:
        app = unlimited()
        app.add_middleware(LimitMiddleware, limiter=limiter)
        return app
    app = FastAPI()

    @app.get("/", dependencies=[Depends(limiter())])
    async def hello() -> str:
        return "hello"

    return app


def plain(url: str) -> FastAPI:
    """A dependency as it is written without a package."""
    client: Any = redis.asyncio.Redis.from_url(url, protocol=2)
    app = FastAPI()

    async def limit(request: Request, response: Response) -> None:
        reply = await client.execute_command("TB.ACQUIRE", f"plain:{address(request)}", MOST, 1_000_000, 1000, 1, "MS")
        response.headers["X-RateLimit-Remaining"] = str(reply[2])

    @app.get("/", dependencies=[Depends(limit)])
    async def hello() -> str:
        return "hello"

    return app


def slowapi(uri: str, strategy: str, **options: Any) -> FastAPI:
    import slowapi

    limiter = slowapi.Limiter(
        key_func=address, storage_uri=uri, strategy=strategy, storage_options=options, headers_enabled=True
    )
    app = FastAPI()
    app.state.limiter = limiter

    @app.get("/")
    @limiter.limit(f"{MOST}/minute")
    async def hello(request: Request, response: Response) -> str:
        return "hello"

    return app


async def fastapi_limiter(url: str) -> FastAPI:
    from fastapi_limiter import FastAPILimiter
    from fastapi_limiter.depends import RateLimiter

    async def identifier(request: Any) -> str:
        return address(request)

    await FastAPILimiter.init(redis.asyncio.Redis.from_url(url), identifier=identifier)
    app = FastAPI()

    @app.get("/", dependencies=[Depends(RateLimiter(times=MOST, seconds=60))])
    async def hello() -> str:
        return "hello"

    return app


async def request(app: FastAPI) -> None:
    """One GET. Raises RuntimeError unless the answer is 200."""

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        if message.get("status", 200) != 200:
            raise RuntimeError(f"the answer is {message['status']}")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": (next(ADDRESSES), 4711),
        "server": ("localhost", 80),
    }
    await app(scope, receive, send)


async def cpu(app: FastAPI, requests: int, in_flight: int) -> float:
    """Microseconds of CPU for one request."""

    async def caller() -> None:
        for _ in range(requests // in_flight):
            await request(app)

    begun = time.process_time()
    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return (time.process_time() - begun) / requests * 1e6


async def run(cellserver: str, other: str, rounds: int) -> None:
    """Prints a line for each way: the CPU, and what the limit adds to it."""
    import cellserver_client.limits  # noqa: F401

    ways: dict[str, Callable[[], Any]] = {
        "no limit": unlimited,
        "LimitMiddleware": lambda: ours(cellserver, middleware=True),
        "LimitDependency": lambda: ours(cellserver, middleware=False),
        "a dependency on redis-py": lambda: plain(cellserver),
        "fastapi-limiter on Redis": lambda: fastapi_limiter(other),
        "slowapi on Redis": lambda: slowapi(other, "fixed-window"),
        "slowapi on cellserver://": lambda: slowapi(cellserver.replace("redis", "cellserver", 1), "fixed", deadline=1.0),
    }
    apps: dict[str, FastAPI] = {}
    for name, make in ways.items():
        try:
            app = make()
            apps[name] = await app if asyncio.iscoroutine(app) else app
        except ImportError as error:
            print(f"{name}: {error}")
    times: dict[tuple[str, int], list[float]] = {(name, n): [] for name in apps for n in IN_FLIGHT}
    for _ in range(rounds):
        for (name, n), each in times.items():
            each.append(await cpu(apps[name], 640, n))
    print(f"{'':26}" + "".join(f"{n:>8} in flight  added" for n in IN_FLIGHT))
    for name in apps:
        medians = [(statistics.median(times[name, n]), statistics.median(times["no limit", n])) for n in IN_FLIGHT]
        print(f"{name:26}" + "".join(f"{median:15.0f} us {median - none:6.0f}" for median, none in medians))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 7))
