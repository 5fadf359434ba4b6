"""limits: fixed, moving and sliding windows in a Redis storage."""

import asyncio
import time

import redis
from limits import aio, parse
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

from checks import (
    MARGIN, URL, admitted, admitted_at_once, client, elsewhere, expect, expect_between,
    expect_error, run,
)

STRATEGIES = {
    "fixed": FixedWindowRateLimiter,
    "moving": MovingWindowRateLimiter,
    "sliding": SlidingWindowCounterRateLimiter,
}


def limiter(strategy):
    # A prefix of its own: the fixed and the moving window would share a key.
    return STRATEGIES[strategy](storage_from_string(URL, key_prefix=strategy))


def hits(strategy, text, key, calls):
    """Counts what passes of so many calls, also for another process."""
    used, limit = limiter(strategy), parse(text)
    return admitted(calls, lambda: used.hit(limit, key))


def exact(strategy):
    used, limit = limiter(strategy), parse("5/hour")
    expect(admitted(9, lambda: used.hit(limit, "exact")), 5, "what passed")
    expect(used.test(limit, "exact"), False, "a further test")
    expect(used.test(limit, "somebody else"), True, "a test of another key")
    stats = used.get_window_stats(limit, "exact")
    expect(stats.remaining, 0, "remaining")
    expect_between(0, stats.reset_time - time.time(), 7201, "seconds to the reset")
    expect(used.hit(limit, "cost", cost=4), True, "a hit for 4")
    expect(used.hit(limit, "cost", cost=2), False, "a hit for 2 of the last 1")
    expect(used.hit(limit, "fine", cost=5), True, "a hit for all")


def fixed_window():
    exact("fixed")


def moving_window():
    exact("moving")


def sliding_window():
    exact("sliding")


def parallel(strategy):
    used, limit = limiter(strategy), parse("10/hour")
    passed = admitted_at_once(40, lambda: used.hit(limit, "parallel"))
    expect(passed, 10, "what passed")


def fixed_window_parallel():
    parallel("fixed")


def moving_window_parallel():
    parallel("moving")


def sliding_window_parallel():
    parallel("sliding")


def fixed_window_reopens():
    used, limit = limiter("fixed"), parse("3/2 seconds")
    expect(admitted(6, lambda: used.hit(limit, "reopens")), 3, "what passed")
    opens = used.get_window_stats(limit, "reopens").reset_time
    expect_between(0, opens - time.time(), 2.1, "seconds to the reset")
    time.sleep(opens - time.time() + MARGIN)
    expect(admitted(6, lambda: used.hit(limit, "reopens")), 3, "what passed afterwards")


def moving_window_reopens():
    used, limit = limiter("moving"), parse("3/2 seconds")
    expect(used.hit(limit, "reopens"), True, "the first hit")
    time.sleep(0.7)
    expect(admitted(3, lambda: used.hit(limit, "reopens")), 2, "what else passed")
    opens = used.get_window_stats(limit, "reopens").reset_time
    expect_between(0, opens - time.time(), 1.4, "seconds until the first hit is forgotten")
    time.sleep(opens - time.time() + 0.15)
    expect(used.hit(limit, "reopens"), True, "a hit when the first is forgotten")
    time.sleep(2 + MARGIN)
    expect(admitted(6, lambda: used.hit(limit, "reopens")), 3, "what passed at last")


def sliding_window_reopens():
    used, limit = limiter("sliding"), parse("4/1 second")
    expect_between(4, admitted(6, lambda: used.hit(limit, "reopens")), 5, "what passed")
    time.sleep(2 + MARGIN)
    expect(used.hit(limit, "reopens"), True, "a hit two windows later")


def other_process():
    for strategy in STRATEGIES:
        expect(hits(strategy, "5/hour", "shared", 2), 2, f"{strategy}: what passed here")
        there = elsewhere(hits, strategy, "5/hour", "shared", 9)
        expect(there, 3, f"{strategy}: what passed in the other process")
        expect(hits(strategy, "5/hour", "shared", 1), 0, f"{strategy}: what passed then")


def clear():
    for strategy in STRATEGIES:
        used, limit = limiter(strategy), parse("2/hour")
        expect(hits(strategy, "2/hour", "cleared", 4), 2, f"{strategy}: what passed")
        used.clear(limit, "cleared")
        expect(hits(strategy, "2/hour", "cleared", 4), 2, f"{strategy}: after clear")


def reset_and_check():
    storage = storage_from_string(URL, key_prefix="fixed")
    expect(storage.check(), True, "check()")
    storage.reset()
    for i in range(20):
        limiter("fixed").hit(parse("2/hour"), f"key {i}")
    expect(storage.reset(), 20, "the keys that reset() removed")
    expect(client().keys("fixed:*"), [], "the keys that are left")


def asynchronous():
    async def main():
        for name, strategy in {
            "fixed": aio.strategies.FixedWindowRateLimiter,
            "moving": aio.strategies.MovingWindowRateLimiter,
            "sliding": aio.strategies.SlidingWindowCounterRateLimiter,
        }.items():
            storage = storage_from_string(
                f"async+{URL}", key_prefix=name, implementation="redispy"
            )
            used, limit = strategy(storage), parse("10/hour")
            answers = await asyncio.gather(*(used.hit(limit, "aio") for _ in range(30)))
            expect(sum(answers), 10, f"{name}: what passed")

    asyncio.run(main())


def errors():
    used, limit = limiter("fixed"), parse("2/hour")
    client().set("fixed:LIMITER/text/2/1/hour", "no number")
    expect_error(
        redis.ResponseError, "value is not an integer", lambda: used.hit(limit, "text")
    )
    wrapped = FixedWindowRateLimiter(storage_from_string(URL, key_prefix="fixed", wrap_exceptions=True))
    expect_error(StorageError, "", lambda: wrapped.hit(limit, "text"))


if __name__ == "__main__":
    run(
        "limits",
        fixed_window, moving_window, sliding_window,
        fixed_window_parallel, moving_window_parallel, sliding_window_parallel,
        fixed_window_reopens, moving_window_reopens, sliding_window_reopens,
        other_process, clear, reset_and_check, asynchronous, errors,
    )
