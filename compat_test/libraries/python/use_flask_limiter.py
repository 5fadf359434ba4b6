"""Flask-Limiter: Flask applications whose limits are kept in a Redis."""

import time

import flask
from flask_limiter import Limiter

from checks import (
    MARGIN, URL, admitted, admitted_at_once, client, elsewhere, expect, expect_between, run,
)


def application(strategy="fixed-window", uri=URL, **options):
    """An application with some limits, and its limiter."""
    app = flask.Flask("compat")
    limiter = Limiter(
        lambda: flask.request.headers["X-User"], app=app, storage_uri=uri,
        strategy=strategy, headers_enabled=True, key_prefix=strategy, **options,
    )

    @app.get("/five")
    @limiter.limit("5/hour")
    def five():
        return "five"

    @app.get("/two-limits")
    @limiter.limit("100/hour")
    @limiter.limit("3/2 seconds")
    def two_limits():
        return "two limits"

    @app.get("/costly")
    @limiter.limit("10/hour", cost=lambda: int(flask.request.args["cost"]))
    def costly():
        return "costly"

    @app.get("/ten")
    @limiter.limit("10/hour")
    def ten():
        return "ten"

    shared = limiter.shared_limit("4/hour", scope="shared")
    app.get("/a")(shared(lambda: "a"))
    app.add_url_rule("/b", "b", shared(lambda: "b"))
    return app, limiter


def get(app, path, user):
    return app.test_client().get(path, headers={"X-User": user})


def passes(strategy, path, user, calls):
    """Counts what passes of so many requests, also for another process."""
    app, _ = application(strategy)
    return admitted(calls, lambda: get(app, path, user).status_code == 200)


def exact(strategy):
    expect(passes(strategy, "/five", "exact", 9), 5, "what passed")
    app, _ = application(strategy)
    refused = get(app, "/five", "exact")
    expect(refused.status_code, 429, "the status")
    expect_between(1, int(refused.headers["Retry-After"]), 7200, "Retry-After")
    expect(get(app, "/five", "another").status_code, 200, "the status of another user")


def fixed_window():
    exact("fixed-window")


def moving_window():
    exact("moving-window")


def sliding_window_counter():
    exact("sliding-window-counter")


def headers():
    app, _ = application()
    answer = get(app, "/five", "headers").headers
    expect((answer["X-RateLimit-Limit"], answer["X-RateLimit-Remaining"]), ("5", "4"), "they")
    reset = int(answer["X-RateLimit-Reset"]) - time.time()
    expect_between(0, reset, 3602, "the seconds to the reset")


def several_limits():
    app, _ = application()
    passed = lambda: get(app, "/two-limits", "several").status_code == 200
    expect(admitted(6, passed), 3, "what passed")
    wait = int(get(app, "/two-limits", "several").headers["Retry-After"])
    expect_between(0, wait, 3, "Retry-After")
    time.sleep(2 + MARGIN)
    expect(admitted(6, passed), 3, "what passed afterwards")


def costs():
    app, _ = application("moving-window")
    statuses = [get(app, f"/costly?cost={n}", "costs").status_code for n in (7, 4, 3, 1)]
    expect(statuses, [200, 429, 200, 429], "the statuses")


def shared_limit():
    app, _ = application()
    statuses = [get(app, path, "shared").status_code for path in ("/a", "/b") * 3]
    expect(statuses, [200] * 4 + [429] * 2, "the statuses")


def parallel():
    for strategy in ("fixed-window", "moving-window", "sliding-window-counter"):
        app, _ = application(strategy)
        passed = admitted_at_once(
            40, lambda: get(app, "/ten", "parallel").status_code == 200
        )
        expect(passed, 10, f"{strategy}: what passed")


def other_process():
    for strategy in ("fixed-window", "moving-window", "sliding-window-counter"):
        expect(passes(strategy, "/five", "far", 2), 2, f"{strategy}: what passed here")
        there = elsewhere(passes, strategy, "/five", "far", 9)
        expect(there, 3, f"{strategy}: what passed in the other process")


def reset():
    _, limiter = application()
    expect(passes("fixed-window", "/five", "reset", 9), 5, "what passed")
    limiter.reset()
    expect(passes("fixed-window", "/five", "reset", 9), 5, "what passed afterwards")


def errors():
    app, _ = application()
    get(app, "/five", "errors")
    connection = client()
    [key] = connection.keys("*errors*")
    connection.set(key, "no number")
    app.logger.disabled = True
    expect(get(app, "/five", "errors").status_code, 500, "the status after an error")
    away, _ = application(
        uri="redis://127.0.0.1:1", in_memory_fallback=["1/hour"], swallow_errors=True
    )
    away.logger.disabled = True
    expect(get(away, "/five", "away").status_code, 200, "the status with nobody there")


if __name__ == "__main__":
    run(
        "Flask-Limiter",
        fixed_window, moving_window, sliding_window_counter, headers, several_limits,
        costs, shared_limit, parallel, other_process, reset, errors,
    )
