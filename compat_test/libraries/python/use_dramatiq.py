"""dramatiq's barrier, which waits with BRPOPLPUSH, and its rate limiters over WATCH."""

import threading
import time

import redis
from dramatiq import RateLimitExceeded
from dramatiq.rate_limits import Barrier, BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

from checks import (
    URL, admitted, admitted_at_once, client, elsewhere, expect, expect_between, expect_error, run, window_with,
)

BACKEND = RedisBackend(url=URL)


def barrier_without_waiting():
    barrier = Barrier(BACKEND, "quick", ttl=30_000)
    expect((barrier.create(3), barrier.create(3)), (True, False), "whether it was made")
    expect([barrier.wait(block=False) for _ in range(3)], [False, False, True], "who found it open")


def barrier_of_threads():
    barrier = Barrier(BACKEND, "threads", ttl=30_000)
    barrier.create(10)
    expect(admitted_at_once(10, lambda: barrier.wait(timeout=20_000)), 10, "who passed")
    expect(client().lrange("threads@events", 0, -1), [b"x"], "the event, which goes from one to the next")


def wait_there(key):
    return Barrier(RedisBackend(url=URL), key, ttl=30_000).wait(timeout=20_000)


def barrier_of_processes():
    barrier = Barrier(BACKEND, "processes", ttl=30_000)
    barrier.create(2)
    here = []
    thread = threading.Thread(target=lambda: here.append(barrier.wait(timeout=20_000)))
    thread.start()
    expect(elsewhere(wait_there, "processes"), True, "whether the other process passed")
    thread.join()
    expect(here, [True], "whether this one did")


def barrier_that_nobody_opens():
    barrier = Barrier(BACKEND, "alone", ttl=30_000)
    barrier.create(2)
    began = time.monotonic()
    expect(barrier.wait(timeout=1000), False, "whether it opened")
    expect_between(0.99, time.monotonic() - began, 20, "how long it waited")


def hold(limiter):
    with limiter.acquire(raise_on_failure=False) as got:
        return got


def concurrent():
    limiter = ConcurrentRateLimiter(BACKEND, "concurrent", limit=2, ttl=30_000)
    with limiter.acquire(), limiter.acquire():
        expect(hold(limiter), False, "a third")
        expect_error(RateLimitExceeded, "concurrent", lambda: limiter.acquire().__enter__())
    expect(hold(limiter), True, "one after them")
    expect(client().get("concurrent"), b"0", "how many hold it in the end")


def concurrent_at_once():
    limiter, released = ConcurrentRateLimiter(BACKEND, "at once", limit=4, ttl=30_000), threading.Barrier(20)

    def one():
        with limiter.acquire(raise_on_failure=False) as got:
            released.wait()
        return got

    expect(admitted_at_once(20, one), 4, "who got it")


def bucket():
    limiter = BucketRateLimiter(BACKEND, "bucket", limit=5, bucket=60_000)
    window_with(10, 60)
    expect(admitted(8, lambda: hold(limiter)), 5, "in a bucket")


def window():
    limiter = WindowRateLimiter(BACKEND, "window", limit=5, window=60)
    expect(admitted(8, lambda: hold(limiter)), 5, "in a window")
    expect(admitted_at_once(8, lambda: hold(limiter)), 0, "at once, when it is full")


def errors():
    client().rpush("a list", "element")
    expect_error(redis.ResponseError, "WRONGTYPE", lambda: hold(ConcurrentRateLimiter(BACKEND, "a list", limit=1)))
    client().set("wrong@events", "no list")
    barrier = Barrier(BACKEND, "wrong")
    barrier.create(2)
    expect_error(redis.ResponseError, "WRONGTYPE", lambda: barrier.wait(timeout=1000))


if __name__ == "__main__":
    run(
        "dramatiq", barrier_without_waiting, barrier_of_threads, barrier_of_processes, barrier_that_nobody_opens,
        concurrent, concurrent_at_once, bucket, window, errors,
    )
