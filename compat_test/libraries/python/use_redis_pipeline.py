"""redis-py: the window of INCR and EXPIRE, in a transaction, which pipeline() is."""

import time

import redis

from checks import (
    MARGIN, admitted, admitted_at_once, client, elsewhere, expect, expect_between,
    expect_error, run,
)


def window(connection, key, limit, seconds):
    """The window of so many articles: the first hit sets when it ends."""
    pipe = connection.pipeline()
    pipe.incr(key)
    pipe.expire(key, seconds, nx=True)
    count, _ = pipe.execute()
    return count <= limit


def passes(key, limit, calls):
    """Counts what passes of so many calls, also for another process."""
    connection = client()
    return admitted(calls, lambda: window(connection, key, limit, 3600))


def exact():
    expect(passes("exact", 5, 9), 5, "what passed")
    expect(client().get("exact"), b"9", "the counter")
    expect_between(1, client().ttl("exact"), 3600, "its seconds to live")


def parallel():
    connection = client()
    passed = admitted_at_once(40, lambda: window(connection, "parallel", 10, 3600))
    expect(passed, 10, "what passed")


def other_process():
    expect(passes("shared", 5, 2), 2, "what passed here")
    expect(elsewhere(passes, "shared", 5, 9), 3, "what passed in the other process")


def reopens():
    connection = client()
    expect(admitted(6, lambda: window(connection, "reopens", 3, 2)), 3, "what passed")
    expect_between(-2, connection.pttl("reopens"), 2000, "the milliseconds to the end")
    time.sleep(2 + MARGIN)
    expect(admitted(6, lambda: window(connection, "reopens", 3, 2)), 3, "afterwards")


def reset():
    expect(passes("deleted", 2, 4), 2, "what passed")
    expect(client().delete("deleted"), 1, "what was deleted")
    expect(passes("deleted", 2, 4), 2, "what passed afterwards")


def hundred_in_one():
    pipe = client().pipeline()
    for _ in range(100):
        pipe.incr("hundred")
    expect(pipe.execute(), list(range(1, 101)), "the replies")


def log_in_a_transaction():
    """The log of a sorted set: ZREMRANGEBYSCORE, ZADD, ZCARD, EXPIRE."""
    connection = client()

    def hit():
        now = time.time_ns()
        pipe = connection.pipeline()
        pipe.zremrangebyscore("log", 0, now - 1_500_000_000)
        pipe.zadd("log", {str(now): now})
        pipe.zcard("log")
        pipe.expire("log", 60)
        return pipe.execute()[2] <= 3

    expect(admitted(3, hit), 3, "what passed")
    expect(hit(), False, "the fourth")
    time.sleep(1.5 + MARGIN)
    expect(hit(), True, "a hit when all are forgotten")
    expect(connection.zcard("log"), 1, "the entries that are left")


def watch():
    """A counter that many read and write back, which WATCH makes safe."""
    connection = client()

    def add(pipe):
        value = int(pipe.get("watched") or 0)
        pipe.multi()
        pipe.set("watched", value + 1)

    admitted_at_once(8, lambda: connection.transaction(add, "watched"))
    expect(connection.get("watched"), b"8", "the counter")
    with connection.pipeline() as pipe:
        pipe.watch("watched")
        client().incr("watched")
        pipe.multi()
        pipe.set("watched", 0)
        expect_error(redis.WatchError, "", pipe.execute)
    expect(connection.get("watched"), b"9", "the counter")


def errors():
    connection = client()
    connection.set("text", "no number")
    pipe = connection.pipeline()
    pipe.incr("counted").incr("text").incr("counted")
    expect_error(redis.ResponseError, "value is not an integer", pipe.execute)
    expect(connection.get("counted"), b"2", "what the others of the transaction did")
    pipe = connection.pipeline()
    pipe.incr("counted").execute_command("INCR")
    expect_error(redis.ResponseError, "wrong number of arguments", pipe.execute)
    expect(connection.get("counted"), b"2", "what a transaction did that was not accepted")


if __name__ == "__main__":
    run(
        "redis",
        exact, parallel, other_process, reopens, reset, hundred_in_one,
        log_in_a_transaction, watch, errors,
    )
