"""redis-py's Lock: SET with NX and PX, and scripts to release and extend it."""

import time

import redis

from checks import (
    MARGIN, admitted_at_once, client, elsewhere, expect, expect_between, expect_error, run,
)


def try_lock(name):
    """Tries to take a lock without waiting, also in another process."""
    return client().lock(name, timeout=60).acquire(blocking=False)


def one_holder():
    lock = client().lock("one", timeout=60)
    expect(lock.acquire(), True, "the first")
    expect((lock.locked(), lock.owned()), (True, True), "locked and owned")
    expect(try_lock("one"), False, "a second")
    expect(elsewhere(try_lock, "one"), False, "one of another process")
    lock.release()
    expect(lock.locked(), False, "locked after the release")
    expect(elsewhere(try_lock, "one"), True, "one of another process after it")


def at_once():
    expect(admitted_at_once(20, lambda: try_lock("at once")), 1, "who got it")


def mutual_exclusion():
    connection = client()

    def add():
        with connection.lock("adding", timeout=60, sleep=0.01):
            value = int(connection.get("sum") or 0)
            time.sleep(0.002)
            connection.set("sum", value + 1)
        return True

    expect(admitted_at_once(16, add), 16, "how many had it in turn")
    expect(connection.get("sum"), b"16", "the sum")


def waiting():
    held = client().lock("waiting", timeout=3)
    held.acquire()
    other = client().lock("waiting", timeout=60)
    expect(other.acquire(blocking_timeout=0.2), False, "one who waits too short a time")
    expect(other.acquire(blocking_timeout=30), True, "one who waits for the timeout")


def expiry():
    lock = client().lock("expiry", timeout=0.5)
    lock.acquire()
    expect_between(-2, client().pttl("expiry"), 500, "the milliseconds to live")
    time.sleep(0.5 + MARGIN)
    expect(lock.owned(), False, "owned when it has ended")
    expect(try_lock("expiry"), True, "another who takes it")
    expect_error(redis.exceptions.LockNotOwnedError, "", lock.release)
    expect(client().exists("expiry"), 1, "whether the other still has it")


def extend():
    lock = client().lock("extended", timeout=20)
    lock.acquire()
    lock.extend(100)
    expect_between(100_000, client().pttl("extended"), 120_000, "the milliseconds, longer")
    lock.extend(30, replace_ttl=True)
    expect_between(20_001, client().pttl("extended"), 30_000, "the milliseconds, replaced")
    lock.reacquire()
    expect_between(1, client().pttl("extended"), 20_000, "the milliseconds, as at first")
    client().delete("extended")
    expect_error(redis.exceptions.LockNotOwnedError, "", lambda: lock.extend(5))


def errors():
    client().rpush("a list", "element")
    lock = client().lock("a list", timeout=60)
    expect(lock.acquire(blocking=False), False, "a lock where a list is")
    lock.local.token = b"token"
    expect_error(redis.ResponseError, "WRONGTYPE", lock.release)


if __name__ == "__main__":
    run("redis", one_holder, at_once, mutual_exclusion, waiting, expiry, extend, errors)
