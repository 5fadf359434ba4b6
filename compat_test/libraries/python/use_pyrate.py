"""pyrate-limiter: its Redis bucket, a log in a sorted set that a script keeps."""

import asyncio
import time

import redis
import redis.asyncio
from pyrate_limiter import Duration, Limiter, Rate, RedisBucket

from checks import (
    MARGIN, URL, Failed, admitted, admitted_at_once, client, elsewhere, expect,
    expect_between, expect_error, run,
)

INSTANT = time.time_ns() // 1_000_000


def bucket(key, *rates):
    return RedisBucket.init(list(rates), client(), key)


def taker(key, *rates):
    """A function that asks once, without waiting."""
    limiter = Limiter(bucket(key, *rates))
    return lambda weight=1: limiter.try_acquire("caller", weight=weight, blocking=False)


def takes(key, limit, calls):
    """Counts what passes of so many calls, also for another process."""
    return admitted(calls, taker(key, Rate(limit, Duration.HOUR)))


def exact():
    expect(takes("exact", 5, 9), 5, "what passed")
    expect(client().zcard("exact"), 5, "the entries of the sorted set")


def weights():
    take = taker("weights", Rate(10, Duration.HOUR))
    expect(take(7), True, "an item of 7")
    expect(take(4), False, "an item of 4 of the last 3")
    expect(take(3), True, "an item of 3")
    many = taker("many", Rate(5000, Duration.HOUR))
    expect(many(4000), True, "an item of 4000")
    expect(many(1001), False, "an item of 1001 of the last 1000")


def several_rates():
    take = taker("rates", Rate(3, 1000), Rate(5, Duration.HOUR))
    expect(admitted(4, take), 3, "what passed in the first second")
    time.sleep(1 + MARGIN)
    expect(admitted(4, take), 2, "what the hour had left")


class SameInstant(RedisBucket):
    """A bucket whose clock stands still.

    The script does not count entries that are newer than the caller's own instant, so
    callers who read the clock and are overtaken exceed the limit, on any server.
    """

    def now(self):
        return INSTANT


def parallel():
    # A limiter for each, since one that is in use refuses who would not wait for it.
    rates = [Rate(10, Duration.HOUR)]
    limiters = [Limiter(SameInstant.init(rates, client(), "parallel")) for _ in range(40)]
    passed = admitted_at_once(40, lambda: limiters.pop().try_acquire("caller", blocking=False))
    expect(passed, 10, "what passed")


def other_process():
    expect(takes("shared", 5, 2), 2, "what passed here")
    expect(elsewhere(takes, "shared", 5, 9), 3, "what passed in the other process")
    expect(takes("shared", 5, 1), 0, "what passed then")


def reopens():
    take = taker("reopens", Rate(3, 1500))
    expect(admitted(6, take), 3, "what passed")
    time.sleep(1.5 + MARGIN)
    expect(admitted(6, take), 3, "what passed afterwards")


def waiting():
    limiter = Limiter(bucket("waiting", Rate(2, 1000)))
    before = time.monotonic()
    for _ in range(3):
        expect(limiter.try_acquire("caller"), True, "a call that waits")
    expect_between(0.9, time.monotonic() - before, 60, "seconds for one more than the limit")


def leak_and_peek():
    one = bucket("leak", Rate(3, 1000))
    take = Limiter(one)
    before = one.now()
    expect(take.try_acquire("caller", blocking=False), True, "a call")
    expect_between(before, one.peek(0).timestamp, one.now(), "the newest entry's instant")
    expect(one.peek(1), None, "the entry before it")
    expect(one.leak(one.now() + 5000), 1, "what leaked five seconds later")
    expect(one.count(), 0, "the entries that are left")


def flush():
    expect(takes("flushed", 2, 4), 2, "what passed")
    bucket("flushed", Rate(2, Duration.HOUR)).flush()
    expect(client().exists("flushed"), 0, "the keys that are left")
    expect(takes("flushed", 2, 4), 2, "what passed afterwards")


def asynchronous():
    async def main():
        connection = redis.asyncio.Redis.from_url(URL)
        one = await RedisBucket.init([Rate(10, Duration.HOUR)], connection, "aio")
        limiter = Limiter(one)
        answers = await asyncio.gather(
            *(limiter.try_acquire_async("caller", blocking=False) for _ in range(30))
        )
        expect(sum(map(bool, answers)), 10, "what passed")

    asyncio.run(main())


def errors():
    take = taker("text", Rate(2, Duration.HOUR))
    client().set("text", "no sorted set")
    expect_error(redis.ResponseError, "WRONGTYPE", take)
    client().delete("text")
    client().script_flush()
    expect_error(redis.exceptions.NoScriptError, "", take)
    if not taker("text", Rate(2, Duration.HOUR))():
        raise Failed("a new bucket, which loads the script again, refused")


if __name__ == "__main__":
    run(
        "pyrate-limiter",
        exact, weights, several_rates, parallel, other_process, reopens, waiting,
        leak_and_peek, flush, asynchronous, errors,
    )
