"""slowapi: a Starlette application whose limits are kept in a Redis."""

import time

import slowapi
import slowapi.errors
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from checks import MARGIN, URL, admitted, admitted_at_once, elsewhere, expect, expect_between, run


def application():
    limiter = slowapi.Limiter(
        key_func=lambda request: request.headers["X-User"], storage_uri=URL,
        headers_enabled=True,
    )

    @limiter.limit("5/hour")
    async def five(request):
        return PlainTextResponse("five")

    @limiter.limit("10/hour")
    def ten(request):  # not a coroutine: runs in a thread
        return PlainTextResponse("ten")

    @limiter.limit("3/2 seconds")
    async def seconds(request):
        return PlainTextResponse("seconds")

    app = Starlette(routes=[Route("/" + f.__name__, f) for f in (five, ten, seconds)])
    app.state.limiter = limiter
    app.add_exception_handler(
        slowapi.errors.RateLimitExceeded, slowapi._rate_limit_exceeded_handler
    )
    return app


def get(app, path, user):
    return TestClient(app).get(path, headers={"X-User": user})


def passes(path, user, calls):
    """Counts what passes of so many requests, also for another process."""
    app = application()
    return admitted(calls, lambda: get(app, path, user).status_code == 200)


def exact():
    expect(passes("/five", "exact", 9), 5, "what passed")
    expect(passes("/five", "another", 1), 1, "what passed of another user")


def headers():
    app = application()
    answer = get(app, "/five", "headers").headers
    expect((answer["X-RateLimit-Limit"], answer["X-RateLimit-Remaining"]), ("5", "4"), "they")
    passes("/five", "headers", 9)
    refused = get(app, "/five", "headers")
    expect(refused.status_code, 429, "the status")
    expect_between(1, int(refused.headers["Retry-After"]), 3602, "Retry-After")


def parallel():
    app = application()
    passed = admitted_at_once(20, lambda: get(app, "/ten", "parallel").status_code == 200)
    expect(passed, 10, "what passed")


def other_process():
    expect(passes("/five", "far", 2), 2, "what passed here")
    expect(elsewhere(passes, "/five", "far", 9), 3, "what passed in the other process")


def reopens():
    expect(passes("/seconds", "reopens", 6), 3, "what passed")
    time.sleep(2 + MARGIN)
    expect(passes("/seconds", "reopens", 6), 3, "what passed afterwards")


def reset():
    app = application()
    expect(passes("/five", "reset", 9), 5, "what passed")
    app.state.limiter.reset()
    expect(passes("/five", "reset", 9), 5, "what passed afterwards")


if __name__ == "__main__":
    run("slowapi", exact, headers, parallel, other_process, reopens, reset)
