"""throttled-py: its five algorithms, four of them scripts."""

import asyncio
import datetime
import time

import redis
import throttled.asyncio
from throttled import RateLimiterType, Throttled, exceptions, rate_limiter, store

from checks import (
    MARGIN, URL, admitted, admitted_at_once, client, elsewhere, expect, expect_between,
    expect_error, run, window_with,
)

HOUR = 3600


def limiter(using, limit, key="key", seconds=HOUR, **more):
    quota = rate_limiter.per_duration(
        datetime.timedelta(seconds=seconds), limit=limit, burst=limit
    )
    return Throttled(
        key=key, using=using, quota=quota, store=store.RedisStore(server=URL), **more
    )


def passed(using, limit, key, calls):
    """Counts what passes of so many calls, also for another process."""
    used = limiter(using, limit, key)
    return admitted(calls, lambda: not used.limit().limited)


def algorithm(using):
    """Exact one after the other, at once, and for another key and cost."""
    window_with(20, HOUR)
    expect(passed(using, 5, "exact", 9), 5, "what passed")
    used = limiter(using, 10)
    result = used.limit("state", cost=4)
    expect((result.limited, result.state.limit), (False, 10), "what a cost of 4 says")
    expect(result.state.remaining, 6, "remaining")
    expect(used.peek("state").remaining, 6, "what peek says")
    expect(used.limit("state", cost=7).limited, True, "limited for a cost of 7")
    at_once = limiter(using, 10, "parallel")
    expect(admitted_at_once(40, lambda: not at_once.limit().limited), 10, "passed at once")


def fixed_window():
    algorithm(RateLimiterType.FIXED_WINDOW.value)


def sliding_window():
    algorithm(RateLimiterType.SLIDING_WINDOW.value)


def token_bucket():
    algorithm(RateLimiterType.TOKEN_BUCKET.value)


def leaking_bucket():
    algorithm(RateLimiterType.LEAKING_BUCKET.value)


def gcra():
    algorithm(RateLimiterType.GCRA.value)


def other_process():
    window_with(20, HOUR)
    for one in RateLimiterType:
        expect(passed(one.value, 5, "shared", 2), 2, f"{one}: what passed here")
        there = elsewhere(passed, one.value, 5, "shared", 9)
        expect(there, 3, f"{one}: what passed in the other process")


def reopens():
    for one in (RateLimiterType.TOKEN_BUCKET, RateLimiterType.GCRA):
        used = limiter(one.value, 2, "reopens", seconds=4)
        expect(admitted(2, lambda: not used.limit().limited), 2, f"{one}: what passed")
        refused = used.limit()
        expect(refused.limited, True, f"{one}: limited")
        wait = refused.state.retry_after
        expect_between(0.0001, wait, 3, f"{one}: the seconds to wait")
        # The token bucket of this library counts whole seconds.
        time.sleep(wait + 1 + MARGIN)
        expect(used.limit().limited, False, f"{one}: limited after the wait")


def waits():
    used = limiter(RateLimiterType.GCRA.value, 1, "waits", seconds=1, timeout=30)
    before = time.monotonic()
    for _ in range(3):
        expect(used.limit().limited, False, "limited with a timeout")
    expect_between(1.9, time.monotonic() - before, 60, "the seconds for three calls")


def decorator():
    @limiter(RateLimiterType.GCRA.value, 2, "decorated")
    def work():
        return "done"

    expect([work(), work()], ["done", "done"], "two calls")
    expect_error(exceptions.LimitedError, "Rate limit exceeded", work)


def keys_of_the_store():
    kept = store.RedisStore(server=URL)
    kept.set("kept", 7, 60)
    expect((kept.exists("kept"), kept.get("kept")), (True, 7), "what is kept")
    expect_between(1, kept.ttl("kept"), 60, "the seconds it is kept")
    kept.hset("hash", mapping={"a": 1, "b": 2.5})
    expect(kept.hgetall("hash"), {"a": 1, "b": 2.5}, "the hash")
    connection = client()
    expect(passed(RateLimiterType.GCRA.value, 2, "deleted", 3), 2, "what passed")
    expect(connection.delete(*connection.keys("throttled:*gcra*deleted")), 1, "keys deleted")
    expect(passed(RateLimiterType.GCRA.value, 2, "deleted", 3), 2, "what passed then")


def asynchronous():
    async def main():
        window_with(20, HOUR)
        kept = throttled.asyncio.RedisStore(server=URL)
        for one in RateLimiterType:
            used = throttled.asyncio.Throttled(
                key="aio", using=one.value, store=kept,
                quota=throttled.asyncio.rate_limiter.per_hour(10, burst=10),
            )
            answers = await asyncio.gather(*(used.limit() for _ in range(30)))
            expect(sum(not a.limited for a in answers), 10, f"{one}: what passed")

    asyncio.run(main())


def errors():
    used = limiter(RateLimiterType.TOKEN_BUCKET.value, 2, "text")
    used.limit()
    connection = client()
    [key] = connection.keys("throttled:*token_bucket*text")
    connection.set(key, "no hash")
    why = expect_error(exceptions.StoreUnavailableError, "", used.limit)
    expect(isinstance(why.__cause__, redis.ResponseError), True, "whether the server said it")
    expect("WRONGTYPE" in str(why.__cause__), True, "whether WRONGTYPE is in the text")


if __name__ == "__main__":
    run(
        "throttled-py",
        fixed_window, sliding_window, token_bucket, leaking_bucket, gcra,
        other_process, reopens, waits, decorator, keys_of_the_store, asynchronous, errors,
    )
