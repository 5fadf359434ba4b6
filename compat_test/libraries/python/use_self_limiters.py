"""self-limiters: a semaphore that waits with BLPOP, and a token bucket in a script."""

import asyncio
import time

from self_limiters import MaxSleepExceededError, RedisError, Semaphore, TokenBucket

from checks import URL, client, expect, expect_between, expect_error, run


def semaphore(name, capacity, max_sleep=60.0):
    return Semaphore(name=name, capacity=capacity, max_sleep=max_sleep, redis_url=URL)


def bucket(name, max_sleep=60.0):
    return TokenBucket(
        name=name, capacity=2, refill_amount=1, refill_frequency=1.0, max_sleep=max_sleep, redis_url=URL,
    )


async def blocked(count):
    """Waits until that many clients are blocked."""
    while client().info("clients")["blocked_clients"] != count:
        await asyncio.sleep(0.01)


def never_more_than_its_capacity():
    inside, most, done = 0, 0, 0

    async def one(full):
        nonlocal inside, most, done
        async with semaphore("capacity", 3):
            inside += 1
            most = max(most, inside)
            await full.wait()
            inside -= 1
            done += 1

    async def all_of_them():
        full = asyncio.Event()
        callers = asyncio.gather(*(one(full) for _ in range(20)))
        await blocked(17)
        # The server has answered the three others, but the event loop may not have resumed them.
        while inside < 3:
            await asyncio.sleep(0.01)
        full.set()
        await callers

    asyncio.run(all_of_them())
    expect((most, done), (3, 20), "the most at once, and all")
    expect(client().llen("__self-limiters:capacity"), 3, "what is free in the end")


def in_the_order_of_arrival():
    order = []

    async def one(number):
        async with semaphore("order", 1):
            order.append(number)

    async def all_of_them():
        waiting = []
        async with semaphore("order", 1):
            for number in range(5):
                waiting.append(asyncio.create_task(one(number)))
                await blocked(number + 1)
        await asyncio.gather(*waiting)

    asyncio.run(all_of_them())
    expect(order, [0, 1, 2, 3, 4], "who got it in turn")


def longest_sleep():
    async def main():
        async with semaphore("sleep", 1):
            began = time.monotonic()
            try:
                async with semaphore("sleep", 1, max_sleep=1.0):
                    return 0
            except MaxSleepExceededError:
                return time.monotonic() - began

    expect_between(0.99, asyncio.run(main()), 20, "how long it waited before it gave up")


def what_it_leaves():
    async def main():
        async with semaphore("left", 2):
            pass

    asyncio.run(main())
    expect(client().lrange("__self-limiters:left", 0, -1), [b"1", b"1"], "the list")
    expect_between(1, client().ttl("__self-limiters:left"), 30, "its seconds to live")


def token_bucket():
    async def main():
        began = time.monotonic()
        for _ in range(4):
            async with bucket("bucket"):
                pass
        return time.monotonic() - began

    expect_between(1.8, asyncio.run(main()), 20, "how long four took, of which two were there")


def token_bucket_gives_up():
    async def main():
        for _ in range(2):
            async with bucket("short"):
                pass
        async with bucket("short", max_sleep=0.1):
            pass

    expect_error(MaxSleepExceededError, "", lambda: asyncio.run(main()))


def errors():
    client().set("__self-limiters:wrong", "no list")

    async def main():
        async with semaphore("wrong", 1):
            pass

    expect_error(RedisError, "WRONGTYPE", lambda: asyncio.run(main()))


if __name__ == "__main__":
    run(
        "self-limiters", never_more_than_its_capacity, in_the_order_of_arrival, longest_sleep, what_it_leaves,
        token_bucket, token_bucket_gives_up, errors,
    )
