"""Drives the cache of redis-py: python caching.py

What it reports is said in the README of the clients.
"""

import os
import threading
import time

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

# redis-py wants 7.4 for its cache, of which it uses nothing. See docs/differences.md.
CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"

PATIENCE = 5  # seconds that an invalidation may take on its way


def main():
    host, port = os.environ["CELL_ADDR"].rsplit(":", 1)
    address = {"host": host, "port": int(port), "decode_responses": True}
    reader = redis.Redis(**address, protocol=3, cache_config=CacheConfig())
    writer, others = redis.Redis(**address), redis.Redis(**address)
    print("info library redis-py")
    print("info version", redis.__version__)

    over = threading.Event()

    def make_noise():
        i = 0
        while not over.is_set():
            others.set(f"noise:{i % 4}", i)
            i += 1

    noise = threading.Thread(target=make_noise)
    noise.start()
    try:
        stale, hits = rounds(reader, writer)
    finally:
        over.set()
        noise.join()
    ok = stale == 0 and hits > 0
    print("ok never-stale" if ok else f"FAIL never-stale: {stale} stale, {hits} kept")
    raise SystemExit(0 if ok else 1)


def rounds(reader, writer):
    stale = hits = 0
    for i in range(int(os.environ["CELL_ROUNDS"])):
        key = f"cached:{i % 8}"
        before = reader.get(key)
        hits += reader.get(key) == before
        reader.get(f"noise:{i % 4}")
        writer.set(key, i)
        end = time.monotonic() + PATIENCE
        while reader.get(key) != str(i):
            if time.monotonic() > end:
                stale += 1
                break
        if stale == 3:
            break
    return stale, hits


main()
