"""redis-rate-limiters: semaphores that wait with BLPOP, and token buckets in a script."""

import asyncio
import threading
import time

import redis
import redis.asyncio
from limiters import (
    AsyncSemaphore, AsyncTokenBucket, MaxSleepExceededError, SyncSemaphore, SyncTokenBucket,
)

from checks import URL, admitted_at_once, client, elsewhere, expect, expect_between, expect_error, run


def semaphore(name, capacity, max_sleep=60.0):
    return SyncSemaphore(client(), name=name, capacity=capacity, max_sleep=max_sleep)


def bucket(name, max_sleep=60.0):
    return SyncTokenBucket(
        client(), name=name, capacity=2, refill_frequency=1.0, refill_amount=1, max_sleep=max_sleep,
    )


def enter(limiter):
    with limiter:
        return True


def blocked(count):
    """Waits until that many clients are blocked."""
    while client().info("clients")["blocked_clients"] != count:
        time.sleep(0.01)


def never_more_than_its_capacity():
    lock, full, inside, most = threading.Lock(), threading.Event(), 0, 0

    def one():
        nonlocal inside, most
        with semaphore("capacity", 3):
            with lock:
                inside += 1
                most = max(most, inside)
            full.wait()
            with lock:
                inside -= 1
        return True

    def fill():
        blocked(17)
        # The server has answered the three others, but their threads may not have counted themselves.
        while most < 3:
            time.sleep(0.01)
        full.set()

    threading.Thread(target=fill).start()
    expect(admitted_at_once(20, one), 20, "how many got it")
    expect(most, 3, "the most at once")
    expect(client().llen("{limiter}:semaphore:capacity"), 3, "what is free in the end")


def in_the_order_of_arrival():
    order, threads = [], []

    def one(number):
        with semaphore("order", 1):
            order.append(number)

    with semaphore("order", 1):
        for number in range(5):
            threads.append(threading.Thread(target=one, args=(number,)))
            threads[-1].start()
            blocked(number + 1)
    for thread in threads:
        thread.join()
    expect(order, [0, 1, 2, 3, 4], "who got it in turn")


def enter_one(name):
    return enter(semaphore(name, 1))


def another_process():
    held = semaphore("process", 1)
    with held:
        threading.Timer(0.3, lambda: held.__exit__(None, None, None)).start()
        expect(elsewhere(enter_one, "process"), True, "one of another process that waits")
        client().blpop(held.key, 20)  # for the release behind this


def longest_sleep():
    with semaphore("sleep", 1):
        began = time.monotonic()
        expect_error(MaxSleepExceededError, "waiting for Semaphore", lambda: enter(semaphore("sleep", 1, 1.0)))
        expect_between(0.99, time.monotonic() - began, 20, "how long it waited before it gave up")
    expect(enter(semaphore("sleep", 1, 1.0)), True, "one that comes when it is free")


def what_it_leaves():
    enter(semaphore("left", 2))
    for name in "{limiter}:semaphore:left", "{limiter}:semaphore:left-exists":
        expect_between(1, client().ttl(name), 30, "the seconds to live")


def asynchronous():
    async def one(connection):
        async with AsyncSemaphore(connection, name="async", capacity=2, max_sleep=60.0):
            await asyncio.sleep(0.02)

    async def main():
        connection = redis.asyncio.from_url(URL)
        await asyncio.gather(*(one(connection) for _ in range(10)))
        for _ in range(2):
            async with AsyncTokenBucket(
                connection, name="async", capacity=2, refill_frequency=1.0, refill_amount=1, max_sleep=60.0,
            ):
                pass
        await connection.aclose()

    asyncio.run(main())
    expect(client().llen("{limiter}:semaphore:async"), 2, "what is free in the end")


def token_bucket():
    began = time.monotonic()
    for _ in range(4):
        enter(bucket("bucket"))
    expect_between(1.8, time.monotonic() - began, 20, "how long four took, of which two were there")


def token_bucket_gives_up():
    enter(bucket("short"))
    enter(bucket("short"))
    expect_error(MaxSleepExceededError, "exceeds the maximum", lambda: enter(bucket("short", 0.1)))


def errors():
    client().set("{limiter}:semaphore:wrong", "no list")
    expect_error(redis.ResponseError, "WRONGTYPE", lambda: enter(semaphore("wrong", 1)))


if __name__ == "__main__":
    run(
        "redis-rate-limiters", never_more_than_its_capacity, in_the_order_of_arrival, another_process, longest_sleep,
        what_it_leaves, asynchronous, token_bucket, token_bucket_gives_up, errors,
    )
