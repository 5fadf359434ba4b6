"""Counts through failovers with the support of redis-py for Sentinel.

What it reads from its environment and reports is said in ../README.md. A call is made once:
redis-py would make it again by itself, and then nobody could say how often it ran.
"""

import json
import os
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, MasterDownError, ReadOnlyError, RedisError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

# How many threads share the pace.
WORKERS = 2
# How long a call may take, in seconds.
CALL_WITHIN = 2
# How long a worker waits after a failure, in seconds: a primary that is away refuses at once.
AFTER_FAILURE = 0.02


def never_ran(error):
    """Tells whether a call has certainly not run."""
    if isinstance(error, (BusyLoadingError, MasterDownError, MasterNotFoundError, ReadOnlyError)):
        return True
    # What redis-py says when it cannot connect, and of the reply READONLY of a former primary.
    text = str(error)
    return "connecting to" in text or "previous master" in text


class Load:
    """What the workers did. Its lock guards all fields below it."""

    def __init__(self, client):
        self.client = client
        self.counter = os.environ["CELL_KEY"]
        self.hot_call = os.environ["CELL_HOT"].split()
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.acked = self.unknown = self.refused = 0
        self.last = time.monotonic_ns()
        self.longest = 0
        self.mark = None
        self.hot = []
        self.errors = {}

    def work(self, interval):
        due = time.monotonic()
        made = 0
        while not self.ending.is_set():
            made += 1
            if not self.once(made % 4 == 0):
                self.ending.wait(AFTER_FAILURE)
            # Calls that a failure kept from being made are not made later.
            due = max(due + interval, time.monotonic() - interval)
            self.ending.wait(max(0, due - time.monotonic()))

    def once(self, hot):
        called = time.monotonic_ns()
        try:
            reply = self.client.execute_command(*self.hot_call) if hot else self.client.incr(self.counter)
        except (RedisError, OSError) as error:
            self.failed(error, hot)
            return False
        self.answered(called, time.monotonic_ns(), hot, hot and reply[0] == 0)
        return True

    def failed(self, error, hot):
        with self.lock:
            text = type(error).__name__
            self.errors[text] = self.errors.get(text, 0) + 1
            if hot:
                return
            if never_ran(error):
                self.refused += 1
            else:
                self.unknown += 1

    def answered(self, called, returned, hot, admitted):
        with self.lock:
            self.longest = max(self.longest, returned - self.last)
            self.last = max(returned, self.last)
            if admitted:
                self.hot.append((called, returned))
            if not hot:
                self.acked += 1
            if self.mark is not None and called >= self.mark:
                self.mark = None
                print("answered", flush=True)

    def marked(self):
        with self.lock:
            self.mark = time.monotonic_ns()

    def report(self):
        return {
            "library": "redis-py", "version": redis.__version__,
            "acked": self.acked, "unknown": self.unknown, "refused": self.refused,
            "longest_ms": self.longest / 1e6, "hot": self.hot, "errors": self.errors,
        }


def main():
    addresses = [address.rsplit(":", 1) for address in os.environ["CELL_SENTINELS"].split(",")]
    sentinel = Sentinel([(host, int(port)) for host, port in addresses], socket_timeout=CALL_WITHIN)
    client = sentinel.master_for(
        os.environ["CELL_MASTER"], socket_timeout=CALL_WITHIN, retry=Retry(NoBackoff(), 0)
    )
    load = Load(client)
    interval = WORKERS / float(os.environ["CELL_PACE"])
    threads = [threading.Thread(target=load.work, args=(interval,)) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        if line == "mark\n":
            load.marked()
    load.ending.set()
    for thread in threads:
        thread.join()
    print(json.dumps(load.report()), flush=True)


if __name__ == "__main__":
    main()
